"""Sums by index in gradients: how they are built, recognized and merged.

Where a program reads `xs` at an index, the cotangent of `xs` is that of the element in one bin of
zeros. The sum of such cotangents over the elements of a map is one reduction by index of all pairs.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall, apply, call
from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import ONE
from liftpy.ir.primitive import Get, ScalarOp
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives import Join, Map, ReduceByIndex, Repeat, Zip


def addend(f: Lambda) -> Expr | None:
    """What a step adds to its accumulator, element by element; None if it does not only add."""
    acc, body = f.params[0], f.body
    if isinstance(body, FunCall) and isinstance(body.fun, UserFun):
        body = apply(Lambda(body.fun.params, body.fun.body), *body.args)
    match body:
        case FunCall(ScalarOp(op="+"), (left, right)):
            return other(acc, left, right)
        case FunCall(Map(f=g), (FunCall(Zip(), (left, right)),)) if adds_components(g):
            return other(acc, left, right)
        case _:
            return None


def other(acc: Expr, left: Expr, right: Expr) -> Expr | None:
    """The operand that is not the accumulator, if one is and the other does not depend on it."""
    for one, rest in ((left, right), (right, left)):
        if one == acc and acc not in rest.free:
            return rest
    return None


def adds_components(g: Lambda) -> bool:
    """Whether a function of pairs adds the components, which may be rows."""
    (pair,) = g.params
    first, second = (FunCall(Get(k), (pair,)) for k in (0, 1))
    body = g.body
    if isinstance(body, FunCall) and isinstance(body.fun, UserFun):
        body = apply(Lambda(body.fun.params, body.fun.body), *body.args)
    match body:
        case FunCall(ScalarOp(op="+"), args):
            return args in ((first, second), (second, first))
        case FunCall(Map(f=inner), (FunCall(Zip(), args),)) if args == (first, second):
            return adds_components(inner)
        case _:
            return False


def zeros(t: Type) -> Expr:
    """Nested arrays of zeros."""
    if isinstance(t, ArrayType):
        return call(Repeat(t.length), zeros(t.element))
    return Literal(0.0, t)


def is_zeros(expr: Expr) -> bool:
    """Whether an expression is `zeros`."""
    while isinstance(expr, FunCall) and isinstance(expr.fun, Repeat):
        (expr,) = expr.args
    return isinstance(expr, Literal) and expr.value == 0


def merged_bins(xs: Expr) -> Expr | None:
    """The sum over a map whose results are reductions by index into zeros: one reduction by index.

    None if the array is not made in this way.
    """
    match xs:
        case FunCall(Map(f=f), args):
            pass
        case _:
            return None
    match f.body:
        case FunCall(ReduceByIndex(f=step), (init, pairs)) if is_zeros(init):
            if addend(step) != step.params[-1] or not step.free.isdisjoint(f.params):
                return None
        case _:
            return None
    if isinstance(pairs, FunCall) and isinstance(pairs.fun, Repeat) and pairs.fun.length == 1:
        every = zipped(f, pairs.args[0], args[0])
    else:
        every = call(Join(), call(Map(Lambda(f.params, pairs)), *args))
    return call(ReduceByIndex(step), init, every)


def zipped(f: Lambda, pair: Expr, xs: Expr) -> Expr:
    """The pairs that a function of elements makes, as a zip of two arrays."""
    (x,) = f.params
    arrays: list[Expr] = []
    parts = pair.elements if isinstance(pair, Tuple) else [call(Get(k), pair) for k in (0, 1)]
    for part in parts:
        match part, xs:
            case FunCall(Get(index=index), (whole,)), FunCall(Zip(), given) if whole == x:
                arrays.append(given[index])
            case _:
                arrays.append(xs if part == x else call(Map(Lambda(f.params, part)), xs))
    return call(Zip(), *arrays)


def one_pair(index: Expr, value: Expr) -> Expr:
    """An array of one pair of an index and a value."""
    return call(Repeat(ONE), Tuple((index, value)))
