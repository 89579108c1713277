"""explore MODEL: campaigns over all operations of a network."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from liftpy.cli.networks import joined_network, one_order
from liftpy.cli.progress import CampaignView
from liftpy.cli.pulse import pulse
from liftpy.cli.screen import StoppedAndSaid, note, say, show, show_json
from liftpy.errors import plural
from liftpy.explore.report.wording import in_time
from liftpy.networks.campaigns import NetworkCampaign, Turn, explore_network
from liftpy.networks.graph import Graph
from liftpy.networks.host_nodes import by_onnx
from liftpy.networks.network import network

INTERRUPTED = 130


def explore_model(
    model: str,
    sizes: dict[str, int],
    db: Path,
    *,
    channels_last: bool | None,
    choose_orders: bool,
    json: bool,
    **settings: Any,
) -> None:
    """Explores the joined operations of a model; prints a table of programs with their times."""
    pulse.doing = "reading the model"
    found = network(model, sizes, partial=True)
    if choose_orders:
        one_order(channels_last=channels_last)
    order = False if choose_orders else channels_last
    graph = joined_network(found, channels_last=order).graph
    exploring = by_onnx("orders").explore_in_orders if choose_orders else explore_network
    explored = explore_graph(exploring, graph, db, **settings)
    if json:
        show_json(explored.to_json())
        return
    show(table_of(explored))
    for line in summary(explored):
        say(line)
    if explored.stopped:
        note(f"{explored.stopped}; repeat the command to continue")


def explore_joined(graph: Graph, db: Path, *, quiet: bool, **settings: Any) -> None:
    """Explores the operations of a network before it is planned; prints them unless `quiet`."""
    with pulse.beating(time.monotonic()):
        explored = explore_graph(explore_network, graph, db, **settings)
    if not quiet:
        show(table_of(explored))


def explore_graph(
    exploring: Callable[..., NetworkCampaign], graph: Graph, db: Path, **settings: Any
) -> NetworkCampaign:
    """Explores the operations of a network, with progress and notes."""
    if graph.unsupported:
        many = plural(len(graph.unsupported), "node")
        note(f"note: not explored: {many} without a program, computed on the host in a plan")
    try:
        return exploring(
            graph, db=db, began=pulse.began, view=view_of, told=lambda t: note(str(t)), **settings
        )
    except KeyboardInterrupt:
        note(f"stopped; everything so far is in {db}. Repeat the command to continue")
        raise StoppedAndSaid(INTERRUPTED) from None


def view_of(turn: Turn) -> CampaignView:
    """The live view of one turn."""
    return CampaignView(turn.work.operations[0].name, turn.choice.samples)


def table_of(found: NetworkCampaign) -> Table:
    """The programs, those with the largest share of the network's time first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("operation", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("best", justify="right", no_wrap=True)
    table.add_column("share", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("file", overflow="fold")
    for one in sorted(found, key=lambda one: -(found.share(one) or 0)):
        share = found.share(one)
        first = one.work.operations[0]
        table.add_row(
            escape(f"{first.name} ({first.operator})"),
            str(one.work.count),
            "" if one.best is None else in_time(round(one.best * 1e6)),
            escape(one.reason) if share is None else f"{share:.1%}",
            f"{len(one.times)} of {one.tried}",
            one.work.path.name,
        )
    return table


def summary(found: NetworkCampaign) -> list[str]:
    """The sum of the best times, the programs without one, and how to see one of them."""
    with_time = [one for one in found if one.best is not None]
    operations = plural(sum(one.work.count for one in with_time), "operation")
    lines = [f"{operations}: {in_time(round(found.total * 1e6))}, the sum of the best times"]
    if len(with_time) < len(found.explored):
        without = plural(len(found.explored) - len(with_time), "program")
        lines.append(f"{without} without a time")
    lines.append(f"each file is a campaign: liftpy pareto {found.folder}/FILE")
    return lines
