"""Rows that are folded and mapped: softmax, normalisation.

The expected shape is a map over rows that computes folds of the row and a map that reads them:

    map(row -> let s = reduce(f)(map(g)(row)) in map(x -> h(x, s))(row))

Each fold is vectorized by the laws of its operator: `strip` partial results, each over every
`strip`-th element, are accumulated and then folded. The map that makes the row is vectorized too.
An array named by a `let` is either recomputed where it is read, or held in memory of the work-item
or of its group. Two folds of which one reads the other's result may become one fold of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import NatLike
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at
from liftpy.rewrite.strategies.block import in_vector_accumulators, reduce_of_maps
from liftpy.rewrite.strategies.lanes import vectorized
from liftpy.rewrite.strategies.lower import INNER, chain, sequential
from liftpy.rewrite.strategies.quotients import reciprocals
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_reduce,
    lets,
    longest,
    nests,
    rank,
)
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
    seq,
    where,
)


def row_of(expr: Expr) -> Path | None:
    """The path of the map over rows: the last but one of the maps that make the result."""
    paths = [*chain(nests(expr))]
    if len(paths) < 2:
        return None
    row, last = paths[-2:]
    made = body_of(at(expr, last))
    return row if rank(made.type) == 0 and folds_of(body_of(at(expr, row))) else None


def folds_of(row: Expr, path: Path = ()) -> list[Path]:
    """The paths of the folds to scalars that a row's function computes once."""
    if is_reduce(row):
        return [path] if rank(row.type) == 0 else []
    if isinstance(row, Tuple):
        parts = row.elements
    elif isinstance(row, FunCall):
        parts = (*row.args, row.fun.body) if isinstance(row.fun, Lambda) else row.args
    else:
        return []
    return [found for k, part in enumerate(parts) for found in folds_of(part, (*path, k))]


def reduced_lengths(expr: Expr) -> list[int]:
    """The (greatest) lengths of the arrays that the folds of a row reduce."""
    row = row_of(expr)
    if row is None:
        return []
    body = body_of(at(expr, row))
    folds = (at(body, path) for path in folds_of(body))
    return [longest(array_type(f.args[1])) for f in folds if isinstance(f, FunCall)]


def recomputed(row: Expr) -> Result:
    """Recompute the arrays named by lets of a row's function where they are read."""
    for path, value in named_values(row):
        if isinstance(value.type, ArrayType):
            return seq(at_path(path, rule("let_inline")), recomputed)(row)
    return Success(row)


def held(memory: str, width: NatLike) -> Strategy:
    """Vectorize the arrays named by lets of a row's function, and hold them in a memory."""

    def run(row: Expr) -> Result:
        arrays = [
            (*path, 0) for path, value in named_values(row) if isinstance(value.type, ArrayType)
        ]
        stored = seq(rule(f"to_{memory}"), at_path((0,), in_vectors(width)))
        return seq(*(at_path(path, stored) for path in arrays))(row)

    return run


def names_arrays(expr: Expr) -> bool:
    """Whether a row's function names arrays."""
    row = row_of(expr)
    named = () if row is None else named_values(body_of(at(expr, row)))
    return any(isinstance(value.type, ArrayType) for _, value in named)


def in_vectors(width: NatLike) -> Strategy:
    """Vectorize the outermost map that makes an array of scalars.

    If it divides all elements by the same number, the reciprocal is computed once.
    """

    def innermost(expr: Expr) -> Result:
        named = sum(1 for _ in lets(expr))
        return at_path((1,) * named, vectorized(width))(expr)

    vectors = seq(normalize(rule("map_fusion")), reciprocals, innermost)

    def run(expr: Expr) -> Result:
        maps = [*chain(nests(expr))]
        if not maps:
            return Failure("in_vectors", "no map makes the array")
        return at_path(maps[0], vectors)(expr)

    return run


def named_values(expr: Expr) -> Iterator[tuple[Path, Expr]]:
    """The lets at the beginning of an expression: their paths and values."""
    for depth, let in enumerate(lets(expr)):
        yield (1,) * depth, let.args[0]


def fold_in_vectors(strip: NatLike, width: NatLike) -> Strategy:
    """Turn a fold into one of the lanes of a vector, into which `strip` results are folded."""
    lanes = at_path((1,), partial_results(width, width))
    named = seq(rule("let_introduction", {"v": (1,)}), at_path((0,), rule("to_private")))
    return seq(partial_results(strip, width), named, lanes)


def partial_results(strip: NatLike, width: NatLike) -> Strategy:
    """Turn a fold into one of `strip` partial results, which are accumulated in vectors."""
    return seq(fold_of_columns(strip), at_path((1,), accumulated(width)))


def fold_of_columns(strip: NatLike) -> Strategy:
    """Turn a fold into one of `strip` partial results, each over every `strip`-th element."""
    views = normalize(choose(rule("split_of_map"), rule("transpose_of_map_map")))
    columns = seq(
        attempt(at_path((0,), views)),
        attempt(rule("map_fusion")),
        attempt(at_path((1,), normalize(rule("reduce_map_fusion")))),
    )
    fused = normalize(rule("map_fusion"))
    return seq(
        attempt(at_path((1,), fused)),
        rule("reduce_split", m=strip),
        rule("reduce_exchange"),
        at_path((1,), columns),
    )


def accumulated(width: NatLike) -> Strategy:
    """Turn a map of folds of columns into one reduction to vectors."""
    vectors = where(is_reduce, in_vector_accumulators(width), "reduction to an array")
    return seq(reduce_of_maps(), vectors)


def in_one_pass(strip: NatLike, width: NatLike) -> Strategy:
    """Turn a fold of a row and one that reads its result, such as a sum of powers, into one pass.

    This is a fold of pairs: each column has a pair of partial results, accumulated in vectors. The
    sum of a column is then rescaled to the result of the whole row.
    """
    column = seq(
        attempt(at_path((0,), rule("reduce_from_finite"))),
        rule("reduce_online"),
        at_path((1,), rule("pair_of_parts")),
        rule("let_inline"),
    )
    pairs = seq(at_path((1,), column), accumulated(width), rule("to_private"))
    lanes = partial_results(width, width)
    both = seq(
        at_path((0,), fold_of_columns(strip)),
        at_path((1, 0), fold_of_columns(strip)),
        rule("reduce_online_of_rows"),
        at_path((0,), pairs),
        at_path((1, 0), lanes),
        at_path((1, 1, 0), lanes),
    )

    def run(row: Expr) -> Result:
        named = [path for path, value in named_values(row) if is_reduce(value)]
        if len(folds_of(row)) != 2 or len(named) != 2 or named[1] != (*named[0], 1):
            return Failure("in_one_pass", "a row's function does not name two successive folds")
        return at_path(named[0], both)(row)

    return run


def in_rows(
    strip: NatLike,
    width: NatLike,
    level: str,
    arrays: str = "again",
    passes: str = "two",
    turns: NatLike = 1,
) -> Strategy:
    """Assign ids of a level to rows, and vectorize their folds and elements.

    `arrays` is the memory that holds the arrays named by a row's function, or `again` to recompute
    them. `passes` is `one` if two folds, of which one reads the other's result, take one pass. A
    work-item computes `turns` rows one after another, each while the next one is prefetched.
    """

    def folded(row: Expr) -> Result:
        return seq(*(at_path(p, fold_in_vectors(strip, width)) for p in folds_of(row)))(row)

    def run(expr: Expr) -> Result:
        path = row_of(expr) or ()
        named = recomputed if arrays == "again" else held(arrays, width)
        folds = in_one_pass(strip, width) if passes == "one" else folded
        row = at_path((*path, 1), seq(named, folds, in_vectors(width)))
        depth = sum(1 for _ in chain(nests(expr))) - 1
        return seq(row, in_turn(path, turns), over_rows(level, depth), sequential())(expr)

    return run


def in_turn(path: Path, turns: NatLike) -> Strategy:
    """Cut the map over rows at a path into chunks of `turns` rows, each computed sequentially."""
    if turns == 1:
        return identity
    ahead = at_path((*path, 0, 1), rule("map_to_seq_ahead"))
    return seq(at_path(path, rule("split_join", m=turns)), ahead)


def over_rows(level: str, depth: int) -> Strategy:
    """Assign ids of a level to the outermost `depth` maps."""
    if level in INNER:
        return INNER[level]

    def run(expr: Expr) -> Result:
        outer = [*chain(nests(expr))][:depth]
        dims = range(len(outer)) if level == "wrg" else reversed(range(len(outer)))
        pairs = zip(outer, dims, strict=True)
        return seq(*(at_path(p, rule(f"map_to_{level}_{dim}")) for p, dim in pairs))(expr)

    return run
