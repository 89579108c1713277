"""Parameters stored in a quantised format: the expressions that quantise and read them.

The scales, the zero points and the integers are arrays that `let`s name. Each is a stage; the
prepare phase runs it if the parameter is constant. Instead of the parameter, the program reads
`scale * (q - zero point)`, computed in f32 at each use.
"""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.formats import GROUP, Quantised
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat
from liftpy.ir.primitive import Get, ScalarOp
from liftpy.ir.types import F32, I8, ArrayType
from liftpy.primitives import Join, Map, Reduce, Split, Zip
from liftpy.rewrite.strategies.shapes import array_type, rank

LEAST = 1e-30
"""The least magnitude or range from which a scale is computed: that of zeros is not 0."""

Lets = list[tuple[Param, Expr]]


def quantised(param: Param, form: Quantised, name: Callable[[str], str]) -> tuple[Lets, Expr]:
    """The values that store a parameter, the integers last, and the expression that reads them.

    `name` returns an unused name that begins like a given one.
    """
    rows, depth = in_rows(param, form)
    lets: Lets = []

    def stored(stem: str, value: Expr) -> Param:
        lets.append((Param(name(stem), value.type), value))
        return lets[-1][0]

    scale = stored(f"{param.name}_{form}_scale", over(depth, lambda row: scale_of(row, form), rows))
    shared = [scale]
    if form.integer != I8:
        zeros = over(depth, lambda row, s: zero_of(row, s, form), rows, scale)
        shared.append(stored(f"{param.name}_{form}_point", zeros))

    def integers(row: Expr, *of: Expr) -> Expr:
        return each(row, lambda v: integer_of(v, of, form))

    def numbers(row: Expr, *of: Expr) -> Expr:
        return each(row, lambda q: number_of(q, of))

    q = stored(f"{param.name}_{form}", over(depth, integers, rows, *shared))
    return lets, as_written(over(depth, numbers, q, *shared), param, form)


# --- rows that share a scale ----------------------------------------------------------------------


def in_rows(param: Param, form: Quantised) -> tuple[Expr, int]:
    """The parameter in rows that share a scale, and the number of dimensions outside a row."""
    dimensions = rank(param.type)
    if form.shared == "group":
        return over(dimensions - 1, lambda x: call(Split(nat(GROUP)), x), param), dimensions
    if is_one_row(param, form):
        return call(Split(array_type(param).length), param), 1
    return param, 1


def as_written(numbers: Expr, param: Param, form: Quantised) -> Expr:
    """The numbers of rows in the shape of the parameter."""
    if form.shared == "group":
        return over(rank(param.type) - 1, joined, numbers)
    return joined(numbers) if is_one_row(param, form) else numbers


def is_one_row(param: Param, form: Quantised) -> bool:
    """Whether all numbers share a scale; a vector is a single row."""
    return form.shared == "one" or rank(param.type) == 1


# --- numbers --------------------------------------------------------------------------------------


def scale_of(row: Expr, form: Quantised) -> Expr:
    """The largest magnitude, or the range, which contains 0, over the number of steps."""
    if form.integer == I8:
        most = folded(each(row, lambda v: op("abs", v)), "max")
        return op("/", op("max", most, number(LEAST)), number(form.steps))
    low, high = ends(row)
    parts = (op("/", end, number(form.steps)) for end in (high, low))  # the range may exceed f32
    return op("max", op("-", *parts), number(LEAST / form.steps))


def zero_of(row: Expr, scale: Expr, form: Quantised) -> Expr:
    """The integer that stands for 0."""
    low, _ = ends(row)
    return op(str(form.integer), op("round", op("/", op("-", number(0), low), scale)))


def ends(row: Expr) -> tuple[Expr, Expr]:
    """The least and the largest of the numbers and 0."""
    return folded(row, "min"), folded(row, "max")


def integer_of(v: Expr, shared: tuple[Expr, ...], form: Quantised) -> Expr:
    """`v / scale`, rounded, plus the zero point; the conversion clamps it to the type's range."""
    scale, *points = shared
    rounded = op("round", op("/", v, scale))
    for point in points:
        rounded = op("+", rounded, op("f32", point))
    return op(str(form.integer), rounded)


def number_of(q: Expr, shared: tuple[Expr, ...]) -> Expr:
    """The number that an integer stands for."""
    scale, *points = shared
    value = op("f32", q)
    for point in points:
        value = op("-", value, op("f32", point))
    return op("*", value, scale)


# --- expressions ----------------------------------------------------------------------------------


def over(depth: int, f: Callable[..., Expr], *arrays: Expr) -> Expr:
    """Map `f` over the elements of arrays, at a depth of dimensions that all of them have."""
    if not depth:
        return f(*arrays)
    source = arrays[0] if len(arrays) == 1 else call(Zip(), *arrays)
    element = Param(f"r{depth}", array_type(source).element)
    several = len(arrays) > 1
    parts = [call(Get(k), element) for k in range(len(arrays))] if several else [element]
    return call(Map(Lambda((element,), over(depth - 1, f, *parts))), source)


def each(xs: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Map `f` over the numbers of an array."""
    if not isinstance(xs.type, ArrayType):
        return f(xs)
    v = Param("v", xs.type.element)
    return call(Map(Lambda((v,), each(v, f))), xs)


def folded(xs: Expr, name: str) -> Expr:
    """The `min` or `max` of 0 and the numbers of an array, folded dimension by dimension."""
    element = array_type(xs).element
    if isinstance(element, ArrayType):
        row = Param("row", element)
        xs = call(Map(Lambda((row,), folded(row, name))), xs)
    a, v = Param("a", F32), Param("v", F32)
    return call(Reduce(Lambda((a, v), op(name, a, v))), number(0), xs)


def joined(xs: Expr) -> Expr:
    """An array of arrays as one array."""
    return call(Join(), xs)


def op(name: str, *args: Expr) -> Expr:
    """An operation on scalars."""
    return FunCall(ScalarOp(name), args)


def number(value: float) -> Literal:
    """A number in f32."""
    return Literal(float(value), F32)
