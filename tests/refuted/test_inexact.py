"""Rules that are false of sums in f32, because f32 rounds or the bound is that of other numbers."""

import pytest

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import at_most
from liftpy.ir.expr import Literal, Param
from liftpy.ir.nat import nats
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import BOUND, Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import T, array, fold, n, unknown
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved

(bound,) = nats(BOUND)
add, g, h = unknown("f", I32), unknown("g", I32), unknown("h", F32)
plus = unknown("plus", F32)
xs, z = array("xs", T, n), Param("z", I32)
ADDS, EXACT = Assumption("adds", "f"), Assumption("exact", "h", "g")
BIG = Literal(float(LARGEST_EXACT), F32), Literal(-float(LARGEST_EXACT), F32)


def op(name, *args):
    return FunCall(ScalarOp(name), args)


def rule(step=lambda s, x: op("+", s, h(x)), finish=lambda s: s, xs=xs, where=None, more=()):
    """The law of sums in f32 with another step, finish or condition."""
    return Rule(
        "inexact",
        "integers",
        fold(lambda a, x: add(a, g(x)), z, xs),
        add(z, op("i32", finish(fold(step, Literal(0.0, F32), xs)))),
        where=where or (at_most(n * bound, LARGEST_EXACT),),
        assuming=(ADDS, EXACT, *more),
        proof="exact",
    )


ROUNDS = (Assumption("adds", "plus"),)
LENGTH = array("xs", T, bound)
FALSE = {
    "a step that adds and takes away": rule(
        lambda s, x: plus(plus(plus(s, BIG[0]), h(x)), BIG[1]), more=ROUNDS
    ),
    "a finish that adds and takes away": rule(
        finish=lambda s: plus(plus(s, BIG[0]), BIG[1]), more=ROUNDS
    ),
    "the same with +": rule(finish=lambda s: op("+", op("+", s, BIG[0]), BIG[1])),
    "the bound is also a length": rule(xs=LENGTH, where=(at_most(bound * bound, LARGEST_EXACT),)),
    "two bounds": rule(more=(Assumption("exact", "h2", "g2"),)),
    "a constant that f32 cannot hold": rule(
        finish=lambda s: op(
            "+", op("+", s, Literal(2.0**24 + 1, F32)), Literal(-(2.0**24) - 1, F32)
        )
    ),
}


def test_the_law_itself_is_proved():
    assert isinstance(prove(rule()), Proved)


@pytest.mark.parametrize("name", FALSE)
def test_a_sum_that_f32_rounds_is_not_proved(name):
    assert not isinstance(prove(FALSE[name]), Proved)


def test_constants_of_rules_are_told_apart_by_their_names():
    one, two = (add(Literal(ValueVar(name), I32), z) for name in "de")
    assert one != two
    assert one == add(Literal(ValueVar("d"), I32), z)
