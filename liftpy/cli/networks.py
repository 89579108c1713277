"""network: the operations of an ONNX model; and a node of a model as PROGRAM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from liftpy.cli.options import ChannelsOption, JsonFlag, SizeOption, sizes
from liftpy.cli.screen import say, show, show_json
from liftpy.errors import NetworkRefused, UnknownName, a_few, plural
from liftpy.ir.program import Program
from liftpy.language.text.program import show as program_text
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.network import Network, network

JOINED = ".."
"""What is between the first and the last node in the name of a joined operation."""

SHORT = 48
"""The longest program, in characters, that is printed in the table; others are only counted."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("network")(show_network)


def show_network(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX model.")],
    *,
    size: SizeOption = None,
    joined: Annotated[
        bool, typer.Option("--joined", help="Join operations as `explore MODEL` does.")
    ] = False,
    channels_last: ChannelsOption = None,
    json: JsonFlag = False,
) -> None:
    """The operations of an ONNX model: operator, shapes, program, bytes; what is unsupported."""
    found = network(model, sizes(size), partial=True)
    if joined:
        graph = joined_network(found, channels_last=channels_last).graph
    else:
        graph = (found.channels_last() if channels_last else found).graph
    if json:
        show_json(as_data(graph))
        return
    numbers = {id(program): k for k, program in enumerate(graph.programs)}
    table = Table(box=None, pad_edge=False)
    table.add_column("node", overflow="fold")
    table.add_column("operator")
    table.add_column("shapes", no_wrap=True)
    table.add_column("program", overflow="fold")
    table.add_column("result bytes", justify="right")
    table.add_column("live bytes", justify="right")
    for operation, live in zip(graph.operations, graph.live_bytes, strict=True):
        table.add_row(
            escape("\n".join(part.name for part in operation.parts or (operation,))),
            "\n".join(part.operator for part in operation.parts or (operation,)),
            escape(shapes(graph, operation)),
            escape(one_line(operation, numbers)),
            str(sum(graph.tensors[n].bytes for n in operation.outputs if n in graph.tensors)),
            str(live),
        )
    show(table)
    for line in summary(graph):
        say(line)
    if not joined:
        fewer = joined_network(found, channels_last=channels_last)
        say(
            f"joined: {plural(len(fewer), 'operation')}, "
            f"{plural(len(fewer.graph.programs), 'distinct program')} (--joined lists them)"
        )


def joined_network(found: Network, *, channels_last: bool | None = None) -> Network:
    """The network that commands explore and plan: joined, and with channels last unless False."""
    return (found if channels_last is False else found.channels_last()).joined()


def one_order(*, channels_last: bool | None) -> None:
    """Refuses an order of all images if the order of each is to be chosen."""
    if channels_last is not None:
        raise typer.BadParameter(
            "it chooses the order of each image, so it takes no --channels-last and no "
            "--declared-order",
            param_hint="--choose-orders",
        )


def shapes(graph: Graph, operation: Operation) -> str:
    """The shapes of an operation's inputs and outputs: `[1][3][8][8], [4][3][3][3] -> ...`."""

    def of(name: str) -> str:
        tensor = graph.tensors.get(name)
        return "?" if tensor is None else "".join(f"[{n}]" for n in tensor.shape) + str(tensor.type)

    inputs, outputs = (", ".join(map(of, n)) for n in (operation.inputs, operation.outputs))
    return f"{inputs} -> {outputs}"


def one_line(operation: Operation, numbers: Mapping[int, int]) -> str:
    """The number of an operation's program among the distinct ones, and its text if it is short."""
    if operation.program is None:
        return "unsupported"
    text = " ".join(program_text(operation.program).partition("=")[2].split())
    number = f"#{numbers[id(operation.program)]}"
    return f"{number}: {text}" if len(text) <= SHORT else number


def summary(graph: Graph) -> list[str]:
    """What is true of the whole network, a line each."""
    operations = plural(len(graph.operations), "operation")
    programs = plural(len(graph.programs), "distinct program")
    opsets = ", ".join(f"{domain} {version}".strip() for domain, version in graph.opsets.items())
    lines = [
        f"{operations}, {programs}, opset {opsets}",
        f"constants: {graph.constant_bytes} bytes",
        f"tensors: at least {graph.peak_bytes} bytes, the largest sum of live bytes in this order",
    ]
    if graph.sizes:
        fixed = ", ".join(f"{name} = {length}" for name, length in graph.sizes.items())
        lines.append(f"dynamic dimensions: {fixed} (--size NAME=NUMBER)")
    if graph.unsupported:
        lines.append(f"unsupported: {plural(len(graph.unsupported), 'node')}")
        lines += [f"  {one}" for one in graph.unsupported]
    return lines


def as_data(graph: Graph) -> dict[str, Any]:
    """The graph as JSON: operations, tensors without the values of constants, unsupported nodes."""
    numbers = {id(program): k for k, program in enumerate(graph.programs)}
    return {
        "network": graph.name,
        "sizes": dict(graph.sizes),
        "opsets": dict(graph.opsets),
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "operations": [
            {
                "node": o.name,
                "operator": o.operator,
                "parts": [part.name for part in o.parts],
                "inputs": list(o.inputs),
                "outputs": list(o.outputs),
                "program": None if o.program is None else numbers[id(o.program)],
                "live_bytes": live,
            }
            for o, live in zip(graph.operations, graph.live_bytes, strict=True)
        ],
        "programs": [program_text(program) for program in graph.programs],
        "tensors": [
            {
                "name": t.name,
                "kind": t.kind,
                "type": str(t.type),
                "shape": list(t.shape),
                "bytes": t.bytes,
                "producer": t.producer,
                "readers": list(t.readers),
            }
            for t in graph.tensors.values()
        ],
        "constant_bytes": graph.constant_bytes,
        "peak_bytes": graph.peak_bytes,
        "unsupported": [
            {
                "node": u.node,
                "operator": u.operator,
                "attribute": u.attribute,
                "reason": u.reason,
            }
            for u in graph.unsupported
        ],
    }


def program_of_node(file: str, node: str, given: Mapping[str, int]) -> Program:
    """The program of a node of a model; UnknownName without a node, with names of nodes."""
    found = network(file, given, partial=True)
    if not node:
        known = a_few([o.name for o in found if o.program is not None])
        raise UnknownName(
            f"{file} is a network: name one of its nodes, as in {file}:NODE; "
            f"its nodes are: {known}\n  `liftpy network {file}` lists them"
        )
    made = joined_network(found) if all(o.name != node for o in found) else found
    operation = (made if JOINED in node or any(o.name == node for o in made) else found)[node]
    if operation.program is None:
        raise NetworkRefused(f"no program for {operation.unsupported}")
    return operation.program
