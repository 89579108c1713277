"""Machine learning: nearest points and distances."""

from __future__ import annotations

from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import F32, I32
from liftpy.language.embedded.lang import (
    add,
    array_type,
    const,
    let,
    map,
    minimum,
    reduce,
    select,
    sqrt,
    zip,
)
from liftpy.workloads.family import Family, define

INFINITY = float("inf")


def squared_distance(p: Expr, q: Expr) -> Expr:
    """The squared distance of two points."""
    return zip(p, q) >> map(lambda a, b: (a - b) * (a - b)) >> reduce(add, 0)


def kmeans(name: str, points: int, centres: int, features: int) -> Program:
    """The index of the nearest centre of each point: the assignment step of k-means (Rodinia).

    The accumulator has the least distance, its index, and the index of the next centre.
    """

    def nearest(best: Expr, distance: Expr) -> Expr:
        least, number, this = best
        closer = distance < least
        return Tuple((select(closer, distance, least), select(closer, this, number), this + 1))

    start = Tuple((Literal(INFINITY, F32), Literal(0, I32), Literal(0, I32)))

    def assign(point: Expr, c: Expr) -> Expr:
        distances = c >> map(lambda centre: squared_distance(point, centre))
        return (distances >> reduce(lambda best, d: d >> let(lambda d: nearest(best, d)), start))[1]

    return define(
        name,
        lambda p, c: p >> map(lambda point: assign(point, c)),
        p=array_type(F32, points, features),
        c=const(F32, centres, features),
    )


def nearest(name: str, queries: int, points: int, features: int) -> Program:
    """The distance of each query to the nearest of the points."""
    return define(
        name,
        lambda q, p: (
            q
            >> map(
                lambda query: sqrt(
                    p
                    >> map(lambda point: squared_distance(query, point))
                    >> reduce(minimum, INFINITY)
                )
            )
        ),
        q=array_type(F32, queries, features),
        p=const(F32, points, features),
    )


def distances(name: str, records: int, features: int) -> Program:
    """The distance of each record to a target (Rodinia, nn)."""
    return define(
        name,
        lambda xs, target: xs >> map(lambda x: sqrt(squared_distance(x, target))),
        xs=array_type(F32, records, features),
        target=array_type(F32, features),
    )


FAMILIES = (
    Family(
        "kmeans",
        ("N", "K", "D"),
        ((65536, 16, 32),),
        "number of the nearest of {K} centres for each of {N} points, {D} features",
        kmeans,
        lambda n, k, d: n * k * (3 * d + 1),
    ),
    Family(
        "nearest",
        ("Q", "N", "D"),
        ((1024, 8192, 2),),
        "distance to the nearest of {N} points for each of {Q}, {D} features",
        nearest,
        lambda q, n, d: q * n * (3 * d + 1),
    ),
    Family(
        "nn",
        ("N", "D"),
        ((1 << 20, 2),),
        "distance of {N} records to a target, {D} features",
        distances,
        lambda n, d: n * (3 * d + 1),
    ),
)
