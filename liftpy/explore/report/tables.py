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
from liftpy.explore.campaign.rows import ENERGY, ERROR, RMS, Row
from liftpy.explore.measure.outcome import Kind
from liftpy.explore.measure.pareto import name_of
from liftpy.explore.optional import needing
from liftpy.explore.report.wording import (
    FIGURES,
    in_figure,
    in_span,
    in_time,
    rule_text,
    settings_text,
    short,
)

NARROW_FIGURES = ("peak", "scratch")
PICOJOULES = "energy_proxy_pj"
"""The energy proxy in JSON and CSV; both have it only if it was asked for."""

WIDE = 120
"""The width of a terminal, in columns, from which tables show every figure."""


COLOURS: dict[Kind | str, str] = {
    "measured": "green",
    "modelled": "cyan",
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


def front_json(
    campaign: Campaign, rows: Sequence[Row], axis: str = "peak", also: str | None = None
) -> dict[str, Any]:
    """A front as JSON data, with each device's hypervolume after each of its candidates.

    The hypervolume is that of time and the figure `axis`.
    """
    labels = labels_of(campaign)
    return {
        "program": campaign.identity.program,
        "device": campaign.identity.device,
        "devices": [device.to_json() for device in campaign.devices],
        "rule": rule_text(campaign, axis, also),
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
    key = PICOJOULES if axis == ENERGY else axis
    points = {name: {"time_ns": time, key: size} for name, (time, size) in ends.items()}
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
        **({} if row.energy is None else {PICOJOULES: row.energy}),
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
    energy = any(row.energy is not None for row in rows)
    costs = ["time_ns", "low_ns", "high_ns", *FIGURES, ERROR, "rms", *[PICOJOULES] * energy]
    writer.writerow(["id", "device", "device_name", *costs, "disturbed", *names])
    for row in rows:
        times = [row.time_ns, *(_interval(row) or ("", ""))]
        figures = [*(getattr(row.memory, name) for name in FIGURES), row.error, row.rms]
        figures += [row.energy] * energy
        chosen = [row.assignment.get(name, "") for name in names]
        on = row.device, labels.get(row.device, "")
        writer.writerow([row.id, *on, *times, *figures, int(row.disturbed), *chosen])
    return text.getvalue()


def front_table(
    rows: Sequence[Row],
    width: int,
    title: str | None = None,
    axis: str = "peak",
    also: str | None = None,
) -> Table:
    """A front as a table; a narrow one has fewer figures. Disturbed times, if any, are marked.

    A front of errors has their root mean square, too.
    """
    doubted = any(row.disturbed for row in rows)
    asked = [figure for figure in (axis, also) if figure is not None]
    rms = [RMS] if ERROR in asked else []
    figures = FIGURES if width >= WIDE else NARROW_FIGURES
    shown = dict.fromkeys((*figures, *asked, ERROR, *rms))
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    time = "modelled time" if any(row.outcome == "modelled" for row in rows) else "time"
    named = map(name_of, shown)
    for name in (time, "95 %", *(["disturbed"] if doubted else []), *named):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold")
    for row in rows:
        told = ["yes" if row.disturbed else ""] if doubted else []
        values = (in_figure(name, row.figure(name)) for name in shown)
        costs = in_time(row.time_ns), in_span(row.span), *told, *values
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


def plot(campaign: Campaign, axis: str, path: Path, also: str | None = None) -> None:
    """Plots all measured candidates and the front; raises LiftError without matplotlib."""
    plots = needing("matplotlib", "plot", "liftpy.explore.report.plot", "a plot")
    plots.plot(campaign, axis, path, also)


def page(campaign: Campaign, axis: str, path: Path, also: str | None = None) -> None:
    """Writes a campaign as one HTML page; raises LiftError without jinja2."""
    pages = needing("jinja2", "report", "liftpy.explore.report.page", "a report")
    pages.write(campaign, axis, path, also)
