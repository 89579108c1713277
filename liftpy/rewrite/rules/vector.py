"""Laws of vectors."""

from __future__ import annotations

from liftpy.ir.constraint import divides
from liftpy.ir.expr import Expr, call
from liftpy.ir.nat import var
from liftpy.primitives import AsScalar, AsVector, MapVec, ReduceVec
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import R, S, array, element_of, fmap, fold, function, n, unknown
from liftpy.rewrite.rules.reduce import MONOID, e, op, start

v = var("v")
xs = array("xs", S, n)
f = unknown("f", R)


def lanes(vector: Expr) -> Expr:
    """`mapVec(f)` of a vector."""
    return call(MapVec(function(f, x=element_of(vector))), vector)


def as_vector(array_: Expr) -> Expr:
    """`asVector(v)` of an array."""
    return call(AsVector(v), array_)


VECTORIZE_MAP = Rule(
    "vectorize_map",
    "vectorise",
    fmap(f, xs),
    call(AsScalar(), fmap(lanes, as_vector(xs), "vector")),
    where=(divides(v, n), divides(v, MAX_LANES)),
    tunes=("v",),
)

AS_VECTOR_OF_MAP = Rule(
    "as_vector_of_map",
    "vectorise",
    as_vector(fmap(f, xs)),
    fmap(lanes, as_vector(xs), "vector"),
)

VECTORIZE_REDUCE = Rule(
    "vectorize_reduce",
    "vectorise",
    fold(op, start, xs),
    fold(
        op,
        start,
        fmap(
            lambda vector: call(ReduceVec(function(op, a=S, x=S)), e, vector),
            as_vector(xs),
            "vector",
        ),
    ),
    where=(divides(v, n), divides(v, MAX_LANES)),
    assuming=MONOID,
    tunes=("v",),
    proof="blocks",
)

AS_SCALAR_OF_AS_VECTOR = Rule(
    "as_scalar_of_as_vector", "vectorise", call(AsScalar(), as_vector(xs)), xs
)

RULES = (VECTORIZE_MAP, AS_VECTOR_OF_MAP, VECTORIZE_REDUCE, AS_SCALAR_OF_AS_VECTOR)
