"""Random well-typed programs, for properties that hold for every program.

`programs()` draws programs over the algorithmic primitives, inputs f32, sizes small, most of them
prime; `programs(lowered=True)` puts lowered words among them, without care for where they may
stand. What a program returns is an array of f32 of any rank, or a scalar where `scalar=True`
allows it.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import least, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.types import (
    F32,
    I32,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    array,
    count,
)
from liftpy.language.embedded.lang import ASSOCIATIVE, COMMUTATIVE, PRELUDE, fun, neutral
from liftpy.language.embedded.operations import operate
from liftpy.primitives import (
    AsScalar,
    AsVector,
    Concat,
    Drop,
    Gather,
    Generate,
    Join,
    Map,
    MapGlb,
    MapLcl,
    MapSeq,
    MapVec,
    MapWrg,
    Pad,
    PadClamp,
    PadMirror,
    PadWrap,
    Reduce,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
    Reorder,
    Repeat,
    Slide,
    Split,
    Take,
    ToGlobal,
    ToLocal,
    ToPrivate,
    Transpose,
    Unslide,
    Unzip,
    Zip,
    stride,
)

SIZES = (1, 2, 3, 4, 5, 6, 7, 11)
NAMES = ("x", "y", "a", "row", "_", "acc")
LARGEST = 400  # scalars in any value of a program, so that it can be evaluated in Python
CONSTANTS = (0.0, 1.0, -1.5, 2.0, 0.1)

#: User functions that no text knows without their definitions.
SCALE = fun("scale", {"x": F32}, lambda x: x * 3 + 0.25)
BLEND = fun("blend", {"x": F32, "y": F32}, lambda x, y: x * 0.25 - y, (ASSOCIATIVE,))
LARGER = fun(
    "larger",
    {"x": F32, "y": F32},
    lambda x, y: operate("select", x < y, y, x),
    (ASSOCIATIVE, COMMUTATIVE, neutral(float("-inf"))),
)
UNARY: tuple[UserFun, ...] = (SCALE,)
BINARY: tuple[UserFun, ...] = (
    BLEND,
    LARGER,
    *(f for f in PRELUDE.values() if f.params[0].type == F32),
)

Step = Callable[[], Expr]


class Growth:
    """Grows expressions step by step; every step is well typed and keeps values small."""

    def __init__(self, draw: DrawFn, lowered: bool) -> None:
        self.draw = draw
        self.lowered = lowered

    def one_of(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def name(self, avoid: tuple[Param, ...] = ()) -> str:
        """A name for a binder; it may hide an outer one, never a partner of its own binder."""
        return self.draw(st.sampled_from([n for n in NAMES if n not in {p.name for p in avoid}]))

    def grow(self, expr: Expr, scope: tuple[Expr, ...], steps: int, depth: int) -> Expr:
        """`expr` after some steps. `scope` are other values that may be mentioned."""
        for _ in range(steps):
            options = list(self.steps(expr, scope, depth))
            grown = self.draw(st.sampled_from(options))()
            if int(count(grown.type)) <= LARGEST:
                expr = grown
        return expr

    def steps(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> list[Step]:
        """What can be done to a value of its type."""
        steps: list[Step] = []
        if depth > 0:
            steps.append(lambda: self.let(expr, scope, depth))
        match expr.type:
            case ScalarType():
                steps += [lambda: self.scalar(expr, scope)] * 5
            case TupleType(elements):
                steps += [
                    lambda: expr[self.draw(st.integers(0, len(elements) - 1))],
                    lambda: Tuple(tuple(reversed(tuple(expr)))),
                ]
            case ArrayType(element, length):
                steps += self.array_steps(expr, element, int(length), scope, depth)
            case _:
                pass
        if self.lowered:
            memory = self.draw(st.sampled_from((ToGlobal, ToLocal, ToPrivate)))
            steps.append(lambda: call(memory(), expr))
        return steps or [lambda: expr]

    def array_steps(
        self, expr: Expr, element: Type, length: int, scope: tuple[Expr, ...], depth: int
    ) -> list[Step]:
        """What can be done to an array."""
        layouts = [lambda: call(self.layout(length), expr)]
        layouts.append(lambda: self.zipped(expr, scope))
        layouts.append(lambda: self.beside_itself(expr, length))
        if isinstance(element, ArrayType):
            layouts += [lambda: call(Join(), expr), lambda: call(Transpose(), expr)]
            layouts.append(lambda: self.overlapping(expr, int(element.length)))
        if isinstance(element, TupleType):
            layouts += [lambda: self.unzipped(expr)] * 4
        if isinstance(element, ScalarType):
            layouts += [lambda: self.vectors(expr, length)]
        if depth <= 0:
            return layouts
        maps = [lambda: self.map(expr, scope, depth)] * 3
        folds = [lambda: self.reduce(expr, scope, depth)] if length > 1 else []
        return [*layouts, *maps, *folds]

    def layout(self, length: int) -> Primitive:
        """A layout of an array of `length` elements."""
        draw = self.draw
        divisors = [d for d in range(1, length + 1) if length % d == 0]
        divisor = draw(st.sampled_from(divisors))
        size = draw(st.integers(1, length))
        left, right = draw(st.integers(-((length - 1) // 2), 2)), draw(st.integers(0, 2))
        return draw(
            st.sampled_from(
                (
                    Split(nat(divisor)),
                    Slide(nat(size), nat(draw(st.integers(1, 3)))),
                    Pad(nat(left), nat(right), draw(st.sampled_from(CONSTANTS))),
                    PadClamp(nat(left), nat(right)),
                    PadMirror(nat(left), nat(min(right, length))),
                    PadWrap(nat(left), nat(right)),
                    Take(nat(size)),
                    Drop(nat(size - 1)),
                    Gather(nat(size), least(2 * var("i") + left % 2, length - 1)),
                    Repeat(nat(draw(st.integers(1, 3)))),
                    stride(divisor, length),
                    rotation(length, draw(st.integers(0, length - 1))),
                    backwards(length),
                )
            )
        )

    def zipped(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """The array beside arrays of its length."""
        length = expr.type.length  # pyright: ignore[reportAttributeAccessIssue]
        partners = [
            e for e in (expr, *scope) if isinstance(e.type, ArrayType) and e.type.length == length
        ]
        others = self.draw(st.lists(st.sampled_from(partners), min_size=1, max_size=2))
        return call(Zip(), expr, *others)

    def beside_itself(self, expr: Expr, length: int) -> Expr:
        """The array and a part of it in a row, or numbers beside it."""
        start = self.draw(st.integers(0, length - 1))
        if self.draw(st.booleans()):
            return call(Concat(), expr, call(Drop(nat(start)), expr))
        index = Param(self.name(), self.draw(st.sampled_from((F32, I32))))
        made = operate("-", index, Literal(start, index.type))
        body = operate("select", operate("<", made, index), Literal(2.0, F32), Literal(start, F32))
        body = body if index.type == I32 else made
        return call(Zip(), expr, call(Generate(nat(length), Lambda((index,), body))))

    def overlapping(self, expr: Expr, size: int) -> Expr:
        """The rows as windows, put back."""
        return call(Unslide(nat(size), nat(self.draw(st.integers(1, size)))), expr)

    def unzipped(self, expr: Expr) -> Expr:
        """One of the arrays of an array of tuples."""
        arrays = call(Unzip(), expr)
        return tuple(arrays)[self.draw(st.integers(0, len(tuple(arrays)) - 1))]

    def vectors(self, expr: Expr, length: int) -> Expr:
        """An array computed through vectors."""
        width = self.draw(st.sampled_from([d for d in (1, 2, 4, 8, 16) if length % d == 0]))
        vectors = call(AsVector(nat(width)), expr)
        if not self.lowered or self.draw(st.booleans()):
            return call(AsScalar(), vectors)
        lane = Param("lane", F32)
        if expr.type.element != F32:  # pyright: ignore[reportAttributeAccessIssue]
            return call(AsScalar(), vectors)
        vector = Param("v", VectorType(F32, nat(width)))
        if self.draw(st.booleans()):
            body = call(MapVec(Lambda((lane,), self.scalar(lane, ()))), vector)
            return call(AsScalar(), call(Map(Lambda((vector,), body)), vectors))
        fold = call(ReduceVec(self.folding()), Literal(0.0, F32), vector)
        return call(Map(Lambda((vector,), fold)), vectors)

    def map(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A function on every element."""
        element = expr.type.element  # pyright: ignore[reportAttributeAccessIssue]
        make = Map
        if self.lowered:
            dim = self.draw(st.integers(0, 2))
            make = self.draw(
                st.sampled_from(
                    (
                        Map,
                        MapSeq,
                        lambda f: MapGlb(f, dim),
                        lambda f: MapWrg(f, dim),
                        lambda f: MapLcl(f, dim),
                    )
                )
            )
        if isinstance(element, TupleType) and element.elements == (F32, F32):
            shortcut = self.draw(st.sampled_from((None, *BINARY)))
            if shortcut is not None:
                pair = Param("_", element)
                return call(make(Lambda((pair,), FunCall(shortcut, tuple(pair)))), expr)
        param = Param(self.name(), element)
        inner = visible(scope, (param,))
        body = self.grow(param, inner, self.draw(st.integers(1, 3)), depth - 1)
        return call(make(Lambda((param,), body)), expr)

    def reduce(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A fold, of scalars or of whole elements."""
        element = expr.type.element  # pyright: ignore[reportAttributeAccessIssue]
        make = Reduce
        if self.lowered:
            make = self.draw(st.sampled_from((Reduce, ReduceSeq, ReduceSeqUnroll)))
        start = self.draw(st.sampled_from(scalars(scope) or [Literal(0.0, F32)]))
        if element == F32 and self.draw(st.booleans()):
            return call(make(self.folding()), start, expr)
        acc = Param(self.name(), F32)
        x = Param(self.name((acc,)), element)
        step = self.grow(x, visible(scope, (acc, x)), self.draw(st.integers(1, 2)), depth - 1)
        step = step if step.type == F32 else self.sum(step)
        plus = self.draw(st.sampled_from(BINARY))
        return call(make(Lambda((acc, x), FunCall(plus, (acc, step)))), start, expr)

    def folding(self) -> Lambda:
        """A user function of two scalars as a function."""
        f = self.draw(st.sampled_from(BINARY))
        return Lambda(f.params, FunCall(f, f.params))

    def sum(self, expr: Expr) -> Expr:
        """A scalar that depends on every scalar of a value."""
        match expr.type:
            case TupleType():
                first, *rest = [self.sum(part) for part in expr]
                for part in rest:
                    first = FunCall(BLEND, (first, part))
                return first
            case ArrayType(element):
                acc, x = Param("acc", F32), Param("x", element)
                step = Lambda((acc, x), FunCall(BLEND, (acc, self.sum(x))))
                return call(Reduce(step), Literal(0.0, F32), expr)
            case _:
                return expr

    def scalar(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """Arithmetic on a scalar."""
        other = self.draw(
            st.sampled_from([*scalars(scope), expr, *(Literal(c, F32) for c in CONSTANTS)])
        )
        return self.draw(
            st.sampled_from(
                (
                    FunCall(self.draw(st.sampled_from(UNARY)), (expr,)),
                    FunCall(self.draw(st.sampled_from(BINARY)), (other, expr)),
                    operate(self.draw(st.sampled_from(("+", "-", "*", "min", "max"))), expr, other),
                    operate("-", other, expr),
                    operate("neg", expr),
                    operate("abs", expr),
                    operate("sqrt", operate("abs", expr)),
                    operate("select", operate("<=", expr, other), other, expr),
                    operate("select", operate("==", other, expr), expr, Literal(-2.0, F32)),
                )
            )
        )

    def let(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A name for a value."""
        param = Param(self.name(), expr.type)
        body = self.grow(param, visible(scope, (param,)), 2, depth - 1)
        return call(Lambda((param,), body), expr)

    def finished(self, expr: Expr, scalar: bool) -> Expr:
        """The value as an array of f32, or a scalar."""
        match expr.type:
            case TupleType():
                return self.finished(expr[0], scalar)
            case ScalarType() if not scalar:
                xs = Param("x0", array(F32, 3))
                x = Param("x", F32)
                plus = Lambda((x,), operate("+", x, expr))
                return call(Map(plus), xs)
            case ArrayType() if not is_plain(expr.type):
                x = Param("x", expr.type.element)
                return call(Map(Lambda((x,), self.finished(x, scalar=True))), expr)
            case _:
                return expr


def is_plain(t: Type) -> bool:
    """Whether a type is f32 under all its dimensions."""
    while isinstance(t, ArrayType):
        t = t.element
    return t == F32


def scalars(scope: tuple[Expr, ...]) -> list[Expr]:
    """The scalars among values."""
    return [e for e in scope if e.type == F32]


def visible(scope: tuple[Expr, ...], params: tuple[Param, ...]) -> tuple[Expr, ...]:
    """A scope inside binders: an equal variable around them is out of reach."""
    return (*(e for e in scope if e.free.isdisjoint(params)), *params)


def rotation(length: int, by: int) -> Reorder:
    """Element `i` is the one `by` further on, around the end."""
    i = var("i")
    return Reorder((i + by) % length, (i + (length - by)) % length)


def backwards(length: int) -> Reorder:
    """The last element first."""
    i = var("i")
    return Reorder(length - 1 - i, length - 1 - i)


@st.composite
def programs(
    draw: DrawFn, lowered: bool = False, scalar: bool = False, steps: int = 4, depth: int = 3
) -> Program:
    """A program over one to three f32 arrays; the first is `x0: [3]f32`, others have any shape."""
    growth = Growth(draw, lowered)
    shapes = draw(
        st.lists(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3), min_size=1, max_size=2)
    )
    params = [Param("x0", array(F32, 3))]
    for k, shape in enumerate(shapes):
        while int(count(array(F32, *shape))) > LARGEST // 4:
            shape = shape[1:]  # noqa: PLW2901  the outermost length goes
        params.append(Param(f"x{k + 1}", array(F32, *shape)))
    start = draw(st.sampled_from(params))
    body = growth.grow(start, tuple(params), draw(st.integers(1, steps)), depth)
    body = growth.finished(body, scalar)
    constants = frozenset(p.name for p in params if draw(st.booleans()))
    return Program(
        draw(st.sampled_from(("main", "f", "size"))), Lambda(tuple(params), body), constants
    )


def expressions(lowered: bool = False) -> SearchStrategy[Expr]:
    """The bodies of `programs`."""
    return programs(lowered=lowered).map(lambda p: p.body.body)
