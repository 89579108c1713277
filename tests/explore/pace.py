"""How fast this machine is now: what limits of seconds are multiples of.

A limit that a candidate has to keep on one machine ends it on another that is slower, or busy.
"""

import math
import time
from functools import cache

from liftpy.explore.measure.measurer import BENCH
from liftpy.explore.measure.messages import Measure, Setup
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.measure.process import Worker
from tests.explore.test_bench import ALL, GIVEN, twice
from tests.processes import SECONDS


@cache
def pace(device):
    """Whole seconds from the start of a bench to the outcome of its first candidate, at least 1.

    It imports, opens the device, builds a kernel, checks and times it. What a candidate takes once
    a bench is there is a small part of that.
    """
    worker = Worker("measures", BENCH, Setup("", device, GIVEN, (ALL,)))
    begun = time.monotonic()
    try:
        found = worker.ask(Measure(twice(), None, SECONDS), SECONDS, SECONDS, "measuring it")
        assert isinstance(found, Measured), found
    finally:
        worker.kill()
    return math.ceil(time.monotonic() - begun)


def limits(device):
    """Limits that a candidate keeps unless it hangs: for the driver's compiler, and in all.

    The machine may be twice as busy when a candidate runs as it was when its pace was taken. A
    limit does not count the start of a process, which is most of the pace.
    """
    return {"build_limit": 2.0 * pace(device), "candidate_limit": 3.0 * pace(device)}
