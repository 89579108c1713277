from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from liftpy.explore.measure.pareto import clear_front, front
from liftpy.explore.measure.samples import Interval, interval_of

costs = st.tuples(st.integers(0, 12), st.integers(0, 12))


def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether `a` is no worse than `b` in both costs, and better in one."""
    return a[0] <= b[0] and a[1] <= b[1] and a != b


def by_definition(points):
    return [p for p in points if not any(dominates(q, p) for q in points)]


@given(st.lists(costs))
def test_the_front_is_what_no_point_dominates(points):
    assert sorted(front(points, costs=lambda p: p)) == sorted(by_definition(points))


@given(st.lists(costs))
def test_along_the_front_one_cost_rises_and_the_other_falls(points):
    found = front(points, costs=lambda p: p)
    for a, b in pairwise(found):
        assert a == b or (a[0] < b[0] and a[1] > b[1])


@given(st.lists(costs))
def test_equal_points_all_stay_in_their_order(points):
    numbered = list(enumerate(points))
    found = front(numbered, costs=lambda p: p[1])
    for a, b in pairwise(found):
        assert a[1] != b[1] or a[0] < b[0]


@given(costs, costs)
def test_no_two_points_dominate_each_other(a, b):
    assert not (dominates(a, b) and dominates(b, a))
    assert not dominates(a, a)


spans = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(sorted)
timed = st.tuples(spans.map(lambda s: Interval(s[1], s[0], s[2])), st.integers(0, 9))


@given(st.lists(timed))
def test_the_clear_front_is_what_no_point_clearly_dominates(points):
    def clearly(a, b):
        return a[1] <= b[1] and a[0].high < b[0].low

    numbered = list(enumerate(points))
    found = clear_front(numbered, costs=lambda p: p[1])
    wanted = [p for p in numbered if not any(clearly(q, p[1]) for q in points)]
    assert sorted(found, key=lambda p: p[0]) == wanted
    assert found == sorted(found, key=lambda p: (p[1][0].middle, p[1][1], p[0]))
    medians = front(numbered, costs=lambda p: (p[1][0].middle, p[1][1]))
    assert {p[0] for p in medians} <= {p[0] for p in found}


def test_noise_does_not_take_a_point_off_the_front():
    """Sixty candidates, a tenth of noise: the front of medians loses points, this one hardly."""
    rng = np.random.default_rng(3)
    lost, naively, points = 0, 0, 0
    for _ in range(40):
        true = [(rng.uniform(1, 2), int(rng.integers(1, 12))) for _ in range(60)]
        right = {true.index(p) for p in front(true, costs=lambda p: p)}
        found = [(interval_of(t * rng.lognormal(0, 0.1, 9)), m) for t, m in true]
        numbered = list(enumerate(found))
        clear = {k for k, _ in clear_front(numbered, costs=lambda p: p[1])}
        naive = {k for k, _ in front(numbered, costs=lambda p: (p[1][0].middle, p[1][1]))}
        points += len(right)
        lost += len(right - clear)
        naively += len(right - naive)
    assert lost < 0.02 * points
    assert naively > 0.2 * points
