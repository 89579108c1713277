"""A front as a picture. Import it through `liftpy.explore.report`: matplotlib is an extra."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from liftpy.errors import LiftError
from liftpy.explore.campaign import Campaign
from liftpy.explore.candidate import FAMILY
from liftpy.explore.pareto import front
from liftpy.explore.report import in_bytes, in_time
from liftpy.explore.scale import Scale

LABELS = 6  # of a front, from its fast end; the last one as well
GREY, BLUE = "#9aa4af", "#0b62c4"
MARKERS = "osD^vPX*<>"  # a family each


def plot(campaign: Campaign, axis: str, path: Path) -> None:
    """Writes the picture of a campaign. LiftError if the file cannot be written."""
    try:
        FigureCanvasAgg(drawn(campaign, axis)).print_figure(path, dpi=144)
    except (OSError, ValueError) as error:
        raise LiftError(f"the plot cannot be written to {path}: {error}") from error


def drawn(campaign: Campaign, axis: str) -> Figure:
    """A picture for each device, side by side: each has axes of its own."""
    parts = campaign.apart()
    figure = Figure(figsize=(8 * len(parts), 5), layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        draw(axes, part, axis)
    return figure


def draw(axes: Axes, campaign: Campaign, axis: str) -> None:
    """All that one device measured in grey, a mark for each family, and the front.

    Both axes are logarithmic, in the unit that their values ask for.
    """
    measured = [(costs, row) for row in campaign.rows if (costs := row.costs(axis)) is not None]
    if measured:
        times = Scale.of([costs[0] for costs, _ in measured], 0, 1, "time")
        sizes = Scale.of([costs[1] for costs, _ in measured], 0, 1, "bytes")
        families = dict.fromkeys(str(row.assignment[FAMILY]) for _, row in measured)
        for family, marker in zip(families, MARKERS * len(families), strict=False):
            mine = [costs for costs, row in measured if row.assignment[FAMILY] == family]
            place = [times.at(a) for a, _ in mine], [sizes.at(b) for _, b in mine]
            axes.scatter(*place, s=22, c=GREY, alpha=0.7, marker=marker, label=family)
        best = front({costs for costs, _ in measured}, costs=lambda c: c)
        across, up = [times.at(a) for a, _ in best], [sizes.at(b) for _, b in best]
        axes.step([across[0], *across, 1], [1, *up, up[-1]], where="post", c=BLUE, lw=1.2)
        axes.scatter(across, up, s=48, c=BLUE, edgecolors="white", zorder=3, label="front")
        for k in sorted({*range(min(LABELS, len(best))), len(best) - 1}):
            said = f"{in_time(best[k][0])}, {in_bytes(best[k][1])}"
            left = across[k] > 0.7
            axes.annotate(
                said,
                (across[k], up[k]),
                xytext=(-6 if left else 6, 6),
                textcoords="offset points",
                ha="right" if left else "left",
                fontsize=8,
                color=BLUE,
            )
        mark(axes.xaxis, times, "time")
        mark(axes.yaxis, sizes, axis)
        axes.legend(fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.grid(alpha=0.3)
    axes.set_title(f"{campaign.identity.program} on {campaign.device.name}")


def mark(axis: Axis, scale: Scale, name: str) -> None:
    """Marks and names an axis."""
    axis.set_major_locator(FixedLocator([place for place, _ in scale.ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_ticklabels([text for _, text in scale.ticks])
    axis.set_label_text(f"{name} [{scale.unit}]")
