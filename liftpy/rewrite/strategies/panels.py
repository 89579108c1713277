"""Panels: an operand stored so that each block reads adjacent elements.

The operand of a map that is cut into groups of `size` is stored group by group, and the index
within a group becomes the innermost dimension: `[M][k]` becomes `[M/size][k][size]`. So a block
reads its operand from beginning to end. Panels of constants are stored once for all runs, others
by a kernel of each run.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.primitive import Get
from liftpy.ir.walk import Path, children, top_down
from liftpy.primitives import Cover, Map, Split, Zip
from liftpy.rewrite.strategies.lower import copy_kernel
from liftpy.rewrite.strategies.outward import component
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_input,
    is_view,
    parameter,
    rank,
)
from liftpy.rewrite.strategy import (
    Predicate,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    rule,
    seq,
)


def inward(depth: int) -> tuple[Strategy, Path]:
    """Move the outermost dimension `depth` places inwards and back; with the moved array's path."""
    if depth == 1:
        return rule("transpose_introduction"), (0,)
    inner, forward = inward(depth - 1)
    return seq(
        rule("transpose_introduction"),
        at_path(
            (0,), seq(rule("map_copy"), at_path((1,), inner), rule("map_fission", {"g": forward}))
        ),
    ), (0, 0)


def rows_cut(depth: int, unit: NatLike) -> tuple[Strategy, Path]:
    """Cut the rows of an array of `depth` dimensions into units and join them; the cut's path."""
    if depth == 1:
        return rule("split_introduction", m=unit), (0,)
    inner, forward = rows_cut(depth - 1, unit)
    whole = seq(rule("map_copy"), at_path((1,), inner), rule("map_fission", {"g": forward}))
    return whole, (0,)


@dataclass(frozen=True)
class Panels:
    """Which arrays are stored in panels, and the kernel that stores one.

    With a `unit`, so many adjacent elements of a row stay adjacent: `[M][k]` becomes
    `[M/size][k/unit][size][unit]`.

    For constants, a work-item copies one element. In panels that are stored in each run, it copies
    a row: with less work for each, a CPU would spend most of the time on scheduling work-items.
    """

    packs: Predicate
    copy: Strategy
    unit: NatLike = 1

    def moved(self, rank: int) -> tuple[Strategy, Path]:
        """Move the index within a group, of an array of groups of this rank, to its place."""
        moved, forward = inward(rank - 2)
        if self.unit == 1:
            return moved, forward
        cut, apart = rows_cut(rank - 1, self.unit)
        return seq(cut, at_path(apart, moved)), (*apart, *forward)

    def whole(self, size: NatLike) -> Strategy:
        """Pack every array that is cut into groups of `size`, at the cut."""

        def run(expr: Expr) -> Result:
            cut = [
                path
                for path, part in top_down(expr)
                if is_cut(part, size) and part.free <= expr.free and self.packs(children(part)[0])
            ]
            return seq(*(at_path(path, self.pack) for path in reversed(cut)))(expr)

        return run

    def pack(self, cut: Expr) -> Result:
        """Store an array that is cut into groups; the layouts that undo this remain as a view.

        `[M][a]...[z]` becomes `[M/size][a]...[z][size]`.
        """
        moved, forward = self.moved(rank(cut.type))
        groups = seq(
            rule("map_copy"),
            at_path((1,), moved),
            rule("map_fission", {"g": forward}),
            at_path((0,), self.copy),
        )
        if isinstance(cut, FunCall) and isinstance(cut.fun, Split):
            split = rule("split_introduction", m=cut.fun.size)
            groups = at_path((0,), seq(split, at_path((0,), groups)))
        return groups(cut)

    def zipped(self, size: NatLike) -> Strategy:
        """Pack arrays that a map reads element by element, and cuts into groups of `size`.

        The map reads them in a zip with others: one matrix of weights for each element.
        """

        def run(expr: Expr) -> Result:
            for path, part in top_down(expr):
                for which, cut in self.cuts_of_zipped(part, size):
                    apart = rule(FISSIONS[which], {"g": cut})
                    stored = seq(apart, at_path((0, which), self.pack_each))
                    return at_path(path, attempt(stored))(expr)
            return Success(expr)

        return run

    def cuts_of_zipped(self, expr: Expr, size: NatLike) -> Iterator[tuple[int, Path]]:
        """For each packed part of the zip that a map reads: its index, and the path of the cut."""
        source = expr.args[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Map) else None
        if not isinstance(source, FunCall) or not isinstance(source.fun, Zip):
            return
        if len(source.args) > len(FISSIONS):
            return
        pair, body = parameter(expr), body_of(expr)
        for which, array in enumerate(source.args):
            if self.packs(array):
                for path, part in top_down(body):
                    if is_cut(part, size) and component(laid_out(part), pair) == (which,):
                        yield which, path

    def pack_each(self, expr: Expr) -> Result:
        """Store the elements of an array, each of which is cut into groups, in panels."""
        moved, forward = self.moved(rank(body_of(expr).type))
        groups = seq(rule("map_copy"), at_path((1,), moved), rule("map_fission", {"g": forward}))
        stored = seq(rule("map_fission", {"g": (0,)}), at_path((0,), self.copy))
        return seq(at_path((1,), groups), stored)(expr)


FISSIONS = ("map_fission_first", "map_fission_second")


@lru_cache(maxsize=8)
def of_constants(constants: frozenset[str], unit: NatLike = 1) -> Panels:
    """Panels of arrays of constants, in which `unit` adjacent elements stay adjacent."""
    return Panels(lambda array: depends(array, constants), copy_kernel(), unit)


@lru_cache(maxsize=8)
def of_inputs(constants: frozenset[str]) -> Panels:
    """Panels of inputs that are not constant, and have each element once."""
    return Panels(
        lambda array: is_input(array) and not depends(array, constants), copy_kernel(loops=1)
    )


def depends(expr: Expr, constants: AbstractSet[str]) -> bool:
    """Whether an expression depends on constants, and on nothing else."""
    return bool(expr.free) and {p.name for p in expr.free} <= constants


def is_cut(expr: Expr, size: NatLike) -> bool:
    """Whether an expression cuts an array of arrays into groups of `size`."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Split | Cover)
        and expr.fun.size == size
        and rank(expr.args[0].type) > 1
    )


def laid_out(expr: Expr) -> Expr:
    """The variable, or the component of one, whose elements a view moves."""
    while isinstance(expr, FunCall) and is_view(expr.fun) and not isinstance(expr.fun, Get):
        expr = expr.args[0]
    return expr
