"""Plots of fronts; `report.tables.plot` imports this module, since matplotlib is an extra."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, NullLocator

from liftpy.errors import LiftError
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.pareto import name_of
from liftpy.explore.report.bands import DASHES, LIGHT, Bands
from liftpy.explore.report.labels import Rectangle, beside, leader, short_ids
from liftpy.explore.report.scale import Scale, unit_of_axis
from liftpy.explore.report.wording import in_figure, in_time, rule_text
from liftpy.files.writing import write_file
from liftpy.rewrite.skeleton import FAMILY

Point = tuple[float, float]

REACH = 5.0  # the radius of the mark of a point on the front, in typographic points
GREY, BLUE = "#9aa4af", "#0b62c4"
MARKERS = "os^DPvX*<>"  # one per band, in the order of the page's shapes, or one per family
WIDTH, HEIGHT, SMALL, LETTERS = (
    6.4,
    5.2,
    10,
    84,
)  # in inches and points; the last, letters in a line


def plot(campaign: Campaign, axis: str, path: Path, also: str | None = None) -> None:
    """Writes the plot of a campaign; raises LiftError if the file cannot be written."""
    picture = io.BytesIO()
    kind = path.suffix.removeprefix(".") or "png"
    try:
        FigureCanvasAgg(drawn(campaign, axis, also)).print_figure(picture, dpi=144, format=kind)
    except ValueError as error:  # a format that matplotlib does not know
        raise LiftError(
            f"the plot cannot be written to {path}: the format {kind} is not supported; name a "
            "file that ends with .png, .svg or .pdf"
        ) from error
    write_file(path, picture.getvalue())


def drawn(campaign: Campaign, axis: str, also: str | None = None) -> Figure:
    """A figure with a plot for each device, side by side, and the rule of the front below."""
    parts = campaign.apart()
    figure = Figure(figsize=(WIDTH * len(parts), HEIGHT), layout="constrained")
    stated = rule_text(campaign, axis, also)
    figure.supxlabel(textwrap.fill(stated, LETTERS * len(parts)), fontsize=SMALL)
    grid = figure.subplots(1, len(parts), squeeze=False)[0]
    fronts = [part.pareto(axis, also=also) for part in parts]
    places = [draw(*each, axis, also) for each in zip(grid, parts, fronts, strict=True)]
    figure.draw_without_rendering()  # computes all positions
    names = short_ids(campaign.rows)
    for axes, best, points in zip(grid, fronts, places, strict=True):
        name(
            axes,
            figure.dpi / 72,
            points,
            [f"{names[row.id]}{figures(row, best, axis, also)}" for row in best],
        )
    return figure


def draw(
    axes: Axes, campaign: Campaign, best: Sequence[Row], axis: str, also: str | None
) -> list[Point]:
    """Draws all measured candidates of one device in grey, and the front.

    Both axes are logarithmic, in a unit that fits their values. Lines go through the medians of the
    front that no other median dominates. Without a third figure, grey marks have the shapes of
    families; with it, all marks and the lines have the shapes and colours of its bands. Returns the
    position of each candidate of the front.
    """
    places: list[Point] = []
    measured = [row for row in campaign.rows if row.has(axis, also)]
    if measured:
        costs = [costs for row in measured if (costs := row.costs(axis))]
        times = Scale.of([a for a, _ in costs], 0, 1, "time")
        sizes = Scale.of([b for _, b in costs], 0, 1, unit_of_axis(axis))
        at = {
            row.id: (times.at(a), sizes.at(b)) for row, (a, b) in zip(measured, costs, strict=True)
        }
        places = [at[row.id] for row in best]
        bands = Bands.of(measured, also)
        if also is None:
            families = dict.fromkeys(str(row.assignment[FAMILY]) for row in measured)
            for family, marker in zip(families, MARKERS * len(families), strict=False):
                mine = [at[row.id] for row in measured if row.assignment[FAMILY] == family]
                scatter(axes, mine, marker, GREY, family)
            scatter(axes, places, "o", BLUE, "front")
        else:
            for band, (marker, colour) in enumerate(zip(MARKERS, LIGHT, strict=False)):
                mine = [at[row.id] for row in measured if bands.index(row) == band]
                scatter(axes, mine, marker, GREY)
                chosen = [at[row.id] for row in best if bands.index(row) == band]
                scatter(axes, chosen, marker, colour)
        for band, stairs in bands.stairs(best, axis):
            across, up = [times.at(a) for a, _ in stairs], [sizes.at(b) for _, b in stairs]
            colour = BLUE if also is None else LIGHT[band]
            line: dict[str, Any] = {"c": colour, "ls": (0, DASHES[band])}
            axes.step([across[0], *across, 1], [1, *up, up[-1]], where="post", lw=1.2, **line)
        mark(axes.xaxis, times, "modelled time" if campaign.modelled else "time")
        mark(axes.yaxis, sizes, name_of(axis))
        if also is None:
            axes.legend(fontsize=SMALL)
        else:
            keys = [key(bands, band) for band in range(len(bands.bounds))]
            axes.legend(handles=keys, title=name_of(also), fontsize=SMALL)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.grid(alpha=0.3)
    axes.set_title(f"{campaign.identity.program} on {campaign.device.name}", parse_math=False)
    return places


def scatter(
    axes: Axes, points: Sequence[Point], marker: str, colour: str, label: str | None = None
) -> None:
    """Draws marks: small grey ones, or those of a front above them."""
    if points:
        of_front = {"s": 64, "ec": "white", "zorder": 3}
        others = {"s": 22, "alpha": 0.7}
        look = others if colour == GREY else of_front
        axes.scatter(*zip(*points, strict=True), c=colour, marker=marker, label=label, **look)


def key(bands: Bands, band: int) -> Line2D:
    """The mark and the line of a band in the legend, with its largest value."""
    return Line2D(
        [],
        [],
        c=LIGHT[band],
        ls=(0, DASHES[band]),
        lw=1.2,
        marker=MARKERS[band],
        ms=7,
        label=bands.text(band),
    )


def figures(row: Row, best: Sequence[Row], axis: str, also: str | None) -> str:
    """All costs as text for the fastest and the smallest of a front; empty for others."""
    costs = {one.id: found for one in best if (found := one.costs(axis)) is not None}
    least = min(costs, key=lambda id_: costs[id_][::-1])
    if row.id not in (best[0].id, least):
        return ""
    time, size = costs[row.id]
    third = "" if also is None else f", {in_figure(also, row.figure(also))}"
    return f": {in_time(time)}, {in_figure(axis, size)}{third}"


def name(axes: Axes, pixel: float, points: Sequence[Point], names: Sequence[str]) -> None:
    """Writes a label near each point, with a line to the point if it is farther away.

    pixel: pixels per typographic point. Labels for which there is no room are left out, and counted
    in the title.
    """
    look: dict[str, Any] = {"fontsize": SMALL, "color": BLUE, "zorder": 4}
    halo = [withStroke(linewidth=2, foreground="white")]
    texts = [axes.text(0, 0, said, path_effects=halo, **look) for said in names]
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
