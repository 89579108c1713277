"""Finance: prices of options."""

from __future__ import annotations

from math import pi

from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    absolute,
    array_type,
    exp,
    fun,
    let,
    log,
    map,
    select,
    sqrt,
    zip,
)
from liftpy.workloads.family import Family, define

#: Abramowitz and Stegun, 26.2.17: the normal distribution, with an error of at most 7.5e-8.
SLOPE = 0.2316419
COEFFICIENTS = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)


def distribution(d: Expr) -> Expr:
    """The cumulative normal distribution at `d`."""

    def beyond(k: Expr) -> Expr:
        last, *others = reversed(COEFFICIENTS)
        polynomial = k * last
        for a in others:
            polynomial = (polynomial + a) * k
        return exp(d * d * -0.5) * polynomial * (1 / (2 * pi) ** 0.5)

    tail = 1 / (absolute(d) * SLOPE + 1) >> let(beyond)
    return tail >> let(lambda tail: select(d > 0, 1 - tail, tail))


normal = fun("normal", {"d": F32}, distribution)


def black_scholes(name: str, n: int) -> Program:
    """The prices of a call and of a put on each of `n` shares (NVIDIA SDK).

    `s: [n]` are the prices of the shares, `x: [n]` the strike prices, `t: [n]` the years to expiry;
    `r` is the risk-free rate, `v` the volatility.
    """

    def prices(s: Expr, x: Expr, t: Expr, r: Expr, v: Expr) -> Expr:
        def pay(now: Expr, then: Expr, due: Expr) -> Expr:
            return Tuple((s * now - due * then, due * (1 - then) - s * (1 - now)))

        def both(d: Expr) -> Expr:
            return Tuple((normal(d), normal(d - v * sqrt(t)), x * exp(-r * t))) >> let(pay)

        return (log(s / x) + (r + v * v * 0.5) * t) / (v * sqrt(t)) >> let(both)

    def all_prices(s: Expr, x: Expr, t: Expr, r: Expr, v: Expr) -> Expr:
        return zip(s, x, t) >> map(lambda s, x, t: prices(s, x, t, r, v))

    shares = array_type(F32, n)
    return define(name, all_prices, s=shares, x=shares, t=shares, r=F32, v=F32)


FAMILIES = (
    Family(
        "blackscholes",
        ("N",),
        ((1 << 20,),),
        "prices of a call and a put on each of {N} shares",
        black_scholes,
        lambda n: 50 * n,
    ),
)
