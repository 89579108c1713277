"""The time limit holds in every phase: something that would take forever is planted in each.

The clock that deadlines look at jumps to the end when the planted part begins, so that a slow
machine does not meet the limit elsewhere; then the real code has to notice.
"""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import liftpy as lp
from liftpy import deadline
from liftpy.errors import MemoryRefused, NothingMeasured, TimeUp
from liftpy.explore import exploring
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.run import CampaignRun
from liftpy.explore.measure import inputs
from liftpy.explore.measure import measurer as measure
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.measurer import Allowance, Limits
from liftpy.explore.measure.outcome import TimedOut, WrongResult
from liftpy.rewrite.strategy import attempt, rule

pytestmark = pytest.mark.usefixtures("in_one_process")  # except workers that hang

TWICE = lp.parse("def twice(xs: [12]f32) = xs |> map(x => x + x)")
ENDLESS = lp.parse(
    "def endless(xs: [8]f32) ="
    " xs |> map(x => generate(1000000000, i => f32(i) * x) |> reduce(add, 0))"
)
LIMIT = 100_000.0


class Clock:
    """`time` for deadlines; `jump` makes it late."""

    def __init__(self):
        self.late = 0.0

    def monotonic(self):
        return time.monotonic() + self.late

    def jump(self):
        self.late = 2 * LIMIT


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(deadline, "time", made)
    return made


def explored(path, device, program=TWICE, samples=3, **options):
    """What is said of a campaign that ends at its limit, and what is stored."""
    settings = {"search": "random", "time_limit": LIMIT} | options
    try:
        found = lp.explore(program, samples, db=path, device=device, **settings)
    except NothingMeasured as nothing:
        return str(nothing), Campaign.read(path)
    return found.stopped, Campaign.read(path)


def late(clock, real):
    """Does what is real, late."""

    def run(*given, **named):
        clock.jump()
        return real(*given, **named)

    return run


def forms_forever(clock):
    def whole_space(program, _device, **_settings):
        clock.jump()
        for _ in itertools.count():
            attempt(rule("map_fusion"))(program.body.body)

    return whole_space


PLANTED = {
    "deriving the program's forms": ("whole_space", lambda clock, _: forms_forever(clock)),
    "evaluating the program's meaning": ("expected", late),
    "counting the candidates": ("plainest", lambda clock, _: lambda _: clock.jump()),
}


@pytest.mark.parametrize("phase", PLANTED)
def test_a_phase_that_takes_forever_ends_with_the_limit(
    phase, clock, device, tmp_path, monkeypatch
):
    name, plant = PLANTED[phase]
    monkeypatch.setattr(exploring, name, plant(clock, getattr(exploring, name)))
    program = ENDLESS if phase.startswith("evaluating") else TWICE
    said, stored = explored(tmp_path / "a.db", device, program)
    if phase.startswith("counting"):
        phase = "counting and drawing candidates"
    assert f"the time limit of 100000 s (--time-limit) ended while {phase}" in said
    assert stored.stopped in said
    assert stored.rows == ()
    assert stored.calls[-1].ended is not None


def test_making_inputs_ends_with_the_limit(clock, device, tmp_path, monkeypatch):
    monkeypatch.setattr(exploring, "Inputs", SimpleNamespace(of=late(clock, Inputs.of)))
    said, stored = explored(tmp_path / "a.db", device)
    assert "ended while making the inputs" in said
    assert stored.stopped in said


@pytest.mark.parametrize(
    ("worker", "noted", "phase"),
    [("COMPILING", "begin", "compiling it"), ("BENCH", "compiled", "measuring it")],
)
def test_a_worker_that_hangs_is_ended_with_the_limit(
    worker, noted, phase, clock, device, tmp_path, monkeypatch
):
    """From a thread, as a notebook or a server would."""
    monkeypatch.setattr(measure, worker, "tests.explore.hanging")

    monkeypatch.setattr(CampaignRun, noted, late(clock, getattr(CampaignRun, noted)))
    with ThreadPoolExecutor(1) as threads:
        said, stored = threads.submit(explored, tmp_path / "a.db", device).result()
    assert f"ended while {phase}" in said
    assert [row.outcome for row in stored.rows] == ["pending"]
    assert phase in stored.rows[0].reason
    with CampaignReader.read(tmp_path / "a.db") as reader:
        assert reader.under_way() == []
    monkeypatch.undo()
    settings = {"db": tmp_path / "a.db", "device": device, "search": "random", "again": False}
    whole = lp.explore(TWICE, 3, **settings)
    assert [row.outcome for row in whole.rows] == ["measured"] * 3
    assert whole.stopped == ""


def test_a_worker_that_is_never_ready_is_ended_with_the_limit(clock, device, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "BENCH", "tests.explore.silent")
    monkeypatch.setattr(measure.Measurer, "start", late(clock, measure.Measurer.start))
    said, stored = explored(tmp_path / "a.db", device)
    assert "ended while the process that measures candidates was starting" in said
    assert stored.rows == ()


def test_measuring_again_ends_with_the_limit(
    clock, device, tmp_path, monkeypatch, plain_workers, processes_of_its_own
):
    def again(_campaign, known, measured, _in_time):
        clock.jump()
        for candidate in known.values():
            measured(candidate)

    monkeypatch.setattr(exploring, "remeasure", again)
    said, stored = explored(tmp_path / "a.db", device)
    assert "ended while" in said
    assert [row.outcome for row in stored.rows] == ["measured"] * 3, "what was measured stays"


# --- a candidate's share --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "allowed"),
    [
        (float("inf"), Allowance(60.0)),
        (1000.0, Allowance(60.0)),
        (80.0, Allowance(40.0, "its share of --time-limit")),
        (3.0, Allowance(10.0, "its share of --time-limit")),
    ],
)
def test_a_candidate_has_half_of_what_is_left(left, allowed, monkeypatch):
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert Limits(60.0, deadline=deadline.Deadline(left)).allowance() == allowed


def test_whose_limit_it_was_is_said():
    share = Allowance(40.0, "its share of --time-limit")
    outcome = share.said(TimedOut(40.0, "measuring it"))
    why = "measuring it did not end within 40 s (its share of --time-limit)"
    assert outcome.reason == why
    build = TimedOut(3.0, "building it", "--build-limit")
    assert share.said(build) == build
    wrong = WrongResult((1,), 1.0, 2.0)
    assert share.said(wrong) == wrong


# --- memory ---------------------------------------------------------------------------------------


def test_inputs_that_memory_does_not_hold_are_refused_before_they_are_made(
    device, tmp_path, monkeypatch
):
    huge = lp.parse("def huge(xs: [1000000000]f32, n: i32) = xs |> reduce(add, 0)")
    monkeypatch.setattr(inputs, "available", lambda: 8 << 30)
    monkeypatch.setattr(inputs, "_numbers", None)  # nothing is made
    with pytest.raises(MemoryRefused, match=r"takes 11\.2 GiB, and this machine has 8\.0 GiB free"):
        lp.explore(huge, 1, db=tmp_path / "a.db", device=device)
    assert not (tmp_path / "a.db").exists()
    with pytest.raises(MemoryRefused):
        Inputs.of(huge)


def test_long_inputs_are_made_and_hashed_in_blocks(clock, monkeypatch):
    long = lp.parse(f"def long(xs: [{inputs.DISTINCT + 5}]f32) = xs |> map(x => x + x)")
    made, arrays = Inputs.of(long)
    monkeypatch.setattr(inputs, "BLOCK", 1 << 30)
    whole, same = Inputs.of(long)
    assert made == whole
    assert (arrays["xs"] == same["xs"]).all()
    monkeypatch.setattr(inputs, "digest", late(clock, inputs.digest))
    with pytest.raises(TimeUp), deadline.Deadline.after(LIMIT).phase("making the inputs"):
        Inputs.of(long)
