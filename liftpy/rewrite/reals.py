"""Laws of real numbers: which expressions are equal, and what rescales an accumulated value.

An expression on floating-point numbers is read as one on real numbers and normalised to a sum of
products of atoms, each with a power of e: `exp(a) * exp(b)` is `exp(a + b)`, and `+`, `-` and `*`
are those of a commutative ring. An expression with any other operator is an atom. Two expressions
with the same normal form are equal for all real numbers. `+`, `-` and `*` of i32, which wrap
around, are those of a ring too; other operators on integers make atoms. Infinity and NaN are not
real numbers: an infinite number from which a fold starts is checked by evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from liftpy.ir.call import FunCall, apply, fresh, substitute
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.operators import OPERATORS
from liftpy.ir.primitive import Get, ScalarOp
from liftpy.ir.scalars import LARGEST
from liftpy.ir.types import FLOATS, I32
from liftpy.ir.walk import every_part

# --- expressions as sums ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Product:
    """Atoms with exponents, and a power of e; its exponent is products with coefficients."""

    atoms: frozenset[tuple[Expr, int]] = frozenset()
    power: frozenset[tuple[Product, Fraction]] = frozenset()


Sum: TypeAlias = dict[Product, Fraction]
ONE = Product()


def are_equal(one: Expr, two: Expr) -> bool:
    """Whether two expressions have one normal form and are therefore equal for all real numbers."""
    return is_real(one) and is_real(two) and summed(one) == summed(two)


def is_real(expr: Expr) -> bool:
    """Whether no constant in an expression is infinite or NaN."""
    for part in every_part(expr):
        match part:
            case Literal(value) if not math.isfinite(value):
                return False
            case FunCall(UserFun() as f) if not is_real(f.body):
                return False
            case _:
                pass
    return True


def summed(expr: Expr) -> Sum:
    """An expression as products with coefficients other than 0."""
    match expr:
        case Literal(value, t) if t in FLOATS or t == I32:
            return without_zeros({ONE: Fraction(value)})
        case FunCall(Lambda() | UserFun() as f, args):
            return summed(inside(f, args))
        case FunCall(ScalarOp("+" | "-" | "*" | "neg" as op), args) if expr.type == I32:
            known = operated(op, [summed(a) for a in args])
            return atom(expr) if known is None else known
        case FunCall(ScalarOp(op), args) if expr.type in FLOATS:
            known = operated(op, [summed(a) for a in args])
            if known is None and op == "/":
                known = multiplied(summed(args[0]), atom(reciprocal(args[1])))
            return atom(expr) if known is None else known
        case _:
            return atom(expr)


def inside(function: Lambda | UserFun, args: tuple[Expr, ...]) -> Expr:
    """The body of a function with its arguments substituted."""
    return substitute(function.body, dict(zip(function.params, args, strict=True)))


def atom(expr: Expr) -> Sum:
    """An expression about which nothing is known, as a sum."""
    return {Product(frozenset({(expr, 1)})): Fraction(1)}


def reciprocal(divisor: Expr) -> Expr:
    """1 divided by an expression, which is assumed not to be 0, like every divisor."""
    return FunCall(ScalarOp("/"), (Literal(1.0, divisor.type), divisor))


def without_zeros(terms: Sum) -> Sum:
    """A sum without the products whose coefficient is 0."""
    return {product: number for product, number in terms.items() if number}


def operated(op: str, args: list[Sum]) -> Sum | None:
    """An operator applied to sums; None if the operator has no laws here."""
    match op, args:
        case "+", [a, b]:
            return added(a, b, 1)
        case "-", [a, b]:
            return added(a, b, -1)
        case "neg", [a]:
            return added({}, a, -1)
        case "*", [a, b]:
            return multiplied(a, b)
        case "/", [a, b] if (inverse := inverted(b)) is not None:
            return multiplied(a, inverse)
        case "exp", [a]:
            return {Product(power=frozenset(a.items())): Fraction(1)}
        case _:
            return None


def added(one: Sum, two: Sum, factor: int) -> Sum:
    """`one + factor * two`."""
    total = dict(one)
    for product, number in two.items():
        total[product] = total.get(product, Fraction(0)) + factor * number
    return without_zeros(total)


def multiplied(one: Sum, two: Sum) -> Sum:
    """The product of two sums."""
    total: Sum = {}
    for a, x in one.items():
        for b, y in two.items():
            exponents = dict(a.atoms)
            for factor, exponent in b.atoms:
                exponents[factor] = exponents.get(factor, 0) + exponent
            power = added(dict(a.power), dict(b.power), 1)
            product = Product(frozenset(exponents.items()), frozenset(power.items()))
            total[product] = total.get(product, Fraction(0)) + x * y
    return without_zeros(total)


def inverted(divisor: Sum) -> Sum | None:
    """The inverse of a nonzero number or a power of e; None for other sums, which might be 0."""
    if len(divisor) != 1:
        return None
    ((product, number),) = divisor.items()
    if product.atoms:
        return None
    power = added({}, dict(product.power), -1)
    return {Product(power=frozenset(power.items())): 1 / number}


# --- functions that multiply their argument by a constant, and add one ---------------------------


def scaling(h: Lambda) -> Lambda | None:
    """A function `r` for which `h(a + x * y) = h(a) + x * r(y)`; None if none is found.

    It has the operators of `h` that scale, in their order, and none that only adds.
    """
    (x,) = h.params
    body = scaled(h.body, x) if is_real(h.body) else None
    if body is None:
        return None
    r = Lambda((x,), body)
    a, b, c = (Param(name, x.type) for name in fresh_names("abc", h.body))
    product = FunCall(ScalarOp("*"), (b, c))
    after = FunCall(ScalarOp("*"), (b, apply(r, c)))
    moved = FunCall(ScalarOp("+"), (apply(h, a), after))
    return r if are_equal(apply(h, FunCall(ScalarOp("+"), (a, product))), moved) else None


def fresh_names(names: str, expr: Expr) -> Iterator[str]:
    """Names like those given that no free variable of an expression has."""
    taken = {p.name for p in expr.free}
    for name in names:
        yield fresh(name, taken)
        taken.add(name)


def scaled(expr: Expr, x: Param) -> Expr | None:
    """The summand of an expression that is a multiple of `x`; None if no law finds one."""
    match expr:
        case Param():
            return x if expr == x else None
        case FunCall(Lambda() | UserFun() as f, args):
            return scaled(inside(f, args), x)
        case FunCall(ScalarOp("+" | "-" | "*" as op), (a, b)) if op != "*" and x in a.free & b.free:
            one, two = scaled(a, x), scaled(b, x)
            return None if one is None or two is None else FunCall(ScalarOp(op), (one, two))
        case FunCall(ScalarOp("+" | "-"), (a, b)) if x in a.free:
            return scaled(a, x)
        case FunCall(ScalarOp("+"), (a, b)):
            return scaled(b, x)
        case FunCall(ScalarOp("-"), (a, b)):
            return negated(scaled(b, x))
        case FunCall(ScalarOp("neg"), (a,)):
            return negated(scaled(a, x))
        case FunCall(ScalarOp("*" | "/" as op), (a, b)) if x not in b.free:
            part = scaled(a, x)
            return None if part is None else FunCall(ScalarOp(op), (part, b))
        case FunCall(ScalarOp("*"), (a, b)) if x not in a.free:
            part = scaled(b, x)
            return None if part is None else FunCall(ScalarOp("*"), (a, part))
        case _:
            return None


def negated(expr: Expr | None) -> Expr | None:
    """The negation of an expression, if there is one."""
    return None if expr is None else FunCall(ScalarOp("neg"), (expr,))


# --- values accumulated for one parameter and for another ---------------------------------------


def rescaling(k: Lambda) -> Lambda | None:
    """A function `r` for which `r(m, n, k(m, s, x)) = k(n, r(m, n, s), x)`; None if none is found.

    It is `s * exp(a(n, m))` if `k` accumulates an `exp(a(m, x))` and `a(m, m)` is 0.
    """
    m, s, x = k.params
    if m.type != x.type or s.type not in FLOATS:
        return None
    n = Param(fresh("n", {p.name for p in (*k.params, *k.body.free)}), m.type)
    for exponent in exponents(k.body) if is_real(k.body) else ():
        if exponent.type == s.type and s not in exponent.free:
            if summed(substitute(exponent, {x: m})):
                continue
            scale = FunCall(ScalarOp("exp"), (substitute(exponent, {m: n, x: m}),))
            r = Lambda((m, n, s), FunCall(ScalarOp("*"), (s, scale)))
            if are_equal(apply(r, m, n, k.body), apply(k, n, apply(r, m, n, s), x)):
                return r
    return None


def adds(f: Lambda) -> bool:
    """Whether a function of two numbers is their sum."""
    return are_equal(f.body, FunCall(ScalarOp("+"), f.params))


def accumulates(f: Lambda) -> bool:
    """Whether a function of a number and a pair adds the product of the pair to the number.

    The product is computed in the type of the number.
    """
    total, pair = f.params
    parts = (FunCall(Get(k), (pair,)) for k in range(2))
    x, y = (p if p.type == total.type else FunCall(ScalarOp(str(total.type)), (p,)) for p in parts)
    product = FunCall(ScalarOp("*"), (x, y))
    return are_equal(f.body, FunCall(ScalarOp("+"), (total, product)))


def exponents(expr: Expr) -> Iterator[Expr]:
    """The arguments of all `exp` in an expression."""
    for part in every_part(expr):
        match part:
            case FunCall(ScalarOp("exp"), (exponent,)):
                yield exponent
            case FunCall(Lambda() | UserFun() as f, args):
                yield from exponents(inside(f, args))
            case _:
                pass


def keeps(r: Lambda, kept: Expr, starts: Iterable[Literal]) -> bool:
    """Whether `r(m, n, kept) = kept`, for real numbers and for each `m` that a fold starts from."""
    m, n, _ = r.params
    if not are_equal(apply(r, m, n, kept), kept):
        return False
    tried = (Literal(number, n.type) for number in (-1.0, 0.0, 1.0))
    return all(
        start.type != m.type or value(apply(r, start, number, kept)) == value(kept)
        for start in starts
        for number in tried
    )


def value(expr: Expr) -> float | None:
    """The value of a scalar expression; None if it has a variable or cannot be computed."""
    match expr:
        case Literal(number):
            return number
        case FunCall(Lambda() | UserFun() as f, args):
            return value(inside(f, args))
        case FunCall(ScalarOp(op), args):
            values = [value(a) for a in args]
            bits = OPERATORS[op].operands == "integers"  # real numbers have none
            try:
                return None if None in values or bits else OPERATORS[op].reference(*values)
            except (ArithmeticError, ValueError):  # outside of the domain of a function
                return None
        case _:
            return None


# --- what is neutral among finite numbers -------------------------------------------------------


def finite_neutral(f: UserFun) -> float | None:
    """The finite number that is neutral to a maximum or minimum; None for other functions."""
    match f.body:
        case FunCall(ScalarOp(op), args) if set(args) == set(f.params):
            t, unit = f.body.type, OPERATORS[op].neutral
            if unit is None or math.isfinite(unit) or t not in FLOATS:
                return None
            return math.copysign(float(LARGEST[str(t)]), unit)
        case _:
            return None
