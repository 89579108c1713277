"""Cotangents: the derivative of a program's result with respect to a value.

The cotangent of a scalar, or of nested arrays of scalars, is an expression of the same type. That
of a tuple, or of arrays of tuples, is a tuple with a cotangent for each component, inside the
arrays around the tuple: that of `[n](f32, f32)` is a pair of `[n]f32`. None is a cotangent of 0:
the result does not depend on the value, or the value is not a floating-point number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from liftpy.errors import InternalError
from liftpy.gradient.bins import merged_bins
from liftpy.gradient.derivatives import guard, guarded
from liftpy.ir.call import FunCall, apply, call
from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get, Layout
from liftpy.ir.types import FLOATS, ArrayType, ScalarType, TupleType, Type, scalars
from liftpy.language.embedded.functions import bind, eta
from liftpy.language.embedded.operations import operate
from liftpy.language.embedded.prelude import OPERATIONS
from liftpy.primitives import Map, Reduce, Repeat, Transpose, Zip

Cotangent: TypeAlias = "Expr | tuple[Cotangent, ...] | None"

Leaf: TypeAlias = tuple[int, ...]
"""The position of a component in nested tuples."""


# --- structure ------------------------------------------------------------------------------------


def float_leaves(t: Type) -> Iterator[tuple[Leaf, Type]]:
    """The positions of a type's components of floating-point numbers, with their types."""
    match t:
        case ArrayType(element, length):
            for leaf, inner in float_leaves(element):
                yield leaf, ArrayType(inner, length)
        case TupleType(elements):
            for k, e in enumerate(elements):
                for leaf, inner in float_leaves(e):
                    yield (k, *leaf), inner
        case ScalarType() if t in FLOATS:
            yield (), t
        case _:
            return


def other_leaves(t: Type) -> Iterator[Leaf]:
    """The positions of a type's components without floating-point numbers, the largest of each."""
    if not has_floats(t):
        yield ()
        return
    while isinstance(t, ArrayType):
        t = t.element
    if isinstance(t, TupleType):
        yield from ((k, *leaf) for k, e in enumerate(t.elements) for leaf in other_leaves(e))


def has_floats(t: Type) -> bool:
    """Whether a value of the type contains floating-point numbers."""
    return any(True for _ in float_leaves(t))


def leaves(ct: Cotangent) -> Iterator[tuple[Leaf, Expr]]:
    """The expressions of a cotangent with their positions."""
    if isinstance(ct, tuple):
        for k, part in enumerate(ct):
            for leaf, value in leaves(part):
                yield (k, *leaf), value
    elif ct is not None:
        yield (), ct


def at_leaf(ct: Cotangent, leaf: Leaf) -> Expr | None:
    """The expression of a cotangent at a position."""
    for k in leaf:
        ct = ct[k] if isinstance(ct, tuple) else None
    return ct if isinstance(ct, Expr) else None


def from_leaves(t: Type, values: Iterable[tuple[Leaf, Expr]]) -> Cotangent:
    """The cotangent of a value of type `t` with expressions at some positions."""
    found = dict(values)
    if not found:
        return None
    if (whole := found.get(())) is not None:
        return whole
    while isinstance(t, ArrayType):
        t = t.element
    if not isinstance(t, TupleType):
        message = f"a cotangent of {t} has no components"
        raise InternalError(message)
    return tuple(
        from_leaves(e, [(leaf[1:], value) for leaf, value in found.items() if leaf[0] == k])
        for k, e in enumerate(t.elements)
    )


def components(ct: Cotangent) -> tuple[Cotangent, ...]:
    """The components of the cotangent of a tuple, or of an array of tuples."""
    if isinstance(ct, tuple):
        return ct
    message = "the cotangent of a tuple is a tuple"
    raise InternalError(message)


def plus(a: Cotangent, b: Cotangent) -> Cotangent:
    """The sum of two cotangents of one value."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(plus(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Expr) and isinstance(b, Expr):
        return added(a, b)
    message = "cotangents of different shapes are added"
    raise InternalError(message)


# --- values ---------------------------------------------------------------------------------------


def added(a: Expr, b: Expr) -> Expr:
    """The sum of two values of one type, element by element."""
    if isinstance(a.type, ArrayType):
        return mapped(added, a, b)
    (one, x), (other, y) = guard(a), guard(b)
    if one is not None and one == other:
        return guarded(one, added(x, y))
    return operate("+", a, b)


def mapped(f: Callable[..., Expr], *arrays: Expr) -> Expr:
    """The array of `f` of the elements of one array, or of several of equal length."""
    if len(arrays) == 1:
        return call(Map(bind(["x"], element_types(arrays), f)), *arrays)
    xs = call(Zip(), *arrays)
    return call(Map(bind(["xs"], element_types([xs]), lambda x: f(*elements_of(x)))), xs)


def element_types(arrays: Iterable[Expr]) -> list[Type]:
    """The types of the elements of arrays."""
    return [xs.type.element for xs in arrays if isinstance(xs.type, ArrayType)]


def elements_of(x: Expr) -> tuple[Expr, ...]:
    """The components of a tuple."""
    count = len(x.type.elements) if isinstance(x.type, TupleType) else 0
    return tuple(got(k, x) for k in range(count))


def got(k: int, x: Expr) -> Expr:
    """A component of a tuple."""
    return x.elements[k] if isinstance(x, Tuple) else call(Get(k), x)


def summed(xs: Expr) -> Expr:
    """The sum of the elements of an array: of numbers, or of arrays, element by element.

    Layouts that move the numbers of each element are applied once, to the sum: a layout that adds
    no number but 0 is linear.
    """
    (one,) = element_types([xs])
    if (bins := merged_bins(xs)) is not None:
        return bins
    if isinstance(xs, FunCall) and isinstance(xs.fun, Map):
        f = xs.fun.f
        layout, inner = outer_layout(f.body)
        if layout is not None:
            return layout(summed(call(Map(Lambda(f.params, inner)), *xs.args)))
    if isinstance(one, ArrayType):
        return mapped(summed, call(Transpose(), xs))
    return call(Reduce(addition(one)), Literal(0.0, one), xs)


def addition(t: Type) -> Lambda:
    """The function that adds two numbers, or arrays of numbers element by element.

    It calls `add`, whose laws are declared, so that sums may be divided.
    """
    if isinstance(t, ArrayType):
        inner = addition(t.element)
        return bind(["a", "x"], [t, t], lambda a, x: mapped(lambda *e: apply(inner, *e), a, x))
    return eta(OPERATIONS["add"].fitting([t]), (t, t))


def outer_layout(expr: Expr) -> tuple[Callable[[Expr], Expr] | None, Expr]:
    """The outermost linear layout of an array, and what it is applied to; None if there is none.

    It may be that of each element, in the function of a map.
    """
    match expr:
        case FunCall(Layout() as layout, (arg,)) if is_numbers(arg.type):
            if not any(layout.constants().values()):
                return (lambda x: call(layout, x)), arg
        case FunCall(Map(f=f), args):
            each, inner = outer_layout(f.body)
            if each is not None:
                if inner == f.params[0]:
                    return (lambda xs: mapped(each, xs)), args[0]
                return (lambda xs: mapped(each, xs)), call(Map(Lambda(f.params, inner)), *args)
        case _:
            pass
    return None, expr


def is_numbers(t: Type) -> bool:
    """Whether a type is a floating-point number or nested arrays of these."""
    return [leaf for leaf, _ in float_leaves(t)] == [()] and len(scalars(t)) == 1


def dense(ct: Cotangent, t: Type) -> Expr:
    """A cotangent as a value of type `t`, all of whose numbers are floats; 0 where it is None."""
    if isinstance(ct, Expr):
        return ct
    match t:
        case TupleType(elements):
            parts = ct if ct is not None else (None,) * len(elements)
            return Tuple(tuple(dense(c, e) for c, e in zip(parts, elements, strict=True)))
        case ArrayType(_, length) if ct is not None:
            around = [ArrayType(e, length) for e in components_of(t)]
            return joined(tuple(dense(c, e) for c, e in zip(ct, around, strict=True)), t)
        case ArrayType(element, length):
            return call(Repeat(length), dense(None, element))
        case _:
            return Literal(0.0, t)


def components_of(t: ArrayType) -> list[Type]:
    """The types of the components of an array's elements, inside the arrays around the tuple."""
    match t.element:
        case TupleType(elements):
            return list(elements)
        case ArrayType(_, length) as inner:
            return [ArrayType(e, length) for e in components_of(inner)]
        case other:
            message = f"{other} has no components"
            raise InternalError(message)


def joined(parts: tuple[Expr, ...], t: ArrayType) -> Expr:
    """An array of type `t`, whose elements contain tuples, from the arrays of the components."""
    inner = t.element
    if isinstance(inner, TupleType):
        return call(Zip(), *parts)
    if isinstance(inner, ArrayType):
        return mapped(lambda *rows: joined(rows, inner), *parts)
    message = f"{inner} has no components"
    raise InternalError(message)
