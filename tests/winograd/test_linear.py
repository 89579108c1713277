"""Straight-line programs apply their matrix, with no more operations than published."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liftpy.winograd.linear import Form, ScaledValue, Sharing, Sum
from liftpy.winograd.matrices import columns, kronecker, matrix, times
from liftpy.winograd.sharing import applied, flat, program, separable
from liftpy.winograd.triple import cook_toom
from tests.benchmarks.scripts import script

claims = script("winograd_claims")

#: Additions of the transforms of F(m, r) from the usual points, for kernel, input and output: of
#: all equations of two dimensions (a), of these with the hierarchy of sets (b), of one dimension
#: applied to columns and rows (c), and of that with the hierarchy (d).
PUBLISHED, COLUMNS = claims.ADDITIONS, claims.FORMS
#: What sharing pairs comes to where it beats the sets most: transforms of the input, separable.
WITH_PAIRS = {(2, 3): 32, (3, 3): 90, (4, 3): 144, (6, 3): 384, (3, 5): 294}

SMALL = st.sampled_from([Fraction(x) for x in (0, 0, 0, 1, 1, -1, 2, -2, "1/2", "-3/4", "5/3")])
MATRICES = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda s: st.lists(st.lists(SMALL, min_size=s[0], max_size=s[0]), min_size=s[1], max_size=s[1])
)


def transforms(m, r):
    triple = cook_toom(m, r, largest=10)
    return {"kernel": triple.g, "input": triple.bt, "output": triple.at}


def additions(a, form, sharing):
    return applied(a, form, sharing).counts.additions


def rationals(count, seed=0):
    rng = random.Random(seed)
    return [Fraction(rng.randint(-999, 999), rng.randint(1, 99)) for _ in range(count)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("m", "r"), PUBLISHED)
def test_additions_are_those_of_the_table_or_fewer(m, r):
    """All 84 entries. What is not shared is equal; b and d are better where a set stands twice."""
    worse = [
        f"F({m}, {r}), {name}, column {column}: {found}, published {published}"
        for (name, a), row in zip(transforms(m, r).items(), PUBLISHED[m, r], strict=True)
        for (column, how), published in zip(COLUMNS.items(), row, strict=True)
        if (found := additions(a, *how)) > published or (column in "ac" and found != published)
    ]
    assert not worse, "\n".join(worse)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("m", "r"), PUBLISHED)
def test_pairs_share_at_least_what_sets_do(m, r):
    for name, a in transforms(m, r).items():
        for form in Form:
            sets, pairs = (additions(a, form, s) for s in (Sharing.SETS, Sharing.PAIRS))
            assert pairs <= sets, (name, form)
    if (m, r) in WITH_PAIRS:
        assert additions(a_of_input(m, r), Form.SEPARABLE, Sharing.PAIRS) == WITH_PAIRS[m, r]


def a_of_input(m, r):
    return transforms(m, r)["input"]


def test_the_input_and_output_of_f23_need_no_multiplication():
    for name in ("input", "output"):
        counts = applied(transforms(2, 3)[name], Form.SEPARABLE).counts
        assert counts.multiplications == counts.negations == 0


def test_the_worked_example():
    """Published: 16 multiplications and 8 additions as products, 8 and 4 optimized."""
    a = matrix([[-1, 0], [3, 2]])
    found = flat(a, a, Sharing.PAIRS)
    A, B, C, D = rationals(4)
    assert found.evaluate([A, B, C, D]) == [
        A,
        -(3 * A + 2 * B),
        -(3 * A + 2 * C),
        3 * (3 * A + 2 * B) + 6 * C + 4 * D,
    ]
    assert found.counts.additions == 4
    assert found.counts.multiplications + found.counts.negations <= 8


@pytest.mark.covering(3)
@pytest.mark.parametrize("sharing", Sharing)
@pytest.mark.parametrize(("m", "r"), [(2, 3), (4, 3), (6, 3), (3, 5), (2, 7), (8, 3)])
def test_programs_of_transforms_equal_their_matrices(m, r, sharing):
    for a in transforms(m, r).values():
        x = rationals(columns(a))
        assert tuple(applied(a, Form.VECTOR, sharing).evaluate(x)) == times(a, x)
        square = rationals(columns(a) ** 2)
        expected = times(kronecker(a, a), square)
        assert tuple(applied(a, Form.SEPARABLE, sharing).evaluate(square)) == expected
        if len(a) <= 6:
            assert tuple(applied(a, Form.FLAT, sharing).evaluate(square)) == expected


@given(MATRICES.map(matrix), MATRICES.map(matrix), st.sampled_from(Sharing))
def test_programs_of_any_matrices_equal_them(left, right, sharing):
    """Rows of zeros, equal rows, rectangles."""
    x = rationals(columns(left) * columns(right))
    expected = times(kronecker(left, right), x)
    assert tuple(program(kronecker(left, right), sharing).evaluate(x)) == expected
    assert tuple(separable(left, right, sharing).evaluate(x)) == expected


@given(MATRICES.map(matrix), st.sampled_from(Sharing))
def test_steps_read_what_is_made_before_and_shared_programs_repeat_nothing(a, sharing):
    made = program(a, sharing)
    for number, step in enumerate(made.steps, made.inputs):
        read = (step.left, step.right) if isinstance(step, Sum) else (step.of,)
        assert max(read) < number
        assert not isinstance(step, ScaledValue) or step.factor not in {0, 1}
    if sharing is not Sharing.NONE:
        assert len(set(made.steps)) == len(made.steps)
    unshared = sum(max(sum(map(bool, row)) - 1, 0) for row in a)
    assert made.counts.additions <= unshared


def test_a_program_is_printed_as_text():
    assert str(program(matrix([[0, 0], [1, -1], [-1, 1], [2, 2], [0, 1]]))) == (
        "t0 = x0 - x1\nt1 = -t0\nt2 = x0 + x1\nt3 = 2 * t2\n"
        "y0 = 0\ny1 = t0\ny2 = t1\ny3 = t3\ny4 = x1"
    )
