"""The values stored in a campaign database: its identity, its calls, a row per candidate."""

from __future__ import annotations

import json
import math
import sqlite3
import statistics
from dataclasses import dataclass, replace
from typing import Any

from liftpy.constraints.device import Device
from liftpy.explore.measure.outcome import TIMED
from liftpy.explore.measure.samples import Interval, interval_of
from liftpy.explore.space.settings import Settings
from liftpy.opencl.kernel import MemoryFigures

ERROR = "error"
"""The axis of the largest error of a result."""

ENERGY = "energy"
"""The axis of the energy proxy."""

RMS = "rms"
"""The figure for the root mean square of a result's errors."""


@dataclass(frozen=True)
class Identity:
    """Everything that determines a campaign; a database belongs to one.

    `settings` are those that determine which candidates are drawn and how they are checked.
    """

    program: str
    text: str
    device: dict[str, Any]
    version: str
    seed: int
    settings: dict[str, Any]

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the campaign: one, or those of a mixed cluster."""
        several = self.settings.get("devices")
        return tuple(Device.from_json(d) for d in several or (self.device,))

    def on(self, device: Device) -> Identity:
        """The identity of the part that one of its devices has measured."""
        return replace(self, device=device.to_json(), settings={**self.settings, "devices": None})


@dataclass(frozen=True)
class Call:
    """A call that started or resumed a campaign, at a time in seconds since 1970.

    `limits` are the settings that may differ between calls; `environment` describes the machine
    and the software (`liftpy.explore.campaign.environment`). `ended` is None if the call is running
    or ended abruptly.
    """

    command: str
    limits: dict[str, Any]
    environment: dict[str, Any]
    started: float
    ended: float | None = None

    @property
    def stopped(self) -> str:
        """Why it ended before the campaign was complete; empty if it did not."""
        return str(self.limits.get("stopped", ""))


@dataclass(frozen=True)
class Row:
    """A stored candidate and its outcome; its figures are None if it was not measured.

    `outcome` is a kind of `liftpy.explore.measure.outcome`, or `running` or `pending` if it has
    none. Times are in nanoseconds, memory is in bytes; `error` and `rms` are as in
    `liftpy.explore.measure.outcome`. `device` is the fingerprint of the device that launched its
    kernels. `disturbed`: whether the device was slower or faster than usual during the measurement.
    `energy` is the energy proxy in pJ, which is not stored (`lp.with_energy`).
    """

    id: str
    ordinal: int
    skeleton: str
    assignment: Settings
    derivation: list[dict[str, Any]]
    outcome: str
    reason: str
    time_ns: int | None
    times_ns: list[list[int]] | None
    prepare_ns: int | None
    memory: MemoryFigures | None
    error: float | None
    rms: float | None
    build_seconds: float | None
    device: str | None = None
    disturbed: bool = False
    energy: float | None = None

    @property
    def span(self) -> Interval | None:
        """The median time in ns and its interval; None if it was not measured."""
        if self.time_ns is None or not self.times_ns:
            return None
        return interval_of([sum(row) for row in self.times_ns])

    @property
    def peak(self) -> int | None:
        """The largest sum of live global buffers, in bytes."""
        return None if self.memory is None else self.memory.peak

    def costs(self, axis: str) -> tuple[int, float] | None:
        """Time in ns, and another figure; None if it was not measured."""
        figure = self.figure(axis)
        return None if self.time_ns is None or figure is None else (self.time_ns, figure)

    def has(self, axis: str, also: str | None) -> bool:
        """Whether it was measured, and has these figures."""
        return self.costs(axis) is not None and (also is None or self.figure(also) is not None)

    def figure(self, axis: str) -> float | None:
        """A memory figure in bytes, an error, or the energy proxy in pJ; None if not known."""
        return getattr(self if axis in {ERROR, RMS, ENERGY} else self.memory, axis, None)


def to_row(row: sqlite3.Row, times_ns: list[list[int]] | None) -> Row:
    """A row from the joined tables of a candidate, and its samples."""
    chosen = json.loads(row["assignment"])
    figures = {name: row[name] for name in MemoryFigures.__dataclass_fields__}
    _check_figures(row["key"], {n: row[n] for n in ("time_ns", "prepare_ns")} | figures, times_ns)
    _check_errors(row["key"], {name: row[name] for name in ("max_error", "rms_error")})
    measured = row["kind"] in TIMED  # what was wrong only when measured again has figures too
    return Row(
        id=row["key"],
        ordinal=row["ordinal"],
        skeleton=row["skeleton"],
        assignment={**chosen["words"], **chosen["sizes"]},
        derivation=json.loads(row["steps"]),
        outcome=row["kind"],
        reason=row["reason"],
        time_ns=(_median(times_ns) or row["time_ns"]) if measured else None,
        times_ns=times_ns if measured else None,
        prepare_ns=row["prepare_ns"] if measured else None,
        memory=MemoryFigures(**figures) if measured and row["peak"] is not None else None,
        error=row["max_error"] if measured else None,
        rms=row["rms_error"] if measured else None,
        build_seconds=row["seconds"],
        device=row["fingerprint"] or None,
        disturbed=measured and bool(row["disturbed"]),
    )


def _check_figures(
    key: str, figures: dict[str, int | None], times_ns: list[list[int]] | None
) -> None:
    """Raises ValueError or TypeError for a figure that cannot be a measurement."""
    for name, value in figures.items():
        if value is not None and value < 0:
            raise ValueError(f"the {name} of {key} is {value}")
    if least := [ns for launches in times_ns or () for ns in launches if ns < 0]:
        raise ValueError(f"a time of {key} is {least[0]} ns")


def _check_errors(key: str, errors: dict[str, float | None]) -> None:
    """Raises ValueError or TypeError for a number that cannot be the error of a right result."""
    for name, value in errors.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"the {name} of {key} is {value}")


def _median(times_ns: list[list[int]] | None) -> int | None:
    """The median of all samples, including later ones; None if there are none."""
    return round(statistics.median(map(sum, times_ns))) if times_ns else None
