"""Constants are equal if no computation tells them apart: 0 is not -0, and NaN is NaN."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import pytest

from liftpy.ir.expr import Literal
from liftpy.ir.function import Law, UserFun
from liftpy.ir.nat import nat
from liftpy.ir.types import BOOL, F32, F64, I32
from liftpy.language.text.program import parse
from liftpy.primitives import LAYOUTS, CoverOnce, Pad
from liftpy.rewrite.strategy import rule
from liftpy.rewrite.strategy.result import Failure
from liftpy.semantics.evaluate import evaluate

ONE = nat(1)

DIFFERENT = [
    (Literal(0.0, F32), Literal(-0.0, F32)),
    (Literal(1.0, F32), Literal(1.0, F64)),
    (Literal(1, I32), Literal(1.0, F32)),
    (Literal(True, BOOL), Literal(1, I32)),
    (Literal(math.nan, F32), Literal(math.inf, F32)),
    (Pad(ONE, ONE, 0.0), Pad(ONE, ONE, -0.0)),
    (CoverOnce(nat(7), 0.0), CoverOnce(nat(7), -0.0)),
    (Pad(ONE, ONE, math.nan), Pad(ONE, ONE, 5.0)),
    (Law("neutral", 0.0), Law("neutral", -0.0)),
    (
        UserFun("f", (), Literal(2, I32), (Law("neutral", 0.0),)),
        UserFun("f", (), Literal(2, I32), (Law("neutral", -0.0),)),
    ),
]
EQUAL = [
    (Literal(0, F32), Literal(0.0, F32)),
    (Literal(float("nan"), F32), Literal(float("nan"), F32)),
    (Pad(ONE, ONE, float("nan")), Pad(ONE, ONE, -float("nan"))),
    (Pad(ONE, ONE, 3), Pad(ONE, ONE, 3.0)),
    (Law("neutral", 1), Law("neutral", 1.0)),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=str)
def test_different_constants_are_different(a: Hashable, b: Hashable) -> None:
    assert a != b
    assert len({a, b}) == 2


@pytest.mark.parametrize(("a", "b"), EQUAL, ids=str)
def test_equal_constants_are_equal(a: Hashable, b: Hashable) -> None:
    assert a == b
    assert len({a, b}) == 1


def test_every_layout_with_a_constant_tells_zeros_apart() -> None:
    with_constants = [
        cls for cls in LAYOUTS if "float" in vars(cls).get("__annotations__", {}).values()
    ]
    assert {Pad, CoverOnce} <= set(with_constants)
    for cls in with_constants:
        sizes = [nat(n) for n in range(2, len(cls.__match_args__) + 1)]
        assert cls(*sizes, 0.0) != cls(*sizes, -0.0)


def program(text: str) -> object:
    return parse(f"def p(xs: [5]f32) = {text}").body.body


def test_programs_that_differ_in_the_sign_of_zero_are_different() -> None:
    assert program("xs |> pad(1, 1, 0)") != program("xs |> pad(1, 1, -0.0)")
    assert program("xs |> map(x => x / 0)") != program("xs |> map(x => x / -0.0)")
    assert program("xs |> map(x => x + nan)") == program("xs |> map(x => x + nan)")


def test_paddings_with_zeros_of_different_signs_are_not_joined() -> None:
    text = "xs |> pad(1, 0, {}) |> pad(0, 2, {})"
    join = rule("pad_of_pad")
    assert not isinstance(join(program(text.format("-0.0", "-0.0"))), Failure)
    assert isinstance(join(program(text.format("0", "-0.0"))), Failure)


def test_the_sign_of_padded_zeros_is_kept() -> None:
    xs = np.arange(1, 6, dtype=np.float32)
    for value, sign in (("0", False), ("-0.0", True)):
        result = evaluate(parse(f"def p(xs: [5]f32) = xs |> pad(1, 2, {value})"), xs)
        assert np.signbit(np.asarray(result)).tolist() == [sign, *[False] * 5, sign, sign]
