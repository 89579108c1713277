"""What changes nothing is not done: the laws that say so, the terms, the code, and the results."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.ir.nat import nat, var
from liftpy.ir.operators import OPERATORS
from liftpy.ir.types import FLOATS, I32, INTEGERS, ScalarType, integer_range
from liftpy.language.text.program import parse
from liftpy.loops.silent import Silent, neutral
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.operations import DTYPES, OPERATIONS
from liftpy.views.access import AccessReader
from liftpy.views.terms import Apply, Choice, Constant, Load, Memory, Term
from tests.compile.test_programs import agree, run_lowered
from tests.loops.test_unswitch import holds_at
from tests.lowered import lowered

NEUTRAL = [name for name, record in OPERATORS.items() if record.neutral is not None]
NUMBERS = np.random.default_rng(5)


def numbers(t: ScalarType) -> np.ndarray:
    """All numbers of a small type; many of another, its ends among them."""
    kind = DTYPES[t.name]
    if t in INTEGERS:
        low, high = integer_range(t)
        near = (n for n in range(-130, 130) if low <= n <= high)
        drawn = NUMBERS.integers(low, high, 1000, kind, endpoint=True)
        return np.unique(np.array([*near, low, high, *map(int, drawn)], kind))
    drawn = np.frombuffer(NUMBERS.bytes(8000), kind)
    return np.concatenate([drawn[np.isfinite(drawn)], np.array([0, 1, -1], kind)])


@pytest.mark.parametrize(
    ("op", "t"),
    [
        pytest.param(op, t, id=f"{op} of {t}")
        for op in NEUTRAL
        for t in (*FLOATS, *INTEGERS)
        if t in INTEGERS or OPERATORS[op].operands != "integers"
    ],
)
def test_a_neutral_number_changes_nothing(op: str, t: ScalarType) -> None:
    unit = neutral(op, t)
    assert unit is not None
    every, one = numbers(t), DTYPES[t.name](unit)
    assert np.array_equal(OPERATIONS[op](every, one), every)
    if OPERATORS[op].commutative:
        assert np.array_equal(OPERATIONS[op](one, every), every)


# --- terms ----------------------------------------------------------------------------------------

PLACE = Load(Memory("acc", "private", I32, 1), nat(0))
X = Memory("x", "global", I32, 9)


def term(rng: random.Random, read: AccessReader, depth: int) -> Term:
    """A term of whole numbers that may read the place, behind conditions or not."""
    if depth == 0 or rng.random() < 0.1:
        constant = read.literal(rng.choice([0, 0, 1, 5, *integer_range(I32)]), I32)
        return rng.choice([PLACE, constant, Load(X, var("i", 0, 8))])
    if rng.random() < 0.4:
        index = rng.choice([1, 1, -1]) * var(rng.choice("ij"), 0, 8) + rng.randint(-4, 4)
        inside = read.inside(index, rng.randint(1, 8))
        zero = read.literal(rng.choice([0, 0, 1]), I32)
        return read.either(inside, term(rng, read, depth - 1), rng.choice([zero, PLACE]))
    op = rng.choice([*NEUTRAL, "+", "*", "neg"])
    args = tuple(term(rng, read, depth - 1) for _ in range(1 if op == "neg" else 2))
    if rng.random() < 0.5:
        args = (PLACE, *args[1:]) if op != "neg" else args
    return read.operate(op, args)


def number(of: Term, at: dict[str, int], held: int) -> int:
    """The value of a term."""
    match of:
        case Constant(value):
            return int(value)
        case Load(memory, index):
            return held if memory == PLACE.memory else 7 * index.value(at) - 20
        case Choice(inside, then, otherwise):
            is_inside = 0 <= inside.index.value(at) < int(inside.length)
            return number(then if is_inside else otherwise, at, held)
        case Apply(op, args):
            with np.errstate(over="ignore"):
                return int(OPERATIONS[op](*(np.int32(number(a, at, held)) for a in args)))
    raise AssertionError(of)


def test_a_value_is_unchanged_where_a_test_fails() -> None:
    rng, found = random.Random(3), 0
    for _ in range(2000):
        value = term(rng, AccessReader(), 4)
        tests = Silent().unchanged(PLACE, value) or ()
        for test, i, j in itertools.product(tests, range(9), range(9)):
            at = {"i": i, "j": j}
            if not holds_at(test, at):
                found += 1
                assert all(number(value, at, held) == held for held in (-9, 0, 1, 13))
    assert found > 1000


def test_a_term_that_is_part_of_many_is_looked_at_once() -> None:
    read = AccessReader()
    guarded = read.either(read.inside(var("i", 0, 8) - 1, 9), Load(X, nat(0)), read.literal(0, I32))
    value = sums = guarded
    for _ in range(200):  # twice as many paths with each
        sums = read.operate("+", (sums, sums))
        value = read.operate("+", (value, sums))
    assert len(Silent().unchanged(PLACE, read.operate("+", (PLACE, value))) or ()) == 1


# --- kernels --------------------------------------------------------------------------------------

PROGRAMS = {
    "a sum of products": """
        def p(xss: [7][9]f32, w: [3][3]f32) = xss |> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1)
          |> mapGlb(1, mapGlb(0, t => zip(t, w) |> reduceSeq((a, r) =>
            zip(r.0, r.1) |> reduceSeq((b, p) => b + p.0 * p.1, a), 2)))""",
    "zeros from both sides of a product": """
        def p(xs: [11]f32, ys: [11]f32) = zip(xs |> pad(2, 1, 0) |> slide(3, 1),
          ys |> pad(1, 2, 0) |> slide(3, 1)) |> mapGlb(0, t => zip(t.0, t.1)
          |> reduceSeq((a, p) => a - p.0 * p.1, 1))""",
    "what stands outside is not 0": """
        def p(xss: [5][6]f32) = xss |> pad2d(1, 1, 0, 0, 4) |> slide(3, 1)
          |> mapGlb(0, rows => rows |> transpose |> mapSeq(w => w |> reduceSeq((a, x) =>
            a + 3 * x, 1)))""",
    "not a sum": """
        def p(xss: [5][6]f32) = xss |> pad2d(2, 1, 0, 0, 0) |> slide(4, 1)
          |> mapGlb(0, rows => rows |> transpose |> mapSeq(w => w |> reduceSeq((a, x) =>
            2 * a + x, 1)))""",
    "the largest": """
        def p(xss: [5][6]f32) = xss |> pad2d(2, 1, 1, 1, -inf) |> slide2d(3, 1)
          |> mapGlb(1, mapGlb(0, t => t |> reduceSeq((a, r) => r |> reduceSeq((m, x) =>
            max(m, x), a), -inf)))""",
    "whole numbers": """
        def p(xss: [5][6]i32) = xss |> pad2d(2, 1, 1, 1, 0) |> slide2d(3, 1)
          |> mapGlb(1, mapGlb(0, t => t |> reduceSeq((a, r) => r |> reduceSeq((b, x) =>
            b + 3 * x, a), 2)))""",
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_right(runtime: Device, name: str) -> None:
    got, arrays = run_lowered(PROGRAMS[name], runtime)
    agree(got, np.asarray(evaluate(parse(PROGRAMS[name]), *arrays)), name)


def test_a_loop_outside_is_not_run() -> None:
    source = compile_program(lowered(PROGRAMS["a sum of products"])).module.source
    assert source.count("if (gid1 + i0 - 1 >= 0 && gid1 + i0 - 1 < 7)") == 1
    assert source.count("else") == 1  # where a block is not in the middle


def test_unlike_zeros_are_added() -> None:
    source = compile_program(lowered(PROGRAMS["what stands outside is not 0"])).module.source
    assert "? x" in source
