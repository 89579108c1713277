"""Folds that the work-items of a group, or those of each subgroup, compute together.

    reduce(f, z)(xs)
    -> reduceSubgroups(f, z)(mapLcl(part -> reduce(f, e)(part))(parts of xs))

Each work-item of a group folds its part of the array in registers, as in a tree
(`strategies/tree.py`). The results are folded by subgroup functions: there is one barrier, whereas
a tree has one for each halving.

    map(row -> ... reduce(f, z)(map(g)(row)) ...)(xs)
    -> mapWrg(mapSubgroup(row -> ... reduceItems(f, z)(mapItem(g)(row)) ...))(chunks of xs)

Each subgroup computes rows by itself, without a barrier and without local memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.walk import at, lambda_of
from liftpy.primitives.subgroups import (
    SUBGROUP_OPERATORS,
    SUBGROUP_TYPES,
    subgroup_operator,
)
from liftpy.rewrite.strategies.lower import over_items, sequential
from liftpy.rewrite.strategies.partial import reduced
from liftpy.rewrite.strategies.rows import folds_of, over_rows, recomputed
from liftpy.rewrite.strategies.shapes import body_of, is_reduce, nests
from liftpy.rewrite.strategies.tree import (
    by_first_item,
    ceiling,
    in_parts,
    is_scalar,
    maps_around,
    operator_apart,
    row_of,
)
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, identity, rule, seq


@dataclass(frozen=True)
class Subgroups:
    """A fold by `items` work-items and their subgroups.

    A work-item folds adjacent elements, or if `strided`, elements that are as far apart as
    possible, so that adjacent work-items read adjacent elements.
    """

    items: Nat
    strided: bool

    def fold(self, expr: Expr) -> Result:
        """Turn a fold in the function of a group into one by subgroups."""
        if not is_reduce(expr):
            return Failure("subgroups", "no reduction here")
        size = ceiling(reduced(expr).length, self.items)
        return seq(
            operator_apart,
            in_parts(self.items, size, strided=self.strided),
            by_functions,
            at_path((1,), rule("map_to_lcl_0")),
        )(expr)


def of_rows_of_subgroups(rows: Nat, items: Nat) -> Strategy:
    """Make `rows` rows by a group of `items` work-items, each row by one subgroup of the group.

    The arrays that a row's function names are computed where they are read.
    """

    def run(expr: Expr) -> Result:
        path = row_of(expr)
        if path is None:
            return Failure("subgroups", "no map over rows folds each row")
        depth = len(maps_around(expr, path))
        scalar = is_scalar(body_of(at(expr, path)))
        made = (*path, 0) if scalar else path
        return seq(
            at_path((*path, 1), seq(recomputed, folded_by_items, over_items_of_subgroup)),
            at_path(path, partial(by_first_item, level="item")) if scalar else identity,
            at_path(made, rule("split_join", m=rows)),
            at_path((*made, 0, 1), rule("map_to_subgroup", items=items)),
            over_rows("wrg", depth),
            sequential(),
        )(expr)

    return run


over_items_of_subgroup = partial(over_items, level="item")


def folded_by_items(row: Expr) -> Result:
    """Let the work-items of a subgroup compute the folds of a row."""
    return seq(*(at_path(path, by_items) for path in folds_of(row)))(row)


def by_items(expr: Expr) -> Result:
    """Turn a fold into one by the work-items of a subgroup."""

    def mapped(xs: Expr) -> Result:
        copied = identity if nests(xs) else rule("map_copy")
        return seq(copied, rule("map_to_item"))(xs)

    return seq(operator_apart, partial(by_functions, law="reduce_to_items"), at_path((1,), mapped))(
        expr
    )


def by_functions(expr: Expr, law: str = "reduce_to_subgroups") -> Result:
    """Turn a fold into one by subgroup functions, if there is one for its operator."""
    f = lambda_of(expr.fun) if isinstance(expr, FunCall) and is_reduce(expr) else None
    if f is None or subgroup_operator(f) is None:
        operators = ", ".join(SUBGROUP_OPERATORS)
        types = ", ".join(map(str, SUBGROUP_TYPES))
        return Failure("subgroups", f"they fold by {operators} of {types}")
    return rule(law)(expr)
