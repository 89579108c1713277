"""Random programs that read at data-dependent indices and reduce by index.

They grow as those of `generator.py`, with further steps; indices are inside, negative or too large.
"""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat
from liftpy.ir.program import Program
from liftpy.ir.types import F32, I32, ScalarType, Type
from liftpy.language.embedded.functions import eta
from liftpy.language.embedded.operations import operate
from liftpy.language.embedded.prelude import OPERATIONS
from liftpy.primitives import At, Generate, Map, ReduceByIndex, Repeat, Zip
from tests.fuzz.generator import DEPTH, LENGTHS, Growth, Step, array_type, parameter, visible


def steps_of(t: ScalarType) -> tuple[Lambda, ...]:
    """Functions of a bin and a value; the laws of the last two are declared."""
    a, y = Param("acc", t), Param("value", t)
    return (
        Lambda((a, y), operate("-", operate("*", a, 2), y)),
        Lambda((a, y), operate("max", a, y)),
        *(eta(OPERATIONS[word].fitting([t]), (t, t)) for word in ("add", "maximum")),
    )


STEPS = {t: steps_of(t) for t in (F32, I32)}


class Indexing(Growth):
    """Growth with `at` and `reduceByIndex`."""

    def array_steps(
        self, expr: Expr, element: Type, length: int, scope: tuple[Expr, ...], depth: int
    ) -> list[Step]:
        """What can be done to an array."""
        steps = super().array_steps(expr, element, length, scope, depth)
        steps += [lambda: self.looked_up(expr, length)] * 2
        if depth > 0:
            steps += [lambda: self.binned(expr, scope, depth)] * 2
        if depth < DEPTH:
            steps += [lambda: call(At(), self.index(self.number(scope), length), expr)]
        return steps

    def index(self, i: Expr, length: int) -> Expr:
        """An index that a number determines."""
        scaled = operate("*", i, self.random.choice((1, 2, 3, 5)))
        if self.random.random() < 0.7:
            return operate("+", scaled, self.random.choice((0, 0, -1, 2)))
        return operate("%", scaled, length)

    def number(self, scope: tuple[Expr, ...]) -> Expr:
        """A whole number."""
        known = [e for e in scope if e.type == I32]
        return self.random.choice(known) if known else Literal(self.random.randrange(-1, 5), I32)

    def looked_up(self, expr: Expr, length: int) -> Expr:
        """Elements at several indices."""
        i = self.fresh(I32)
        read = call(At(), self.index(i, length), expr)
        return call(Generate(nat(self.random.choice(LENGTHS[:5])), Lambda((i,), read)))

    def binned(self, expr: Expr, scope: tuple[Expr, ...], depth: int) -> Expr:
        """Numbers made of the elements, folded into bins."""
        t = array_type(expr)
        i, x = self.fresh(I32), self.fresh(t.element)
        places = call(Generate(t.length, Lambda((i,), self.index(i, 3))))
        kind = self.random.choice((F32, F32, I32))
        value = self.sum(self.grow(x, visible(scope, (x,)), 1, depth - 1), kind)
        values = call(Map(Lambda((x,), value)), expr)
        step = self.random.choice(STEPS[kind])
        start = call(Repeat(nat(self.random.choice(LENGTHS[:5]))), self.start(kind, scope))
        return call(ReduceByIndex(step), start, call(Zip(), places, values))


def indexing(seed: int) -> Program:
    """The program of a seed."""
    growth = Indexing(seed)
    some = growth.random
    params = [parameter(some, k) for k in range(some.randint(1, 3))]
    body = growth.grow(some.choice(params), tuple(params), some.randint(2, 6), DEPTH)
    return Program("main", Lambda(tuple(params), body))
