"""Notation for writing rules: metavariables and the primitives of the text form."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import FunVar, Lambda
from liftpy.ir.nat import NatLike, nat, nats
from liftpy.ir.primitive import Get
from liftpy.ir.types import ArrayType, Type, TypeVar, VectorType
from liftpy.primitives import (
    AsScalar,
    AsVector,
    Join,
    Map,
    MapVec,
    Overlaps,
    Pad,
    Reduce,
    Reorder,
    Repeat,
    Slide,
    Split,
    Take,
    Transpose,
    Unzip,
    Zip,
)
from liftpy.rewrite.rule import index

T, U, V, W, X = (TypeVar(name) for name in "TUVWX")
S, R = TypeVar("S", scalar=True), TypeVar("R", scalar=True)
n, m, k = nats("n m k")


def array(name: str, element: Type, *lengths: NatLike) -> Param:
    """A metavariable for an array, its lengths outermost first."""
    t = element
    for length in reversed(lengths):
        t = ArrayType(t, nat(length))
    return Param(name, t)


def element_of(xs: Expr) -> Type:
    """The element type of an array or vector expression."""
    if not isinstance(xs.type, ArrayType | VectorType):
        message = f"a rule maps over {xs.type}, which has no elements"
        raise InternalError(message)
    return xs.type.element


def unknown(name: str, result: Type) -> Callable[..., Expr]:
    """A metavariable for a function; applied to expressions, it is one that mentions them."""
    return lambda *args: FunCall(FunVar(name, tuple(a.type for a in args), result), args)


def function(body: Callable[..., Expr], **params: Type) -> Lambda:
    """A function of named parameters."""
    formal = tuple(Param(name, t) for name, t in params.items())
    return Lambda(formal, body(*formal))


def fmap(body: Callable[[Expr], Expr], xs: Expr, x: str = "x") -> Expr:
    """`map(x => body)` of `xs`."""
    return call(Map(function(body, **{x: element_of(xs)})), xs)


def fold(body: Callable[[Expr, Expr], Expr], init: Expr, xs: Expr, x: str = "x") -> Expr:
    """`reduce((a, x) => body, init)` of `xs`."""
    return call(Reduce(function(body, a=init.type, **{x: element_of(xs)})), init, xs)


def split(size: NatLike, xs: Expr) -> Expr:
    """`split(size)` of `xs`."""
    return call(Split(nat(size)), xs)


def join(xss: Expr) -> Expr:
    """`join` of `xss`."""
    return call(Join(), xss)


def transpose(xss: Expr) -> Expr:
    """`transpose` of `xss`."""
    return call(Transpose(), xss)


def slide(size: NatLike, step: NatLike, xs: Expr) -> Expr:
    """`slide(size, step)` of `xs`."""
    return call(Slide(nat(size), nat(step)), xs)


def overlaps(length: NatLike, step: NatLike, value: float, xss: Expr) -> Expr:
    """`overlaps(length, step, value)` of `xss`."""
    return call(Overlaps(nat(length), nat(step), value), xss)


def pad(left: NatLike, right: NatLike, value: float, xs: Expr) -> Expr:
    """`pad(left, right, value)` of `xs`."""
    return call(Pad(nat(left), nat(right), value), xs)


def repeat(length: NatLike, x: Expr) -> Expr:
    """`repeat(length)` of `x`."""
    return call(Repeat(nat(length)), x)


def take(count: NatLike, xs: Expr) -> Expr:
    """`take(count)` of `xs`."""
    return call(Take(nat(count)), xs)


def zipped(*arrays: Expr) -> Expr:
    """`zip` of arrays."""
    return call(Zip(), *arrays)


def get(index: int, pair: Expr) -> Expr:
    """A component of a tuple."""
    return FunCall(Get(index), (pair,))


def unzip(pairs: Expr) -> Expr:
    """`unzip` of an array of tuples."""
    return call(Unzip(), pairs)


def pair(*values: Expr) -> Expr:
    """A tuple."""
    return Tuple(values)


def zip_parts(arrays: Expr) -> Expr:
    """`zip` of the two components of a pair of arrays."""
    return zipped(get(0, arrays), get(1, arrays))


def let(value: Expr, body: Callable[[Expr], Expr], x: str = "x") -> Expr:
    """`let x = value in body`."""
    return call(function(body, **{x: value.type}), value)


def lets(body: Callable[..., Expr], **values: Expr) -> Expr:
    """`let x = value, y = ... in body`: the values do not see the variables."""
    return call(function(body, **{x: v.type for x, v in values.items()}), *values.values())


def reorder(forth: NatLike, back: NatLike, xs: Expr) -> Expr:
    """`reorder(forth, back)` of `xs`."""
    return call(Reorder(nat(forth), nat(back)), xs)


def permuted(xs: Expr) -> Expr:
    """`xs` in an arbitrary order."""
    return reorder(index("phi"), index("psi"), xs)


def as_vector(width: NatLike, xs: Expr) -> Expr:
    """`asVector(width)` of `xs`."""
    return call(AsVector(nat(width)), xs)


def as_scalar(vectors: Expr) -> Expr:
    """`asScalar` of an array of vectors."""
    return call(AsScalar(), vectors)


def map_vec(body: Callable[[Expr], Expr], vector: Expr, x: str = "x") -> Expr:
    """`mapVec(x => body)` of a vector."""
    return call(MapVec(function(body, **{x: element_of(vector)})), vector)
