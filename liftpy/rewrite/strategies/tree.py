"""Folds that the work-items of a group make together, in a tree through local memory.

    reduce(f, z)(xs)
    -> let a = toLocal(mapLcl(part -> reduce(f, e)(part))(parts of xs))
       in let b = toLocal(mapLcl(pair -> reduce(f, e)(pair))(pairs of a))
       in ... reduce(f, z)(last pair)

Each work-item folds its part of the array in registers, and stores the result in local memory. Each
further step halves the number of results, until two are left, which every work-item folds. An array
that does not fill its parts is extended with the neutral element `e`. So are the first results, to
a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, children, lambda_of
from liftpy.rewrite.strategies.lower import chain, over_items, sequential, store_sequences
from liftpy.rewrite.strategies.partial import reduced, results_reduced
from liftpy.rewrite.strategies.rows import folds_of, named_values, over_rows, recomputed
from liftpy.rewrite.strategies.shapes import body_of, is_reduce, layers, longest, nests
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    choose,
    identity,
    normalize,
    rule,
    seq,
)


@dataclass(frozen=True)
class Tree:
    """A tree of `steps` halvings over `items` work-items.

    `items` is at most 2 to the `steps`, and more than half of that. A work-item folds adjacent
    elements and pairs. If `strided`, it folds elements and pairs that are as far apart as possible,
    so that adjacent work-items read adjacent elements.
    """

    items: Nat
    steps: int
    strided: bool

    def fold(self, expr: Expr) -> Result:
        """Turn a fold in the function of a group into a tree."""
        if not is_reduce(expr):
            return Failure("tree", "no reduction here")
        return seq(
            operator_apart,
            self.level(self.items, ceiling(reduced(expr).length, self.items)),
            at_path((1,), self.halved(self.steps)),
        )(expr)

    def halved(self, steps: int) -> Strategy:
        """Fold the named results of a level in `steps` halvings; every work-item makes the last."""
        if steps <= 1:
            return identity
        return seq(self.level(nat(2 ** (steps - 1)), nat(2)), at_path((1,), self.halved(steps - 1)))

    def level(self, parts: Nat, size: Nat) -> Strategy:
        """Fold an array in `parts` of `size` elements, whose results are named in local memory."""
        return seq(
            in_parts(parts, size, strided=self.strided),
            rule("let_introduction", {"v": (1,)}),
            at_path((0,), seq(rule("map_to_lcl_0"), rule("to_local"))),
        )


class GroupFold(Protocol):
    """How the work-items of a group make a fold together."""

    @property
    def items(self) -> Nat:
        """The number of work-items."""
        ...

    def fold(self, expr: Expr, /) -> Result:
        """Lower a fold in the function of a group."""
        ...


def in_parts(parts: Nat, size: Nat, *, strided: bool) -> Strategy:
    """Fold an array in `parts` of `size` elements: adjacent ones, or strided by `parts`."""
    cut = (
        seq(rule("reduce_split", m=parts), rule("reduce_exchange"))
        if strided
        else rule("reduce_split", m=size)
    )
    return seq(extended(parts * size), cut)


def operator_apart(expr: Expr) -> Result:
    """Fuse the maps that a fold reads into one, with what its function does to each element."""
    step = lambda_of(expr.fun) if isinstance(expr, FunCall) else None
    parts = () if step is None else enumerate(children(step.body))
    computed = [k for k, part in parts if not isinstance(part, Param)]
    apart = (rule("reduce_map_fission", {"g": (k,)}) for k in computed)
    return seq(attempt(choose(*apart)), at_path((1,), normalize(rule("map_fusion"))))(expr)


def ceiling(length: Nat, size: Nat) -> Nat:
    """The number of parts of `size` elements that contain an array of a length."""
    return (length + size - 1) // size


def extended(length: Nat) -> Strategy:
    """Extend the array of a fold to a length with the neutral element, if it is shorter."""

    def run(expr: Expr) -> Result:
        extra = length - reduced(expr).length
        return (identity if extra == 0 else rule("reduce_extension", extra=extra))(expr)

    return run


def row_of(expr: Expr) -> Path | None:
    """The path of the map over rows: the innermost map whose function folds outside other maps."""
    made = [*chain(nests(expr))]
    return next((path for path in reversed(made) if folds_of(body_of(at(expr, path)))), None)


def maps_around(expr: Expr, row: Path) -> tuple[tuple[Path, ...], ...]:
    """The paths of the maps that make a result, by depth, down to the map over rows."""
    return tuple(layers(nests(expr)))[: sum(row[: len(p)] == p for p in chain(nests(expr)))]


def folded(expr: Expr) -> list[int]:
    """The (greatest) lengths of the arrays that are folded for a row, or for the result."""
    row = row_of(expr)
    if row is None:
        return [longest(reduced(at(expr, path))) for path in results_reduced(expr)]
    body = body_of(at(expr, row))
    return [longest(reduced(at(body, path))) for path in folds_of(body)]


def is_scalar(row: Expr) -> bool:
    """Whether a row's function makes a scalar, or a tuple of scalars."""
    return next(row.type.lengths(), None) is None


def can_hold(row: Expr) -> bool:
    """Whether a row's function names arrays that maps make, all of them after a fold.

    The first map over local ids in a kernel determines the size of its groups. The map of a fold
    has one element for each work-item of the tree.
    """
    named = [value for _, value in named_values(row)]
    arrays = [k for k, value in enumerate(named) if isinstance(value.type, ArrayType)]
    made = all(nests(named[k]) for k in arrays)
    return bool(arrays) and made and any(map(folds_of, named[: arrays[0]]))


def of_rows(tree: GroupFold, *, held: bool = False) -> Strategy:
    """Make each row by a group, whose items make its folds together and share its elements.

    The arrays that a row's function names are `held` in local memory, or computed where they are
    read.
    """

    def run(expr: Expr) -> Result:
        path = row_of(expr)
        if path is None:
            return Failure("tree", "no map over rows folds each row")
        depth = len(maps_around(expr, path))
        ones = at_path(path, by_first_item) if is_scalar(body_of(at(expr, path))) else identity
        row = seq(in_local if held else recomputed, folded_together, over_items)
        return seq(at_path((*path, 1), row), ones, over_rows("wrg", depth), sequential())(expr)

    def folded_together(row: Expr) -> Result:
        return seq(*(at_path(path, tree.fold) for path in folds_of(row)))(row)

    return run


def in_local(row: Expr) -> Result:
    """Hold the arrays named by lets of a row's function in local memory."""
    shared = seq(over_items, rule("to_local"))
    arrays = [path for path, value in named_values(row) if isinstance(value.type, ArrayType)]
    return seq(*(at_path((*path, 0), shared) for path in arrays))(row)


def by_first_item(expr: Expr, level: str = "lcl_0") -> Result:
    """Let the first work-item of a group, or of a subgroup, store the scalar of a map's function.

    `level` is the level of the work-items.
    """
    copied = seq(rule("map_copy"), rule(f"map_to_{level}"))
    named = seq(rule("let_introduction", {"v": (0,)}), at_path((1,), copied))
    return seq(rule("map_by_ones"), at_path((0, 1), named))(expr)


def of_results(tree: GroupFold, chunk: Nat, *, again: bool) -> Strategy:
    """Make the results by groups, each of whose items folds `chunk` elements of a reduced array.

    The results of the groups are stored, and folded by one work-item or, if `again`, by one more
    group.
    """

    def by_groups(part: Nat) -> Strategy:
        """Store the results of groups, each of which folds `part` elements."""
        group = seq(of_rows(tree), rule("to_global"))
        return seq(rule("reduce_split", m=part), at_path((1,), group))

    def run(expr: Expr) -> Result:
        part = tree.items * chunk
        groups = ceiling(reduced(expr).length, part)
        last = by_groups(groups) if again else identity
        return seq(extended(groups * part), by_groups(part), last, sequential())(expr)

    def everywhere(expr: Expr) -> Result:
        paths = results_reduced(expr)
        if not paths:
            return Failure("tree", "no reduction makes the result")
        each = seq(operator_apart, store_sequences(), run)
        return seq(*(at_path(path, each) for path in paths))(expr)

    return everywhere
