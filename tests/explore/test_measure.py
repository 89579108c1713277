"""The worker and its loss. Workers that misbehave are scripts that speak the protocol."""

import sys
import time

import numpy as np
import pytest

from liftpy.compile import skeletons
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import InternalError, LiftError
from liftpy.explore.candidate import Candidate, program_text
from liftpy.explore.check import Expected, expected, inputs
from liftpy.explore.measure import Measurer
from liftpy.explore.messages import Setup
from liftpy.explore.outcome import Crashed, Defect, Measured, TimedOut, WrongResult
from liftpy.primitives.text import parse
from tests.explore.spaces import small_space

PROGRAM = parse("def sums(x: [30][17]f32) = x |> map(reduce(add, 0))")

# A worker that greets and compiles, and then does what a test says.
MISBEHAVES = """
import os, signal, sys, time
from multiprocessing.connection import Connection
from liftpy.explore.messages import Compiled, Ready
from liftpy.opencl.kernel import Memory, Module
c = Connection(int(sys.argv[1]))
setup = c.recv()
MODULE = Module("m", "", (), (), (), "out", Memory(0, 0, 0, 0, 0, 0))
def greet():
    c.send(Ready())
def compile():
    c.recv()
    c.send(Compiled(MODULE, "sha"))
    c.recv()
"""


def setup(program=PROGRAM, device=DEFAULT_DEVICE, wanted=None):
    wanted = wanted or expected(program, inputs(program))
    return Setup(program_text(program), device, wanted)


def misbehaving(tmp_path, script, limit=20.0):
    file = tmp_path / "worker.py"
    file.write_text(MISBEHAVES + script)
    return Measurer(setup(), limit, [sys.executable, str(file)])


@pytest.fixture
def candidate():
    return small_space().sample(1, seed=0)[0]


def test_a_hang_while_compiling_is_cut_short(tmp_path, candidate):
    with misbehaving(tmp_path, "greet(); c.recv(); time.sleep(600)", limit=0.5) as measurer:
        start = time.monotonic()
        assert measurer.measure(candidate) == TimedOut(0.5, "compiling it")
        assert time.monotonic() - start < 30


def test_a_hang_while_measuring_is_cut_short_and_the_kernels_are_known(tmp_path, candidate):
    made = []
    with misbehaving(tmp_path, "greet(); compile(); time.sleep(600)", limit=0.5) as measurer:
        outcome = measurer.measure(candidate, on_compiled=made.append)
    assert outcome == TimedOut(0.5, "building, checking and timing it")
    assert [compiled.sha for compiled in made] == ["sha"]


def test_a_crash_is_an_outcome_with_what_was_printed(tmp_path, candidate):
    script = """
greet(); compile()
print("LLVM ERROR: out of registers", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""
    with misbehaving(tmp_path, script) as measurer:
        outcome = measurer.measure(candidate)
    assert isinstance(outcome, Crashed)
    assert "signal SIGSEGV: LLVM ERROR: out of registers" in outcome.reason


def test_an_exception_is_a_defect(tmp_path, candidate):
    with misbehaving(tmp_path, "greet(); compile(); {}['gid0']") as measurer:
        outcome = measurer.measure(candidate)
    assert isinstance(outcome, Defect)
    assert "exit code 1: KeyError: 'gid0'" in outcome.reason


def test_after_a_loss_the_next_candidate_gets_another_worker(tmp_path, candidate):
    with misbehaving(tmp_path, "greet(); compile(); os._exit(5)") as measurer:
        for started in (1, 2):
            assert "exit code 5" in measurer.measure(candidate).reason
            assert measurer.started == started


def test_a_worker_that_cannot_start_is_not_the_candidates_fault(tmp_path, candidate):
    with (
        misbehaving(tmp_path, "sys.exit('no')") as measurer,
        pytest.raises(InternalError, match="exit code 1: no"),
    ):
        measurer.measure(candidate)


def test_a_device_that_is_gone_is_said(candidate):
    with (
        Measurer(setup(), 20.0) as measurer,
        pytest.raises(LiftError, match="has no device generic"),
    ):
        measurer.measure(candidate)


# --- the real worker ------------------------------------------------------------------------------


def plain(program=PROGRAM):
    skeleton = next(s for s in skeletons(program) if s.family == "plain")
    return Candidate(program, skeleton, ())


def test_a_candidate_is_measured(runtime):
    made = []
    with Measurer(setup(device=runtime), 60.0) as measurer:
        outcome = measurer.measure(plain(), on_compiled=made.append)
        assert isinstance(outcome, Measured), outcome.reason
        assert outcome.error < 1e-6
        assert outcome.memory == made[0].module.memory
        assert outcome.memory.allocated == 4 * (30 * 17 + 30)
        assert len(outcome.times_ns) >= 5
        assert outcome.time_ns > 0
        slow = measurer.measure(plain(), best_ns=1)
        assert len(slow.times_ns) == 2, "a slow candidate is not run often"
        assert measurer.started == 1


def test_a_wrong_result_is_not_timed(runtime):
    (wanted,) = expected(PROGRAM, inputs(PROGRAM))
    other = Expected(wanted.points, wanted.values + np.eye(30)[7], wanted.tolerance)
    with Measurer(setup(device=runtime, wanted=(other,)), 60.0) as measurer:
        outcome = measurer.measure(plain())
    assert isinstance(outcome, WrongResult)
    assert outcome.where == (7,)
