import math
import pickle

import pytest

from liftpy.explore.measure.outcome import (
    KINDS,
    BuildFailed,
    ByModel,
    Crashed,
    Defect,
    Measured,
    OutOfMemory,
    Refused,
    Stray,
    TimedOut,
    Untimed,
    WrongResult,
)
from liftpy.opencl.kernel import MemoryFigures

MEMORY = MemoryFigures(peak=40, allocated=50, scratch=10, local=3, private=4, prepare=5)

OUTCOMES = [
    Measured(((30, 1), (10, 1), (20, 5)), 7, MEMORY, 2.5e-7, 1e-7, 0.5, "built"),
    ByModel((30, 1), MEMORY, "loads"),
    Refused("kernel needs work-groups of 512; the device has 256"),
    BuildFailed("line 3: undeclared identifier"),
    WrongResult((2, 3), 1.5, 2.5),
    Stray("out", 4096, "kernel k wrote from byte 4096 to byte 4099 of buffer out"),
    TimedOut(60, "timing it"),
    OutOfMemory(9 << 30, 8 << 30, "building it"),
    Untimed("the device's clock gave a launch 0 ns"),
    Crashed("the process died with signal SIGSEGV"),
    Defect("allocated is 8, clCreateBuffer was asked for 9"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.kind)
def test_every_outcome_has_a_kind_and_a_reason_and_travels(outcome):
    assert outcome.kind in KINDS
    assert outcome.reason
    assert pickle.loads(pickle.dumps(outcome)) == outcome  # noqa: S301  our own


def test_there_is_an_outcome_of_every_kind():
    assert {outcome.kind for outcome in OUTCOMES} == set(KINDS)


def test_the_time_is_the_median_of_the_sums_over_the_launches():
    assert OUTCOMES[0].time_ns == 25


def test_a_wrong_result_says_where_and_what():
    reason = WrongResult((2, 3), 1.5, 2.5).reason
    assert reason == "result[2][3] is 2.5, it should be 1.5"
    unwritten = WrongResult((0,), 1.5, math.nan).reason
    assert unwritten == "result[0] is nan (an element that no work-item wrote), it should be 1.5"


def test_a_time_out_names_the_limit_and_its_option():
    assert TimedOut(60, "compiling it").reason == (
        "compiling it did not end within 60 s (--candidate-limit)"
    )
    assert TimedOut(5, "building it", "--build-limit").reason == (
        "building it did not end within 5 s (--build-limit)"
    )
