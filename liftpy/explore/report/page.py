"""A campaign as one HTML page; `report.tables.page` imports it, since jinja2 is an extra."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.hypervolume import Box, growth
from liftpy.explore.campaign.rows import ENERGY, ERROR, RMS, Row
from liftpy.explore.measure.check import TOLERANCE
from liftpy.explore.measure.outcome import TIMED
from liftpy.explore.measure.pareto import name_of
from liftpy.explore.report.bands import DARK, DASHES, LIGHT, Bands
from liftpy.explore.report.document import LEFT, RIGHT, labelled
from liftpy.explore.report.document import write as write_page
from liftpy.explore.report.labels import Rectangle, short_ids
from liftpy.explore.report.scale import Scale, unit_of_axis
from liftpy.explore.report.wording import (
    FIGURES,
    clock_text,
    disturbed_text,
    in_figure,
    in_span,
    in_time,
    rule_text,
    settings_text,
    short,
)

REASONS = 12  # how many reasons of failure are shown
FLAT, TALL = 330, 470  # the lower edge of the chart of a front with one line, and with several
VALUES = 16  # how many values of a parameter are shown
COMMON = {"search": "guided", "sampler": "uniform", "tolerance": TOLERANCE}


def write(campaign: Campaign, axis: str, path: Path, also: str | None = None) -> None:
    """Writes the page; raises LiftError if the file cannot be written."""
    filters: dict[str, Any] = {"time": in_time, "settings": settings_text}
    filters |= {"span": in_span, "moment": moment, "words": in_words}
    write_page(path, "report.html", contents(campaign, axis, also), filters)


def contents(campaign: Campaign, axis: str, also: str | None = None) -> dict[str, Any]:
    """The variables of the page's template."""
    third = () if also is None else (also,)
    rms = (RMS,) if ERROR in (axis, also) else ()
    names = short_ids(campaign.rows)
    return {
        "campaign": campaign,
        "identity": campaign.identity,
        "axis": axis,
        "also": also,
        "rule": rule_text(campaign, axis, also),
        "second": kind_of(axis),
        "third": "" if also is None else kind_of(also),
        "figures": [*dict.fromkeys((*FIGURES, axis, *third, ERROR, *rms))],
        "colours": {"light": LIGHT, "dark": DARK},
        "dashes": DASHES,
        "in_figure": in_figure,
        "name_of": name_of,
        "parts": [part_of(part, axis, also, names) for part in campaign.apart()],
        "measured": sum(campaign.counts.get(kind, 0) for kind in TIMED),
        "timed": "modelled" if campaign.modelled else "measured",
        "command": reproduce(campaign),
        "outcomes": [(kind, n, n / len(campaign.rows)) for kind, n in campaign.counts.items()],
        "disturbed": disturbed_text(campaign),
        "clock": clock_text(campaign),
        "reasons": reasons(campaign.rows),
    }


def kind_of(axis: str) -> str:
    """What the figure `axis` is, in headings."""
    return name_of(axis) if axis in {ERROR, ENERGY} else "memory"


def part_of(
    campaign: Campaign, axis: str, also: str | None, names: Mapping[str, str]
) -> dict[str, Any]:
    """The variables for one device: everything that depends on times."""
    best = campaign.pareto(axis, also=also)
    measured = [row for row in campaign.rows if row.has(axis, also)]
    return {
        "device": campaign.device,
        "front": best,
        "least": min((costs[1] for row in best if (costs := row.costs(axis))), default=None),
        "measured": measured,
        "scatter": scatter(measured, best, axis, Bands.of(measured, also), names)
        if measured
        else None,
        "progress": progress(campaign.rows, axis) if measured else None,
        "influences": influences(measured),
        "limits": limits(campaign.device),
    }


# --- how to reproduce it --------------------------------------------------------------------------


def reproduce(campaign: Campaign) -> str:
    """The command that explores the same space in the same order, from the program's text."""
    settings = campaign.identity.settings
    words = ["liftpy", "explore", f"{campaign.identity.program}.lift"]
    words += ["--samples", str(len(campaign.rows)), "--seed", str(campaign.identity.seed)]
    words += ["--search", settings.get("search", "random")]
    for name in ("sampler", "memory_limit", "max_error", "winograd_points", "tolerance"):
        value = settings.get(name)
        given = name == "tolerance" and settings.get("check") is None
        if value is not None and (given or value != COMMON.get(name)):
            words += [f"--{name.replace('_', '-')}", str(value)]
    for family in settings.get("families") or ():
        words += ["--family", family]
    for condition in settings.get("conditions") or ():
        listed = re.fullmatch(r"(\w+) is (?:one of )?([\w., ]+)", condition)
        if listed:
            words += ["--set", f"{listed[1]}={listed[2].replace(' ', '')}"]
        else:
            words += ["--where", condition]
    if len(campaign.devices) == 1:
        words += ["--device", campaign.device.name]
    else:
        words += ["--workers", "tcp://HOST:8786", "--expect", str(len(campaign.devices)), "--mixed"]
    return shlex.join([*words, "--db", "again.db"])


def moment(seconds: float | None) -> str:
    """A time in seconds since 1970 as a date and time in UTC."""
    if seconds is None:
        return "unknown: it is running, or ended abruptly"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def in_words(values: dict[str, Any]) -> list[tuple[str, str]]:
    """JSON data as names and texts, without values that are None."""
    flat = dict(values)
    flat |= flat.pop("libraries", {})
    return [(name.replace("_", " "), str(v)) for name, v in flat.items() if v is not None]


def limits(device: Device) -> list[tuple[str, str]]:
    """The limits that a device reports, by name."""
    told = device.to_json()
    shown = {n: v for n, v in told.items() if n not in ("platform", "name", "driver_version")}
    return [(name.replace("_", " "), json.dumps(v).strip('"')) for name, v in shown.items()]


# --- charts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A candidate, its position in a chart, and the band of its third figure."""

    x: float
    y: float
    row: Row
    band: int


def scatter(
    measured: Sequence[Row],
    best: Sequence[Row],
    axis: str,
    bands: Bands,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """The chart of time and the other cost: each candidate, and the front with its labels.

    The staircases go through the medians of the front that no other median dominates, one for each
    band of the third figure.
    """
    costs = [costs for row in measured if (costs := row.costs(axis)) is not None]
    x = Scale.of([c[0] for c in costs], LEFT, RIGHT, "time")
    y = Scale.of(
        [c[1] for c in costs], FLAT if bands.axis is None else TALL, 20, unit_of_axis(axis)
    )
    marks = [
        Mark(x.at(a), y.at(b), row, bands.index(row))
        for row, (a, b) in zip(measured, costs, strict=True)
    ]
    paths: list[tuple[int, str]] = []
    for band, stairs in bands.stairs(best, axis):
        path = f"M{x.at(stairs[0][0])},{y.end}"
        for a, b in stairs:
            path += f"H{x.at(a)}V{y.at(b)}"
        paths.append((band, f"{path}H{x.end}"))
    place = {mark.row.id: mark for mark in marks}
    along = [place.pop(row.id) for row in best]
    return {
        "x": x,
        "y": y,
        "others": list(place.values()),
        "front": along,
        "labelled": labelled(
            [(mark.x, mark.y) for mark in along],
            [names[row.id] for row in best],
            Rectangle(x.start, y.end, x.end, y.start),
        ),
        "paths": paths,
        "bands": [bands.text(k) for k in range(len(bands.bounds))] if bands.axis else [],
    }


def progress(rows: Sequence[Row], axis: str) -> dict[str, Any]:
    """The charts of the hypervolume and the best time after each candidate."""
    tried = [row.costs(axis) for row in rows]
    known = [c for c in tried if c is not None]
    box = Box.around(known, axis)
    values = growth(tried, box)
    x = Scale.linear(0, max(1, len(rows)), LEFT, RIGHT)
    volume = Scale.linear(0, 1, 200, 20)
    fastest = list(itertools.accumulate((c[0] if c else math.inf for c in tried), min))
    seen = [int(t) for t in fastest if t < math.inf]
    best = Scale.of(seen, 200, 20, "time")
    volumes, times = f"M{x.at(0)},{volume.at(0)}", f"M{x.at(len(rows) - len(seen))},"
    for k, value in enumerate(values, 1):
        volumes += f"V{volume.at(value)}H{x.at(k)}"
    for k, time in enumerate(seen, len(rows) - len(seen) + 1):
        times += f"{'V' if times[-1] != ',' else ''}{best.at(time)}H{x.at(k)}"
    return {
        "x": x,
        "volume": volume,
        "best": best,
        "volumes": volumes,
        "times": times,
        "box": box,
        "value": values[-1],
    }


def reasons(rows: Sequence[Row]) -> list[tuple[str, str, int, str]]:
    """Why candidates were not measured: outcome, reason, count, and the id of the first one."""
    bad = [row for row in rows if row.outcome not in TIMED]
    counted = Counter((row.outcome, short(row.reason)) for row in bad)
    first = {(row.outcome, short(row.reason)): row.id for row in reversed(bad)}
    return [(*why, n, first[why]) for why, n in counted.most_common(REASONS)]


def influences(measured: Sequence[Row]) -> list[dict[str, Any]]:
    """The relation of each parameter to time: a box plot per value, the strongest relation first.

    Each has only the candidates that have the parameter.
    """
    if len(measured) < 2:
        return []
    scale = Scale.of([row.time_ns or 0 for row in measured], 0, 420, "time")
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for row in measured for name in row.assignment):
        groups: dict[str | int, list[Row]] = {}
        for row in measured:
            if name in row.assignment:
                groups.setdefault(row.assignment[name], []).append(row)
        if len(groups) > 1:
            boxes = [box_of(value, rows, scale) for value, rows in in_order(groups)]
            found.append(
                {
                    "name": name,
                    "explained": explained(list(groups.values())),
                    "boxes": boxes[:VALUES],
                    "left": 20
                    + 9 * max(len(f"{b['value']} ({b['count']})") for b in boxes[:VALUES]),
                    "more": len(boxes) - VALUES,
                    "scale": scale,
                }
            )
    return sorted(found, key=lambda one: -one["explained"])


def in_order(groups: dict[str | int, list[Row]]) -> list[tuple[str | int, list[Row]]]:
    """The groups, numbers sorted by value and words by their fastest candidate."""
    if all(isinstance(value, int) for value in groups):
        return sorted(groups.items())
    return sorted(groups.items(), key=lambda group: min(row.time_ns or 0 for row in group[1]))


def box_of(value: str | int, rows: Sequence[Row], scale: Scale) -> dict[str, Any]:
    """The minimum, the quartiles and the maximum of some candidates' times, on a scale."""
    times = sorted(row.time_ns or 0 for row in rows)
    inner = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    said = f"{len(times)}: {in_time(times[0])} to {in_time(times[-1])}, median "
    return {
        "value": value,
        "count": len(times),
        "ends": [scale.at(t) for t in (times[0], *inner, times[-1])],
        "said": said + in_time(round(inner[1])),
    }


def explained(groups: Sequence[Sequence[Row]]) -> float:
    """The part of the variance of the logarithm of time that lies between the means of groups.

    The part expected for as many random groups is subtracted: this is Kelley's epsilon squared
    (1935), from 0 to 1.
    """
    logs = [[Scale.log(row.time_ns or 0) for row in rows] for rows in groups]
    every = [value for group in logs for value in group]
    inside = sum((v - statistics.fmean(group)) ** 2 for group in logs for v in group)
    whole = sum((value - statistics.fmean(every)) ** 2 for value in every)
    free = len(every) - len(logs)
    if not free or whole <= 0:
        return 0.0
    return max(0.0, 1 - inside / whole * (len(every) - 1) / free)
