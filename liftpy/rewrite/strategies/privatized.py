"""Reductions by index with privatized bins: each chunk of the pairs has a copy of the bins.

    reduceByIndex(f, bins)(pairs)  ->  map(reduce(f))(zip(bins, transpose(copies)))
    copies  =  toGlobal(map(chunk -> reduceByIndexSeq(f, repeat(e))(chunk))(split(pairs)))

One kernel makes all copies, each by one work-item. The next one folds the copies of each bin in the
order of the chunks, so the operator need not commute: it is associative with the neutral element
`e`. Compilers call this privatization.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import ReduceByIndexSeq
from liftpy.rewrite.strategies.by_index import scalar_bins
from liftpy.rewrite.strategies.epilogue import COMPONENTS, taken_apart
from liftpy.rewrite.strategies.lower import clean, exposed, over_ids, sequential
from liftpy.rewrite.strategies.sequences import is_bins
from liftpy.rewrite.strategies.shapes import array_type, function_around, maps_over
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    identity,
    normalize,
    rule,
    satisfies,
    seq,
)

COPIES = (0, 1, 0)
"""The path of the copies on the right side of the law."""


def privatized(chunk: Nat, level: str) -> Strategy:
    """Give every `chunk` pairs a copy of the bins, in each reduction by index that permits it.

    `level` says how work-items make the copies (`over_ids`).
    """

    def cut(expr: Expr) -> Result:
        paths = [path for path, part in top_down(expr) if is_bins(part)]
        # from the last to the first: a step changes no path to a part before it or around it
        return seq(*(attempt(at_path(path, in_copies(chunk))) for path in reversed(paths)))(expr)

    return seq(
        scalar_bins(), cut, satisfies(has_copies, "has copies of bins"), copies_stored(level)
    )


def pairs_of(expr: Expr) -> list[int]:
    """The numbers of pairs of the reductions by index, extended by `in_copies`."""
    found = (part for _, part in top_down(expr) if isinstance(part, FunCall) and is_bins(part))
    lengths = (array_type(part.args[1]).length.constant for part in found)
    return [extended(length) for length in lengths if length is not None]


def extended(length: int) -> int:
    """The length to which pairs are extended, so that chunks of several sizes divide it.

    >>> [extended(n) for n in (1, 11, 97, 1024)]
    [1, 12, 104, 1024]
    """
    step = 1 << (length.bit_length() // 2)
    return -(-length // step) * step


def in_copies(chunk: Nat) -> Strategy:
    """A reduction by index as a map of folds over the copies of each bin."""

    def run(expr: Expr) -> Result:
        if not isinstance(expr, FunCall):
            return Failure("privatized", "no reduction by index here")
        length = array_type(expr.args[1]).length
        if length.constant is None:
            return Failure("privatized", "the number of pairs is open")
        extra = extended(length.constant) - length.constant
        each = at_path((*COPIES, 1), rule("reduce_by_index_to_seq"))
        longer = seq(
            rule("reduce_by_index_extension", extra=extra), at_path((1,), components_apart)
        )
        return seq(longer if extra else identity, rule("reduce_by_index_split", k=chunk), each)(
            expr
        )

    return run


components_apart = seq(normalize(choose(rule("map_fusion"), COMPONENTS)), clean())
"""Read each component of pairs where it comes from."""


def copies_stored(level: str) -> Strategy:
    """Store all copies by kernels of their own; copies that maps make move outside of the maps."""
    kernel = seq(rule("to_global"), at_path((0,), seq(exposed(), over_ids(level), sequential())))

    def run(expr: Expr) -> Result:
        path = max(copies_in(expr), key=len, default=None)  # none is inside of it
        if path is None:
            return Success(expr)
        around = function_around(expr, path)
        while around is not None and path == (*around, 1) and is_map(at(expr, around)):
            path, around = around, function_around(expr, around)
        if around is None:
            return seq(at_path(path, kernel), run)(expr)
        if not is_map(at(expr, around)):
            return Failure("privatized", "a fold or an iteration repeats a reduction by index")
        return seq(at_path(around, taken_apart(path[len(around) + 1 :])), run)(expr)

    return run


is_map = maps_over(lambda _: True)


def has_copies(expr: Expr) -> bool:
    """Whether an expression makes copies of bins that are not stored yet."""
    return any(True for _ in copies_in(expr))


def copies_in(expr: Expr) -> Iterator[Path]:
    """The paths of maps over chunks that make copies of bins, and have no level yet."""
    made = maps_over(lambda e: isinstance(e, FunCall) and isinstance(e.fun, ReduceByIndexSeq))
    return (path for path, part in top_down(expr) if made(part))
