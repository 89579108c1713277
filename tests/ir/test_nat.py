"""Naturals: every simplification keeps the value, and each law is checked by z3."""

import operator
import random
import sys
import threading

import numpy as np
import pytest
import z3
from hypothesis import assume, given
from hypothesis import strategies as st

from liftpy.errors import TypeRefused
from liftpy.ir.nat import ONE, ZERO, Var, atom, greatest, least, nat, nats, product, var
from liftpy.semantics.smt import Terms, ask
from tests.ir.laws import GIVEN, I4, LAWS, K, M, N, X, Y, p, x, y

# --- values -------------------------------------------------------------------------------------

RANGES = {
    "a": (0, None),
    "b": (1, None),
    "c": (None, None),
    "i": (0, 3),
    "j": (0, 7),
    "k": (-5, 4),
    "s": (2, 6),
}
VARS = {name: var(name, *bounds) for name, bounds in RANGES.items()}
POSITIVE = ["b", "s"]


def within(name):
    low, high = RANGES[name]
    low = -9 if low is None else low
    return st.integers(low, low + 20 if high is None else high)


def smaller(a, b):
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else least(a, b)


def larger(a, b):
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else greatest(a, b)


assignments = st.fixed_dictionaries({name: within(name) for name in RANGES})
leaves = st.sampled_from(list(RANGES)) | st.integers(-12, 12)
divisors = (
    st.sampled_from(POSITIVE)
    | st.integers(1, 12)
    | st.tuples(st.just(operator.mul), st.integers(1, 6), st.sampled_from(POSITIVE))
    | st.tuples(st.just(operator.add), st.sampled_from(["i", "a", "s"]), st.integers(1, 4))
)
terms = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from([operator.add, operator.sub, operator.mul]), inner, inner),
        st.tuples(st.sampled_from([smaller, larger]), inner, inner),
        st.tuples(st.sampled_from([operator.floordiv, operator.mod]), inner, divisors),
    ),
    max_leaves=12,
)


def built(term, leaf):
    """A term over whatever its variables are: naturals or numbers."""
    if isinstance(term, tuple):
        op, left, right = term
        return op(built(left, leaf), built(right, leaf))
    return leaf(term)


def natural(term):
    return nat(built(term, lambda x: VARS[x] if isinstance(x, str) else nat(x)))


def number(term, at):
    return built(term, lambda x: at[x] if isinstance(x, str) else x)


@given(terms, assignments)
def test_normal_form_keeps_the_value(term, at):
    assert natural(term).value(at) == number(term, at)


@given(terms, assignments)
def test_value_is_within_the_bounds(term, at):
    low, high = natural(term).bounds
    value = number(term, at)
    assert low is None or low <= value
    assert high is None or value <= high


@given(terms, terms, assignments)
def test_equal_naturals_have_equal_values(one, two, at):
    if natural(one) == natural(two):
        assert number(one, at) == number(two, at)
        assert hash(natural(one)) == hash(natural(two))
        assert natural(one).key == natural(two).key


@given(terms, assignments)
def test_numbers_for_all_variables_leave_a_number(term, at):
    assert int(natural(term).substitute(at)) == number(term, at)


@given(terms, st.sampled_from(["a", "c"]), st.sampled_from(["i", "j"]), assignments)
def test_substitution_of_a_natural_keeps_the_value(term, name, by, at):
    replaced = natural(term).substitute({name: VARS[by] * 2 + 1})
    assert replaced.value(at) == number(term, {**at, name: at[by] * 2 + 1})


@given(terms, st.sampled_from(["a", "c"]))
def test_what_a_variable_is_not_in_is_set_apart(term, name):
    whole = natural(term)
    still, moving = whole.parted(name)
    assert still + moving == whole
    assert name not in still.names()
    assert all(any(name in a.names for a, _ in monomial) for monomial in moving.terms)


@given(terms, terms, divisors, st.integers(1, 9), st.integers(-9, 9))
def test_a_number_more_is_no_reason_to_recombine(one, two, by, k, more):
    x, d = natural(one), natural(by)
    together = natural(two) + k * d * (x // d) + k * (x % d)
    assert (together + more).recombined() == together.recombined() + more
    assert (together + more).names() == together.names()


@given(terms, terms)
def test_adding_and_taking_away_again_changes_nothing(one, two):
    assert natural(one) + natural(two) - natural(two) == natural(one)


@given(terms, terms, terms)
def test_multiplication_distributes(one, two, three):
    x, y, z = natural(one), natural(two), natural(three)
    assert x * (y + z) == y * x + z * x


@given(terms, divisors)
def test_quotient_and_remainder_belong_together(term, divisor):
    n, d = natural(term), natural(divisor)
    assume(d.bounds[0] is not None)
    at = {name: max(low or 0, 1) + 1 for name, (low, _) in RANGES.items()}
    q, r = (n // d).value(at), (n % d).value(at)
    assert q * d.value(at) + r == n.value(at)
    assert 0 <= r < d.value(at)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_exact_division_is_division_where_it_is_exact(m, k, rest):
    n, d, e = nats("n d e")
    at = {"n": m * k, "d": m, "e": rest}
    assert n.exact_div(d) * d == n
    assert n.exact_div(d).value(at) == k
    assert (n * e).exact_div(d).value(at) == k * rest
    assert (e * n.exact_div(d)).exact_div(e) == n.exact_div(d)
    assert (n.exact_div(d) * d * e).value(at) == m * k * rest
    assert n.exact_div(d).substitute({"n": d * e}) == e


# --- the laws, by z3 ----------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_division_law_is_proved(law):
    simplified, meant = LAWS[law]
    proof = Terms()
    term = proof.nat(simplified)
    answer = ask([*proof.facts, *GIVEN, term != meant])
    assert answer.status == "unsat", (str(simplified), answer)


D, C, R, A, B, G, Q, S, Z = z3.Ints("d c r a b g q s z")


def floor(name, number, divisor):
    """A variable for the quotient that rounds down, and what defines it for positive divisors."""
    quotient = z3.Int(name)
    return quotient, [divisor * quotient <= number, number < divisor * quotient + divisor]


def general(wanted, *quotients, given):
    """A law about quotients: each of them is a number and a positive divisor."""
    found, facts = zip(
        *(floor(f"quotient{k}", *pair) for k, pair in enumerate(quotients)), strict=True
    )
    positive = [divisor >= 1 for _, divisor in quotients]
    return [*given, *positive, *(fact for each in facts for fact in each)], wanted(*found)


#: What `_divide_unknown`, `recombined` and `exact_div` do, for all coefficients and divisors.
STEPS = {
    "a multiple of the divisor leaves the numerator": general(
        lambda whole, rest: whole == X + rest, (D * X + Y, D), (Y, D), given=[]
    ),
    "a coefficient is divided": general(
        lambda whole, rest: whole == Q * X + rest,
        (C * X + Y, D),
        (R * X + Y, D),
        given=[Q * D + R == C, R >= 0, R < D],
    ),
    "a rest in range has the quotient 0": general(
        lambda whole: whole == 0, (R, D), given=[R >= 0, R < D]
    ),
    "a number by itself is 1": general(lambda whole: whole == 1, (D, D), given=[]),
    "a quotient of a quotient": general(
        lambda inner, outer, both: outer == both,
        (X, A),
        (z3.Int("quotient0"), B),
        (X, A * B),
        given=[],
    ),
    "a common factor is cancelled": general(
        lambda whole, less: whole == less, (G * X + S, G * Q), (X, Q), given=[S >= 0, S < G]
    ),
    "the remainder keeps the factor": general(
        lambda whole, less: G * X + S - G * Q * whole == G * (X - Q * less) + S,
        (G * X + S, G * Q),
        (X, Q),
        given=[S >= 0, S < G],
    ),
    "an index that is taken apart and recombined": general(
        lambda row: Z * D * row + Z * (X - D * row) == Z * X, (X, D), given=[]
    ),
    "an exact quotient": general(lambda whole: whole == X, (D * X, D), given=[]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_proved_for_all_coefficients_and_divisors(step):
    given, wanted = STEPS[step]
    assert ask([*given, z3.Not(wanted)]).status == "unsat"
    assert ask(given).status == "sat", "nothing satisfies the conditions"


def test_a_step_without_its_condition_is_not_a_law():
    given, wanted = STEPS["a common factor is cancelled"]
    assert ask([*given[1:], z3.Not(wanted)]).status == "sat", "s may be negative"


def test_simplifications_that_the_views_rely_on():
    assert (12 * x + I4) // 4 == 3 * x
    assert (4 * x + I4) % 4 == I4
    assert str((12 * x + y) // 4) == "y//4 + 3*x"
    assert str((4 * x + I4) // 12) == "x//3"
    assert (p * x + p) // p == x + 1


def test_what_must_not_be_simplified_is_not():
    assert (4 * x + K) // 4 != x
    assert (x // 4) * 4 != x
    a = var("a")
    assert str(a // a) == "a//a", "a may be 0"
    assert (x * y) // y != x, "y may be 0 or negative"


def test_exact_division_law_is_proved():
    n, m = nats("n m")
    proof = Terms()
    q = proof.nat(n.exact_div(m))
    divides = [M >= 1, N % M == 0]
    answer = ask([*proof.facts, *divides, z3.Not(z3.And(q * M == N, q == N / M))])
    assert answer.status == "unsat"
    assert n.exact_div(m) * m == n


# --- small things -------------------------------------------------------------------------------


def test_number_is_asked_of_a_symbol_and_refused():
    with pytest.raises(TypeRefused, match="the size x - y is not a Python number"):
        int(x - y)


def test_product_of_nothing_is_one():
    assert product([]) == ONE
    assert product([x, 2, y]) == 2 * x * y
    assert ZERO == 0


def test_variables_of_a_name_and_a_range_are_one_atom():
    assert atom(Var("x", 3, 5)) == atom(Var("x", 3, 5))
    assert atom(Var("x")) != atom(Var("x", 3, 5))
    assert x.names() == {"x"}
    assert (x // (y * 0 + 3) + p).names() == {"x", "p"}


def test_an_index_taken_apart_and_put_together_is_itself():
    """`(e // 12)*12 + (e // 4 % 3)*4 + e % 4` is `e`, nested or not, scaled or not."""
    e = var("e", 0, 35)
    together = (e // 12) * 12 + (e // 4 % 3) * 4 + e % 4
    assert together.recombined() == e
    assert (together * 5 + var("k")).recombined() == e * 5 + var("k")
    apart = (e // 12) * 13 + (e // 4 % 3) * 4 + e % 4
    for value in range(36):
        assert apart.recombined().value({"e": value}) == apart.value({"e": value})


def test_the_smaller_and_the_larger_of_arrays_are_taken_element_by_element():
    a, b = np.array([[3], [-2], [5]]), np.array([1, 4])
    np.testing.assert_array_equal(least(a, b), np.minimum(a, b))
    np.testing.assert_array_equal(greatest(b, a), np.maximum(a, b))
    np.testing.assert_array_equal(least(nat(2), a), np.minimum(a, 2))
    np.testing.assert_array_equal(greatest(a, nat(2)), np.maximum(a, 2))
    np.testing.assert_array_equal(least(x, y).value({"x": a, "y": b}), np.minimum(a, b))


def test_keys_are_computed_in_several_threads():
    """A key of a natural asks for keys of quotients in it, and these for keys of naturals."""
    n, k, m = (var(name, 1, None) for name in "nkm")

    def work(seed):
        rng = random.Random(seed)
        for _ in range(400):
            quotient = (n + rng.randrange(1, 10**6)) // (k + rng.randrange(1, 10**6))
            made.append(quotient * m if seed else (quotient + 1).key)

    made = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(s,), daemon=True) for s in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert len(made) == 800
