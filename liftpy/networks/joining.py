"""Joins operations of a network into larger programs, by composition of their expressions.

A joined operation has at most one node that folds (a convolution, a product, a pooling) and nodes
without folds after it, each of which reads the tensor before it element by element: activations,
residuals, other arrays of the same number of elements. Layouts and padding before it are part of
it, too. The program is that of the last node, with the expressions of the others in place of its
parameters, so a space of it decides what is stored.

An operation that scales and shifts sums of products with constants, such as a batch normalization
after a convolution, is folded into these constants by proved rules
(`rewrite/strategies/absorbed.py`). The new constants are `let`s of the program, computed once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.call import FunCall, fresh, substitute
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, F64, count
from liftpy.ir.walk import every_part
from liftpy.networks.graph import Graph, Operation, Tensor, numbered, readers_of
from liftpy.networks.importing import snake
from liftpy.primitives import AnyIterate, AnyReduceByIndex, AnyScan
from liftpy.primitives.work import computes
from liftpy.rewrite.cuts import uses
from liftpy.rewrite.strategies.absorbed import absorbed
from liftpy.rewrite.strategies.shapes import body_of, is_reduce, lets, parameter
from liftpy.rewrite.strategies.share import has_fold_in
from liftpy.rewrite.strategy import Result, Success
from liftpy.semantics.evaluate import evaluate

STEEPEST = 1e4
"""The largest number by which constants are scaled."""

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
    absorptions: dict[Any, Result] = field(default_factory=dict[Any, Result])
    """Results of `absorbed`, by the programs that were composed and the tensors they share."""
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
        composing = Composing(self.source, members, self.absorptions)
        inputs = composing.inputs()
        made = composing.program()
        program = self.distinct.setdefault(made, made)
        inner = {n for o in members for n in o.outputs}
        reads = dict.fromkeys(n for o in members for n in o.reads if n and n not in inner)
        return Operation(
            self.named(members),
            "+".join(o.operator for o in members),
            tuple(inputs),
            members[-1].outputs,
            program,
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

    def __init__(
        self, graph: Graph, members: Sequence[Operation], absorptions: dict[Any, Result]
    ) -> None:
        self.graph, self.members, self.absorptions = graph, members, absorptions

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
        absorbing: tuple[int, ...] = ()  # the operations that are part of constants
        named: list[tuple[Param, Expr]] = []  # new constants
        for k, operation in enumerate(self.members):
            of, arguments = operation.program, [known[n] for n in operation.inputs]
            if of is None:
                continue
            body = substitute(of.body.body, dict(zip(of.params, arguments, strict=True)))
            if any(map(has_fold_in, arguments)) and self.is_by_constants(operation):
                key = self.shared(k + 1), absorbing
                if key not in self.absorptions:
                    variables = {p.name for p, _ in named}
                    self.absorptions[key] = absorbed(constants | variables)(body)
                found = self.absorptions[key]
                if isinstance(found, Success) and self.is_moderate(found.expr, params, named):
                    taken = {p.name for p in (*params.values(), *(p for p, _ in named))}
                    body, absorbing = found.expr, (*absorbing, k)
                    for let in itertools.islice(lets(body), 2):
                        variable = parameter(let)
                        own = Param(fresh(variable.name, taken), variable.type)
                        body = substitute(body_of(body), {variable: own})
                        named.append((own, let.args[0]))
            known[operation.outputs[0]] = body
        body = known[self.members[-1].outputs[0]]
        for variable, value in reversed(named):
            body = FunCall(Lambda((variable,), body), (value,))
        name = "_".join(snake(o.operator) for o in self.members)
        return Program(name, Lambda(tuple(params.values()), body), frozenset(constants))

    def shared(self, count: int) -> Any:
        """What decides the expression of the first operations: their programs, and what is read.

        Equal programs in equal places, with equal tensors, give equal expressions.
        """
        first = self.members[:count]
        number = {n: k for k, n in enumerate(dict.fromkeys(n for o in first for n in o.inputs))}
        constant = [self.is_constant(n) for n in number]
        reads = ((id(o.program), *(number[n] for n in o.inputs)) for o in first)
        return tuple(reads), tuple(number.get(o.outputs[0]) for o in first), tuple(constant)

    def is_constant(self, name: str) -> bool:
        """Whether a tensor is read from outside, and its value is known."""
        return name in self.graph.tensors and self.graph.tensors[name].value is not None

    def is_by_constants(self, operation: Operation) -> bool:
        """Whether an operation reads, besides the result of another one, constants only.

        Sums of f16 are not scaled: their factors would overflow.
        """
        others = [self.is_constant(n) for n in operation.inputs]
        types = {self.graph.tensors[n].type for n in operation.outputs}
        return len(others) > 1 and others.count(False) == 1 and types <= {F32, F64}

    def is_moderate(
        self, expr: Expr, params: Mapping[str, Param], named: Sequence[tuple[Param, Expr]]
    ) -> bool:
        """Whether constants stay finite, are no more, and are scaled by at most `STEEPEST`.

        `expr` begins with their lets, and `named` are those that it reads. A variance near 0 makes
        a factor so large that scaling the constants changes what is rounded. An operand for each
        result, such as the code of a position, would repeat the constants for each result.
        """
        factors, starts = (let.args[0] for let in itertools.islice(lets(expr), 2))
        old = factors.free - starts.free
        if len(old) != 1:
            return False
        (weights,) = old
        if int(count(factors.type)) > int(count(weights.type)):
            return False
        known = {
            p: self.graph.constants[name] for name, p in params.items() if self.is_constant(name)
        }
        for variable, value in named:
            known[variable] = evaluated(value, known)
        scaled = evaluated(factors, known | {weights: np.ones_like(known[weights])})
        steepest = largest(scaled)
        most = steepest * largest(known[weights])
        limit = float(np.finfo(scaled.dtype).max)
        finite = np.isfinite(largest(evaluated(starts, known)))
        return bool(steepest <= STEEPEST and most < limit and finite)

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


def evaluated(expr: Expr, values: Mapping[Param, NDArray[Any]]) -> NDArray[Any]:
    """The value of an expression, for these values of its variables."""
    params = sorted(expr.free, key=lambda p: p.name)
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(Lambda(tuple(params), expr), *(values[p] for p in params)))


def largest(array: NDArray[Any]) -> float:
    """The largest magnitude in an array; NaN if one is NaN."""
    return float(np.abs(array).max())
