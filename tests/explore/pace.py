"""How fast this machine is now, and how much memory a bench holds: limits derive from both.

A limit that a candidate has to keep on one machine ends it on another that is slower, or busy.
"""

import math
import time
from functools import cache
from typing import NamedTuple

import psutil

from liftpy.explore.measure.measurer import BENCH
from liftpy.explore.measure.messages import Measure, Setup
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.measure.process import Worker
from tests.explore.misbehaving import ROOM
from tests.explore.test_bench import ALL, GIVEN, twice
from tests.processes import SECONDS, started


class Bench(NamedTuple):
    """A bench that has measured one candidate: whole seconds since its start, and its bytes."""

    seconds: int
    held: int


@cache
def first(device):
    """A bench that was started for this and has measured its first candidate.

    Its seconds include the imports and the opening of the device, which take much longer than
    the build, the check and the timing of a candidate.
    """
    worker = Worker("measures", BENCH, Setup("", device, GIVEN, (ALL,)))
    begun = time.monotonic()
    try:
        found = worker.ask(Measure(twice(), None, SECONDS), SECONDS, SECONDS, "measuring it")
        assert isinstance(found, Measured), found
        seconds = math.ceil(time.monotonic() - begun)
        held = max(started(BENCH), key=psutil.Process.create_time).memory_info().rss
    finally:
        worker.kill()
    return Bench(seconds, held)


def pace(device):
    """Whole seconds from the start of a bench to the outcome of its first candidate, at least 1."""
    return first(device).seconds


def limits(device):
    """Limits that a candidate keeps unless it hangs: for the driver's compiler, and in all.

    The machine may be twice as busy when a candidate runs as it was when its pace was taken. A
    limit does not count the start of a process, which is most of the pace.
    """
    return {"build_limit": 2.0 * pace(device), "candidate_limit": 3.0 * pace(device) + 1.0}


def ceiling(device):
    """Bytes that a bench may hold: `ROOM` more than it holds after its first candidate."""
    return first(device).held + ROOM
