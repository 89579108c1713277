"""Building the next candidate while one is measured: a processor that says it is a GPU."""

import functools
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from unittest import mock

import pytest

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.exploring import explore
from liftpy.explore.measure import process
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import BENCH, BUILDING, Limits, Measurer
from liftpy.explore.measure.messages import Build, Built, Compile, Measure, Setup
from liftpy.explore.measure.outcome import KINDS, BuildFailed, Measured
from liftpy.explore.measure.pool import LocalExecutor
from liftpy.explore.measure.process import Worker
from liftpy.explore.space.candidate import program_text
from liftpy.explore.spaces import space_of
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Binary
from tests import plainly
from tests.explore.killing import ROOT, TINY, Command, content, finished, kill_after
from tests.explore.misbehaving import command
from tests.explore.pace import limits
from tests.explore.spaces import places
from tests.explore.test_bench import ALL, GIVEN, twice
from tests.processes import started
from tests.shared import in_one_process

pytestmark = pytest.mark.usefixtures("derived_once", "plain_workers")

INTEL = pytest.mark.parametrize("runtime", ["intel"], indirect=True)
OPTIONS = {"families": ["plain", "direct"], "search": "random", "again": False}


def as_gpu(device):
    """The same device, which campaigns take for a GPU."""
    return replace(device, type="GPU")


def moments(db):
    """When each candidate was begun and had its outcome, in the order drawn."""
    with CampaignReader.read(db) as store:
        query = "SELECT started, finished FROM outcome JOIN candidate ON key = candidate"
        return [tuple(row) for row in store._ask(f"{query} ORDER BY ordinal")]


def logs(db):
    with CampaignReader.read(db) as store:
        return [row["log"] or "" for row in store._ask("SELECT log FROM build")]


@pytest.fixture
def asked(monkeypatch):
    """When each request was with its worker, from and to, by kind and in the order asked.

    Each source is built, so that this takes some time.
    """
    monkeypatch.delenv(plainly.BINARIES)
    ask, intervals = Worker.ask, defaultdict(list)

    @functools.wraps(ask)
    def timed(self, request, *rest):
        start = time.monotonic()
        answer = ask(self, request, *rest)
        intervals[type(request)].append((start, time.monotonic()))
        return answer

    monkeypatch.setattr(Worker, "ask", timed)
    return intervals


def overlaps(asked):
    """For each measurement, whether the next candidate was compiled or built during it."""
    built = asked[Build] or asked[Compile]
    preparing = [(one[0], other[1]) for one, other in zip(asked[Compile], built, strict=True)]
    return [
        start < until and since < end
        for (start, end), (since, until) in zip(asked[Measure][:-1], preparing[1:], strict=True)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
def test_what_is_built_ahead_is_what_is_built_in_turn(runtime, tmp_path, asked):
    turn, ahead = tmp_path / "turn.db", tmp_path / "ahead.db"
    assert (LocalExecutor(runtime).lag, LocalExecutor(as_gpu(runtime)).lag) == (1, 2)
    with in_one_process(tmp_path):
        explore(TINY, 4, 0, turn, runtime, **OPTIONS)
    assert overlaps(asked) == [False] * 3
    asked.clear()
    told = []

    def progress(now):
        told.append([candidate.ordinal for candidate in now.under_way])

    explore(TINY, 4, 0, ahead, as_gpu(runtime), progress=progress, **OPTIONS)
    assert content(ahead) == content(turn)
    # how long the others overlap depends on the machine: `told` has what is under way together
    assert not overlaps(asked)[0], "the first is measured before others are derived"
    assert told == [[], [0], [], [1], [1, 2], [2], [2, 3], [3], []], "the oldest first"
    assert not any("rebuilt" in log for log in logs(ahead)), "the driver takes its binaries"


@INTEL
def test_a_campaign_that_began_without_building_ahead_goes_on_without(
    runtime, tmp_path, monkeypatch, asked
):
    db, device = tmp_path / "a.db", as_gpu(runtime)
    with in_one_process(tmp_path):
        with monkeypatch.context() as before:
            before.setattr(LocalExecutor, "lag", 1)
            explore(TINY, 1, 0, db, device, **OPTIONS)
        found = explore(TINY, 2, 0, db, device, **OPTIONS)
    assert [row.outcome for row in found.rows] == ["measured"] * 2
    assert (len(asked[Measure]), asked[Build]) == (2, [])


def test_a_failure_ends_what_waits_to_be_prepared(monkeypatch):
    """The first is being prepared for ever, the second has not begun, when the third fails."""
    device, ended = as_gpu(find_device()), threading.Event()

    def failing(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Measurer, "start", lambda _: None)
    monkeypatch.setattr(Measurer, "prepare", lambda *_: ended.wait())
    monkeypatch.setattr(Measurer, "measure", failing)
    monkeypatch.setattr(Measurer, "kill", lambda _: ended.set())
    given, arrays = Inputs.of(TINY)
    setup = Setup(program_text(TINY), device, given, expected(TINY, arrays))
    pool = LocalExecutor(device).pool(setup, Limits(9.0), mock.Mock(suspect=lambda _: False))
    one, other = space_of(TINY, device, families=OPTIONS["families"]).sample(2, 0)
    pool.submit(one)
    pool.submit(other)
    with pytest.raises(KeyboardInterrupt), pool:
        pool.next()


@pytest.mark.slow
@INTEL
def test_what_hangs_or_dies_meanwhile_ends_its_candidate_only(runtime, tmp_path, monkeypatch):
    device, db, killed = as_gpu(runtime), tmp_path / "a.db", []
    drawn = places(space_of(TINY, device, families=OPTIONS["families"]), 6)
    does = [(drawn[2], "builds"), (drawn[3], "dies")]
    compiling = command(does, tmp_path / "fifo")
    start = Measurer.__init__

    @functools.wraps(start)
    def init(self, *args, **kwargs):
        start(self, *args, **kwargs, compiling=compiling)

    def kill(progress):
        if progress.candidate is None or progress.outcome is not None:
            return
        if progress.candidate.ordinal == 1:  # the bench hangs, without work for a processor
            for bench in started(BENCH):
                bench.suspend()
        if progress.candidate.ordinal == 5:  # the builder, while it builds or is about to
            for builder in started(BUILDING):
                builder.kill()
                killed.append(builder)

    monkeypatch.setattr(Measurer, "__init__", init)
    seconds = limits(runtime)
    found = explore(TINY, 6, 0, db, device, progress=kill, **seconds, **OPTIONS)
    kinds = ["measured", "timed_out", "timed_out", "crashed", "measured", "measured"]
    assert [row.outcome for row in found.rows] == kinds
    limit = seconds["build_limit"]
    said = f"building it did not end within {limit:.0f} s (--build-limit)"
    assert said in found.rows[2].reason
    (_, hung), (_, built) = moments(db)[1:3]
    assert built - hung < limit, "its seconds were over while the other one hung"
    assert killed


@dataclass(frozen=True)
class Ahead(Command):
    """A campaign of the tiny convolution on a device that is taken for a GPU."""

    def start(self, db):
        """Its process."""
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-m", __name__, str(self.samples), str(db)],
                stdout=said,
                stderr=said,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )


@pytest.mark.slow
@INTEL
def test_what_is_killed_with_two_under_way_goes_on_with_the_same_one_by_one(runtime, tmp_path):
    campaign, whole, db = Ahead(tmp_path, 5), tmp_path / "whole.db", tmp_path / "a.db"
    with in_one_process(tmp_path):
        explore(TINY, 5, 0, whole, as_gpu(runtime), **OPTIONS)
    process = campaign.start(db)
    try:
        assert kill_after(process, db, 2, 0.0, "campaign") == 1
    finally:
        process.kill()
        process.wait()
    left = [row.ordinal for row in Campaign.read(db).rows if row.outcome not in KINDS]
    assert 1 <= len(left) <= 2, "one is measured, one is built"
    assert finished(db) >= 2
    with in_one_process(tmp_path):
        explore(TINY, 5, 0, db, as_gpu(runtime), **OPTIONS)
    assert content(db) == content(whole)
    after = moments(db)
    for suspect in left:
        assert all(
            other[1] <= after[suspect][0] or other[0] >= after[suspect][1]
            for k, other in enumerate(after)
            if k != suspect
        ), "nobody else is under way with it"


@pytest.fixture
def workers(runtime):
    setup = Setup("", runtime, GIVEN, (ALL,))
    made = [Worker("builds", BUILDING, setup), Worker("measures", BENCH, setup)]
    yield made
    for worker in made:
        worker.kill()


@pytest.mark.sampled(2)
def test_a_bench_takes_what_a_builder_built_and_else_builds_itself(workers):
    builder, bench = workers
    built = builder.ask(Build(twice()), 60.0, 60.0, "building it")
    assert isinstance(built, Built)
    broken = builder.ask(Build(twice("nonsense")), 60.0, 60.0, "building it")
    assert isinstance(broken, BuildFailed)
    none, foreign = Binary(b"", 7.0, ""), Binary(b"?" * 99, 7.0, "")
    for binary, anew in ((built.binary, False), (none, True), (foreign, True)):
        found = bench.ask(Measure(twice(), None, 60.0, None, binary), 60.0, 60.0, "measuring it")
        assert isinstance(found, Measured), found
        assert found.build_log.startswith("rebuilt") is anew
        assert (found.build_seconds == binary.seconds) is not anew


if __name__ == "__main__":
    process.START = plainly.__name__
    explore(TINY, int(sys.argv[1]), 0, sys.argv[2], as_gpu(find_device("intel")), **OPTIONS)
