"""Measuring again, on a device made by hand: its true times are known, its noise is not small."""

from dataclasses import replace

import numpy as np
import pytest

from liftpy.explore.campaign.remeasure import remeasure, settled, undecided
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.outcome import Crashed, Measured, WrongResult
from liftpy.explore.measure.pareto import clear_front
from liftpy.opencl.kernel import MemoryFigures

MS = 1_000_000
EMPTY = Row("", 0, "plain", {}, [], "measured", "", 1, None, 0, None, 0.0, 0.0, 0.0)


def memory(peak):
    return MemoryFigures(peak, peak, 0, 0, 0, 0)


class NoisyDevice:
    """Candidates with true times in ms and peaks, each measured seven times at first."""

    def __init__(self, candidates, noise=0.1):
        self.rng = np.random.default_rng(11)
        self.candidates = candidates
        self.noise = noise
        self.measured = []
        self.rows = {
            key: replace(EMPTY, id=key, memory=memory(peak), times_ns=self.times(key, 7))
            for key, (_, peak) in candidates.items()
        }

    def times(self, key, n):
        true = self.candidates[key][0] * MS
        return [[int(true * f)] for f in self.rng.lognormal(0, self.noise, n)]

    def front(self):
        return clear_front(self.rows.values(), costs=lambda row: (row.span, row.peak))

    def measure(self, key):
        self.measured.append(key)
        return Measured(tuple(map(tuple, self.times(key, 50))), 0, memory(1), 0.0, 0.0, 0.0)

    def sharpen(self, key, outcome):
        row = self.rows[key]
        if isinstance(outcome, Measured):
            self.rows[key] = replace(
                row, times_ns=row.times_ns + [list(t) for t in outcome.times_ns]
            )
        else:
            del self.rows[key]


CANDIDATES = {
    "fastest": (10.0, 9),
    "as fast, smaller": (10.3, 5),
    "beaten": (10.9, 9),
    "smallest": (30.0, 1),
    "far behind": (60.0, 9),
}


@pytest.fixture
def device():
    return NoisyDevice(CANDIDATES)


def again(device, measure=None, in_time=lambda: True):
    keys = {key: key for key in device.rows}
    remeasure(device, keys, measure or device.measure, in_time)


def test_what_noise_put_on_the_front_goes_and_what_belongs_there_stays(device):
    assert {row.id for row in undecided(device.front())} >= {"fastest", "beaten"}
    again(device)
    found = [row.id for row in device.front()]
    assert "beaten" not in found
    assert {"fastest", "as fast, smaller", "smallest"} <= set(found)
    assert not undecided(device.front())


def test_who_is_clearly_ahead_or_behind_is_not_measured_again(device):
    again(device)
    assert not {"smallest", "far behind"} & set(device.measured)


def test_who_is_on_the_front_by_a_run_or_two_is_measured_again(device):
    slow = device.rows["smallest"]
    device.rows["smallest"] = replace(slow, times_ns=device.times("smallest", 1))
    assert not settled(device.rows["smallest"])
    again(device)
    assert "smallest" in device.measured
    assert "far behind" not in device.measured


def test_two_that_are_the_same_are_not_measured_for_ever():
    device = NoisyDevice({"a": (10.0, 5), "b": (10.0, 5)}, noise=0.5)
    again(device)
    assert 2 <= len(device.measured) <= 6
    assert all(settled(row) for row in device.rows.values())


def test_nothing_is_measured_when_there_is_no_time(device):
    again(device, in_time=lambda: False)
    assert device.measured == []


def test_what_an_earlier_and_longer_call_drew_is_left_as_it_is(device):
    known = {key: key for key in device.rows if key != "beaten"}
    remeasure(device, known, device.measure, lambda: True)
    assert set(device.measured) == {"fastest", "as fast, smaller"}


def test_a_candidate_that_is_wrong_the_second_time_goes(device):
    again(device, lambda key: WrongResult((0,), 1, 2) if key == "fastest" else device.measure(key))
    assert "fastest" not in device.rows


def test_a_candidate_that_is_lost_is_tried_once(device):
    tried = []

    def lose(key):
        tried.append(key)
        return Crashed("the process died with signal SIGKILL")

    again(device, lose)
    assert len(tried) == len(set(tried)) >= 2
