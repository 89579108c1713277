"""Tests of guards for all values of a counter, whose digits may occur in them."""

from __future__ import annotations

import random

import pytest

from liftpy.ir.nat import Nat, nat, var
from liftpy.loops.terms import at_all
from liftpy.loops.values import RangeTest
from liftpy.pipeline import compile_program
from tests.lowered import lowered

LOW, HIGH = 0, 11
K, G = var("i", LOW, HIGH), var("g", 0, 9)
DIGITS = (K, K % 3, K // 3, K % 4, K // 4, (K // 3) % 2, nat(1))


def drawn(rng: random.Random) -> Nat:
    """A sum of digits of a counter, and of an id."""
    digits = rng.sample(DIGITS, rng.randint(1, 3))
    return sum((rng.randint(-3, 3) * d for d in digits), rng.randint(-9, 9) + rng.randint(0, 2) * G)


@pytest.mark.parametrize("seed", range(200))
def test_a_test_for_all_values_implies_the_test_at_each(seed: int) -> None:
    rng = random.Random(seed)
    test = RangeTest(drawn(rng), rng.choice([None, 5]))
    found = at_all(test, "i", LOW, HIGH)
    if found is None:
        assert any(a.key == "i//3%2" or "i//3" in a.key for a in test.index.atoms())
        return
    assert "i" not in found.index.names()
    for g in range(10):
        if found.room.value({"g": g}) >= 0:
            assert all(test.room.value({"g": g, "i": i}) >= 0 for i in range(LOW, HIGH + 1))


@pytest.mark.parametrize(
    ("index", "bound", "least"),
    [
        (K % 3 + 2 * G - 1, None, 2 * G - 1),
        (K // 3 + 2 * G - 1, None, 2 * G - 1),
        (K % 3 + G, 7, G + 2),
        (K // 4 - K % 4 + G, None, G - 3),
        (5 - K % 3, None, nat(3)),
        (K - K % 4, None, nat(-3)),  # never below 0, but the counter and its digit count apart
    ],
)
def test_each_digit_is_at_its_end(index: Nat, bound: int | None, least: Nat) -> None:
    assert at_all(RangeTest(index, bound), "i", LOW, HIGH) == RangeTest(least, bound)


def test_a_window_that_is_folded_in_one_loop_has_a_version_without_guards() -> None:
    source = compile_program(
        lowered("""def p(xss: [7][9]f32) = xss |> pad2d(1, 1, 1, 1, 0) |> slide(3, 1)
          |> mapGlb(1, rows => rows |> transpose |> slide(3, 1)
            |> mapGlb(0, w => w |> join |> reduceSeq((a, x) => 2 * a + x, 1)))""")
    ).module.source
    free, guarded = source.split("} else {")
    assert "% 3" in free
    assert "?" not in free
    assert guarded.count("?") == 1
