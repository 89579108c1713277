"""The algorithms F(m, r) that a form of a program uses, and the bounds of their errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from liftpy.ir.expr import Expr
from liftpy.ir.walk import at
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.rules.correlation import NAMES, base_of, parts_of
from liftpy.rewrite.strategies.shapes import array_type
from liftpy.rewrite.strategy.derivation import replay
from liftpy.winograd.error import Bound, Transforms, bound, bound_of, bound_of_two
from liftpy.winograd.linear import Form
from liftpy.winograd.triple import Triple

IN_TWO = ("correlation", "correlation_flat", "correlation_each")
"""The shapes of rules (`SHAPES`) that transform two dimensions."""


@dataclass(frozen=True)
class Algorithm:
    """An F(m, r) for each dimension, and products that are summed over channels.

    With one dimension, they may be summed over the `rows` of a window as well. In two dimensions,
    the transforms may be `flat`.
    """

    triples: tuple[Triple, ...]
    channels: int
    rows: int = 1
    flat: bool = False

    def __str__(self) -> str:
        one, *more = map(str, self.triples)
        if more not in ([], [one]):
            return f"{one} by {more[0]} in two dimensions"
        return f"{one} in {'two dimensions' if more else 'one dimension'}"

    @property
    def summed(self) -> int:
        """The number of products in a sum."""
        return self.channels * self.rows

    @property
    def bound(self) -> Bound:
        """The bound of its error in f32; TransformRefused if it sums more than is counted."""
        return bound_with(self.triples, self.summed, flat=self.flat)


@lru_cache(maxsize=256)
def bound_with(triples: tuple[Triple, ...], channels: int, *, flat: bool) -> Bound:
    """The bound for the triples of a rule; with flat transforms, both dimensions have the same."""
    if flat:
        return bound(Transforms.of(triples[0], Form.FLAT), channels)
    if len(triples) == 1:
        return bound_of(triples[0], 1, channels)
    return bound_of_two(triples[0], triples[1], channels)


def algorithms_of(partition: Partition) -> Iterator[Algorithm]:
    """Every use of F(m, r) in a partition, in the order of its steps.

    The channels are the innermost axis of the array that the rule maps over. A rule in which each
    channel has a kernel of its own does not sum over them. For a rule that sums over the rows of a
    window, the number of these is the length of the second axis.
    """
    if not partition.other_algorithm:
        return
    before = partition.program.body.body
    for step, after in replay(before, partition.steps):
        if base_of(step.rule) in NAMES:
            shape, triples = parts_of(step.rule)
            lengths = shape_of(at(before, (*step.path, 0)))
            flat = shape == "correlation_flat"
            dimensions = 2 if shape in IN_TWO else 1
            rows = lengths[1] if shape == "correlation_rows" else 1
            summed = 1 if shape.startswith("correlation_each") else lengths[-1]
            yield Algorithm((triples * dimensions)[:dimensions], summed, rows, flat)
        before = after


def shape_of(expr: Expr) -> tuple[int, ...]:
    """The lengths of an array of scalars."""
    return tuple(map(int, array_type(expr).shape))
