"""A profile of a network as one HTML page; imported by name, since jinja2 is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.explore.report.document import LEFT, RIGHT, Label, labelled
from liftpy.explore.report.document import write as write_page
from liftpy.explore.report.labels import Rectangle
from liftpy.explore.report.scale import Scale
from liftpy.explore.report.wording import in_bytes, in_time
from liftpy.explore.space.version import VERSION
from liftpy.networks.profiling import OperationTime, Peak, Profile

TOP, BOTTOM = 34, 360  # the edges of the chart; the names of the roofs are above it
ROOM = 4
"""The factor from the ridge, where the roofs meet, to the nearest edges of the chart, at least."""


def write(profile: Profile, network: str, device: Device, path: Path) -> None:
    """Writes a row for each operation and a roofline; LiftError if the file cannot be written."""
    contents: dict[str, Any] = {
        "profile": profile,
        "network": network,
        "device": device,
        "version": VERSION,
        "roofline": roofline(profile),
        "largest": max((row.share for row in profile.rows), default=0) or 1,
        "without": [row for row in profile.rows if not row.flops],
    }
    filters = {"time": in_time, "bytes": in_bytes}
    write_page(path, "profile.html", contents, filters, package="liftpy.networks")


@dataclass(frozen=True)
class Mark:
    """An operation, the number of its row, and its position in the chart."""

    x: float
    y: float
    number: int
    row: OperationTime


@dataclass(frozen=True)
class Roofline:
    """The chart of arithmetic intensity and performance.

    `memory` and `arithmetic` are the paths of the roofs, which meet at the ridge. `marks` are
    sorted by time, longest first. The labels are the names of all operations or, if these have no
    room, the numbers of the rows for which there is room.
    """

    x: Scale
    y: Scale
    memory: str
    arithmetic: str
    marks: Sequence[Mark]
    labels: Sequence[Label]
    numbered: bool

    @property
    def unlabelled(self) -> int:
        """How many marks have no label."""
        return len(self.marks) - len(self.labels)


def roofline(profile: Profile) -> Roofline | None:
    """The chart of the operations with arithmetic; None if there are none."""
    numbered = [(k, row) for k, row in enumerate(profile.rows, 1) if row.flops]
    if not numbered:
        return None
    numbered.sort(key=lambda pair: -pair[1].time_ns)  # for them, there is most room for labels
    x, y = scales([row for _, row in numbered], profile.peak)
    marks = [Mark(x.at(row.intensity), y.at(row.flop_rate), k, row) for k, row in numbered]
    points = [(mark.x, mark.y) for mark in marks]
    frame = Rectangle(x.start, y.end, x.end, y.start)
    labels = labelled(points, [mark.row.operation for mark in marks], frame)
    named = len(labels) == len(marks)
    if not named:
        labels = labelled(points, [str(mark.number) for mark in marks], frame)
    ridge, top = x.at(profile.peak.ridge), y.at(profile.peak.flops)
    least = max(x.low, y.low / profile.peak.bytes)
    return Roofline(
        x,
        y,
        f"M{x.at(least)},{y.at(least * profile.peak.bytes)}L{ridge},{top}",
        f"M{ridge},{top}H{x.end}",
        marks,
        labels,
        not named,
    )


def scales(rows: Sequence[OperationTime], peak: Peak) -> tuple[Scale, Scale]:
    """The axes of intensity and performance, which contain all rows and the ridge."""
    across = [row.intensity for row in rows] + [peak.ridge / ROOM, peak.ridge * ROOM]
    up = [row.flop_rate for row in rows] + [peak.flops / ROOM, peak.flops]
    return (
        Scale.of(across, LEFT, RIGHT, "intensity"),
        Scale.of(up, BOTTOM, TOP, "rate"),
    )
