"""A front as a picture. Import it through `liftpy.explore.report`: matplotlib is an extra."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from liftpy.errors import LiftError
from liftpy.explore.campaign import Campaign
from liftpy.explore.candidate import FAMILY
from liftpy.explore.pareto import front

MIB = 1 << 20


def plot(campaign: Campaign, axis: str, path: Path) -> None:
    """Writes a picture of the measured candidates, by family, with the front as a staircase."""
    measured = [row for row in campaign.rows if row.time_ns is not None]
    costs = {row.id: (row.time_ns or 0, getattr(row.memory, axis)) for row in measured}
    rows = front(campaign.pareto(axis), costs=lambda row: costs[row.id])
    figure = Figure(figsize=(8, 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for family in dict.fromkeys(row.assignment[FAMILY] for row in measured):
        mine = [row for row in measured if row.assignment[FAMILY] == family]
        sizes = [getattr(row.memory, axis) / MIB for row in mine]
        axes.scatter([(row.time_ns or 0) / 1e6 for row in mine], sizes, label=str(family), s=18)
    axes.step(
        [(row.time_ns or 0) / 1e6 for row in rows],
        [getattr(row.memory, axis) / MIB for row in rows],
        where="post",
        color="black",
        linewidth=1,
        label="front",
    )
    axes.set_xscale("log")
    axes.set_xlabel("time [ms]")
    axes.set_ylabel(f"{axis} [MiB]")
    axes.set_title(f"{campaign.identity.program} on {campaign.device.name}")
    axes.legend()
    try:
        canvas.print_figure(path)
    except (OSError, ValueError) as error:
        raise LiftError(f"the plot cannot be written to {path}: {error}") from error
