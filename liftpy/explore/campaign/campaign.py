"""The contents of a campaign's database: its rows, its fronts, and its best candidate."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from liftpy.constraints.device import Device, those_named
from liftpy.errors import ConstraintRefused, LiftError, NothingMeasured, UnknownName
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.rows import ENERGY, ERROR, Call, Identity, Row
from liftpy.explore.measure.outcome import TIMED, counts
from liftpy.explore.measure.pareto import clear_front
from liftpy.language.entry import entry

AXES = ("peak", "allocated", "scratch", "local", "private", "prepare", ERROR, ENERGY)
"""The figures that can be the second axis of a front; the first is the default."""

REASONS_SHOWN = 8


@dataclass(frozen=True, repr=False)
class Campaign:
    """The contents of a campaign's database when it was read; `lp.explore` returns one.

    >>> squares = lp.parse("def squares(xs: [64]f32) = xs |> map(x => x * x)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     options = {"db": f"{folder}/squares.db", "device": "profile:mali-g72"}
    ...     _ = lp.explore(squares, samples=3, modelled=True, **options)
    ...     campaign = lp.Campaign.read(options["db"])
    >>> campaign.counts, campaign.best().peak
    ({'modelled': 3}, 512)
    """

    path: Path
    identity: Identity
    rows: tuple[Row, ...]
    exhausted: bool = False
    """Whether it has every candidate of its space; only the call that explored it knows this."""
    calls: tuple[Call, ...] = field(default=(), compare=False, repr=False)
    """The calls that explored it, each with its command line and its environment."""
    energy_costs: str = field(default="", compare=False)
    """The name of the table of costs from which the energy proxies of its rows are computed."""

    def __repr__(self) -> str:
        found = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items()) or "no candidate"
        return f"<Campaign of {self.identity.program} in {self.path}: {found}>"

    @classmethod
    @entry("lp.Campaign.read")
    def read(cls, path: Path | str) -> Campaign:
        """The campaign in a file; raises StoreRefused if the file has none."""
        with CampaignReader.read(Path(path)) as store:
            return cls(store.path, store.identity, tuple(store.rows()), calls=tuple(store.calls()))

    @property
    def device(self) -> Device:
        """The device that it ran on; if there are several, their common limits."""
        return Device.from_json(self.identity.device)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it ran on."""
        return self.identity.devices

    @property
    def stopped(self) -> str:
        """Why its last call ended before the campaign was complete; empty if it did not."""
        return self.calls[-1].stopped if self.calls else ""

    @property
    def modelled(self) -> bool:
        """Whether its times are modelled, not measured."""
        return bool(self.identity.settings.get("modelled"))

    @property
    def counts(self) -> dict[str, int]:
        """The number of candidates with each outcome that occurs, `measured` first."""
        return counts(row.outcome for row in self.rows)

    def apart(self) -> tuple[Campaign, ...]:
        """For each device, its measurements as a campaign of that device.

        No table, plot or front mixes times of different devices.
        """
        if len(self.devices) == 1:
            return (self,)
        return tuple(
            replace(
                self,
                identity=self.identity.on(device),
                rows=tuple(row for row in self.rows if row.device == device.fingerprint),
            )
            for device in self.devices
        )

    def on(self, device: Device | str | None = None) -> Campaign:
        """The measurements on one of its devices, given by value, number or part of its name.

        Without an argument, the campaign must have only one device. Raises UnknownName if not
        exactly one device fits.
        """
        parts = self.apart()
        names = [part.device for part in parts]
        if isinstance(device, Device):
            fitting = [each for each in names if each.fingerprint == device.fingerprint]
        else:
            fitting = names if device is None else those_named(device, names)
        if len(fitting) != 1:
            word = device.label if isinstance(device, Device) else device
            asked = "" if word is None else f", and {len(fitting) or 'none'} of them match '{word}'"
            listing = "".join(f"\n  {k}  {each.label}" for k, each in enumerate(names))
            raise UnknownName(
                f"{self.path} has times of {len(names)} device{'s' * (len(names) > 1)}{asked}; "
                f"name one (--device) by its number or a part of its name:{listing}"
            )
        return parts[names.index(fitting[0])]

    @entry("campaign.pareto")
    def pareto(
        self,
        axis: str = "peak",
        memory_limit: int | None = None,
        *,
        max_error: float | None = None,
        also: str | None = None,
    ) -> list[Row]:
        """The measured candidates that no other clearly beats in time and in the figure `axis`.

        With `also`, another figure, the front is of all three; errors then count as equal if they
        are rounded up to the same power of 2.

        In a modelled campaign these are the modelled candidates.

        `axis` is a memory figure; or `error`, the largest error of the result, relative to the
        largest value of the meaning; or `energy`, the energy proxy in pJ of a campaign that has it
        (`lp.with_energy`); proxies with the same two digits, rounded up, count as equal. Times are
        compared by their intervals (`liftpy.explore.measure.pareto.rule` states the rule in a
        sentence). The rows are sorted by median time; candidates of equal costs are all kept, in
        the order of their ids. Only candidates count whose peak is at most `memory_limit` bytes and
        whose error is at most `max_error`. Each device has its own front; they are concatenated.
        """
        for figure in (axis,) if also is None else (axis, also):
            if figure not in AXES:
                raise UnknownName(f"no figure is named '{figure}'; choose one of {', '.join(AXES)}")
        if self.modelled and (ERROR in {axis, also} or max_error is not None):
            raise ConstraintRefused(
                f"{self.path} is a modelled campaign: nothing ran, so its results have no errors"
            )
        if ENERGY in {axis, also} and not self.energy_costs:
            raise ConstraintRefused(
                f"the candidates of {self.path} have no energy proxy yet: files do not store it; "
                "compute it with lp.with_energy(campaign)"
            )
        parts = self.within(memory_limit, max_error).apart()
        if len(parts) != 1:
            return [row for part in parts for row in part.pareto(axis, also=also)]
        (alone,) = parts
        known = [
            ((row.span, *figures), row)
            for row in sorted(alone.rows, key=lambda row: row.id)
            if row.outcome in TIMED
            and row.span is not None
            and (figures := compared(row, axis, also)) is not None
        ]
        return [row for _, row in clear_front(known, costs=lambda one: one[0])]

    def within(self, memory_limit: int | None = None, max_error: float | None = None) -> Campaign:
        """The campaign without the measured candidates that exceed a limit on peak or error."""

        def beyond(row: Row) -> bool:
            peak, error = row.peak, row.error
            larger = memory_limit is not None and (peak is None or peak > memory_limit)
            return larger or (max_error is not None and (error is None or error > max_error))

        kept = (row for row in self.rows if row.outcome not in TIMED or not beyond(row))
        return replace(self, rows=tuple(kept))

    @entry("campaign.best")
    def best(
        self,
        memory_limit: int | None = None,
        device: Device | str | None = None,
        *,
        max_error: float | None = None,
    ) -> Row:
        """The fastest candidate whose peak and error are within the limits.

        `device` selects one of several. Raises NothingMeasured if nothing was measured,
        ConstraintRefused if no candidate is within the limits.
        """
        mine = self.on(device)
        rows = mine.pareto(memory_limit=memory_limit, max_error=max_error)
        if not rows:
            raise nothing_within(mine, memory_limit, max_error)
        return min(rows, key=lambda row: row.time_ns or 0)


def compared(row: Row, axis: str, also: str | None) -> tuple[float, ...] | None:
    """The figures of a row that a front compares; None if one is not known."""
    found: list[float] = []
    for asked in (axis,) if also is None else (axis, also):
        figure = row.figure(asked)
        if figure is None:
            return None
        if asked == ENERGY:
            figure = two_digits(figure)
        found.append(coarse(figure) if asked == ERROR and also is not None else figure)
    return tuple(found)


def coarse(error: float) -> float:
    """The least power of 2 that is no less than an error."""
    return 2.0 ** math.ceil(math.log2(error)) if 0 < error < math.inf else error


def two_digits(value: float) -> float:
    """The least number with two significant digits that is no less than a value.

    >>> two_digits(21012.7), two_digits(99.5), two_digits(0.0)
    (22000.0, 100.0, 0.0)
    """
    if not 0 < value < math.inf:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def nothing_within(
    campaign: Campaign, memory_limit: int | None, max_error: float | None = None
) -> LiftError:
    """The error for limits that no measured candidate meets, or for no measured candidate."""
    every = campaign.pareto(max_error=max_error)
    if every:
        least = min(every, key=lambda row: row.peak or 0)
        also = "" if max_error is None else f" and an error of {max_error!r} or less"
        return ConstraintRefused(
            f"no candidate in {campaign.path} has a peak of {memory_limit} bytes or less{also}; "
            f"the least{' within this error' * bool(also)} is {least.peak} "
            f"(candidate {least.id})"
        )
    every = campaign.pareto(ERROR)
    if not every:
        return nothing_measured(campaign)
    least = min(every, key=lambda row: row.error or 0)
    return ConstraintRefused(
        f"no candidate in {campaign.path} has an error of {max_error!r} or less; "
        f"the least is {least.error!r} (candidate {least.id})"
    )


def nothing_measured(campaign: Campaign) -> NothingMeasured:
    """The error for a campaign without measurements, with the number of failures per reason."""
    reasons = Counter(
        f"{row.outcome}: {row.reason.strip().splitlines()[0]}" for row in campaign.rows
    )
    lines = [f"  {n} x {reason}" for reason, n in reasons.most_common(REASONS_SHOWN)]
    if len(reasons) > REASONS_SHOWN:
        lines.append(f"  and {len(reasons) - REASONS_SHOWN} other reasons")
    stopped = [f"  {campaign.stopped}"] if campaign.stopped else []
    why = [*lines, *stopped] or ["  no candidate was tried"]
    tried = f"{len(campaign.rows)} candidate{'' if len(campaign.rows) == 1 else 's'}"
    return NothingMeasured(
        "\n".join(
            [
                f"no candidate of {campaign.identity.program} was measured; {tried} tried:",
                *why,
                f"`liftpy candidates {campaign.path}` lists them with full reasons",
            ]
        )
    )
