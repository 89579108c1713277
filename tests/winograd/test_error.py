"""Error constants are those that are published, and bounds hold for what f32 computes."""

import random
from fractions import Fraction

import numpy as np
import pytest

from liftpy.errors import TransformRefused
from liftpy.winograd.error import (
    FORMS,
    Growth,
    Transforms,
    above,
    best_known,
    bound,
    bound_of,
    check_error,
    gamma,
    growth,
    roundings,
)
from liftpy.winograd.linear import Form, Sharing, Straight
from liftpy.winograd.matrices import kronecker
from liftpy.winograd.points import INTEGERS, PUBLISHED, known_points
from liftpy.winograd.triple import cook_toom, integral

#: gamma in one dimension, as printed: for the points of Barabasz and others, and for integers.
GAMMA = {
    (2, 3): ("2.7", "2.7"),
    (4, 3): ("9.9", "16"),
    (6, 3): ("22.6", "229"),
    (2, 5): ("8.5", "11.5"),
    (4, 5): ("17.4", "146"),
    (6, 5): ("65", "3.9e3"),
    (2, 7): ("16.4", "107"),
    (4, 7): ("50", "2.8e3"),
}


def rounded_as(printed, value):
    """Whether a number is what is printed, to the digits that are printed."""
    mantissa, _, exponent = printed.partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return round(value, places) == Fraction(printed)


@pytest.mark.parametrize(("m", "r"), GAMMA)
def test_gamma_is_as_published(m, r):
    n = m + r - 1
    good = next(p for p in PUBLISHED["Barabasz and others, 2018"] if len(p) == n - 1)
    for printed, points in zip(GAMMA[m, r], (good, INTEGERS[: n - 1]), strict=True):
        triple = cook_toom(m, r, points, largest=n)
        assert rounded_as(printed, gamma(triple)), float(gamma(triple))
        assert gamma(triple, 2) == gamma(triple) ** 2


def test_gamma_of_twelve_products():
    """152 for the points of Barabasz and others; the usual order has a little less."""
    assert rounded_as("151", gamma(cook_toom(6, 7, largest=12)))
    assert rounded_as("1.3e5", gamma(cook_toom(6, 7, INTEGERS[:11], largest=12)))
    (good,) = (p for p in PUBLISHED["Barabasz and others, 2018"] if len(p) == 11)
    assert rounded_as("152", gamma(cook_toom(6, 7, good, largest=12)))


def test_gamma_of_one_dnn_is_best_for_f43():
    assert best_known(4, 3).points == PUBLISHED["oneDNN"][0]
    assert rounded_as("7.9", gamma(best_known(4, 3)))


def test_gamma_does_not_depend_on_scaling_and_that_of_two_dimensions_is_of_the_flat_matrices():
    triple = cook_toom(3, 3)
    assert gamma(integral(triple)) == gamma(triple)
    g, bt, at = (kronecker(a, a) for a in (triple.g, triple.bt, triple.at))
    sums = [sum(map(abs, x)) * sum(map(abs, y)) for x, y in zip(g, bt, strict=True)]
    worst = max(sum(abs(a) * s for a, s in zip(row, sums, strict=True)) for row in at)
    assert gamma(triple, 2) == worst / 9


@pytest.mark.parametrize(("m", "r"), [(2, 3), (4, 3), (6, 3), (4, 5), (2, 7)])
def test_the_best_points_are_the_best_of_those_known(m, r):
    best = gamma(best_known(m, r))
    assert all(best <= gamma(cook_toom(m, r, p)) for p in known_points(m + r - 1).values())


def in_f32(program, values):
    """What a device computes: each operation and each constant rounded to f32."""
    f32 = np.float32
    return program.fold(
        [f32(x) for x in values],
        lambda x, y, minus: x - y if minus else x + y,
        lambda factor, x: f32(factor.numerator / factor.denominator) * x,
        f32(0),
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("sharing", Sharing)
@pytest.mark.parametrize(("m", "r"), [(1, 3), (2, 3), (4, 3)])
def test_the_bound_holds(m, r, form, sharing, channels):
    """For data of magnitude at most 1 with many ones, whose sums cancel."""
    transforms = Transforms.of(best_known(m, r), form, sharing)
    limit = bound(transforms, channels)
    rng = np.random.default_rng(m)
    for _ in range(5):
        w, d = (
            rng.choice(np.float32([-1, 1, rng.random(), -rng.random()]), (channels, count))
            for count in (transforms.kernel.inputs, transforms.input.inputs)
        )
        found = convolved(transforms, w, d, in_f32)
        exactly = convolved(transforms, *(to_fractions(x) for x in (w, d)), Straight.evaluate)
        errors = [abs(Fraction(float(x)) - y) for x, y in zip(found, exactly, strict=True)]
        assert max(errors) <= limit.absolute


def to_fractions(rows):
    return [[Fraction(float(x)) for x in row] for row in rows]


def convolved(transforms, w, d, evaluate):
    """The results of a sum over channels, in the numbers that `evaluate` computes with."""
    products = [
        [
            x * y
            for x, y in zip(
                evaluate(transforms.kernel, list(taps)),
                evaluate(transforms.input, list(inputs)),
                strict=True,
            )
        ]
        for taps, inputs in zip(w, d, strict=True)
    ]
    total = products[0]
    for more in products[1:]:
        total = [x + y for x, y in zip(total, more, strict=True)]
    return evaluate(transforms.output, total)


def test_the_bound_counts_what_the_programs_do():
    """F(2, 3): 3 roundings of the kernel (two sums; halving is exact), 1, 1, 2."""
    found = bound(Transforms.of(cook_toom(2, 3), Form.VECTOR))
    assert found.roundings == 2 + 1 + 1 + 2
    assert found.magnitude == gamma(cook_toom(2, 3)) * 3
    assert found.relative == found.absolute / 3
    more = bound(Transforms.of(cook_toom(2, 3), Form.VECTOR), 17)
    assert more.roundings == found.roundings + 16
    assert more.magnitude == 17 * found.magnitude


@pytest.mark.parametrize("sharing", Sharing)
def test_paths_are_at_least_as_large_as_the_entries(sharing):
    triple = cook_toom(6, 3)
    for a, program in zip(
        (triple.g, triple.bt, triple.at),
        vars(Transforms.of(triple, Form.VECTOR, sharing)).values(),
        strict=True,
    ):
        grown = growth(program, [Growth(Fraction(1), 0)] * program.inputs)
        assert all(g.magnitude >= sum(map(abs, row)) for g, row in zip(grown, a, strict=True))
        if sharing is Sharing.NONE:
            assert [g.magnitude for g in grown] == [sum(map(abs, row)) for row in a]


@pytest.mark.parametrize(
    ("factor", "count"),
    [
        (1, 0),
        (-4, 0),
        ("1/8", 0),
        (3, 1),
        ("17/4", 1),
        (2**24 - 1, 1),
        (2**24 + 1, 2),
        ("1/6", 2),
        (0, 0),
    ],
)
def test_roundings_of_a_product_with_a_constant(factor, count):
    assert roundings(Fraction(factor)) == count


def test_bounds_grow_with_m():
    bounds = [bound_of(cook_toom(m, 3)).relative for m in (1, 2, 3, 4, 5, 6)]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("dimensions", FORMS)
def test_what_a_refusal_of_an_error_proposes_is_accepted(dimensions):
    rng = random.Random(0)
    for _ in range(4):
        allowed = Fraction(rng.randint(1, 99), 10 ** rng.randint(6, 8))
        try:
            check_error(cook_toom(6, 3), allowed, dimensions)
        except TransformRefused as refused:
            said = str(refused)
            assert check_error(cook_toom(6, 3), Fraction(said.rpartition(" ")[2]), dimensions)
            if "Take F(" in said:
                m = int(said.partition("Take F(")[2][0])
                assert check_error(best_known(m, 3), allowed, dimensions)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_printed_bound_is_a_bound(dimensions):
    """Rounded to nearest, half of them were below, and refused as a `--max-error`."""
    for m, r in ((2, 3), (4, 3), (6, 3), (2, 5), (4, 5), (2, 7)):
        exact = bound_of(cook_toom(m, r), dimensions, 7).relative
        for digits in (2, 3):
            assert exact <= Fraction(above(exact, digits)) < exact * Fraction(12, 10)
