"""Reductions that make the result, in two kernels: partial results in parallel, then their fold.

    reduce(f, z)(map(g)(xs))  ->  reduce(f, z)(toGlobal(map(chunk -> reduce(f . g, e))(chunks)))

The laws of the operator permit this: it is associative with the neutral element `e`, and, for
strided chunks, commutative.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.nat import Nat
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, children
from liftpy.rewrite.strategies.lower import (
    nest_reductions,
    over_ids,
    plain,
    sequential,
    store_sequences,
)
from liftpy.rewrite.strategies.shapes import array_type, is_reduce
from liftpy.rewrite.strategies.share import store_shared
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    normalize,
    repeat,
    rule,
    seq,
)


def results_reduced(expr: Expr) -> list[Path]:
    """The paths of the reductions that make a result, or components of it."""
    if isinstance(expr, Tuple):
        return [(k, *path) for k, e in enumerate(expr.elements) for path in results_reduced(e)]
    return [()] if is_reduce(expr) else []


def reduced_lengths(expr: Expr) -> list[int]:
    """The lengths of the arrays that `results_reduced` reduces."""
    return [int(reduced(at(expr, path)).length) for path in results_reduced(expr)]


def reduced(expr: Expr) -> ArrayType:
    """The type of the array that a reduction reduces."""
    return array_type(children(expr)[1])


def partial_results(chunk: Nat, *, strided: bool) -> Strategy:
    """Store the partial results of a reduction; a work-item reduces `chunk` elements.

    A chunk is adjacent elements or, if `strided`, every n/chunk-th element, so that adjacent
    work-items read adjacent elements.
    """
    fuse = seq(at_path((0,), rule("split_of_map")), rule("map_fusion"))
    fuse_strided = seq(
        at_path((0,), seq(at_path((0,), rule("split_of_map")), rule("transpose_of_map_map"))),
        rule("map_fusion"),
    )

    def run(expr: Expr) -> Result:
        if not is_reduce(expr):
            return Failure("partial_results", "no reduction here")
        length = reduced(expr).length
        cut = (
            seq(rule("reduce_split", m=length.exact_div(chunk)), rule("reduce_exchange"))
            if strided
            else rule("reduce_split", m=chunk)
        )
        chunks = seq(
            repeat(fuse_strided if strided else fuse),
            attempt(at_path((1,), normalize(rule("reduce_map_fusion")))),
        )
        shared = store_shared(plain())
        return seq(
            store_sequences(),
            cut,
            at_path((1,), seq(chunks, nest_reductions(), shared, over_ids("glb"), sequential())),
            at_path((1,), rule("to_global")),
            sequential(),
        )(expr)

    def everywhere(expr: Expr) -> Result:
        paths = results_reduced(expr)
        if not paths:
            return Failure("partial_results", "no reduction makes the result")
        fused = normalize(rule("map_fusion"))
        return seq(*(at_path(path, seq(at_path((1,), fused), run)) for path in paths))(expr)

    return everywhere
