"""Statistics on samples made by hand: what a noisy machine does to a median is known there."""

import itertools
import math

import numpy as np
import pytest

from liftpy.explore.measure.samples import (
    BEHIND,
    ENOUGH_SECONDS,
    MOST_REPEATS,
    REPEATS,
    RETAKES,
    SLOW_REPEATS,
    SLOW_SECONDS,
    TIGHT,
    History,
    departs,
    enough,
    interval_of,
    sample,
    undisturbed,
)

MS = 1_000_000


def noise(rng, n):
    """Times around 1: a long tail, and now and then something else ran as well."""
    return rng.lognormal(0, 0.1, n) + np.where(rng.random(n) < 0.2, rng.exponential(2, n), 0)


# --- medians --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 11, 50])
def test_the_interval_holds_the_true_median_as_often_as_it_says(n):
    rng = np.random.default_rng(n)
    true = np.median(noise(rng, 400_000))
    spans = [interval_of(noise(rng, n)) for _ in range(1000)]
    assert sum(span.low <= true <= span.high for span in spans) >= 930


def test_the_interval_is_as_narrow_as_the_ranks_allow():
    """The tables of the sign test: 95 % are ranks 1 and 6 of 6, 2 and 10 of 11, 18 and 33 of 50."""
    for n, low, high in ((6, 1, 6), (9, 2, 8), (11, 2, 10), (50, 18, 33)):
        span = interval_of(range(1, n + 1))
        assert (span.low, span.high) == (low, high)
    assert interval_of([7]).width == 0
    assert interval_of([3, 1, 2]).low == 1


# --- repeats --------------------------------------------------------------------------------------


def runs(times):
    """A run of two launches, from a stream of times; and how many runs were made."""
    stream, made = iter(times), []

    def run():
        total = int(next(stream))
        made.append(total)
        return total // 4, total - total // 4

    return run, made


class Wall:
    """The clock on the wall where runs take their time and an overhead, both in nanoseconds."""

    def __init__(self, made, overhead=0):
        self.made = made
        self.overhead = overhead

    def __call__(self):
        return sum(total + self.overhead for total in self.made) / 1e9


def test_steady_times_are_taken_no_more_often_than_needed():
    run, made = runs(itertools.repeat(3 * MS))
    rows = sample(run)
    assert len(rows) == REPEATS
    assert all(sum(row) == 3 * MS for row in rows)
    assert len(made) == REPEATS + 2


def test_noisy_times_are_taken_until_the_median_is_known():
    rng = np.random.default_rng(5)
    run, _ = runs(MS * rng.normal(1, 0.02, 1000))
    rows = sample(run)
    assert REPEATS < len(rows) < MOST_REPEATS
    assert interval_of([sum(row) for row in rows]).width <= TIGHT


def test_times_that_never_settle_end_with_what_was_allowed():
    rng = np.random.default_rng(5)
    run, _ = runs(MS * noise(rng, 1000))
    assert len(sample(run)) == MOST_REPEATS
    run, made = runs(100 * MS * noise(rng, 1000))
    assert REPEATS <= len(sample(run)) < MOST_REPEATS
    assert sum(made) < 2 * ENOUGH_SECONDS * 1e9 + 500 * MS


def test_warming_up_goes_on_while_runs_get_faster():
    run, made = runs(itertools.chain([90 * MS, 40 * MS, 20 * MS], itertools.repeat(10 * MS)))
    rows = sample(run)
    assert {sum(row) for row in rows} == {10 * MS}
    assert len(made) == len(rows) + 5


def test_a_slow_candidate_is_cut_early():
    run, made = runs(itertools.repeat(60 * MS))
    assert len(sample(run, best_ns=10 * MS)) == SLOW_REPEATS
    assert len(made) == SLOW_REPEATS + 1
    run, _ = runs(itertools.repeat(40 * MS))
    assert len(sample(run, best_ns=10 * MS)) == REPEATS


def test_the_checked_run_of_a_slow_candidate_is_a_sample():
    run, made = runs(itertools.repeat(60 * MS))
    assert sample(run, best_ns=10 * MS, checked=(20 * MS, 50 * MS)) == (
        (20 * MS, 50 * MS),
        (15 * MS, 45 * MS),
    )
    assert len(made) == SLOW_REPEATS - 1
    long = (int(SLOW_SECONDS * 1e9),)
    assert sample(run, best_ns=10 * MS, checked=long) == (long,)
    assert len(made) == SLOW_REPEATS - 1


@pytest.mark.parametrize("best_ns", [None, 10 * MS], ids=["the first", "as fast as the best"])
def test_the_checked_run_of_others_is_not(best_ns):
    run, _ = runs(itertools.repeat(10 * MS))
    rows = sample(run, best_ns=best_ns, checked=(90 * MS,))
    assert len(rows) == REPEATS
    assert {sum(row) for row in rows} == {10 * MS}


def test_a_candidate_behind_the_best_is_known_as_well_as_it_has_to_be():
    rng = np.random.default_rng(5)
    times = [int(t) for t in MS * rng.normal(30, 0.6, 1000)]
    near, far = (sample(runs(times)[0], best_ns=best * MS) for best in (29, 15))
    assert len(far) < len(near)
    span = interval_of([sum(row) for row in far])
    assert span.width > TIGHT
    assert span.high - span.low <= BEHIND * (span.middle - 15 * MS)


def test_one_disturbed_run_does_not_make_a_candidate_slow():
    run, _ = runs(itertools.chain([10 * MS] * 2, [90 * MS], itertools.repeat(10 * MS)))
    assert len(sample(run, best_ns=10 * MS)) >= REPEATS


def test_samples_keep_within_their_seconds_and_there_is_one():
    run, made = runs(itertools.repeat(100 * MS))
    assert len(sample(run, seconds=0.35, clock=Wall(made))) == 1
    assert sum(made) <= 350 * MS
    run, made = runs(itertools.repeat(100 * MS))
    assert len(sample(run, seconds=0.01, clock=Wall(made))) == 1


@pytest.mark.parametrize("overhead", [MS, 100 * MS])
def test_what_launching_takes_counts_for_the_seconds(overhead):
    """A kernel of a microsecond: what its runs take is what the host needs to launch them."""
    run, made = runs(500 + np.random.default_rng(5).permutation(1000))  # never known well
    wall = Wall(made, overhead)
    rows = sample(run, seconds=0.03, clock=wall)
    assert wall() <= max(0.03, 2 * overhead / 1e9) + 1e-5, "a warm-up and a run, at least"
    assert len(rows) < MOST_REPEATS
    assert len(rows) > REPEATS or overhead > MS


def test_samples_are_not_taken_again_when_launching_has_taken_the_time():
    run, made = runs(itertools.repeat(MS // 1000))
    wall = Wall(made, 10 * MS)
    looks = itertools.cycle([2.0])
    undisturbed(lambda: sample(run, clock=wall), lambda: next(looks), 0.15, clock=wall)
    assert wall() < 0.15


# --- disturbance ----------------------------------------------------------------------------------


def taken(ratios, seconds=math.inf):
    """What is kept when the reference takes these multiples of its usual time; and how often."""
    looks, counter = iter(ratios), itertools.count()
    (((kept,),), ratio) = undisturbed(lambda: ((next(counter),),), lambda: next(looks), seconds)
    return kept, ratio, next(counter)


def test_samples_of_a_calm_device_are_taken_once():
    assert taken([1.0, 1.1]) == (0, 1.1, 1)


@pytest.mark.parametrize("ratios", [[1, 1.6, 1], [1, 0.5, 1]], ids=["slower", "faster"])
def test_disturbed_samples_are_taken_again(ratios):
    kept, ratio, times = taken([*ratios, 1.05])
    assert (kept, times) == (2, 3)
    assert ratio == 1.05


def test_a_device_that_stays_disturbed_is_told_and_the_least_disturbed_samples_kept():
    kept, ratio, times = taken([2, 3, 1.5, 1.4])
    assert (kept, ratio, times) == (2, 1.5, RETAKES + 1)
    assert departs(ratio)


def test_nothing_is_taken_again_when_there_is_no_time():
    looks, made = iter([2.0, 2.0]), []

    def take():
        made.append(900 * MS)
        return ((900 * MS,),)

    rows, ratio = undisturbed(take, lambda: next(looks), 1.0, clock=Wall(made))
    assert (rows, ratio) == (((900 * MS,),), 2.0)


def test_a_candidate_of_twice_the_time_is_run_no_more_than_its_median_needs():
    """However noisy it is: its interval may be wide, and is told as it is."""
    noisy = [20 * MS, 60 * MS, 21 * MS, 50 * MS, 22 * MS, 70 * MS]
    assert not enough(noisy[:5], 9 * MS)
    assert enough(noisy, 9 * MS)
    assert not enough(noisy, 11 * MS)  # a run took less than twice the best


@pytest.mark.parametrize(("ms", "times"), [(21, 1), (19, RETAKES + 1)])
def test_a_candidate_far_behind_is_not_taken_again(ms, times):
    made = []

    def take():
        made.append(ms * MS)
        return ((ms * MS,),)

    _, ratio = undisturbed(take, lambda: 2.0, 99.0, best_ns=10 * MS)
    assert (ratio, len(made)) == (2.0, times)


def test_a_reference_departs_from_what_was_usual_and_then_that_is_usual():
    history = History()
    assert [history.take(10) for _ in range(20)] == [1] * 20
    assert departs(history.take(14))
    assert departs(history.take(7))
    ratios = [history.take(14) for _ in range(30)]
    assert departs(ratios[0])
    assert ratios[-1] == 1
