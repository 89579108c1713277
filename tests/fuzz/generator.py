"""Random well-typed programs from a seed: layouts, maps, folds and zips over small arrays.

Lengths are mostly prime and elements are distinct small whole numbers, so that arithmetic in f32 is
exact and a result is right only if it is equal. Functions do not commute unless they are declared
to. `make(seed)` always gives the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from liftpy.ir.expr import Expr, FunCall, Lambda, Literal, Param, Program, Tuple, call, operate
from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32, I32, ArrayType, ScalarType, TupleType, Type, array, count
from liftpy.primitives import (
    Join,
    Map,
    Pad,
    Reduce,
    Reorder,
    Slide,
    Split,
    Transpose,
    Unzip,
    Zip,
    stride,
)
from liftpy.primitives.lang import PRELUDE, fun

LENGTHS = (2, 3, 5, 7, 11, 1, 4, 6, 8)
LARGEST = 300  # scalars in any value of a program
DEPTH = 3
MINUS = fun("minus", {"x": F32, "y": F32}, lambda x, y: x - y)
TWICE = fun("twice", {"x": F32, "y": F32}, lambda x, y: x * 2 - y)
FOLDS = (PRELUDE["add"], PRELUDE["maximum"], PRELUDE["minimum"], MINUS)
SCALARS = {F32: (2.0, 1.0, -2.0, 3.0), I32: (2, 1, -2, 3)}  # no zero, which would hide much

Step = Callable[[], Expr]


class Growth:
    """Grows expressions step by step; every step is well typed and keeps values small."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def fresh(self, t: Type) -> Param:
        """A variable with a name of its own; now and then one that hides an outer one."""
        self.names += self.random.random() < 0.9
        return Param(f"v{self.names}", t)

    def grow(self, expr: Expr, scope: tuple[Expr, ...], steps: int, depth: int) -> Expr:
        """`expr` after some steps. `scope` are other values that may be mentioned."""
        for _ in range(steps):
            grown = self.random.choice(self.steps(expr, scope, depth))()
            if int(count(grown.type)) <= LARGEST:
                expr = grown
        return expr

    def steps(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> list[Step]:
        """What can be done to a value of its type."""
        let = [lambda: self.let(expr, scope, depth)] if depth > 0 else []
        match expr.type:
            case ScalarType():
                return [*[lambda: self.scalar(expr, scope)] * 4, *let]
            case TupleType(elements):
                swapped: Step = lambda: Tuple(tuple(reversed(tuple(expr))))
                return [
                    lambda: expr[self.random.randrange(len(elements))],
                    *([swapped, *let] if depth > 0 else []),
                ]
            case ArrayType(element, length):
                return [*self.array_steps(expr, element, int(length), scope, depth), *let]
            case _:
                raise AssertionError(expr.type)

    def array_steps(
        self, expr: Expr, element: Type, length: int, scope: tuple[Expr, ...], depth: int
    ) -> list[Step]:
        """What can be done to an array."""
        steps: list[Step] = [lambda: self.layout(expr, length)] * 2
        steps.append(lambda: self.zipped(expr, scope))
        if isinstance(element, ArrayType):
            steps += [lambda: call(Join(), expr), lambda: call(Transpose(), expr)]
        if isinstance(element, TupleType):
            steps += [lambda: call(Unzip(), expr)[self.random.randrange(len(element.elements))]]
        if depth > 0:
            steps += [lambda: self.map(expr, scope, depth)] * 4
            if depth < DEPTH or self.random.random() < 0.15:  # a scalar as the result hides much
                steps += [lambda: self.reduce(expr, scope, depth)] * 3
        return steps

    def layout(self, expr: Expr, length: int) -> Expr:
        """The array through a layout."""
        some = self.random
        divisor = some.choice([d for d in range(1, length + 1) if length % d == 0])
        value = some.choice(SCALARS[F32])
        i = var("i")
        turn = some.randrange(length)
        chosen = some.choice(
            (
                Split(nat(divisor)),
                Slide(nat(some.randint(1, length)), nat(some.randint(1, 3))),
                Pad(nat(some.randint(0, 2)), nat(some.randint(0, 2)), value),
                Pad(nat(-some.randint(0, (length - 1) // 2)), nat(some.randint(-1, 1)), value)
                if length > 2
                else Pad(nat(1), nat(0), value),
                stride(divisor, length),
                Reorder((i + turn) % length, (i + (length - turn)) % length),
                Reorder(length - 1 - i, length - 1 - i),
            )
        )
        return call(chosen, expr)

    def zipped(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """The array beside arrays of its length, moved."""
        length = expr.type.length  # type: ignore[attr-defined]
        partners = [
            e for e in (expr, *scope) if isinstance(e.type, ArrayType) and e.type.length == length
        ]
        others = self.random.choices(partners, k=self.random.randint(1, 2))
        i = var("i")
        back = Reorder(length - 1 - i, length - 1 - i)
        moved = (call(back, o) if self.random.random() < 0.3 else o for o in others)
        return call(Zip(), expr, *moved)

    def map(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A function on every element."""
        param = self.fresh(expr.type.element)  # type: ignore[attr-defined]
        body = self.grow(param, visible(scope, (param,)), self.random.randint(1, 3), depth - 1)
        return call(Map(Lambda((param,), body)), expr)

    def reduce(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A fold: of scalars, of whole elements into a scalar, or of arrays element by element."""
        element = expr.type.element  # type: ignore[attr-defined]
        if element == F32 and self.random.random() < 0.5:
            f = self.random.choice(FOLDS)
            return call(Reduce(Lambda(f.params, FunCall(f, f.params))), self.start(scope), expr)
        x = self.fresh(element)
        if isinstance(element, ArrayType) and scalar_of(element) == F32 and rank(element) == 1:
            acc = self.fresh(array(F32, element.length))
            if acc.name != x.name and self.random.random() < 0.4:
                pair = self.fresh(TupleType((F32, element.element)))
                f = self.random.choice(FOLDS)
                step = call(Map(Lambda((pair,), FunCall(f, tuple(pair)))), call(Zip(), acc, x))
                y = self.fresh(F32)
                zero = call(Map(Lambda((y,), operate("*", y, 0.0))), self.array_of(expr))
                return call(Reduce(Lambda((acc, x), step)), zero, expr)
        acc = Param("acc", F32)
        grown = self.grow(x, visible(scope, (acc, x)), self.random.randint(1, 2), depth - 1)
        step = FunCall(self.random.choice(FOLDS), (acc, self.sum(grown)))
        return call(Reduce(Lambda((acc, x), step)), self.start(scope), expr)

    def array_of(self, xss: Expr) -> Expr:
        """An array of the shape of an element: every first one of the columns."""
        column = Param("column", ArrayType(F32, xss.type.length))  # type: ignore[attr-defined]
        last = Param("last", F32)
        this = Param("this", F32)
        fold = call(Reduce(Lambda((last, this), this)), Literal(0.0, F32), column)
        return call(Map(Lambda((column,), fold)), call(Transpose(), xss))

    def start(self, scope: tuple[Expr, ...]) -> Expr:
        """What a fold starts from."""
        return self.random.choice([*of_type(F32, scope), Literal(0.0, F32), Literal(-3.0, F32)])

    def sum(self, expr: Expr) -> Expr:
        """An f32 that depends on every scalar of a value."""
        match expr.type:
            case TupleType():
                first, *rest = [self.sum(part) for part in expr]
                for part in rest:
                    first = FunCall(TWICE, (first, part))
                return first
            case ArrayType(element):
                acc, x = Param("acc", F32), Param("x", element)
                step = Lambda((acc, x), FunCall(MINUS, (acc, self.sum(x))))
                return call(Reduce(step), Literal(0.0, F32), expr)
            case t if t == I32:
                return operate("select", operate("<", expr, 2), Literal(1.0, F32), 5.0)
            case _:
                return expr

    def scalar(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """Arithmetic on a scalar; what is no variable gets a name first, as it is used twice."""
        t = expr.type
        if not isinstance(expr, Param):
            param = self.fresh(t)
            return call(Lambda((param,), self.scalar(param, visible(scope, (param,)))), expr)
        constants = [Literal(c, t) for c in SCALARS[t]]  # type: ignore[index]
        other = self.random.choice([*of_type(t, scope), *of_type(t, scope), expr, *constants])
        unary = operate(self.random.choice(("neg", "abs")), expr)
        binary = operate(self.random.choice(("+", "-", "-", "min", "max")), expr, other)
        options = [
            unary,
            binary,
            operate("-", other, expr),
            operate("*", expr, self.random.choice(constants)),
            operate("select", operate("<=", expr, other), other, expr),
            operate("select", operate("==", other, expr), expr, constants[2]),
        ]
        if t == F32:
            options.append(FunCall(TWICE, (other, expr)))
        return self.random.choice(options)

    def let(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A name for a value."""
        param = self.fresh(expr.type)
        body = self.grow(param, visible(scope, (param,)), 2, depth - 1)
        return call(Lambda((param,), body), expr)

    def finished(self, expr: Expr) -> Expr:
        """The value as scalars, which a buffer can hold."""
        match expr.type:
            case TupleType():
                return self.finished(expr[0])
            case ArrayType() if not isinstance(scalar_of(expr.type), ScalarType):
                x = Param("x", expr.type.element)
                return call(Map(Lambda((x,), self.finished(x))), expr)
            case _:
                return expr


def scalar_of(t: Type) -> Type:
    """What an array holds under all its dimensions."""
    while isinstance(t, ArrayType):
        t = t.element
    return t


def rank(t: Type) -> int:
    """The number of dimensions."""
    return 1 + rank(t.element) if isinstance(t, ArrayType) else 0


def of_type(t: Type, scope: tuple[Expr, ...]) -> list[Expr]:
    """The values of a type."""
    return [e for e in scope if e.type == t]


def visible(scope: tuple[Expr, ...], params: tuple[Param, ...]) -> tuple[Expr, ...]:
    """A scope inside binders: a variable of the same name around them is out of reach."""
    names = {p.name for p in params}
    return (*(e for e in scope if names.isdisjoint(p.name for p in e.free)), *params)


def make(seed: int) -> Program:
    """The program of a seed: one to three inputs of rank 1 to 3, the first ones of f32."""
    growth = Growth(seed)
    some = growth.random
    params: list[Param] = []
    for k in range(some.randint(1, 3)):
        shape = [some.choice(LENGTHS) for _ in range(some.choice((1, 1, 2, 2, 2, 3)))]
        while int(count(array(F32, *shape))) > LARGEST // 3:
            shape = shape[1:]
        params.append(Param(f"x{k}", array(I32 if k == 2 else F32, *shape)))
    start = some.choice(params)
    body = growth.grow(start, tuple(params), some.randint(2, 6), DEPTH)
    body = growth.finished(body)
    constants = frozenset(p.name for p in params[1:] if some.random() < 0.5)
    return Program("main", Lambda(tuple(params), body), constants)


def inputs(program: Program) -> dict[str, np.ndarray]:
    """Distinct small whole numbers for every parameter."""
    arrays: dict[str, np.ndarray] = {}
    for k, p in enumerate(program.params):
        shape = tuple(int(n) for n in getattr(p.type, "shape", ()))
        size = int(np.prod(shape))
        numbers = np.random.default_rng(k).permutation(size) - size // 2
        kind = np.int32 if scalar_of(p.type) == I32 else np.float32
        arrays[p.name] = numbers.reshape(shape).astype(kind)
    return arrays
