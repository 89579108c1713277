"""Which operation of a network is explored next: decisions on made-up times."""

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liftpy.networks.budget import (
    FASTER,
    FIRST,
    SECOND,
    UNKNOWN,
    Rates,
    State,
    chosen,
    expected_gain,
    target,
)

times = st.lists(st.floats(0.01, 100), min_size=2, max_size=7)


@given(times)
def test_the_gain_is_the_part_by_which_the_least_is_below_that_of_a_half(found):
    before = statistics.mean(map(min, itertools.combinations(found, len(found) // 2)))
    wanted = min(found) * (before - min(found)) / before
    assert expected_gain(found) == pytest.approx(wanted, abs=1e-9)


@given(times)
def test_the_gain_is_neither_negative_nor_more_than_the_spread(found):
    assert 0 <= expected_gain(found) <= min(max(found) - min(found), *found) + 1e-9
    assert expected_gain([min(found)] * len(found)) == pytest.approx(0, abs=1e-9)


def test_one_time_says_nothing_of_the_next_one():
    assert expected_gain([7.0]) == UNKNOWN * 7
    assert expected_gain([]) == 0


@given(st.integers(0, 300), st.integers(1, 300))
def test_targets_grow_and_do_not_depend_on_the_place_of_an_interruption(tried, most):
    aim = target(tried, most)
    assert aim == most or tried < aim
    for later in range(tried, aim) if tried else ():
        assert target(later, most) == aim
    assert target(0, 100) == FIRST
    assert target(FIRST, 100) == SECOND


def state(count, *found, seconds=10.0, finished=False):
    return State(count, found, len(found), seconds if found else 0.0, finished)


def test_operations_without_candidates_come_first_in_their_order():
    first = chosen([state(1, 50.0), state(1), state(9)], 100)
    assert (first.index, first.samples, first.gain) == (1, FIRST, None)


def test_of_these_the_one_with_the_largest_weight_comes_first():
    small, large = State(9, flops=10), State(1, flops=1000)
    moves = State(1, bytes=1000)
    assert chosen([small, large], 100).index == 1
    assert chosen([small, large, moves], 100).index == 2


def alike(tried, flops, kind="k", **others):
    return State(1, (1.0,) * tried, tried, 1.0 * tried, flops=flops, kind=kind, **others)


def test_each_kind_has_a_first_operation_before_any_has_a_second_one():
    states = [alike(0, 9), alike(0, 8), alike(0, 5, kind="other")]
    assert chosen(states, 100).index == 0
    states[0] = alike(FIRST, 9)
    assert chosen(states, 100).index == 2
    states[2] = alike(FIRST, 5, kind="other")
    found = chosen(states, 100)
    assert (found.index, found.samples) == (0, SECOND)  # the others begin with its best
    states[0] = alike(SECOND, 9)
    found = chosen(states, 100)
    assert (found.index, found.samples, found.gain) == (1, 1, None)
    states[1] = alike(1, 8)
    assert chosen(states, 100).gain is not None


def test_the_first_of_a_kind_may_have_few_candidates():
    finished = alike(FIRST, 9, finished=True)
    assert chosen([finished, alike(0, 8)], 100).index == 1
    assert chosen([alike(3, 9), alike(0, 8)], 3).index == 1


def test_after_a_turn_in_vain_another_of_the_kind_is_the_first():
    assert chosen([alike(0, 9, vain=1), alike(0, 8)], 100).index == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), min_size=1, max_size=9))
def test_every_operation_gets_a_candidate_before_expected_gains_decide(drawn):
    states = [alike(0, flops, kind) for kind, flops in drawn]
    while (found := chosen(states, 20)) is not None and found.gain is None:
        kind, flops = drawn[found.index]
        assert found.samples > states[found.index].tried
        states[found.index] = alike(found.samples, flops, kind)
    assert all(state.tried for state in states)


def test_after_a_turn_in_vain_others_come_first():
    vain = State(1, vain=1)
    assert chosen([vain, State(1)], 100).index == 1
    assert chosen([vain, State(1, vain=2)], 100).index == 0


def test_the_largest_saving_of_the_whole_network_comes_next():
    alike = [state(1, 8.0), state(3, 4.0), state(1, 11.0)]
    found = chosen(alike, 100)
    assert found.index == 1  # 3 x 4 ms is more than 11 ms
    assert found.gain == pytest.approx(UNKNOWN * 12)


def test_slow_candidates_promise_no_more_than_the_operation_takes():
    """One of 1 ms with slow candidates cannot save what one of 10 ms may."""
    outliers = state(1, 1.0, *[100.0] * 8)
    steady = state(1, *[10 + 0.5 * k for k in range(9)])
    assert expected_gain(outliers.times) < 1.0
    found = chosen([outliers, steady, state(3, *[9 + k for k in range(9)])], 100)
    assert found.index == 2


def test_a_slow_operation_whose_candidates_are_alike_gets_no_more():
    slow = state(1, *[90.0, 90.1, 90.0, 90.1])
    fast = state(1, *[5.0, 9.0, 7.0, 8.0])
    assert chosen([slow, fast], 100).index == 1


def test_a_saving_is_divided_by_the_time_that_it_takes():
    quick = state(1, 5.0, 9.0, seconds=2.0)
    tedious = state(1, 6.0, 11.0, seconds=60.0)
    assert expected_gain(tedious.times) > expected_gain(quick.times)
    assert chosen([tedious, quick], 100).index == 1


def test_what_failed_so_far_is_taken_for_an_operation_like_the_others():
    failed = State(1, (), FIRST, 5.0)
    assert chosen([state(1, *[3.0, 3.0]), failed], 100).index == 1
    assert chosen([failed], 100).samples == SECOND


def test_it_ends_when_all_have_their_number_or_are_finished():
    assert chosen([state(1, 5.0, 6.0), state(2, 7.0, finished=True)], 2) is None
    assert chosen([], 2) is None


def test_a_budget_goes_where_the_time_is():
    """Three operations whose candidates are drawn from lists: the dominant one gets the most."""
    drawn = {0: [40 - 0.9 * k for k in range(40)], 1: [3 - 0.02 * k for k in range(40)]}
    drawn[2] = [2.0] * 40
    counts, tried = [4, 4, 1], [0, 0, 0]
    for _ in range(8):
        states = [
            State(n, tuple(drawn[k][: tried[k]]), tried[k], float(tried[k]))
            for k, n in enumerate(counts)
        ]
        found = chosen(states, 40)
        tried[found.index] = found.samples
    assert tried[0] == 40
    assert tried[0] > tried[1] > tried[2]


def counted(count, *found, flops=0, size=0):
    return State(count, found, len(found), len(found) * 1.0, flops=flops, bytes=size)


def test_an_operation_near_its_floor_gains_little_however_slow_its_first_candidate_is():
    fast = counted(1, 50.0, 0.2, flops=100)
    slow = counted(1, 0.21, 0.2, flops=20)
    rates = Rates.of([fast, slow])
    assert rates.floor(fast) == pytest.approx(0.2)
    assert expected_gain(fast.times) > 0.19
    assert rates.gain(fast) == pytest.approx(0.2 - 0.2 / FASTER)
    assert chosen([fast, slow], 100).index == 1


def test_two_candidates_that_are_alike_do_not_end_an_operation():
    """Its time above the floor counts, half as much after each turn."""
    alike = [4.0, 4.0]
    fast = counted(1, 1.0, 1.0, size=1000)
    gains = []
    while len(alike) < 40:
        state = counted(1, *alike, size=1000)
        gains.append(Rates.of([state, fast]).gain(state))
        alike = [4.0] * target(len(alike), 1000)
    assert gains == [1.5, 0.75, 0.375, 0.1875]
    assert chosen([fast, counted(1, 4.0, 4.0, size=1000)], 100).index == 1


def test_the_floor_is_that_of_operations_or_of_bytes():
    rates = Rates.of([counted(1, 2.0, flops=800), counted(1, 1.0, size=50), counted(1)])
    assert (rates.flops, rates.bytes) == (400, 50)
    assert rates.floor(counted(1, flops=800, size=50)) == 2
    assert rates.floor(counted(1, flops=4, size=150)) == 3
    assert rates.floor(counted(1)) == 0
