from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from liftpy.explore.pareto import dominates, front

costs = st.tuples(st.integers(0, 12), st.integers(0, 12))


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
