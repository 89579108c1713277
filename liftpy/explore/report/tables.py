"""Fronts and candidates as tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.hypervolume import Box, growth
from liftpy.explore.campaign.rows import ERROR, Row
from liftpy.explore.measure.outcome import Kind
from liftpy.explore.measure.pareto import rule
from liftpy.explore.measure.samples import Interval
from liftpy.explore.optional import needing
from liftpy.explore.space.settings import Settings

FIGURES = ("peak", "allocated", "scratch", "local", "private")
NARROW_FIGURES = ("peak", "scratch")
WIDE = 120
"""The width of a terminal, in columns, from which tables show every figure."""

REASON = 100
"""The most characters of a reason in a table."""


COLOURS: dict[Kind | str, str] = {
    "measured": "green",
    "refused": "yellow",
    "build_failed": "red",
    "wrong": "bold red",
    "stray": "bold red",
    "timed_out": "yellow",
    "out_of_memory": "yellow",
    "untimed": "yellow",
    "crashed": "red",
    "defect": "bold red",
}


def front_json(campaign: Campaign, rows: Sequence[Row], axis: str = "peak") -> dict[str, Any]:
    """A front as JSON data, with each device's hypervolume after each of its candidates."""
    labels = labels_of(campaign)
    return {
        "program": campaign.identity.program,
        "device": campaign.identity.device,
        "devices": [device.to_json() for device in campaign.devices],
        "rule": rule(axis),
        "front": [_front_row(row, labels) for row in rows],
        "hypervolume": {
            part.device.fingerprint: _hypervolume(part, axis) for part in campaign.apart()
        },
    }


def _hypervolume(campaign: Campaign, axis: str) -> dict[str, Any] | None:
    """The hypervolume (`campaign.hypervolume`) as JSON data; None if nothing was measured."""
    tried = [row.costs(axis) for row in campaign.rows]
    measured = [costs for costs in tried if costs is not None]
    if not measured:
        return None
    box = Box.around(measured, axis)
    values = [round(value, 6) for value in growth(tried, box)]
    ends = {"ideal": box.ideal, "reference": box.reference}
    points = {name: {"time_ns": time, axis: size} for name, (time, size) in ends.items()}
    return {"value": values[-1], **points, "after_each": values}


def labels_of(campaign: Campaign) -> dict[str | None, str]:
    """The labels of the devices by fingerprint.

    None has the label of the only device, if there is one: rows of format 1 lack a fingerprint.
    """
    only = {None: campaign.device.label} if len(campaign.devices) == 1 else {}
    return only | {device.fingerprint: device.label for device in campaign.devices}


def _front_row(row: Row, labels: Mapping[str | None, str]) -> dict[str, Any]:
    return {
        "id": row.id,
        "device": row.device,
        "device_name": labels.get(row.device, ""),
        "time_ns": row.time_ns,
        "interval_ns": _interval(row),
        "disturbed": row.disturbed,
        **{name: getattr(row.memory, name) for name in FIGURES},
        ERROR: row.error,
        "rms": row.rms,
        "assignment": row.assignment,
        "derivation": row.derivation,
    }


def _interval(row: Row) -> list[int] | None:
    """The 95 % interval of the median time, in nanoseconds."""
    return None if row.span is None else [round(row.span.low), round(row.span.high)]


def candidates_json(campaign: Campaign) -> list[dict[str, Any]]:
    """Every candidate as JSON data."""
    labels = labels_of(campaign)
    return [
        {
            "id": row.id,
            "device": row.device,
            "device_name": labels.get(row.device, ""),
            "outcome": row.outcome,
            "reason": row.reason,
            "assignment": row.assignment,
            "time_ns": row.time_ns,
            "disturbed": row.disturbed,
        }
        for row in campaign.rows
    ]


def front_csv(campaign: Campaign, rows: Sequence[Row]) -> str:
    """A front as CSV, with a column for each parameter that its candidates have."""
    labels = labels_of(campaign)
    names = list(dict.fromkeys(name for row in rows for name in row.assignment))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    costs = ["time_ns", "low_ns", "high_ns", *FIGURES, ERROR, "rms"]
    writer.writerow(["id", "device", "device_name", *costs, "disturbed", *names])
    for row in rows:
        times = [row.time_ns, *(_interval(row) or ("", ""))]
        figures = [*(getattr(row.memory, name) for name in FIGURES), row.error, row.rms]
        chosen = [row.assignment.get(name, "") for name in names]
        on = row.device, labels.get(row.device, "")
        writer.writerow([row.id, *on, *times, *figures, int(row.disturbed), *chosen])
    return text.getvalue()


def front_table(rows: Sequence[Row], width: int, title: str | None = None) -> Table:
    """A front as a table; a narrow one has fewer figures. Disturbed times, if any, are marked."""
    doubted = any(row.disturbed for row in rows)
    shown = FIGURES if width >= WIDE else NARROW_FIGURES
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    for name in ("time", "95 %", *(["disturbed"] if doubted else []), *shown, ERROR):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold")
    for row in rows:
        figures = [in_figure(name, row.figure(name)) for name in (*shown, ERROR)]
        told = ["yes" if row.disturbed else ""] if doubted else []
        costs = in_time(row.time_ns), in_span(row.span), *told, *figures
        table.add_row(row.id, *costs, settings_text(row.assignment))
    return table


def candidates_table(campaign: Campaign, *, full: bool = False) -> Table:
    """Every candidate as a table, with `REASON` characters of the first line of each reason.

    `full` shows complete reasons. All texts wrap, so that no column is lost. If there are several
    devices, each row names the one that measured the candidate.
    """
    several = len(campaign.devices) > 1
    labels = labels_of(campaign)
    table = Table(box=None, pad_edge=False)
    for name in ("id", "outcome"):
        table.add_column(name, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for name in (*(["device"] if several else []), "candidate", "reason"):
        table.add_column(name, overflow="fold", ratio=1)
    for row in campaign.rows:
        table.add_row(
            row.id,
            f"[{COLOURS.get(row.outcome, 'dim')}]{row.outcome}[/]",
            in_time(row.time_ns),
            *([escape(labels.get(row.device, ""))] if several else []),
            settings_text(row.assignment),
            escape(row.reason.strip() if full else short(row.reason)),
        )
    return table


def curve_table(fastest: Sequence[int | None], volumes: Sequence[float]) -> Table:
    """The best time and the hypervolume after each trial that changed either of them."""
    table = Table(box=None, pad_edge=False)
    for name in ("trials", "best", "hypervolume"):
        table.add_column(name, justify="right", no_wrap=True)
    before: tuple[int | None, float] = (None, 0.0)
    for k, now in enumerate(zip(fastest, volumes, strict=True), 1):
        if now != before or k == len(volumes):
            table.add_row(str(k), in_time(now[0]), f"{now[1]:.3f}")
        before = now
    return table


def candidates_text(count: int) -> str:
    """A number of candidates in words: `1 candidate`, `3 candidates`."""
    return "1 candidate" if count == 1 else f"{count} candidates"


def counts_text(counts: dict[str, int]) -> str:
    """The number of each outcome in one line: `57 measured, 3 timed_out`."""
    return ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "nothing yet"


def outcomes_text(campaign: Campaign) -> str:
    """The outcomes of a campaign in one line, and how many measurements were disturbed."""
    counted = counts_text(campaign.counts)
    disturbed = disturbed_text(campaign)
    return f"{counted}; {disturbed}" if disturbed else counted


def disturbed_text(campaign: Campaign) -> str:
    """How many measured candidates were disturbed: `3 of 100 disturbed`; empty if none."""
    measured = [row for row in campaign.rows if row.outcome == "measured"]
    n = sum(row.disturbed for row in measured)
    return f"{n} of {len(measured)} disturbed" if n else ""


def settings_text(settings: Settings) -> str:
    """Settings in the form that `--set` takes."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def in_time(nanoseconds: int | None) -> str:
    """A time as text, in a suitable unit."""
    if nanoseconds is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds} ns"


def in_span(span: Interval | None) -> str:
    """The ends of an interval relative to its median: `-1 +3 %`."""
    if span is None or not span.middle:
        return ""
    low, high = (100 * (end - span.middle) / span.middle for end in (span.low, span.high))
    return f"{low:+.0f} {high:+.0f} %"


def in_bytes(size: int | None) -> str:
    """A size in bytes as text, in a suitable unit."""
    if size is None:
        return ""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << bits:
            return f"{size / (1 << bits):.2f} {unit}"
    return f"{size} B"


def in_figure(axis: str, value: float | None) -> str:
    """A figure of an axis as text: a size in bytes in a suitable unit, or an error."""
    if axis != ERROR or value is None:
        return in_bytes(None if value is None else int(value))
    return f"{value:.1e}"


def short(text: str) -> str:
    """The first line of a text, cut to `REASON` characters."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= REASON else f"{line[: REASON - 1].rstrip()}…"


def plot(campaign: Campaign, axis: str, path: Path) -> None:
    """Plots all measured candidates and the front; raises LiftError without matplotlib."""
    needing("matplotlib", "plot", "liftpy.explore.report.plot", "a plot").plot(campaign, axis, path)


def page(campaign: Campaign, axis: str, path: Path) -> None:
    """Writes a campaign as one HTML page; raises LiftError without jinja2."""
    needing("jinja2", "report", "liftpy.explore.report.page", "a report").write(
        campaign, axis, path
    )
