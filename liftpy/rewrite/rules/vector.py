"""Laws of vectors."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import divides
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import var
from liftpy.ir.types import VectorType
from liftpy.primitives import MapVec, ReduceVec
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.rule import Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    R,
    S,
    TypeVar,
    U,
    array,
    as_scalar,
    as_vector,
    element_of,
    fmap,
    fold,
    function,
    join,
    k,
    m,
    map_vec,
    n,
    pad,
    split,
    unknown,
)
from liftpy.rewrite.rules.reduce import MONOID, e, op, start

v, left, right = var("v"), var("left", None), var("right", None)
Q = TypeVar("Q", scalar=True)
xs, xss = array("xs", S, n), array("xss", S, n, m * v)
vector, vectors = Param("vector", VectorType(S, v)), array("vectors", VectorType(S, v), n)
z, c = Param("z", U), ValueVar("c")
f, g = unknown("f", R), unknown("g", Q)
onto = unknown("f", U)


def lanes(vector: Expr) -> Expr:
    """`mapVec(f)` of a vector."""
    return map_vec(f, vector)


def fold_lanes(init: Expr, vector: Expr) -> Expr:
    """`reduceVec(f, init)` of a vector, for `f` with any type of accumulator."""
    return call(ReduceVec(function(onto, a=U, x=element_of(vector))), init, vector)


VECTORIZE_MAP = Rule(
    "vectorize_map",
    "vectorise",
    fmap(f, xs),
    as_scalar(fmap(lanes, as_vector(v, xs), "vector")),
    where=(divides(v, n), divides(v, MAX_LANES)),
    tunes=("v",),
)

AS_VECTOR_OF_MAP = Rule(
    "as_vector_of_map",
    "vectorise",
    as_vector(v, fmap(f, xs)),
    fmap(lanes, as_vector(v, xs), "vector"),
)

MAP_MAP_VEC_OF_AS_VECTOR = Rule(
    "map_map_vec_of_as_vector", "vectorise", AS_VECTOR_OF_MAP.right, AS_VECTOR_OF_MAP.left
)

MAP_OF_AS_SCALAR = Rule(
    "map_of_as_scalar",
    "vectorise",
    fmap(f, as_scalar(vectors)),
    as_scalar(fmap(lanes, vectors, "vector")),
)

MAP_VEC_FUSION = Rule(
    "map_vec_fusion",
    "vectorise",
    call(MapVec(function(f, y=Q)), map_vec(g, vector)),
    map_vec(lambda x: f(g(x)), vector),
)

REDUCE_VEC_MAP_VEC_FUSION = Rule(
    "reduce_vec_map_vec_fusion",
    "vectorise",
    call(ReduceVec(function(onto, a=U, y=Q)), z, map_vec(g, vector)),
    call(ReduceVec(function(lambda a, x: onto(a, g(x)), a=U, x=S)), z, vector),
    proof="lockstep",
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
            as_vector(v, xs),
            "vector",
        ),
    ),
    where=(divides(v, n), divides(v, MAX_LANES)),
    assuming=MONOID,
    tunes=("v",),
    proof="blocks",
)

REDUCE_OF_AS_SCALAR = Rule(
    "reduce_of_as_scalar",
    "vectorise",
    fold(onto, z, as_scalar(vectors)),
    fold(fold_lanes, z, vectors, "vector"),
    proof="nested",
)

AS_SCALAR_OF_AS_VECTOR = Rule(
    "as_scalar_of_as_vector", "vectorise", as_scalar(as_vector(v, xs)), xs
)

AS_VECTOR_OF_AS_SCALAR = Rule(
    "as_vector_of_as_scalar", "vectorise", as_vector(v, as_scalar(vectors)), vectors
)

AS_VECTOR_OF_JOIN = Rule(
    "as_vector_of_join",
    "vectorise",
    as_vector(v, join(xss)),
    join(fmap(lambda row: as_vector(v, row), xss, "row")),
)

JOIN_OF_AS_VECTORS = Rule(
    "join_of_as_vectors", "vectorise", AS_VECTOR_OF_JOIN.right, AS_VECTOR_OF_JOIN.left
)

SPLIT_OF_AS_VECTOR = Rule(
    "split_of_as_vector",
    "vectorise",
    split(k, as_vector(v, array("xs", S, n * k * v))),
    fmap(lambda chunk: as_vector(v, chunk), split(k * v, array("xs", S, n * k * v)), "chunk"),
)

MAP_AS_VECTOR_OF_SPLIT = Rule(
    "map_as_vector_of_split",
    "vectorise",
    fmap(lambda chunk: as_vector(v, chunk), split(m * v, array("xs", S, n * m * v)), "chunk"),
    split(m, as_vector(v, array("xs", S, n * m * v))),
)

PAD_OF_AS_VECTOR = Rule(
    "pad_of_as_vector",
    "vectorise",
    pad(left, right, c, as_vector(v, xs)),
    as_vector(v, pad(left * v, right * v, c, xs)),
)

AS_VECTOR_OF_PAD = Rule(
    "as_vector_of_pad",
    "vectorise",
    as_vector(v, pad(left, right, c, xs)),
    pad(left.exact_div(v), right.exact_div(v), c, as_vector(v, xs)),
    where=(divides(v, n), divides(v, left)),
)

RULES = (
    VECTORIZE_MAP,
    AS_VECTOR_OF_MAP,
    MAP_MAP_VEC_OF_AS_VECTOR,
    MAP_OF_AS_SCALAR,
    MAP_VEC_FUSION,
    REDUCE_VEC_MAP_VEC_FUSION,
    VECTORIZE_REDUCE,
    REDUCE_OF_AS_SCALAR,
    AS_SCALAR_OF_AS_VECTOR,
    AS_VECTOR_OF_AS_SCALAR,
    AS_VECTOR_OF_JOIN,
    JOIN_OF_AS_VECTORS,
    SPLIT_OF_AS_VECTOR,
    MAP_AS_VECTOR_OF_SPLIT,
    PAD_OF_AS_VECTOR,
    AS_VECTOR_OF_PAD,
)
