"""Kernels that misbehave, on a real device, through a real bench. They are written by hand."""

import time

import numpy as np
import pytest

from liftpy.explore.measure.check import Expected
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.measurer import BENCH
from liftpy.explore.measure.messages import Measure, Setup
from liftpy.explore.measure.outcome import (
    BuildFailed,
    Crashed,
    Measured,
    OutOfMemory,
    Refused,
    Stray,
    TimedOut,
    WrongResult,
)
from liftpy.explore.measure.process import Process, Worker
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Buffer, Launch, MemoryFigures, Module
from tests.processes import SECONDS, started

pytestmark = pytest.mark.usefixtures("plain_workers")

N = 1021
GIVEN, ARRAYS = Inputs.of(parse(f"def twice(x: [{N}]f32) = x |> map(v => 2 * v)"))
X = ARRAYS["x"]
POINTS = np.arange(N)[:, None]
ALL = Expected(POINTS, 2.0 * X.astype(np.float64))
LIMIT = float(SECONDS)

TWICE = """
kernel void twice(global const float* restrict x, global float* restrict out) {
  const int i = get_global_id(0);
  %s
}
"""
RIGHT = "out[i] = 2.0f * x[i];"


def twice(statement=RIGHT, source=None, extra=0):
    """Twice a vector. `extra` bytes are allocated beside it."""
    buffers = [
        Buffer("x", "input", "f32", (N,), 4 * N, "x"),
        Buffer("out", "output", "f32", (N,), 4 * N, "out"),
    ]
    arguments = ["x", "out"]
    if extra:
        buffers.append(Buffer("more", "temporary", "f32", (extra // 4,), extra, "more"))
        arguments.append("more")
    total = 8 * N + extra
    return Module(
        "twice",
        source or TWICE % statement,
        tuple(buffers),
        (Launch("twice", tuple(arguments), (N,), None, "run"),),
        ("x",),
        "out",
        MemoryFigures(total, total, extra, 0, 0, 0),
    )


def start(device, **options):
    return Worker("measures", BENCH, Setup("", device, GIVEN, (ALL,)), None, **options)


@pytest.fixture(scope="module")
def worker(runtime):
    worker = start(runtime)
    yield worker
    worker.kill()


@pytest.fixture
def stays(worker):
    """The worker; the test must not cost it."""
    worker.start()
    before = worker.started
    yield worker
    goes_on(worker)
    assert worker.started == before


@pytest.fixture
def falls(worker):
    """The worker; the test costs it, and the next candidate gets another."""
    worker.start()
    before = worker.started
    yield worker
    goes_on(worker)
    assert worker.started == before + 1


def measure(worker, module, seconds=LIMIT, build_seconds=None):
    request = Measure(module, None, seconds, build_seconds)
    return worker.ask(request, seconds, seconds, "measuring it")


def goes_on(worker):
    """The next candidate is measured as if nothing had been."""
    outcome = measure(worker, twice())
    assert isinstance(outcome, Measured), outcome.reason
    assert outcome.memory.allocated == 8 * N


# --- what leaves the bench as it is ---------------------------------------------------------------


STRAYS = {
    "behind": ("out[i == 7 ? get_global_size(0) + 3 : i] = 2.0f * x[i];", "out", 4 * (N + 3)),
    "before": (f"{RIGHT} if (i == 7) out[-2] = 1.0f;", "out", -8),
    "a NaN": (f"{RIGHT} if (i == 7) out[get_global_size(0)] = nan(0u);", "out", 4 * N),
}


@pytest.mark.parametrize("statement", STRAYS.values(), ids=STRAYS)
def test_a_write_outside_of_a_buffer_is_told_with_its_place(stays, statement):
    text, buffer, offset = statement
    outcome = measure(stays, twice(text))
    assert isinstance(outcome, Stray), outcome.reason
    assert (outcome.buffer, outcome.offset) == (buffer, offset)
    assert f"kernel twice wrote from byte {offset} to byte " in outcome.reason
    assert f"of buffer out, which has bytes 0 to {4 * N - 1}" in outcome.reason


def test_a_write_into_an_input_is_told(stays):
    source = (TWICE % f"{RIGHT} if (i == 7) x[i] = 0;").replace("global const", "global")
    outcome = measure(stays, twice(source=source))
    assert isinstance(outcome, Stray)
    changed = int(np.flatnonzero(X[7:8].view(np.uint8))[0])  # the first byte that is not 0
    assert (outcome.buffer, outcome.offset) == ("x", 28 + changed)
    assert "of buffer x, which it may only read" in outcome.reason


def test_what_is_read_outside_of_a_buffer_is_not_a_number(stays):
    outcome = measure(stays, twice("out[i] = 2.0f * x[i == 7 ? -1 : i];"))
    assert isinstance(outcome, WrongResult)
    assert outcome.where == (7,)
    assert np.isnan(outcome.got)


def test_wrong_numbers_and_a_text_that_is_no_kernel_have_their_outcomes(stays):
    wrong = measure(stays, twice("out[i] = i == 500 ? 0 : 2.0f * x[i];"))
    assert isinstance(wrong, WrongResult)
    assert wrong.where == (500,)
    assert isinstance(measure(stays, twice("out[i] = y[i];")), BuildFailed)


def test_a_buffer_that_no_device_has_is_refused_before_it_is_asked_for(stays, runtime):
    assert isinstance(measure(stays, twice(extra=4 * runtime.global_memory)), Refused)


# --- what costs the bench -------------------------------------------------------------------------

FOREVER = """
kernel void twice(global const float* restrict x, global volatile float* restrict out) {
  const int i = get_global_id(0);
  out[i] = x[i];
  while (i == 7 && out[i] != 0) out[i] = x[i];
}
"""


@pytest.mark.sampled(2)
def test_a_kernel_that_loops_forever_is_cut_short(falls):
    start = time.monotonic()
    goes_on(falls)
    enough = 1 + 10 * (time.monotonic() - start)  # for a candidate that ends
    assert measure(falls, twice(source=FOREVER), seconds=enough) == TimedOut(
        enough, "running it for the first time"
    )


def endless_build():
    """A kernel that the driver's optimiser does not finish in minutes: unrolled, all in a chain."""
    lines = "".join(
        f"  a{k % 64} = mad(a{(7 * k + 1) % 64}, a{(3 * k + 2) % 64}, x[(i + {k}) % {N}]);\n"
        for k in range(200_000)
    )
    names = "".join(f"  float a{k} = x[i];\n" for k in range(64))
    total = " + ".join(f"a{k}" for k in range(64))
    return TWICE % f"{names}{lines}  out[i] = {total};"


@pytest.mark.sampled(2)
def test_a_build_that_does_not_end_has_a_limit_of_its_own(falls):
    outcome = measure(falls, twice(source=endless_build()), build_seconds=1.0)
    assert outcome == TimedOut(1.0, "building it", "--build-limit")


def test_a_candidate_that_holds_too_much_of_the_machine_is_ended(device):
    worker = start(device, ceiling=700 << 20)
    text = TWICE.replace("restrict out)", "restrict out, global float* more)") % RIGHT
    outcome = measure(worker, twice(source=text, extra=600 << 20))
    assert isinstance(outcome, OutOfMemory), outcome.reason
    assert "its process held" in outcome.reason
    assert "the limit is 700 MiB" in outcome.reason
    goes_on(worker)
    worker.kill()


def test_a_runtime_that_dies_costs_its_candidate_only(falls, monkeypatch):
    (child,) = started(BENCH)
    child.suspend()  # so that it does nothing with the request
    send = Process.send

    def then_kill(self, request):
        send(self, request)
        child.kill()

    with monkeypatch.context() as patch:
        patch.setattr(Process, "send", then_kill)
        outcome = measure(falls, twice())
    assert isinstance(outcome, Crashed)
    assert "signal SIGKILL" in outcome.reason
