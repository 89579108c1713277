"""Images with their channels innermost: the order of axes of each tensor of a network.

A convolution reads and returns images `[N][H][W][C]`, and so do the operations after it whose
operators have programs for this order (`Entry.orders`). If operations read a tensor in the other
order, an operation `Transpose` changes it once for all of them; it is joined with its reader if it
has only one. Inputs, constants and results of the network keep the order that the model declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.language.embedded.lang import program
from liftpy.networks import onnx_library as library
from liftpy.networks.graph import Graph, Operation, Tensor, numbered, readers_of
from liftpy.networks.importing import function, program_of, typed_array
from liftpy.networks.operators import REGISTRY, Declined, Entry, Node, Operand
from liftpy.networks.operators.layouts import inverse, ordered, reshaped
from liftpy.networks.operators.node import CHANNELS_LAST, RANK, Body, Shape, channels_last

LAST = "channels_last"
FIRST = "channels_first"


def with_channels_last(graph: Graph) -> Graph:
    """The graph with images `[N][H][W][C]` in its convolutions and in the operations after them.

    A graph that has such images is returned as it is.
    """
    if any(tensor.order for tensor in (*graph.tensors.values(), *graph.inside.values())):
        return graph
    return Reordering(graph).graph()


class Reordering:
    """Changes one graph, operation by operation in its order.

    `given` are inputs that are stored with channels last, and `wanted` results that are to be, each
    with the name of the tensor in this order. All others have the declared order.
    """

    def __init__(
        self,
        source: Graph,
        given: Mapping[str, str] | None = None,
        wanted: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self.given, self.wanted = given or {}, wanted or {}
        self.last: set[str] = {*self.given}
        """The tensors that are stored with channels last by their producer, or as an input."""
        self.programs: dict[Any, Program] = {}
        self.distinct: dict[Program, Program] = {}
        self.operations: list[Operation] = []
        self.names = {o.name for o in source.operations} | {*source.tensors}
        self.changed: dict[tuple[str, str], str] = {}
        """The name of a tensor in another order than its producer's, by its name and this order."""

    def graph(self) -> Graph:
        """The changed graph."""
        found = {o.name: self.program(o) for o in self.source.operations}
        both = {n for n in self.last if self.is_read_first(n, found)}
        """Tensors that are stored in both orders: the one in the declared order keeps its name."""
        borders = {**self.given, **self.wanted}
        self.stored = {n: self.named(n, LAST) if n in both else n for n in self.last}
        self.stored |= {n: name for n, name in borders.items() if n in self.last}
        for name in self.source.inputs:
            if name in self.source.tensors:  # of a type that the language has
                self.stored.setdefault(name, name)
        for name in self.given:
            if name in both:
                self.change(self.given[name], name, FIRST)
        for operation in self.source.operations:
            made = found[operation.name]
            if made is None:
                self.operations.append(operation)
            else:
                self.operations.append(self.reordered(operation, *made))
            for name in operation.outputs:
                if name in both:
                    self.change(self.stored[name], name, FIRST)
                if name in self.wanted and name not in self.last:
                    self.changed[name, LAST] = self.wanted[name]
                    self.change(name, self.wanted[name], LAST)
        return replace(
            self.source, operations=tuple(self.operations), tensors=self.tensors(self.operations)
        )

    def named(self, name: str, order: str) -> str:
        """A new name for a tensor in another order."""
        return numbered(f"{name}/{order}", self.names)

    def is_read_first(self, name: str, found: dict[str, Any]) -> bool:
        """Whether a tensor with channels last is also needed in the declared order."""
        tensor = self.source.tensors[name]
        return (tensor.result and name not in self.wanted) or any(
            found[reader] is None or any(o.tensor == name and not o.last for o in found[reader][1])
            for reader in tensor.readers
        )

    # --- which operations -------------------------------------------------------------------------

    def program(self, operation: Operation) -> tuple[Program, tuple[Operand, ...]] | None:
        """The program of an operation with channels last, and its inputs; None if it stays."""
        entry = REGISTRY.get(operation.operator)
        if operation.program is None or entry is None or entry.orders == "declared":
            return None
        tensors = self.source.tensors
        shapes = {tensors[n].shape for n in operation.outputs}
        images = [n for n in operation.inputs if tensors[n].value is None]
        follows = any(n in self.last for n in images)
        if any(len(shape) != RANK for shape in shapes) or not (
            follows
            or (operation.operator == "Conv" and len(tensors[operation.inputs[0]].shape) == RANK)
        ):
            return None
        node = described(self.source, operation, entry)
        if entry.orders == "last" and not all(o.last for o in node.operands[:1] if o is not None):
            return None
        data = entry.data(node)
        if {o.tensor for o in data if o.last} & {o.tensor for o in data if not o.last}:
            return None  # the kernels of the convolution are its images
        key = operation.operator, node.version, str(node.attributes), id(operation.program)
        try:
            if key not in self.programs:
                made = built(node, entry, data)
                self.programs[key] = self.distinct.setdefault(made, made)
        except Declined:
            return None
        self.last |= {*operation.outputs}
        return self.programs[key], tuple(data)

    # --- the changed operations -------------------------------------------------------------------

    def reordered(
        self, operation: Operation, made: Program, inputs: tuple[Operand, ...]
    ) -> Operation:
        """An operation with channels last; changes the order of what it reads, where necessary."""
        renamed: dict[str, str] = {}
        for name in (o.tensor for o in inputs if o.last):
            renamed[name] = self.stored[name] if name in self.last else self.in_order(name)
        renamed |= {n: self.stored[n] for n in operation.outputs}
        node = library.node_from(operation.node)
        for names in (node.input, node.output):
            for k, name in enumerate(names):
                names[k] = renamed.get(name, name)

        def all_of(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(renamed.get(n, n) for n in names)

        return replace(
            operation,
            inputs=all_of(o.tensor for o in inputs),
            outputs=all_of(operation.outputs),
            reads=all_of(operation.reads),
            writes=all_of(operation.writes),
            program=made,
            node=node.SerializeToString(),
            channels_last=True,
        )

    def in_order(self, name: str) -> str:
        """The name with channels last of a tensor that is stored in the declared order."""
        key = name, LAST
        if key not in self.changed:
            self.changed[key] = self.named(name, LAST)
            self.change(name, self.changed[key], LAST)
        return self.changed[key]

    def change(self, name: str, to: str, order: str) -> None:
        """Appends the operation that changes the order of a tensor."""
        source = self.source.tensors[to if order == FIRST else name]
        called = to if order == LAST else self.named(to, FIRST)
        made = reordering(source, name, to, called, order)
        if made.program is not None:
            program = self.distinct.setdefault(made.program, made.program)
            self.operations.append(replace(made, program=program))

    def tensors(self, operations: Sequence[Operation]) -> dict[str, Tensor]:
        """The tensors of the changed graph."""
        source = self.source.tensors
        declared = {new: old for (old, _), new in self.changed.items()}
        declared |= {new: old for old, new in self.stored.items()}
        last = {*self.changed.values()} | {self.stored[n] for n in self.last}
        produced = {n: o.name for o in operations for n in o.outputs}
        readers = readers_of(operations)
        found: dict[str, Tensor] = {}
        for name in dict.fromkeys([*source, *declared]):
            tensor = source[declared.get(name, name)]
            if not {name} & {*source, *produced, *self.given.values()}:
                continue
            found[name] = replace(
                tensor,
                name=name,
                shape=channels_last(tensor.shape) if name in last else tensor.shape,
                order=CHANNELS_LAST if name in last else (),
                producer=produced.get(name),
                readers=tuple(readers.get(name, ())),
                result=tensor.result and name in source and name not in last,
            )
        return found


def reordering(source: Tensor, name: str, to: str, called: str, order: str) -> Operation:
    """The operation `called`, which stores the tensor `name` in an order, as `to`.

    `source` is the tensor in the order that the model declares.
    """
    axes = CHANNELS_LAST if order == LAST else inverse(CHANNELS_LAST)
    shape = source.shape if order == LAST else channels_last(source.shape)
    types = {"x": typed_array(source.type, shape)}
    made = program(function("transpose", ["x"], types, lambda x: ordered(x, axes)))
    node = library.identity(name, to).SerializeToString()
    return Operation(
        called,
        "Transpose",
        (name,),
        (to,),
        made,
        node,
        (name,),
        (to,),
        channels_last=order == LAST,
        reorders=True,
    )


def described(graph: Graph, operation: Operation, entry: Entry) -> Node:
    """What a builder sees of an operation if the images that it reads have channels last.

    The first input is such an image if it has rank 4 and is not constant. If the operator has
    programs for any order, the other inputs may be images too.
    """
    node = library.node_from(operation.node)
    schema = library.schema_of(node, graph.opsets)
    operands: list[Operand | None] = []
    for k, name in enumerate(node.input):
        if not name:
            operands.append(None)
            continue
        tensor = graph.tensors[name]
        declared = schema.inputs[min(k, len(schema.inputs) - 1)]
        variadic = k >= len(schema.inputs) - 1 and declared.option.name == "Variadic"
        read = k == 0 or entry.orders == "any"
        images = read and tensor.value is None and len(tensor.declared_shape) == RANK
        operands.append(
            Operand(
                f"{declared.name}_{k}" if variadic else declared.name,
                name,
                tensor.type,
                tensor.declared_shape,
                tensor.value,
                images,
            )
        )
    results = [
        (graph.tensors[n].type, graph.tensors[n].declared_shape) if n else None for n in node.output
    ]
    attributes = library.attributes_of(node, schema)
    return Node(
        operation.name,
        node.op_type,
        schema.since_version,
        attributes,
        operands,
        results,
        channels_last=True,
    )


# --- programs -------------------------------------------------------------------------------------


def built(node: Node, entry: Entry, data: list[Operand]) -> Program:
    """The program of a node with channels last, whose parameters are its data inputs."""
    if entry.orders == "any":
        body = permuted(node, entry, data)
        return program_of(node, replace(entry, build=lambda _: body), data)
    return program_of(node, entry, data)


def permuted(node: Node, entry: Entry, data: Sequence[Operand]) -> Body:
    """The program of an operator that is the same function of images in any order.

    Arrays in the declared order, such as constants, are permuted where they are read. Those of
    lower rank are first extended by axes of length 1, because ONNX broadcasts by the last axes.
    """
    attributes = dict(node.attributes)
    if attributes.get("axis") is not None:
        attributes["axis"] = CHANNELS_LAST.index(int(attributes["axis"]) % RANK)

    def in_order(operand: Operand) -> Operand:
        if is_number(operand.shape):
            return operand
        return replace(operand, shape=channels_last(extended(operand.shape)))

    same = replace(
        node,
        attributes=attributes,
        operands=[None if o is None else in_order(o) for o in node.operands],
        results=[None if r is None else (r[0], node.stored(r[1])) for r in node.results],
        channels_last=False,
    )
    body = entry.build(same)

    def adapted(x: Expr, operand: Operand) -> Expr:
        if operand.last or is_number(operand.shape):
            return x
        return ordered(reshaped(x, operand.shape, extended(operand.shape)), CHANNELS_LAST)

    return lambda *arrays: body(*(adapted(x, o) for x, o in zip(arrays, data, strict=True)))


def extended(shape: Shape) -> Shape:
    """A shape with axes of length 1 before its own, up to the rank of images."""
    return (*(1,) * (RANK - len(shape)), *shape)


def is_number(shape: Shape) -> bool:
    """Whether an array has only one element, so that the order of its axes does not matter."""
    return all(length == 1 for length in shape)
