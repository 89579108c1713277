"""Triples are exact: by the bilinear identity, and by correlating numbers directly."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liftpy.errors import TransformRefused
from liftpy.winograd.error import best_known
from liftpy.winograd.matrices import identity, matrix
from liftpy.winograd.points import INTEGERS, PUBLISHED, STANDARD
from liftpy.winograd.triple import LARGEST, TAPS, Triple, cook_toom, integral

SIZES = [(m, r) for m in range(2, 9) for r in TAPS if m + r - 1 <= LARGEST]
LONGER = [(7, 3), (8, 3), (5, 5), (6, 5), (3, 7), (4, 7), (6, 7)]
RATIONALS = st.fractions(min_value=-4, max_value=4, max_denominator=12)


def direct(w, d, m):
    return tuple(sum(x * d[i + k] for k, x in enumerate(w)) for i in range(m))


def correlates(triple, seed=0):
    """Whether a triple computes what the sum of products gives, on random rationals."""
    rng = random.Random(seed)
    w, d = (
        [Fraction(rng.randint(-99, 99), rng.randint(1, 9)) for _ in range(length)]
        for length in (triple.r, triple.n)
    )
    return triple.correlate(w, d) == direct(w, d, triple.m)


@pytest.mark.parametrize(("m", "r"), SIZES)
def test_every_triple_of_at_most_eight_products_is_exact(m, r):
    triple = cook_toom(m, r)
    assert triple.n == m + r - 1 == len(triple.points) + 1
    assert correlates(triple)
    assert correlates(best_known(m, r))


@pytest.mark.parametrize(("m", "r"), LONGER)
def test_longer_triples_are_made_on_request(m, r):
    with pytest.raises(TransformRefused, match=f"more than {LARGEST}"):
        cook_toom(m, r)
    assert correlates(cook_toom(m, r, largest=m + r - 1))
    assert correlates(best_known(m, r, m + r - 1))


@pytest.mark.parametrize("r", TAPS)
def test_one_result_at_a_time_is_direct(r):
    triple = cook_toom(1, r)
    assert (triple.g, triple.bt, triple.at) == (identity(r), identity(r), matrix([[1] * r]))
    assert correlates(cook_toom(1, r, STANDARD[: r - 1])), "points are used if they are given"


def test_the_published_f23_is_a_scaling():
    """The triple of the running example of the literature."""
    triple = cook_toom(2, 3, scale=(-1, 1, 1, -1), scale_output=(1, 1, 1, -1))
    half = Fraction(1, 2)
    assert triple.at == matrix([[1, 1, 1, 0], [0, 1, -1, -1]])
    assert triple.g == matrix([[1, 0, 0], [half, half, half], [half, -half, half], [0, 0, 1]])
    assert triple.bt == matrix([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])


@settings(max_examples=20)
@given(
    st.integers(1, 4),
    st.integers(2, 5),
    st.lists(RATIONALS, min_size=7, max_size=7, unique=True),
    st.lists(RATIONALS.filter(bool), min_size=8, max_size=8),
    st.lists(RATIONALS.filter(bool), min_size=8, max_size=8),
)
def test_any_distinct_points_and_scalings_make_a_triple(m, r, points, scale, scale_output):
    n = m + r - 1
    triple = cook_toom(
        m, r, points[: n - 1], scale=scale[:n], scale_output=scale_output[:n], largest=n
    )
    assert correlates(triple)
    assert correlates(integral(triple))


@given(st.integers(2, 4), st.lists(RATIONALS, min_size=3, max_size=5), st.integers(0, 5))
def test_points_that_are_not_distinct_are_refused(m, points, place):
    points.insert(place, points[0])
    with pytest.raises(TransformRefused, match="are both"):
        cook_toom(m, len(points) + 2 - m, points)


@pytest.mark.parametrize("points", [*PUBLISHED["Barabasz and others, 2018"], INTEGERS[:7]])
def test_integral_triples_have_fractions_only_for_the_kernel(points):
    triple = integral(cook_toom(len(points) - 1, 3, points, largest=12))
    assert all(x.denominator == 1 for row in (*triple.at, *triple.bt) for x in row)


def entries(triple):
    """The places of a triple's matrices."""
    for name in ("at", "g", "bt"):
        rows = getattr(triple, name)
        yield from ((name, i, j) for i in range(len(rows)) for j in range(len(rows[0])))


def changed(rows, i, j, by):
    """A matrix with one entry that is another."""
    return matrix(
        [x + by * ((a, b) == (i, j)) for b, x in enumerate(row)] for a, row in enumerate(rows)
    )


@pytest.mark.parametrize("triple", [cook_toom(2, 3), cook_toom(4, 3), cook_toom(2, 2)], ids=str)
def test_a_triple_with_one_wrong_entry_is_refused(triple):
    """Every entry counts: of A^T, G and B^T, also the zeros."""
    for name, i, j in entries(triple):
        for by in (Fraction(1), Fraction(-1, 7)):
            with pytest.raises(TransformRefused, match=r"has the coefficient .*, and a corr"):
                replace(triple, **{name: changed(getattr(triple, name), i, j, by)})


def test_a_triple_of_other_sizes_is_refused():
    f = cook_toom(2, 3)
    with pytest.raises(TransformRefused, match="at has 2 rows of 4"):
        Triple(3, 2, f.points, f.at, f.g, f.bt)


@pytest.mark.parametrize(
    "point", [0.5, "0.5", "1e3", "1/0", "1e999999999", "", True, None, float("nan"), "x"]
)
def test_a_point_that_is_not_exact_is_refused(point):
    with pytest.raises(TransformRefused, match="is not an exact number"):
        cook_toom(2, 3, (0, 1, point))


@pytest.mark.parametrize("point", [-2, Fraction(-1, 2), "-1/2", " 3 ", "+7/04"])
def test_a_point_may_be_an_integer_a_fraction_or_a_text(point):
    assert correlates(cook_toom(2, 3, (0, 1, point)))


@pytest.mark.parametrize("r", [0, 1, 8, -3])
def test_other_numbers_of_taps_are_refused(r):
    with pytest.raises(TransformRefused, match="2 to 7 taps"):
        cook_toom(2, r, largest=40)


def test_what_a_refusal_of_points_proposes_is_accepted():
    for points in ((), (0,), (3, 3, 3), (0, 1, 2, 3, 4, 5), (5, "1/2", 5, 5, 5, 5, 5)):
        with pytest.raises(TransformRefused, match="are too") as refused:
            cook_toom(3, 3, points)
        cook_toom(3, 3, str(refused.value).rpartition("Give ")[2].split(", "))
