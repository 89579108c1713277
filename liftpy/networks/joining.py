"""Joins operations of a network into larger programs, by composition of their expressions.

A joined operation has at most one node that folds (a convolution, a product, a pooling) and nodes
without folds after it, each of which reads the tensor before it element by element: activations,
residuals, other arrays of the same number of elements. Layouts and padding before it are part of
it, too. The program is that of the last node, with the expressions of the others in place of its
parameters, so a space of it decides what is stored.

A batch normalization of a convolution with constant weights becomes part of the weights: both are
linear in them. The expression of the new weights is a `let` over constants, which is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from liftpy.ir.call import FunCall, fresh, substitute
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, F64
from liftpy.ir.walk import every_part
from liftpy.language.embedded.lang import program
from liftpy.networks import onnx_library as library
from liftpy.networks.graph import Graph, Operation, Tensor, numbered, readers_of
from liftpy.networks.importing import function, program_of, snake
from liftpy.networks.operators import REGISTRY, Node, Operand
from liftpy.networks.operators.normalization import normal_biases, normal_weights
from liftpy.primitives import AnyIterate, AnyReduceByIndex, AnyScan
from liftpy.primitives.work import computes
from liftpy.rewrite.cuts import uses
from liftpy.rewrite.strategies.shapes import is_reduce

STEEPEST = 1e4
"""The largest factor of a batch normalization that becomes part of weights."""

MOST_NODES = 8
"""The most nodes of a joined operation."""

MOST_PARAMETERS = 16
"""The most arrays that a joined operation reads: each is an argument of its kernels."""


def joined(graph: Graph) -> Graph:
    """The graph with operations joined; the same tensors remain at their borders."""
    return Joining(graph).graph()


@dataclass
class Group:
    """Operations that become one, in their order; `folds` says whether one of them folds."""

    members: list[Operation]
    folds: bool

    @property
    def output(self) -> str:
        """The tensor that the last member computes."""
        return self.members[-1].outputs[0]


@dataclass
class Joining:
    """The joining of one graph."""

    source: Graph
    made: dict[Any, Program] = field(default_factory=dict[Any, Program])
    distinct: dict[Program, Program] = field(default_factory=dict[Program, Program])
    facts: dict[int, bool] = field(default_factory=dict[int, bool])
    taken: set[str] = field(default_factory=set[str])

    def named(self, members: Sequence[Operation]) -> str:
        """A name for joined operations, made of the model's nodes, that no other operation has."""
        self.taken |= {o.name for o in self.source.operations}
        own = [o.name for o in members if not o.reorders] or [o.name for o in members]
        return numbered(f"{own[0]}..{own[-1]}", self.taken)

    def graph(self) -> Graph:
        """The joined graph."""
        operations = tuple(self.operation(group.members) for group in self.groups())
        produced = {n: o.name for o in operations for n in o.outputs}
        readers = readers_of(operations)
        read = {n for o in operations for n in o.reads}
        kept: dict[str, Tensor] = {}
        inside: dict[str, Tensor] = {}
        for name, tensor in self.source.tensors.items():
            if tensor.producer is not None and name not in produced:
                inside[name] = tensor
            elif tensor.kind != "constant" or name in read or tensor.result:
                kept[name] = replace(
                    tensor, producer=produced.get(name), readers=tuple(readers.get(name, ()))
                )
        return replace(self.source, operations=operations, tensors=kept, inside=inside)

    # --- which operations are joined --------------------------------------------------------------

    def groups(self) -> list[Group]:
        """The operations in groups, each at the place of its last member."""
        found: dict[str, Group] = {}  # by the tensor that the group computes
        order: list[Group] = []
        for operation in self.source.operations:
            group = Group([operation], self.folds(operation))
            if operation.program is not None and len(operation.outputs) == 1:
                for before in self.joinable(operation, found):
                    if fits(group, before):
                        members = {id(m) for m in (*group.members, *before.members)}
                        group.members = [o for o in self.source.operations if id(o) in members]
                        group.folds |= before.folds
                        order.remove(before)
                found[group.output] = group
            order.append(group)
        return order

    def joinable(self, operation: Operation, found: Mapping[str, Group]) -> Iterator[Group]:
        """The groups that an operation may join, those that fold first."""
        own = self.folds(operation)
        groups: list[Group] = []
        for name in operation.inputs:
            before = found.get(name)
            if before is None or not self.read_once(operation, name):
                continue
            each = not own and self.reads_each(operation, name)
            if each or self.is_layout(before):
                groups.append(before)
        yield from sorted(groups, key=lambda group: not group.folds)

    def read_once(self, operation: Operation, name: str) -> bool:
        """Whether a tensor has one reader, which has it once among its inputs, and no other use."""
        tensor = self.source.tensors[name]
        reads = operation.inputs.count(name) == 1 and operation.reads.count(name) == 1
        return reads and tensor.readers == (operation.name,) and not tensor.result

    def reads_each(self, operation: Operation, name: str) -> bool:
        """Whether an operation makes as many elements as a tensor has, and reads it in one place.

        Then no element of the tensor is computed more often than it would be alone.
        """
        if operation.program is None:
            return False
        parameter = operation.program.params[operation.inputs.index(name)]
        places = [*uses(operation.program.body.body, parameter)]
        single = len(places) == 1 and not places[0][1]
        return single and self.elements(operation.outputs[0]) == self.elements(name)

    def elements(self, name: str) -> int:
        """The number of elements of a tensor."""
        found = 1
        for length in self.source.tensors[name].shape:
            found *= length
        return found

    def is_layout(self, group: Group) -> bool:
        """Whether a group only moves elements of one tensor, or pads it."""
        return all(
            o.program is not None
            and len(o.inputs) == 1
            and not computes(o.program.body.body)
            and (o.operator == "Pad" or self.elements(o.inputs[0]) == self.elements(o.outputs[0]))
            for o in group.members
        )

    def folds(self, operation: Operation) -> bool:
        """Whether an operation folds; those without a program count, too: nothing joins them."""
        if operation.program is None:
            return True
        key = id(operation.program)
        if key not in self.facts:
            parts = every_part(operation.program.body.body)
            self.facts[key] = any(is_loop(part) for part in parts)
        return self.facts[key]

    # --- programs ---------------------------------------------------------------------------------

    def operation(self, members: Sequence[Operation]) -> Operation:
        """One operation in place of several."""
        if len(members) == 1:
            return members[0]
        composing = Composing(self.source, members)
        inputs = composing.inputs()
        # equal programs in equal places, with equal tensors, give equal programs
        number = {name: k for k, name in enumerate(inputs)}
        number |= {o.outputs[0]: len(inputs) + k for k, o in enumerate(members)}
        shared = tuple((o.operator, id(o.program), *(number[n] for n in o.inputs)) for o in members)
        key = shared, tuple(composing.folded_into)
        if key not in self.made:
            made = composing.program()
            self.made[key] = self.distinct.setdefault(made, made)
        inner = {n for o in members for n in o.outputs}
        reads = dict.fromkeys(n for o in members for n in o.reads if n and n not in inner)
        return Operation(
            self.named(members),
            "+".join(o.operator for o in members),
            tuple(inputs),
            members[-1].outputs,
            self.made[key],
            b"",
            tuple(reads),
            members[-1].outputs,
            parts=tuple(members),
        )


def fits(group: Group, before: Group) -> bool:
    """Whether two groups may become one: at most one of them folds, and the result is small."""
    members = (*before.members, *group.members)
    inner = {n for o in members for n in o.outputs}
    arrays = {n for o in members for n in o.inputs} - inner
    small = len(members) <= MOST_NODES and len(arrays) <= MOST_PARAMETERS
    return small and not (group.folds and before.folds)


def is_loop(part: Expr) -> bool:
    """Whether a part of an expression is a fold, a scan or an iteration."""
    loops = (AnyIterate, AnyScan, AnyReduceByIndex)
    return is_reduce(part) or (isinstance(part, FunCall) and isinstance(part.fun, loops))


class Composing:
    """The program of several operations, each of which has one output."""

    def __init__(self, graph: Graph, members: Sequence[Operation]) -> None:
        self.graph, self.members = graph, members
        self.folded_into = {
            k: k + 1 for k in range(len(members) - 1) if self.is_folded(*members[k : k + 2])
        }
        """The convolutions with a batch normalization in their weights, by their places."""

    def is_folded(self, conv: Operation, norm: Operation) -> bool:
        """Whether a batch normalization with constant numbers follows, and the weights are too."""
        return (
            conv.operator == "Conv"
            and norm.operator == "BatchNormalization"
            and norm.inputs[0] == conv.outputs[0]
            and self.graph.tensors[conv.outputs[0]].type in {F32, F64}  # f16 would overflow
            and all(
                self.graph.tensors[n].value is not None
                for n in (*conv.inputs[1:], *norm.inputs[1:])
            )
            and self.has_moderate_factors(conv, norm)
        )

    def has_moderate_factors(self, conv: Operation, norm: Operation) -> bool:
        """Whether the weights stay finite, and are not scaled by more than `STEEPEST`.

        A variance near 0 makes a factor so large that folding it changes what is rounded.
        """
        scale, _, _, var = (self.graph.tensors[n].value for n in norm.inputs[1:5])
        weights = self.graph.tensors[conv.inputs[1]].value
        node = library.node_from(norm.node)
        schema = library.schema_of(node, self.graph.opsets)
        epsilon = library.attributes_of(node, schema)["epsilon"]
        if scale is None or var is None or weights is None:
            return False
        spread = var.astype(np.float64) + epsilon
        if not np.all(spread > 0):
            return False
        factors = np.abs(scale / np.sqrt(spread))
        largest = float(factors.max()) * float(np.abs(weights).max())
        return bool(factors.max() <= STEEPEST and largest < np.finfo(weights.dtype).max)

    def inputs(self) -> list[str]:
        """The tensors that the operations read from outside, in the order of their first use."""
        inner = {n for o in self.members for n in o.outputs}
        return [
            n for n in dict.fromkeys(n for o in self.members for n in o.inputs) if n not in inner
        ]

    def program(self) -> Program:
        """The program whose parameters are `inputs`."""
        params, constants = self.parameters()
        known: dict[str, Expr] = dict(params)
        bound: list[tuple[Param, Expr]] = []
        taken = {p.name for p in params.values()}
        norms = set(self.folded_into.values())
        for k, operation in enumerate(self.members):
            if k in norms:
                known[operation.outputs[0]] = known[operation.inputs[0]]
                continue
            of, arguments = operation.program, [known[n] for n in operation.inputs]
            if k in self.folded_into:
                norm = self.members[self.folded_into[k]]
                numbers = [known[n] for n in norm.inputs[1:]]
                of, values = self.normalized(operation, norm, arguments, numbers)
                arguments = arguments[:1]
                for name, value in values.items():
                    variable = Param(fresh(name, taken), value.type)
                    taken.add(variable.name)
                    bound.append((variable, value))
                    arguments.append(variable)
            if of is None:
                continue
            by = dict(zip(of.params, arguments, strict=True))
            known[operation.outputs[0]] = substitute(of.body.body, by)
        body = known[self.members[-1].outputs[0]]
        for variable, value in reversed(bound):
            body = FunCall(Lambda((variable,), body), (value,))
        name = "_".join(snake(o.operator) for o in self.members)
        return Program(name, Lambda(tuple(params.values()), body), frozenset(constants))

    def parameters(self) -> tuple[dict[str, Param], set[str]]:
        """A parameter for each tensor that is read from outside, and the names of constant ones."""
        found: dict[str, Param] = {}
        constants: set[str] = set()
        outside = {*self.inputs()}
        for operation in self.members:
            params = operation.program.params if operation.program is not None else ()
            for own, name in zip(params, operation.inputs, strict=True):
                if name in outside and name not in found:
                    called = fresh(own.name, {p.name for p in found.values()})
                    found[name] = Param(called, own.type)
                    if self.graph.tensors[name].value is not None:
                        constants.add(called)
        return found, constants

    def normalized(
        self, conv: Operation, norm: Operation, given: Sequence[Expr], numbers: Sequence[Expr]
    ) -> tuple[Program, dict[str, Expr]]:
        """A convolution with biases, and the expressions of its normalized weights and biases."""
        tensors = self.graph.tensors
        node = library.node_from(conv.node)
        schema = library.schema_of(node, self.graph.opsets)
        weights, result = tensors[conv.inputs[1]], tensors[conv.outputs[0]]
        x, t, count = tensors[conv.inputs[0]], result.type, weights.shape[0]
        biases: tuple[int, ...] = (count,)
        operands = [
            Operand("X", x.name, x.type, x.declared_shape, x.value, conv.channels_last),
            Operand("W", weights.name, t, weights.shape, weights.value),
            Operand("B", "", t, biases, weights.value),  # constant, whatever its value
        ]
        attributes = library.attributes_of(node, schema)
        results = [(t, result.declared_shape)]
        entry = REGISTRY["Conv"]
        version, last = schema.since_version, conv.channels_last
        described = Node(conv.name, "Conv", version, attributes, operands, results, last)
        made = program_of(described, entry, operands)
        kind = library.node_from(norm.node)
        epsilon = library.attributes_of(kind, library.schema_of(kind, self.graph.opsets))["epsilon"]
        scale, shift, mean, var = numbers
        arrays = {"weights": given[1], "scale": scale, "shift": shift, "mean": mean, "var": var}
        if len(given) > 2:
            arrays["bias"] = given[2]
        values: dict[str, Expr] = {}
        for called, names, body in (
            (
                "normal_weights",
                ("weights", "scale", "var"),
                normal_weights(weights.shape, t, epsilon),
            ),
            ("normal_biases", (*[*arrays][1:],), normal_biases(t, epsilon)),
        ):
            of = program(function(called, [*names], {n: arrays[n].type for n in names}, body))
            values[called] = substitute(
                of.body.body, dict(zip(of.params, (arrays[n] for n in names), strict=True))
            )
        return made, values
