"""Random well-typed programs from a seed, over small arrays and every primitive of the language.

Lengths are mostly prime and elements are distinct small whole numbers, so that arithmetic in f32 is
exact and a result is right only if it is equal. Functions do not commute unless they are declared
to. `make(seed)` always gives the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat, var
from liftpy.ir.program import Program
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    I64,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    array,
    count,
    scalars,
)
from liftpy.ir.walk import top_down
from liftpy.language.embedded.lang import PRELUDE, fun
from liftpy.language.embedded.operations import operate
from liftpy.primitives import (
    Concat,
    ExclusiveScan,
    Generate,
    Iterate,
    Map,
    Reduce,
    Reorder,
    Repeat,
    Scan,
    SplitAt,
    Unzip,
    Zip,
)
from liftpy.semantics.operations import DTYPES
from tests.fuzz.layouts import moved, under
from tests.fuzz.shapes import begun

LENGTHS = (2, 3, 5, 7, 11, 1, 4, 6, 8)
LARGEST = 300  # scalars in any value of a program
LONGEST = 400  # parts of an expression: what grows may be mentioned more than once
DEPTH = 3
SHAPED = 0.4  # of the programs begin with a shape that a family looks for
KINDS: tuple[Type, ...] = (F32, F32, F32, I32, I32, I64, I64, BOOL, TupleType((F32, I32)))
MINUS = fun("minus", {"x": F32, "y": F32}, lambda x, y: x - y)
TWICE = fun("twice", {"x": F32, "y": F32}, lambda x, y: x * 2 - y)
FOLDS = (PRELUDE["add"], PRELUDE["maximum"], PRELUDE["minimum"], MINUS)
NUMBERS = {F32: (2.0, 1.0, -2.0, 3.0), I32: (2, 1, -2, 3), I64: (2, 1, -2, 3), BOOL: (True, False)}

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
            if size(expr) > LONGEST:
                break
            grown = self.random.choice(self.steps(expr, scope, depth))()
            if int(count(grown.type)) <= LARGEST:
                expr = grown
        return expr

    def steps(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> list[Step]:
        """What can be done to a value of its type."""
        let = [lambda: self.let(expr, scope, depth)] if depth > 0 else []
        match expr.type:
            case ScalarType():
                made = [lambda: self.array_made(expr, scope, depth)] if depth == DEPTH else []
                again = self.seldom(0.3, lambda: self.iterate(expr, scope, depth), depth)
                other = self.seldom(0.4, lambda: self.converted(expr))
                return [*[lambda: self.scalar(expr, scope)] * 4, *let, *made, *again, *other]
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
        steps: list[Step] = [lambda: moved(self.random, expr)] * 4
        steps += [lambda: self.zipped(expr, scope, depth)]
        steps += self.seldom(0.4, lambda: self.joined(expr, scope))
        steps += self.seldom(0.3 * (length > 1), lambda: self.halved(expr, length))
        if isinstance(element, TupleType):
            steps += [lambda: call(Unzip(), expr)[self.random.randrange(len(element.elements))]]
        if depth > 0:
            steps += [lambda: self.map(expr, scope, depth)] * 5
            steps += self.seldom(0.7, lambda: self.scan(expr, scope, depth))
            steps += self.seldom(0.3, lambda: self.iterate(expr, scope, depth))
            if depth < DEPTH or self.random.random() < 0.15:  # a scalar as the result hides much
                steps += [lambda: self.reduce(expr, scope, depth)] * 3
        return steps

    def seldom(self, chance: float, step: Step, depth: int = 1) -> list[Step]:
        """A step that is possible now and then."""
        return [step] if depth > 0 and self.random.random() < chance else []

    # --- arrays ---

    def partner(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """An array of the same length."""
        t = array_type(expr)
        if depth > 0 and self.random.random() < 0.25:
            return self.generated(t.length, scope, depth)
        known = [e for e in (expr, *scope) if isinstance(e.type, ArrayType)]
        chosen = self.random.choice([e for e in known if array_type(e).length == t.length])
        return back(chosen) if self.random.random() < 0.3 else chosen

    def zipped(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """The array beside arrays of its length."""
        others = [self.partner(expr, scope, depth) for _ in range(self.random.randint(1, 2))]
        return call(Zip(), expr, *others)

    def joined(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """The array and another of its elements in a row."""
        element = array_type(expr).element
        known = [e for e in scope if isinstance(e.type, ArrayType) and e.type.element == element]
        pair = [expr, self.random.choice([*known, expr])]
        self.random.shuffle(pair)
        return call(Concat(), *pair)

    def halved(self, expr: Expr, length: int) -> Expr:
        """The array in two parts, as a tuple, or one of them."""
        both = call(SplitAt(nat(self.random.randrange(1, length))), expr)
        return both if self.random.random() < 0.2 else both[self.random.randrange(2)]

    def generated(self, length: Any, scope: tuple[Expr, ...], depth: int) -> Expr:
        """An array made of its indices."""
        index = self.fresh(self.random.choice((I32, I32, F32)))
        body = self.grow(index, visible(scope, (index,)), self.random.randint(0, 2), depth - 1)
        return call(Generate(nat(length), Lambda((index,), body)))

    def array_made(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """An array around a scalar."""
        length = self.random.choice(LENGTHS[:5])
        if self.random.random() < 0.5:
            return call(Repeat(nat(length)), expr)
        return self.generated(length, (*scope, expr), depth)

    def map(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A function on every element."""
        param = self.fresh(array_type(expr).element)
        body = self.grow(param, visible(scope, (param,)), self.random.randint(1, 3), depth - 1)
        return call(Map(Lambda((param,), body)), expr)

    def iterate(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A function of a value to one of its type, a few times."""
        param = self.fresh(expr.type)
        inside = visible(scope, (param,))
        body = self.grow(param, inside, self.random.randint(1, 2), depth - 1)
        if body.type != expr.type:
            body = self.each(param, lambda x: self.scalar(x, (*inside, x)))
        times = self.random.choice((0, 1, 2, 2, 3))
        return call(Iterate(Lambda((param,), body), nat(times)), expr)

    def each(self, expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
        """A function on every scalar of a value."""
        match expr.type:
            case ArrayType(element):
                x = self.fresh(element)
                return call(Map(Lambda((x,), self.each(x, f))), expr)
            case TupleType():
                return Tuple(tuple(self.each(part, f) for part in expr))
            case _:
                return f(expr)

    # --- folds ---

    def reduce(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A fold: of scalars, of whole elements into a scalar, or of arrays element by element."""
        element = array_type(expr).element
        rows_of_f32 = isinstance(element, ArrayType) and element.element == F32
        if rows_of_f32 and self.random.random() < 0.3:
            acc, x = self.fresh(element), self.fresh(element)
            if acc.name != x.name:
                pair = self.fresh(TupleType((F32, F32)))
                f = self.random.choice(FOLDS)
                step = call(Map(Lambda((pair,), FunCall(f, tuple(pair)))), call(Zip(), acc, x))
                y = self.fresh(F32)
                zero = call(Map(Lambda((y,), operate("*", y, 0.0))), self.array_of(expr))
                return call(Reduce(Lambda((acc, x), step)), zero, expr)
        return self.folded(Reduce, expr, scope, depth)

    def scan(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A scan to scalars or tuples of them; one in four is exclusive."""
        return self.folded(Scan if self.names % 4 else ExclusiveScan, expr, scope, depth)

    def folded(
        self,
        kind: type[Reduce | Scan | ExclusiveScan],
        expr: Expr,
        scope: tuple[Expr, ...],
        depth: int,
    ) -> Expr:
        """A fold to a scalar, or to a tuple of two."""
        element = array_type(expr).element
        if element == F32 and self.random.random() < 0.5:
            f = self.random.choice(FOLDS)
            return call(kind(Lambda(f.params, FunCall(f, f.params))), self.start(F32, scope), expr)
        x = self.fresh(element)
        plain = isinstance(element, ScalarType) and element != BOOL
        t = element if plain and self.random.random() < 0.7 else F32
        assert isinstance(t, ScalarType)
        acc = Param("acc", TupleType((t, F32)) if self.random.random() < 0.15 else t)
        inside = visible(scope, (acc, x))
        grown = self.grow(x, inside, self.random.randint(1, 2), depth - 1)
        new = self.sum(grown, t)
        if isinstance(acc.type, ScalarType):
            return call(kind(Lambda((acc, x), self.fold(acc, new))), self.start(t, scope), expr)
        first, second = tuple(acc)
        value = self.fresh(t)
        crossed = self.fold(second, self.sum(Tuple((first, value)), F32))
        both = call(Lambda((value,), Tuple((self.fold(first, value), crossed))), new)
        init = Tuple((self.start(t, scope), self.start(F32, scope)))
        return call(kind(Lambda((acc, x), both)), init, expr)

    def fold(self, acc: Expr, new: Expr) -> Expr:
        """A step of a fold of numbers of one type."""
        if acc.type == F32:
            return FunCall(self.random.choice(FOLDS), (acc, new))
        return operate(self.random.choice(("-", "-", "+", "min", "max")), acc, new)

    def array_of(self, xss: Expr) -> Expr:
        """An array of the shape of an element: every first one of the columns."""
        t = array_type(xss)
        column = Param("column", ArrayType(F32, t.length))
        last, this = Param("last", F32), Param("this", F32)
        fold = call(Reduce(Lambda((last, this), this)), Literal(0.0, F32), column)
        return call(Map(Lambda((column,), fold)), under(0, xss))

    def start(self, t: ScalarType, scope: tuple[Expr, ...]) -> Expr:
        """What a fold starts from."""
        zero, other = (0.0, -3.0) if t == F32 else (0, -3)
        return self.random.choice([*of_type(t, scope), Literal(zero, t), Literal(other, t)])

    def sum(self, expr: Expr, t: ScalarType = F32) -> Expr:
        """A number that depends on every scalar of a value."""
        match expr.type:
            case TupleType():
                elements = expr.elements if isinstance(expr, Tuple) else tuple(expr)
                first, *rest = [self.sum(part, t) for part in elements]
                for part in rest:
                    first = FunCall(TWICE, (first, part)) if t == F32 else first * 2 - part
                return first
            case ArrayType(element):
                acc, x = Param("acc", t), Param("x", element)
                step = Lambda((acc, x), acc - self.sum(x, t))
                return call(Reduce(step), Literal(0.0 if t == F32 else 0, t), expr)
            case same if same == t:
                return expr
            case whole if whole == I32 and t == F32 and self.random.random() < 0.5:
                return operate("select", operate("<", expr, 2), Literal(1.0, F32), 5.0)
            case _:
                return operate(t.name, expr)

    # --- scalars ---

    def scalar(self, expr: Expr, scope: tuple[Expr, ...]) -> Expr:
        """An operator on a scalar; what is no variable gets a name first, as it is used twice."""
        t = expr.type
        assert isinstance(t, ScalarType)
        if not isinstance(expr, Param):
            param = self.fresh(t)
            return call(Lambda((param,), self.scalar(param, visible(scope, (param,)))), expr)
        constants = [Literal(c, t) for c in NUMBERS[t]]
        other = self.random.choice([*of_type(t, scope), *of_type(t, scope), expr, *constants])
        return self.random.choice(
            self.truths(expr, other) if t == BOOL else self.numbers(expr, other, constants, scope)
        )

    def truths(self, expr: Expr, other: Expr) -> list[Expr]:
        """Operators on a truth value."""
        word = self.random.choice(("and", "or"))
        return [
            operate("not", expr),
            operate(word, expr, other),
            operate(word, operate("not", other), expr),
            operate("select", expr, other, operate("not", other)),
        ]

    def numbers(
        self, expr: Expr, other: Expr, constants: list[Literal], scope: tuple[Expr, ...]
    ) -> list[Expr]:
        """Operators on a number; the result is of its type."""
        options = [
            operate(self.random.choice(("neg", "abs")), expr),
            operate(self.random.choice(("+", "-", "-", "min", "max")), expr, other),
            operate("-", other, expr),
            operate("*", expr, self.random.choice(constants)),
            operate("select", operate("<=", expr, other), other, expr),
            operate("select", operate("==", other, expr), expr, constants[2]),
        ]
        kinds = [e for e in scope if isinstance(e.type, ScalarType) and e.type != expr.type]
        if kinds:
            given = self.random.choice(kinds)
            if given.type == BOOL:
                options.append(operate("select", given, expr, other))
            else:
                assert isinstance(expr.type, ScalarType)
                options.append(operate("-", operate(expr.type.name, given), expr))
        if expr.type == F32:
            options.append(FunCall(TWICE, (other, expr)))
        else:
            divisor = Literal(self.random.choice((2, -3)), expr.type)
            options.append(operate(self.random.choice(("/", "%")), expr, divisor))
            bits = self.random.choice(("bitAnd", "bitOr", "bitXor", "shiftLeft", "shiftRight"))
            few = Literal(self.random.choice((1, 3)), expr.type)  # large numbers are not exact
            options.append(operate(bits, expr, few if bits.startswith("shift") else other))
        return options

    def converted(self, expr: Expr) -> Expr:
        """A scalar as one of another type."""
        t = self.random.choice([t for t in NUMBERS if t != expr.type])
        if t == BOOL and self.random.random() < 0.7:
            return operate("<", expr, Literal(2.0 if expr.type == F32 else 2, expr.type))
        return operate(t.name, expr)

    def let(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """A name for a value."""
        param = self.fresh(expr.type)
        body = self.grow(param, visible(scope, (param,)), 2, depth - 1)
        return call(Lambda((param,), body), expr)

    def lets(self, expr: Expr, scope: tuple[Expr, ...], many: int, depth: int) -> Expr:
        """Names inside each other: of values that mention those before, here and inside of maps."""
        value = self.grow(expr, scope, self.random.randint(1, 2), depth)
        others = [e for e in scope if int(count(e.type) + count(value.type)) <= LARGEST]
        if others and self.random.random() < 0.2:
            value = Tuple((value, self.random.choice(others)))
        param = self.fresh(value.type)
        inside = visible(scope, (param,))
        body = self.again(param)
        if (
            many > 1
            and depth > 1
            and isinstance(body.type, ArrayType)
            and self.random.random() < 0.3
        ):
            x = self.fresh(body.type.element)
            each = self.lets(x, visible(inside, (x,)), many - 1, depth - 1)
            made = call(Map(Lambda((x,), each)), body)
            body = made if int(count(made.type)) <= LARGEST else body
        elif many > 1:
            body = self.lets(body, inside, many - 1, depth)
        else:
            body = self.grow(body, inside, self.random.randint(1, 2), depth)
        return call(Lambda((param,), body), value)

    def again(self, param: Param) -> Expr:
        """A name, or a component of it; more often than not mentioned twice."""
        part: Expr = param
        if isinstance(param.type, TupleType):
            part = param[self.random.randrange(len(param.type.elements))]
        if self.random.random() < 0.4:
            return part
        if isinstance(part.type, ArrayType) and int(count(part.type)) * 2 <= LARGEST:
            return call(Zip(), part, back(part))
        return self.scalar(part, (part,)) if isinstance(part.type, ScalarType) else part


def size(expr: Expr) -> int:
    """The number of parts."""
    return sum(1 for _ in top_down(expr))


def array_type(expr: Expr) -> ArrayType:
    """The type of an array."""
    assert isinstance(expr.type, ArrayType)
    return expr.type


def back(xs: Expr) -> Expr:
    """An array backwards."""
    i = var("i")
    length = array_type(xs).length
    return call(Reorder(length - 1 - i, length - 1 - i), xs)


def scalar_of(t: Type) -> Type:
    """What an array holds under all its dimensions."""
    while isinstance(t, ArrayType):
        t = t.element
    return t


def of_type(t: Type, scope: tuple[Expr, ...]) -> list[Expr]:
    """The values of a type."""
    return [e for e in scope if e.type == t]


def visible(scope: tuple[Expr, ...], params: tuple[Param, ...]) -> tuple[Expr, ...]:
    """A scope inside binders: a variable of the same name around them is out of reach."""
    names = {p.name for p in params}
    return (*(e for e in scope if names.isdisjoint(p.name for p in e.free)), *params)


def make(seed: int) -> Program:
    """The program of a seed: one to three inputs of rank 1 to 3."""
    growth = Growth(seed)
    some = growth.random
    if some.random() < SHAPED:
        params, begin = begun(some)
        body = growth.grow(begin, tuple(params), some.choice((0, 0, 0, 1, 2)), DEPTH)
    else:
        params = [parameter(some, k) for k in range(some.randint(1, 3))]
        body = growth.grow(some.choice(params), tuple(params), some.randint(2, 6), DEPTH)
    constants = frozenset(p.name for p in params[1:] if some.random() < 0.5)
    return Program("main", Lambda(tuple(params), body), constants)


def nested(seed: int) -> Program:
    """A program of one to five names inside each other, over one to three inputs."""
    growth = Growth(seed)
    some = growth.random
    params = [parameter(some, k) for k in range(some.randint(1, 3))]
    body = growth.lets(some.choice(params), tuple(params), some.randint(1, 5), DEPTH)
    constants = frozenset(p.name for p in params[1:] if some.random() < 0.5)
    return Program("main", Lambda(tuple(params), body), constants)


def parameter(some: Random, number: int) -> Param:
    """An input."""
    shape = [some.choice(LENGTHS) for _ in range(some.choice((1, 1, 2, 2, 2, 3)))]
    while int(count(array(F32, *shape))) > LARGEST // 3:
        shape = shape[1:]
    return Param(
        f"x{number}",
        array(F32 if number == 0 and some.random() < 0.5 else some.choice(KINDS), *shape),
    )


def inputs(program: Program) -> dict[str, Any]:
    """Distinct small whole numbers for every parameter; an array of tuples is a tuple of arrays."""
    return {p.name: numbers_of(p.type, (), k) for k, p in enumerate(program.params)}


def numbers_of(t: Type, outer: tuple[int, ...], seed: int) -> Any:
    """`inputs` for a type."""
    if isinstance(t, ArrayType):
        return numbers_of(t.element, (*outer, int(t.length)), seed)
    if isinstance(t, TupleType):
        return tuple(numbers_of(e, outer, seed + 10 * k) for k, e in enumerate(t.elements))
    (scalar,) = scalars(t)
    size = int(np.prod(outer))
    numbers = np.random.default_rng(seed).permutation(size) - size // 2
    numbers = numbers % 3 == 0 if scalar == BOOL else numbers
    return numbers.reshape(outer).astype(DTYPES[scalar.name])
