"""The two workers of a campaign, for real."""

import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.measure import process
from liftpy.explore.measure.check import Doubt, Error, Expected, Right
from liftpy.explore.measure.compiling import Compiler
from liftpy.explore.measure.inputs import Inputs, inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import Measurer, Prepared
from liftpy.explore.measure.messages import Built, Compile, Doubtful, Ready, Settle, Setup
from liftpy.explore.measure.outcome import Measured, TimedOut, WrongResult
from liftpy.explore.space.candidate import Candidate, program_text
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import MemoryFigures
from liftpy.rewrite.composition import skeletons
from liftpy.semantics.evaluate import evaluate
from tests.explore.pace import pace
from tests.processes import SECONDS
from tests.shared import in_one_process, started

PROGRAM = parse("def sums(x: [30][17]f32) = x |> map(reduce(add, 0))")


def setup(device, wanted=None, program=PROGRAM):
    given, arrays = Inputs.of(program)
    return Setup(program_text(program), device, given, wanted or expected(program, arrays))


def plain(program=PROGRAM):
    skeleton = next(s for s in skeletons(program) if s.family == "plain")
    return Candidate(program, skeleton, ())


@pytest.mark.sampled(2)
def test_a_candidate_is_measured(runtime):
    made = []
    with Measurer(setup(runtime), 60.0) as measurer:
        outcome = measurer.measure(plain(), on_compiled=made.append)
        assert isinstance(outcome, Measured), outcome.reason
        assert outcome.error < 1e-6
        assert outcome.memory == made[0].module.memory
        assert outcome.memory.allocated == 4 * (30 * 17 + 30)
        assert len(outcome.times_ns) >= 5
        assert outcome.time_ns > 0
        slow = measurer.measure(plain(), best_ns=1)
        assert len(slow.times_ns) == 2, "a slow candidate is not run often"
        assert measurer.compiler.started == measurer.bench.started == 1


def test_a_wrong_result_is_not_timed(device, tmp_path):
    (wanted,) = expected(PROGRAM, inputs(PROGRAM))
    other = Expected(wanted.points, wanted.values + np.eye(30)[7], wanted.tolerance)
    with in_one_process(tmp_path), Measurer(setup(device, (other,)), 60.0) as measurer:
        outcome = measurer.measure(plain())
    assert isinstance(outcome, WrongResult)
    assert outcome.where == (7,)


HANGS = f"""
import sys, time
from multiprocessing.connection import Connection
c = Connection(int(sys.argv[1]))
c.recv_bytes()
c.send_bytes({pickle.dumps(Ready())!r})
c.recv_bytes()
time.sleep(600)
"""


def test_the_kernels_of_a_candidate_whose_bench_hangs_are_known_and_its_compiler_stays(
    device, tmp_path
):
    made, limit = [], 1.0 * pace(device)
    hanging = [sys.executable, "-c", HANGS]
    with (
        in_one_process(tmp_path),  # except the bench
        Measurer(setup(device), limit, benching=hanging) as measurer,
    ):
        for again in (1, 2):
            outcome = measurer.measure(plain(), on_compiled=made.append)
            assert outcome == TimedOut(limit, "measuring it")
            assert measurer.bench.started == again
        assert measurer.compiler.started == 1
    assert made[0].module.source == made[1].module.source


def test_where_the_bench_is_in_doubt_the_compiler_knows_the_meaning(device, tmp_path):
    """Square roots of negative numbers: what the program means looks unwritten."""
    roots = parse("def roots(x: [90][91]f32) = x |> map(map(v => sqrt(v)))")
    with in_one_process(tmp_path), Measurer(setup(device, program=roots), 60.0) as measurer:
        outcome = measurer.measure(plain(roots))
    assert isinstance(outcome, Measured), outcome.reason
    assert outcome.error < 1e-6


def test_a_doubt_is_settled_by_the_meaning():
    compiler = Compiler(setup(DEFAULT_DEVICE))
    measured = Measured(((1,),), 0, MemoryFigures(0, 0, 0, 0, 0, 0), 1e-9, 1e-9, 0.0)
    right = evaluate(PROGRAM, *inputs(PROGRAM).values())

    def settle(got):
        doubt = Doubt((), np.array([[3], [7]]), got)
        doubtful = Doubtful(measured, Right(Error(1e-9, 1e-9), (doubt,)))
        return compiler.settle(Settle(doubtful, Compile(plain().skeleton.key, {})))

    outcome = settle(right[[3, 7]])
    assert isinstance(outcome, Measured)
    assert 1e-9 <= outcome.error < 1e-6
    wrong = settle(np.array([right[3], np.nan], np.float32))
    assert isinstance(wrong, WrongResult)
    assert wrong.where == (7,)
    assert "no work-item wrote" in wrong.reason


def test_waiting_for_another_ones_request_is_not_a_candidates_time(device):
    limit = 1.0 * pace(device)
    with Measurer(setup(device), limit) as measurer:
        measurer.compiler.start()
        with ThreadPoolExecutor(1) as thread:
            with measurer.compiler.turn:
                found = thread.submit(measurer.prepare, plain())
                time.sleep(1.25 * limit)
                assert not found.done()
            ready = found.result(SECONDS)
        assert isinstance(ready, Prepared), ready.reason
        assert ready.seconds < limit


def test_where_a_builder_is_lost_and_cannot_be_started_again_the_bench_builds(
    device, tmp_path, caplog
):
    with in_one_process(tmp_path), Measurer(setup(device), 60.0, ahead=True) as measurer:
        measurer.start()
        ahead = measurer.prepare(plain())
        assert isinstance(ahead.built, Built), ahead
        measurer.builder.kill()
        measurer.builder.command = [sys.executable, "-c", "raise SystemExit('no device')"]
        ready = measurer.prepare(plain())
        assert (ready.built, measurer.builder) == (None, None)
        assert "nothing is built ahead" in caplog.text
        outcome = measurer.measure(plain(), prepared=lambda: ready)
    assert isinstance(outcome, Measured), outcome.reason


def test_the_bench_has_the_device_before_a_builder_is_started(device, tmp_path, monkeypatch):
    """It may be one that a single process can use: then the builder is the one to be refused."""
    with in_one_process(tmp_path), Measurer(setup(device), 60.0, ahead=True) as measurer:
        benches = []

        def noted(command, ceiling):
            if command == measurer.builder.command:
                benches.append(measurer.bench._ready)
            return started(command, ceiling)

        with monkeypatch.context() as patch:  # undone before what it is put over
            patch.setattr(process, "Process", noted)
            measurer.start()
        assert benches == [True]
