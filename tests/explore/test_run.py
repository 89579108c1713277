"""What a search sees of candidates that are measured several at a time."""

import random

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.run import CampaignRun, Seen, comparable
from liftpy.explore.campaign.store import Store
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.measure.pool import Finished
from liftpy.explore.search import named
from liftpy.opencl.kernel import MemoryFigures
from tests.explore.spaces import small_space
from tests.explore.test_store import IDENTITY


class Shuffled:
    """A pool that gives outcomes back in an order of its own; a time follows from the candidate."""

    shares_fate = False

    def __init__(self, notes, seed):
        self.notes, self.rng, self.waiting = notes, random.Random(seed), []

    def submit(self, candidate):
        self.notes.begin(candidate)
        self.waiting.append(candidate)

    def next(self):
        candidate = self.waiting.pop(self.rng.randrange(len(self.waiting)))
        time_ns = 10**9 // (1 + sum(candidate.point.values()))  # a hill to climb
        figures = MemoryFigures(64, 64, 0, 0, 0, 0)
        return Finished(candidate, Measured(((time_ns,),), 0, figures, 0.0, 0.0, 0.0))

    def halt(self):
        return ()


def drawn(path, lag, order, search="local", samples=40):
    """The keys in the order of drawing, and how many trials were seen at each draw."""
    space, seen = small_space(), []
    with Store.open(path, IDENTITY) as store:
        run = CampaignRun(store, DEFAULT_DEVICE, samples, lag, lambda _: None)

        def watched():
            for candidate in named(search)(space, 3, run.trials, run.lessons.allows):
                seen.append(len(run.trials))
                yield candidate

        run.follow(watched(), Shuffled(run, order))
        assert [t.candidate.key for t in run.trials] == [row.id for row in store.rows()]
        return [row.id for row in store.rows()], seen


@pytest.mark.parametrize("lag", [1, 3, 8])
def test_a_search_sees_what_is_lag_behind_whatever_the_order_of_outcomes(tmp_path, lag):
    keys, seen = drawn(tmp_path / "a.db", lag, 0)
    assert seen == [max(0, k - lag + 1) for k in range(40)]
    assert drawn(tmp_path / "b.db", lag, 1) == (keys, seen)


def test_a_longer_campaign_draws_what_it_would_have_drawn(tmp_path):
    whole, _ = drawn(tmp_path / "a.db", 4, 0)
    drawn(tmp_path / "b.db", 4, 1, samples=30)
    assert drawn(tmp_path / "b.db", 4, 2)[0] == whole


def test_the_lag_decides_what_is_drawn(tmp_path):
    assert drawn(tmp_path / "a.db", 1, 0)[0] != drawn(tmp_path / "b.db", 8, 0)[0]


def test_times_of_two_devices_are_compared_by_their_medians():
    candidates = small_space().sample(5, 0)
    times = [
        (100, (60, 40), "a"),
        (1000, (750, 250), "b"),
        (300, (), "a"),
        (5000, (5000,), "b"),
        (None, (), "b"),
    ]
    seen = [Seen(c, t, 64, parts, d) for c, (t, parts, d) in zip(candidates, times, strict=True)]
    assert [t.time_ns for t in comparable(seen)] == [100, 67, 300, 333, None]
    assert [t.launches for t in comparable(seen)] == [(60, 40), (50, 17), (), (333,), ()]
