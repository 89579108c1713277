"""Figures, times, counts and settings as text."""

from __future__ import annotations

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.rows import ENERGY, ERROR, RMS
from liftpy.explore.measure.pareto import rule
from liftpy.explore.measure.samples import Interval
from liftpy.explore.space.settings import Settings
from liftpy.opencl.clock import BY_HOST

FIGURES = ("peak", "allocated", "scratch", "local", "private")

REASON = 100
"""The most characters of a reason in a table."""


def candidates_text(count: int) -> str:
    """A number of candidates in words: `1 candidate`, `3 candidates`."""
    return "1 candidate" if count == 1 else f"{count} candidates"


def counts_text(counts: dict[str, int]) -> str:
    """The number of each outcome in one line: `57 measured, 3 timed_out`."""
    return ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "nothing yet"


def outcomes_text(campaign: Campaign) -> str:
    """The outcomes of a campaign in one line, how many were disturbed, and an unusual clock."""
    told = (counts_text(campaign.counts), disturbed_text(campaign), clock_text(campaign))
    return "; ".join(filter(None, told))


def disturbed_text(campaign: Campaign) -> str:
    """How many measured candidates were disturbed: `3 of 100 disturbed`; empty if none."""
    measured = [row for row in campaign.rows if row.outcome == "measured"]
    n = sum(row.disturbed for row in measured)
    return f"{n} of {len(measured)} disturbed" if n else ""


def rule_text(campaign: Campaign, axis: str, also: str | None = None) -> str:
    """The rule of a campaign's front, with the table of costs of energy proxies."""
    stated = rule(axis, modelled=campaign.modelled, also=also)
    by = campaign.energy_costs if ENERGY in {axis, also} else ""
    return f"{stated} The costs are those of the table {by}." if by else stated


def clock_text(campaign: Campaign) -> str:
    """The sentence about the host's clock if it timed any candidate; empty if it did not."""
    return BY_HOST if any(BY_HOST in row.reason for row in campaign.rows) else ""


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


def in_energy(picojoules: float) -> str:
    """An energy as text, in a suitable unit."""
    for unit, size in (("J", 1e12), ("mJ", 1e9), ("uJ", 1e6), ("nJ", 1e3)):
        if picojoules >= size:
            return f"{picojoules / size:.3g} {unit}"
    return f"{picojoules:.3g} pJ"


def in_figure(axis: str, value: float | None) -> str:
    """A figure of an axis as text: a size or an energy in a suitable unit, or an error."""
    if axis == ENERGY and value is not None:
        return in_energy(value)
    if axis not in {ERROR, RMS} or value is None:
        return in_bytes(None if value is None else int(value))
    return f"{value:.1e}"


def short(text: str) -> str:
    """The first line of a text, cut to `REASON` characters."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= REASON else f"{line[: REASON - 1].rstrip()}…"
