"""Sums of products of two arrays of several dimensions.

The steps of the folds are folds, down to one that adds a product to its argument. Such a sum does
not depend on the order of its dimensions, and an element that is multiplied by 0 adds nothing to
it. Both are laws of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat, nats
from liftpy.ir.types import F32
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.notation import (
    array,
    fold,
    get,
    k,
    m,
    n,
    pad,
    take,
    transpose,
    unknown,
    zipped,
)

(length,) = nats("length")
z, accumulate = Param("z", F32), unknown("f", F32)
ACCUMULATES = (Assumption("accumulates", "f"),)


def folded(
    levels: int, innermost: Callable[..., Expr] = accumulate
) -> Callable[[Expr, Expr], Expr]:
    """The step of a fold of pairs in `levels` more dimensions, which adds their products."""
    if not levels:
        return innermost
    step = folded(levels - 1, innermost)
    return lambda a, p: fold(step, a, zipped(get(0, p), get(1, p)), "p")


def products_extension(*inner: Nat) -> Rule:
    """The law that the second array may be padded with 0 where the first one is cropped."""
    dimensions = len(inner) + 1
    xs, ys = array("xs", F32, length, *inner), array("ys", F32, k, *inner)
    step = folded(len(inner))
    return Rule(
        f"products_extension_{dimensions}",
        "products",
        fold(step, z, zipped(take(k, xs), ys), "p"),
        fold(step, z, zipped(xs, pad(0, length - k, 0.0, ys)), "p"),
        assuming=ACCUMULATES,
        proof="polynomial",
    )


xs, ys = array("xs", F32, n, m, k), array("ys", F32, n, m, k)

PRODUCTS_EXCHANGE = Rule(
    "products_exchange",
    "products",
    fold(folded(2), z, zipped(xs, ys), "p"),
    fold(folded(2), z, zipped(transpose(xs), transpose(ys)), "p"),
    where=(at_least(1, n),),
    assuming=ACCUMULATES,
    proof="polynomial",
)

RULES = (products_extension(m), products_extension(m, n), PRODUCTS_EXCHANGE)
