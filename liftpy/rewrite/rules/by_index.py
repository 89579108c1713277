"""Laws of reduction by index: as one loop, as a fold for each bin, and by columns of rows."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, divides
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.function import Lambda
from liftpy.ir.nat import var
from liftpy.ir.types import F32, F64, I32, ScalarType, TupleType
from liftpy.language.embedded.operations import operate
from liftpy.primitives import (
    Generate,
    MapGlb,
    ReduceByIndex,
    ReduceByIndexAtomic,
    ReduceByIndexSeq,
)
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    S,
    T,
    U,
    V,
    array,
    fmap,
    fold,
    function,
    get,
    k,
    m,
    n,
    pad,
    repeat,
    split,
    transpose,
    unknown,
    zipped,
)

f, of_scalars = unknown("f", U), unknown("f", S)
bins, pairs = array("bins", S, m), array("pairs", TupleType((I32, T)), n)


places = call(Generate(m, function(lambda i: i, i=I32)))


REDUCE_BY_INDEX_TO_SEQ = Rule(
    "reduce_by_index_to_seq",
    "index",
    call(ReduceByIndex(function(of_scalars, a=S, x=T)), bins, pairs),
    call(ReduceByIndexSeq(function(of_scalars, a=S, x=T)), bins, pairs),
    proof="definition",
)


OWNED_RULES = "reduce_by_index_owned_"
"""The beginning of the names of the rules by which each bin has its own fold."""


def owned(t: ScalarType) -> Rule:
    """Each bin folds all pairs, and keeps its value at those of other bins."""
    step, own = unknown("f", t), array("bins", t, m)

    def of_bin(bin_: Expr) -> Expr:
        return fold(
            lambda a, p: operate(
                "select", operate("==", get(0, p), get(1, bin_)), step(a, get(1, p)), a
            ),
            get(0, bin_),
            pairs,
            "p",
        )

    return Rule(
        f"{OWNED_RULES}{t}",
        "index",
        call(ReduceByIndex(function(step, a=t, x=T)), own, pairs),
        fmap(of_bin, zipped(own, places), "bin"),
        where=(at_least(1, m),),
    )


OWNED = {t: owned(t) for t in (F32, F64, I32)}
"""The rules for bins of each type: `select` takes scalars, whose types a rule has to name."""


row_pairs = array("pairs", TupleType((I32, array("x", V, k).type)), n)
row_bins = array("bins", U, m, k)
indices, rows = (fmap(lambda p, c=c: get(c, p), row_pairs, "p") for c in (0, 1))

REDUCE_BY_INDEX_OF_ROWS = Rule(
    "reduce_by_index_of_rows",
    "index",
    call(
        ReduceByIndex(
            function(
                lambda a, x: fmap(lambda t: f(get(0, t), get(1, t)), zipped(a, x), "t"),
                a=array("a", U, k).type,
                x=array("x", V, k).type,
            )
        ),
        row_bins,
        row_pairs,
    ),
    transpose(
        fmap(
            lambda c: call(
                ReduceByIndex(function(f, a=U, x=V)), get(0, c), zipped(indices, get(1, c))
            ),
            zipped(transpose(row_bins), transpose(rows)),
            "c",
        )
    ),
    where=(at_least(1, n), at_least(1, m), at_least(1, k)),
)


def step_of(by: Callable[..., Expr]) -> Lambda:
    """A function of a bin and a value of the same type."""
    return function(by, a=S, x=S)


own_pairs = array("pairs", TupleType((I32, S)), n)
copies = fmap(
    lambda chunk: call(
        ReduceByIndex(step_of(of_scalars)), repeat(m, Literal(ValueVar("e"), S)), chunk
    ),
    split(k, own_pairs),
    "chunk",
)
"""The bins of each chunk of the pairs, from the neutral element."""

REDUCE_BY_INDEX_SPLIT = Rule(
    "reduce_by_index_split",
    "index",
    call(ReduceByIndex(step_of(of_scalars)), bins, own_pairs),
    fmap(
        lambda bin_: fold(of_scalars, get(0, bin_), get(1, bin_)),
        zipped(bins, transpose(copies)),
        "bin",
    ),
    where=(divides(k, n), at_least(1, m), at_least(1, n)),
    assuming=(Assumption("associative", "f"), Assumption("neutral", "f", "e")),
    tunes=("k",),
    proof="blocks",
)

REDUCE_BY_INDEX_TO_ATOMIC = Rule(
    "reduce_by_index_to_atomic",
    "index",
    call(ReduceByIndex(step_of(of_scalars)), bins, own_pairs),
    call(
        ReduceByIndexAtomic(step_of(of_scalars)),
        bins,
        call(MapGlb(function(lambda p: p, p=TupleType((I32, S))), 0), own_pairs),
    ),
    assuming=(Assumption("associative", "f"), Assumption("commutative", "f")),
    proof="permuted",
)

extra = var("extra", None)
padded = zipped(
    pad(0, extra, -1, fmap(lambda p: get(0, p), own_pairs, "p")),
    pad(0, extra, ValueVar("e"), fmap(lambda p: get(1, p), own_pairs, "p")),
)

REDUCE_BY_INDEX_EXTENSION = Rule(
    "reduce_by_index_extension",
    "index",
    call(ReduceByIndex(step_of(of_scalars)), bins, own_pairs),
    call(ReduceByIndex(step_of(of_scalars)), bins, padded),
    where=(at_least(1, n), at_least(0, extra)),
    assuming=(Assumption("neutral", "f", "e"),),
    tunes=("extra",),
    proof="idle",
)

RULES = (
    REDUCE_BY_INDEX_TO_SEQ,
    *OWNED.values(),
    REDUCE_BY_INDEX_OF_ROWS,
    REDUCE_BY_INDEX_SPLIT,
    REDUCE_BY_INDEX_TO_ATOMIC,
    REDUCE_BY_INDEX_EXTENSION,
)
