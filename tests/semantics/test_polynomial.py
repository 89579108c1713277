"""Laws of real numbers between arrays: proved as polynomials, and refuted when they are false."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from liftpy.ir.call import FunCall, call
from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.nat import nat, nats
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.primitives import Pad, Take
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.correlation import SHAPES
from liftpy.rewrite.rules.linear import (
    LINEAR_MAP_OF_SUMS,
    LINEAR_MAP_TWICE,
    LINEAR_MAPS_INTERCHANGE,
)
from liftpy.rewrite.rules.notation import (
    array,
    fmap,
    fold,
    get,
    pad,
    transpose,
    unknown,
    zipped,
)
from liftpy.semantics.polynomial import AGREE
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved, Refuted, Unknown
from liftpy.winograd.triple import cook_toom, integral

n, m, k = nats("n m k")
xs, ys = array("xs", F32, n), array("ys", F32, n)
rows, planes = array("rows", F32, n, m), array("planes", F32, n, m, k)
square_rows = array("square_rows", F32, n, n)
ZERO, TWO = Literal(0.0, F32), Literal(2.0, F32)


def op(name: str, *args: Expr) -> Expr:
    return FunCall(ScalarOp(name), args)


def add(x: Expr, y: Expr) -> Expr:
    return op("+", x, y)


def total(values: Expr, start: Expr = ZERO) -> Expr:
    return fold(add, start, values, "y")


def law(left: Expr, right: Expr) -> Rule:
    return Rule(
        "law",
        "tested",
        left,
        right,
        where=(at_least(1, n), at_least(1, m), at_least(1, k)),
        proof="polynomial",
    )


def doubled(x: Expr) -> Expr:
    return op("*", TWO, x)


def square(x: Expr) -> Expr:
    return op("*", x, x)


def sums(values: Expr) -> Expr:
    return fmap(total, values, "row")


def zipped_sum(one: Expr, two: Expr) -> Expr:
    return fmap(lambda p: add(get(0, p), get(1, p)), zipped(one, two), "p")


def weighted(factors: Expr, values: Expr) -> Expr:
    """The sum of the products of factors and values."""
    return total(fmap(lambda p: op("*", get(0, p), get(1, p)), zipped(factors, values), "p"))


TRUE = {
    "a factor leaves a sum": law(total(fmap(doubled, xs)), doubled(total(xs))),
    "a sum of sums": law(total(zipped_sum(xs, ys)), add(total(xs), total(ys))),
    "what does not depend on the counter leaves a sum": law(
        total(fmap(lambda x: op("*", x, total(ys)), xs)), op("*", total(xs), total(ys))
    ),
    "division by a constant": law(
        total(fmap(lambda x: op("/", x, TWO), xs)), op("/", total(xs), TWO)
    ),
    "sums in another order": law(total(sums(rows)), total(sums(transpose(rows)))),
    "three sums in another order": law(
        total(fmap(lambda plane: total(sums(plane)), planes, "plane")),
        total(fmap(lambda plane: total(sums(transpose(plane))), transpose(planes), "plane")),
    ),
    "a factor of a sum inside a sum": law(
        weighted(xs, fmap(total, rows, "row")),
        total(fmap(lambda column: weighted(xs, column), transpose(rows), "column")),
    ),
    "what is padded with 0 has the same sum": law(total(pad(0, m, 0.0, xs)), total(xs)),
    "and so if it is padded at both ends": law(total(pad(m, k, 0.0, xs)), total(xs)),
    "a constant is counted as often as it is there": law(
        total(pad(0, 3, 2.0, xs)), total(xs, Literal(6.0, F32))
    ),
}

FALSE = {
    "a square leaves a sum": law(total(fmap(square, xs)), square(total(xs))),
    "a start counted twice": law(total(xs, TWO), add(total(xs, TWO), TWO)),
    "a sum of products": law(
        total(fmap(lambda p: op("*", get(0, p), get(1, p)), zipped(xs, ys), "p")),
        op("*", total(xs), total(ys)),
    ),
    "another array": law(total(zipped_sum(xs, ys)), doubled(total(xs))),
    "a sum of the rows' squares": law(
        total(fmap(lambda r: square(total(r)), rows, "row")),
        total(fmap(lambda r: square(total(r)), transpose(rows), "row")),
    ),
    "a factor that goes with another counter": law(
        weighted(xs, fmap(total, square_rows, "row")),
        weighted(xs, fmap(total, transpose(square_rows), "row")),
    ),
    "a sum inside a sum, squared": law(
        weighted(xs, fmap(lambda r: square(total(r)), rows, "row")),
        square(weighted(xs, fmap(total, rows, "row"))),
    ),
    "what is padded with another number has the same sum": law(
        total(pad(0, m, 2.0, xs)), total(xs)
    ),
    "what is cropped has the same sum": law(total(call(Take(m), xs)), total(xs)),
    "a constant is counted once": law(total(fmap(lambda x: add(x, TWO), xs)), add(total(xs), TWO)),
}


@pytest.mark.parametrize("claim", TRUE)
def test_a_law_of_sums_is_proved(claim: str) -> None:
    verdict = prove(TRUE[claim])
    assert isinstance(verdict, Proved)
    assert AGREE in verdict.obligations


@pytest.mark.parametrize("claim", FALSE)
def test_a_false_law_of_sums_is_refuted(claim: str) -> None:
    assert isinstance(prove(FALSE[claim]), Refuted)


def test_a_fold_that_does_more_than_add_is_not_read() -> None:
    """The law holds, and is left to other methods."""
    product = fold(lambda a, x: op("*", a, x), TWO, xs)
    verdict = prove(law(product, product))
    assert isinstance(verdict, Unknown)
    assert "does more than add" in verdict.reason


def test_a_function_about_which_nothing_is_known_is_not_taken_apart() -> None:
    f = unknown("f", F32)
    assert isinstance(prove(law(total(fmap(f, xs)), total(fmap(f, xs)))), Proved)
    assert isinstance(prove(law(f(total(xs)), total(fmap(f, xs)))), Refuted)
    rounded = prove(law(f(total(fmap(doubled, xs))), f(doubled(total(xs)))))
    assert isinstance(rounded, Unknown), "a function need not be continuous"


@pytest.mark.parametrize("law", [Assumption("adds", "h"), Assumption("scales", "r", "h")])
def test_a_law_is_not_read_for_another_number_of_arguments(law: Assumption) -> None:
    """Otherwise the last argument would not count, and this would be proved."""
    z, a, b = (Param(name, F32) for name in "zab")
    h = unknown("h", F32)
    more = (z,) if law.law == "adds" else ()
    one, two = h(*more, h(*more, z, a), b), h(*more, h(*more, z, b), a)
    verdict = prove(Rule("r", "linear", one, two, assuming=(law,), proof="polynomial"))
    assert isinstance(verdict, Unknown)
    assert "which its law does not fit" in verdict.reason


def test_integers_are_no_real_numbers() -> None:
    """A quotient of integers is rounded, whatever it is divided by."""
    z = Param("z", I32)
    parts = call(Pad(nat(1), nat(-1), 2), call(Take(nat(1)), array("zs", I32, 3)))
    whole = fold(lambda a, p: op("*", op("/", z, p), p), z, parts)
    assert not isinstance(prove(law(whole, z)), Proved)
    assert not isinstance(prove(law(op("/", op("*", z, z), z), z)), Proved)


@pytest.mark.parametrize("constant", [1e-60, 1e60, float("inf"), float("nan"), 0.1])
def test_a_constant_is_a_number_of_its_type(constant: float) -> None:
    there = op("*", xs_total(), Literal(constant, F32))
    verdict = prove(law(op("/", there, Literal(constant, F32)), xs_total()))
    assert not isinstance(verdict, Proved)


def test_a_function_and_an_array_of_one_name_differ() -> None:
    c = Param("c", F32)
    verdict = prove(law(add(op("-", unknown("c", F32)(), c), c), c))
    assert not isinstance(verdict, Proved)


def xs_total() -> Expr:
    return total(xs)


LINEAR = LINEAR_MAP_OF_SUMS, LINEAR_MAP_TWICE, LINEAR_MAPS_INTERCHANGE


def changed(matrix: str, row: int, column: int, by: Fraction) -> SimpleNamespace:
    """F(2, 3) with one entry changed; a `Triple` would refuse it."""
    f = integral(cook_toom(2, 3))
    entries = {name: [list(r) for r in getattr(f, name)] for name in ("at", "g", "bt")}
    entries[matrix][row][column] += by
    found = {name: tuple(map(tuple, rows)) for name, rows in entries.items()}
    return SimpleNamespace(m=2, r=3, n=4, **found)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("matrix", "row", "column"), [("at", 0, 1), ("g", 2, 0), ("bt", 3, 3), ("bt", 1, 2)]
)
def test_a_wrong_entry_is_refuted_with_sizes(
    shape: str, matrix: str, row: int, column: int
) -> None:
    verdict = prove(SHAPES[shape]("wrong", changed(matrix, row, column, Fraction(1, 2))))
    assert isinstance(verdict, Refuted)
    assert "tiles" in verdict.witness or "= " in verdict.witness


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_mixture_of_points_is_refuted(shape: str) -> None:
    one, two = (cook_toom(2, 3, points) for points in (("0", "1", "-1"), ("0", "1", "2")))
    mixed = SimpleNamespace(m=2, r=3, n=4, at=one.at, g=two.g, bt=one.bt)
    verdict = prove(SHAPES[shape]("mixed", mixed))
    assert isinstance(verdict, Refuted)
    assert "tiles" in verdict.witness


@pytest.mark.parametrize("shape", SHAPES)
def test_without_the_law_of_its_function_the_rule_is_refuted(shape: str) -> None:
    whole = SHAPES[shape]("whole", integral(cook_toom(2, 3)))
    verdict = prove(replace(whole, assuming=()))
    assert isinstance(verdict, Refuted)
    assert "tiles" in verdict.witness


@pytest.mark.parametrize("law", LINEAR, ids=lambda law: law.name)
def test_without_a_condition_of_linearity_the_law_is_refuted_with_a_witness(law: Rule) -> None:
    """A map of sums is the sum of its results only if both functions add."""
    for dropped in law.assuming:
        left = tuple(a for a in law.assuming if a != dropped)
        verdict = prove(replace(law, assuming=left))
        assert isinstance(verdict, Refuted), dropped
        assert "=" in verdict.witness
