"""What a database holds of a campaign: its rows, its fronts, and its best."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from liftpy.constraints.device import Device, those_named
from liftpy.errors import ConstraintRefused, LiftError, NothingMeasured, UnknownName
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.rows import Call, Identity, Row
from liftpy.explore.measure.outcome import counts
from liftpy.explore.measure.pareto import clear_front
from liftpy.ir.entry import entry

AXES = ("peak", "allocated", "scratch", "local", "private", "prepare")
"""The memory figures that a front can be drawn over; the first is the default."""

REASONS_SHOWN = 8


@dataclass(frozen=True, repr=False)
class Campaign:
    """What a database holds of a campaign, as of when it was read."""

    path: Path
    identity: Identity
    rows: tuple[Row, ...]
    exhausted: bool = False
    """Whether it has every candidate of its space; known to the call that explored it."""
    calls: tuple[Call, ...] = field(default=(), compare=False, repr=False)
    """The calls that explored it, each with its command line and what it ran on."""

    def __repr__(self) -> str:
        found = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items()) or "no candidate"
        return f"<Campaign of {self.identity.program} in {self.path}: {found}>"

    @classmethod
    @entry("lp.Campaign.read")
    def read(cls, path: Path | str) -> Campaign:
        """The campaign in a file. StoreRefused if the file has none."""
        with CampaignReader.read(Path(path)) as store:
            return cls(store.path, store.identity, tuple(store.rows()), calls=tuple(store.calls()))

    @property
    def device(self) -> Device:
        """The device that it ran on; of several, what they have in common."""
        return Device.from_json(self.identity.device)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it ran on."""
        return self.identity.devices

    @property
    def stopped(self) -> str:
        """Why its last call ended before the campaign did; empty where it did not."""
        return self.calls[-1].stopped if self.calls else ""

    @property
    def counts(self) -> dict[str, int]:
        """How many candidates had each outcome, the kinds that occur only, the good one first."""
        return counts(row.outcome for row in self.rows)

    def apart(self) -> tuple[Campaign, ...]:
        """For each of its devices what was measured there, as a campaign of that device.

        Times of different devices are in no table, picture or front together.
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
        """What was measured on one of its devices, or on the one whose number or name this is.

        Without a name there has to be one device only. UnknownName if it is not clear which.
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
    def pareto(self, axis: str = "peak", memory_limit: int | None = None) -> list[Row]:
        """The measured candidates that none clearly beats in time and in the memory figure `axis`.

        Of times, intervals are compared (`liftpy.explore.measure.pareto.rule` says it in a
        sentence). By rising median time; candidates of equal costs all stay, in the order of their
        ids. With a `memory_limit`, in bytes, only those whose figure is within it count. Each
        device has its own front, one after the other.
        """
        if axis not in AXES:
            raise UnknownName(
                f"no memory figure is named '{axis}'; choose one of {', '.join(AXES)}"
            )
        parts = self.apart()
        if len(parts) > 1:
            return [row for part in parts for row in part.pareto(axis, memory_limit)]
        measured = [
            (row.span, int(getattr(row.memory, axis)), row)
            for row in sorted(self.rows, key=lambda row: row.id)
            if row.outcome == "measured" and row.span is not None and row.memory is not None
        ]
        within = [p for p in measured if memory_limit is None or p[1] <= memory_limit]
        return [row for _, _, row in clear_front(within, costs=lambda p: (p[0], p[1]))]

    @entry("campaign.best")
    def best(self, memory_limit: int | None = None, device: Device | str | None = None) -> Row:
        """The fastest candidate whose peak is within the limit; of several devices, name one.

        NothingMeasured if nothing was measured, ConstraintRefused if all of it is larger.
        """
        mine = self.on(device)
        rows = mine.pareto(memory_limit=memory_limit)
        if not rows:
            raise nothing_within(mine, memory_limit)
        return min(rows, key=lambda row: row.time_ns or 0)


def nothing_within(campaign: Campaign, memory_limit: int | None) -> LiftError:
    """The error that no measured candidate is within a limit, or that nothing was measured."""
    every = campaign.pareto()
    if not every:
        return nothing_measured(campaign)
    least = min(every, key=lambda row: row.peak or 0)
    return ConstraintRefused(
        f"no candidate in {campaign.path} has a peak of {memory_limit} bytes or less; "
        f"the least is {least.peak} (candidate {least.id})"
    )


def nothing_measured(campaign: Campaign) -> NothingMeasured:
    """The error that nothing was measured, with how often each reason was given."""
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
