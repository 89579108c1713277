"""A random layout for an array: every one that the language has, with numbers that fit."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from liftpy.ir.call import call
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import greatest, least, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import BOOL, ArrayType, Type, scalars
from liftpy.primitives import (
    Concat,
    Cover,
    CoverOnce,
    Drop,
    Gather,
    Join,
    Map,
    Pad,
    PadClamp,
    PadMirror,
    PadWrap,
    Reorder,
    Slide,
    SlideStrict,
    Split,
    Take,
    Transpose,
    Uncover,
    Unslide,
    stride,
)
from liftpy.primitives.transpose import swaps

INDEX = var("i")
VALUES = (2.0, 1.0, -2.0, 3.0)


def moved(some: Random, expr: Expr) -> Expr:
    """The array through a layout."""
    t = expr.type
    assert isinstance(t, ArrayType)
    n = int(t.length)
    shaped = [*nested(some, t), *nested(some, t)]  # where arrays are in arrays, that more often
    make = some.choice([*resized(some, t, n), *permuted(some, n), *shaped])
    return make(expr)


def once(primitive: Primitive) -> Callable[[Expr], Expr]:
    """A primitive as a stage."""
    return lambda expr: call(primitive, expr)


def resized(some: Random, t: Type, n: int) -> list[Callable[[Expr], Expr]]:
    """Windows, borders and parts of `n` elements."""
    divisor = some.choice(divisors(n))
    size, step = some.randint(1, n), some.randint(1, 3)
    strict = some.choice(divisors(n - size)) if n > size else step
    left, right = some.randint(0, 2), some.randint(0, 2)
    crop = -some.randint(0, (n - 1) // 2), some.randint(-1, 1) if n > 2 else 0
    value = 1.0 if BOOL in scalars(t) else some.choice(VALUES)
    length = some.choice((1, 2, 3, 5))
    picked = some.choice(
        (
            least(2 * INDEX, n - 1),
            greatest(n - 1 - 2 * INDEX, 0),
            (3 * INDEX + 1) % n,
            INDEX // 2 % n,
        )
    )
    cut = some.randint(1, max(1, n - 1))
    stages: list[Primitive] = [
        Split(nat(divisor)),
        Slide(nat(size), nat(step)),
        Slide(nat(min(n, 3)), nat(1)),
        SlideStrict(nat(size), nat(strict)),
        Pad(nat(left), nat(right), value),
        Pad(nat(crop[0]), nat(crop[1]), value),
        PadClamp(nat(left), nat(right)),
        PadClamp(nat(crop[0]), nat(crop[1])),
        PadMirror(nat(min(left, n)), nat(min(right, n))),
        PadWrap(nat(left), nat(right + 1)),
        Gather(nat(length), picked),
        Cover(nat(size)),
        CoverOnce(nat(size), value),
        Take(nat(some.randint(1, n))),
        Drop(nat(some.randint(0, n - 1))),
    ]
    made: list[Callable[[Expr], Expr]] = [once(p) for p in stages]
    if n > 1:  # the parts in the other order
        made.append(lambda e: call(Concat(), call(Drop(nat(cut)), e), call(Take(nat(cut)), e)))
    made.append(lambda e: call(Concat(), e, call(Reorder(n - 1 - INDEX, n - 1 - INDEX), e)))
    return made


def permuted(some: Random, n: int) -> list[Callable[[Expr], Expr]]:
    """Permutations of `n` elements, each with its inverse."""
    turn, factor = some.randrange(n), some.choice([k for k in range(1, n + 1) if coprime(k, n)])
    across = pow(factor, -1, n) if n > 1 else 1
    return [
        once(stride(some.choice(divisors(n)), n)),
        once(Reorder((INDEX + turn) % n, (INDEX + (n - turn)) % n)),
        once(Reorder(n - 1 - INDEX, n - 1 - INDEX)),
        once(Reorder(factor * INDEX % n, across * INDEX % n)),
    ]


def nested(some: Random, t: ArrayType) -> list[Callable[[Expr], Expr]]:
    """What can be done to arrays of arrays."""
    depth = rank(t)
    if depth < 2:
        return []
    inner = t.element
    assert isinstance(inner, ArrayType)
    rows, size = int(t.length), int(inner.length)
    covered = some.randint((rows - 1) * size + 1, rows * size) if rows > 1 else size
    axes = some.sample(range(depth), depth)
    return [
        once(Join()),
        once(Transpose()),
        once(Unslide(nat(size), nat(some.randint(1, size)))),
        once(Uncover(nat(covered))),
        lambda e: transposed(e, swaps(axes)),
    ]


def transposed(expr: Expr, depths: list[int]) -> Expr:
    """An n-dimensional transpose as exchanges of neighbours."""
    for depth in depths:
        expr = under(depth, expr)
    return expr


def under(depth: int, expr: Expr) -> Expr:
    """`transpose` under maps."""
    if depth == 0:
        return call(Transpose(), expr)
    assert isinstance(expr.type, ArrayType)
    x = Param(f"row{depth}", expr.type.element)
    return call(Map(Lambda((x,), under(depth - 1, x))), expr)


def divisors(n: int) -> list[int]:
    """The divisors of a number."""
    return [d for d in range(1, n + 1) if n % d == 0]


def coprime(a: int, b: int) -> bool:
    """Whether two numbers have no common divisor."""
    while b:
        a, b = b, a % b
    return a == 1


def rank(t: Type) -> int:
    """The number of dimensions."""
    return 1 + rank(t.element) if isinstance(t, ArrayType) else 0
