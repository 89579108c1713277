"""Plots of fronts; `report.tables.plot` imports this module, since matplotlib is an extra."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from liftpy.errors import LiftError
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.pareto import front, rule
from liftpy.explore.report.labels import Rectangle, beside, leader, short_ids
from liftpy.explore.report.scale import Scale, unit_of_axis
from liftpy.explore.report.wording import in_figure, in_time
from liftpy.files.writing import write_file
from liftpy.rewrite.skeleton import FAMILY

Point = tuple[float, float]

REACH = 5.0  # the radius of the mark of a point on the front, in typographic points
GREY, BLUE = "#9aa4af", "#0b62c4"
MARKERS = "osD^vPX*<>"  # one per family


def plot(campaign: Campaign, axis: str, path: Path) -> None:
    """Writes the plot of a campaign; raises LiftError if the file cannot be written."""
    picture = io.BytesIO()
    kind = path.suffix.removeprefix(".") or "png"
    try:
        FigureCanvasAgg(drawn(campaign, axis)).print_figure(picture, dpi=144, format=kind)
    except ValueError as error:  # a format that matplotlib does not know
        raise LiftError(
            f"the plot cannot be written to {path}: the format {kind} is not supported; name a "
            "file that ends with .png, .svg or .pdf"
        ) from error
    write_file(path, picture.getvalue())


def drawn(campaign: Campaign, axis: str) -> Figure:
    """A figure with a plot for each device, side by side, and the rule of the front below."""
    parts = campaign.apart()
    figure = Figure(figsize=(8 * len(parts), 5), layout="constrained")
    figure.supxlabel(
        textwrap.fill(rule(axis, modelled=campaign.modelled), 110 * len(parts)), fontsize=8
    )
    grid = figure.subplots(1, len(parts), squeeze=False)[0]
    fronts = [part.pareto(axis) for part in parts]
    places = [draw(*each, axis) for each in zip(grid, parts, fronts, strict=True)]
    figure.draw_without_rendering()  # computes all positions
    names = short_ids(campaign.rows)
    for axes, best, points in zip(grid, fronts, places, strict=True):
        name(
            axes,
            figure.dpi / 72,
            points,
            [f"{names[row.id]}{figures(row, best, axis)}" for row in best],
        )
    return figure


def draw(axes: Axes, campaign: Campaign, best: Sequence[Row], axis: str) -> list[Point]:
    """Draws all measured candidates of one device in grey, with a marker per family, and the front.

    Both axes are logarithmic, in a unit that fits their values. The line goes through the medians
    of the front that no other median dominates. Returns the position of each candidate of the
    front.
    """
    places: list[Point] = []
    measured = [(costs, row) for row in campaign.rows if (costs := row.costs(axis)) is not None]
    if measured:
        times = Scale.of([costs[0] for costs, _ in measured], 0, 1, "time")
        sizes = Scale.of([costs[1] for costs, _ in measured], 0, 1, unit_of_axis(axis))
        families = dict.fromkeys(str(row.assignment[FAMILY]) for _, row in measured)
        for family, marker in zip(families, MARKERS * len(families), strict=False):
            mine = [costs for costs, row in measured if row.assignment[FAMILY] == family]
            place = [times.at(a) for a, _ in mine], [sizes.at(b) for _, b in mine]
            axes.scatter(*place, s=22, c=GREY, alpha=0.7, marker=marker, label=family)
        costs = [costs for row in best if (costs := row.costs(axis)) is not None]
        places = [(times.at(a), sizes.at(b)) for a, b in costs]
        stairs = front(set(costs), costs=lambda c: c)
        across, up = [times.at(a) for a, _ in stairs], [sizes.at(b) for _, b in stairs]
        axes.step([across[0], *across, 1], [1, *up, up[-1]], where="post", c=BLUE, lw=1.2)
        axes.scatter(*zip(*places, strict=True), s=48, c=BLUE, ec="white", zorder=3, label="front")
        mark(axes.xaxis, times, "modelled time" if campaign.modelled else "time")
        mark(axes.yaxis, sizes, axis)
        axes.legend(fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.grid(alpha=0.3)
    axes.set_title(f"{campaign.identity.program} on {campaign.device.name}", parse_math=False)
    return places


def figures(row: Row, best: Sequence[Row], axis: str) -> str:
    """Both costs as text for the fastest and the smallest of a front; empty for others."""
    costs = {one.id: found for one in best if (found := one.costs(axis)) is not None}
    least = min(costs, key=lambda id_: costs[id_][::-1])
    if row.id not in (best[0].id, least):
        return ""
    time, size = costs[row.id]
    return f": {in_time(time)}, {in_figure(axis, size)}"


def name(axes: Axes, pixel: float, points: Sequence[Point], names: Sequence[str]) -> None:
    """Writes a label near each point, with a line to the point if it is farther away.

    pixel: pixels per typographic point. Labels for which there is no room are left out, and counted
    in the title.
    """
    texts = [axes.text(0, 0, said, fontsize=8, color=BLUE, zorder=4) for said in names]
    extents = [text.get_window_extent() for text in texts]
    shown = [tuple(axes.transData.transform(point)) for point in points]
    frame = axes.get_window_extent()
    inside = Rectangle(frame.x0, frame.y0, frame.x1, frame.y1)
    sizes = [(extent.width + 2 * pixel, extent.height + 2 * pixel) for extent in extents]
    back = axes.transData.inverted()
    for text, point, place in zip(
        texts, shown, beside(shown, sizes, inside, REACH * pixel), strict=True
    ):
        if place is None:
            text.remove()
            continue
        x, y = back.transform((place.left + pixel, place.top + pixel))
        text.set_position((x, y))
        if (end := leader(point, place, REACH * pixel)) is not None:
            axes.add_line(Line2D(*zip(*back.transform((point, end)), strict=True), c=BLUE, lw=0.5))
    if left := len(points) - len(axes.texts):
        axes.set_title(f"{axes.get_title()} ({left} of the front without a label)")


def mark(axis: Axis, scale: Scale, name: str) -> None:
    """Sets the ticks and the label of an axis."""
    axis.set_major_locator(FixedLocator([place for place, _ in scale.ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_ticklabels([text for _, text in scale.ticks])
    axis.set_label_text(f"{name} [{scale.unit}]")
