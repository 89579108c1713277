"""Whole campaigns on a program that takes no time."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from liftpy.errors import (
    ArgumentRefused,
    ConstraintRefused,
    NothingMeasured,
    StoreRefused,
    UnknownName,
)
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.remeasure import undecided
from liftpy.explore.campaign.store import ATTEMPTS, Store
from liftpy.explore.exploring import explore
from liftpy.explore.search.guided import BEGIN
from liftpy.explore.space.candidate import program_text
from liftpy.explore.spaces import space_of
from liftpy.workloads import Convolution, convolution
from tests.explore.spaces import places
from tests.explore.test_pareto import dominates
from tests.processes import started

pytestmark = pytest.mark.usefixtures("in_one_process")  # processes: test_trust.py, test_kill.py

PROGRAM = convolution(Convolution(3, 16, 7, 4, (3, 3), (3, 1), (1, 1, 1, 1)), "tiny")
TEXT = program_text(PROGRAM)
ROOT = Path(__file__).parents[2]
FAMILIES = ["plain", "direct"]


def run(path, samples, device, **options):
    """Of draws: what another search tries depends on times, which are others in each campaign."""
    settings = {"families": FAMILIES, "again": False, "search": "random"} | options
    return explore(PROGRAM, samples, 0, path, device, **settings)


def drawn(campaign):
    return [(row.ordinal, row.id, row.assignment) for row in campaign.rows]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A campaign of 12 on a device."""

    @cache
    def run_on(device):
        return run(tmp_path_factory.mktemp("campaign") / "whole.db", 12, device)

    return run_on


@pytest.fixture(scope="module")
def campaign(uninterrupted, runtime):
    """An uninterrupted campaign of 12."""
    return uninterrupted(runtime)


@pytest.fixture(scope="module")
def whole(uninterrupted, device):
    """The same on one runtime, for what does not depend on it."""
    return uninterrupted(device)


def test_every_candidate_is_right(campaign):
    assert campaign.counts == {"measured": 12}, [row.reason for row in campaign.rows]
    assert [row.ordinal for row in campaign.rows] == list(range(12))


def test_the_front_is_that_of_the_definition(campaign):
    front = {row.id for row in campaign.pareto()}
    assert front == {
        a.id
        for a in campaign.rows
        if not any(b.peak <= a.peak and b.span.high < a.span.low for b in campaign.rows)
    }
    costs = {row.id: (row.time_ns, row.peak) for row in campaign.rows}
    assert front >= {a for a in costs if not any(dominates(costs[b], costs[a]) for b in costs)}
    times = [row.time_ns for row in campaign.pareto()]
    assert times == sorted(times)


def test_the_front_of_time_and_error_is_that_of_the_definition(campaign):
    front = {row.id for row in campaign.pareto("error")}
    assert front == {
        a.id
        for a in campaign.rows
        if not any(b.error <= a.error and b.span.high < a.span.low for b in campaign.rows)
    }


def test_a_largest_error_leaves_out_what_exceeds_it(campaign):
    errors = sorted({row.error for row in campaign.rows})
    within = campaign.pareto("peak", max_error=errors[0])
    assert within
    assert {row.error for row in within} == {errors[0]}
    assert campaign.best(max_error=errors[0]).time_ns == min(
        row.time_ns for row in campaign.rows if row.error == errors[0]
    )
    least = min(row.peak for row in campaign.rows if row.error == errors[0])
    with pytest.raises(ConstraintRefused, match=f"the least within this error is {least} "):
        campaign.best(1, max_error=errors[0])
    with pytest.raises(ConstraintRefused, match=f"error of -1 or less; the least is {errors[0]!r}"):
        campaign.best(max_error=-1)


def test_a_memory_limit_is_one_of_the_peak_whatever_the_axis(campaign):
    least = min(row.peak for row in campaign.rows)
    for axis in ("private", "error"):
        within = campaign.pareto(axis, least)
        assert within
        assert {row.peak for row in within} == {least}


def test_any_memory_figure_can_be_the_axis(campaign):
    assert min(row.memory.private for row in campaign.pareto("private")) == min(
        row.memory.private for row in campaign.rows
    )
    with pytest.raises(UnknownName, match="no figure is named 'weight'; choose one of peak"):
        campaign.pareto("weight")


def test_the_best_within_a_limit(campaign):
    assert campaign.best().time_ns == min(row.time_ns for row in campaign.rows)
    least = min(campaign.pareto(), key=lambda row: (row.peak, row.time_ns))
    assert campaign.best(least.peak) == least
    with pytest.raises(ConstraintRefused, match=f"the least is {least.peak}"):
        campaign.best(1)


def test_a_campaign_reads_back(campaign):
    again = Campaign.read(campaign.path)
    assert again == campaign


def test_a_longer_campaign_extends_a_shorter_one(campaign, runtime, tmp_path):
    short = run(tmp_path / "a.db", 5, runtime)
    assert drawn(short) == drawn(campaign)[:5]
    tried = []
    extended = run(
        tmp_path / "a.db", 12, runtime, progress=lambda p: p.outcome and tried.append(p.candidate)
    )
    assert drawn(extended)[:BEGIN] == drawn(campaign)[:BEGIN]  # then it goes by times, with noise
    assert drawn(extended)[:5] == drawn(short)
    assert len(extended.rows) == 12
    assert len(tried) == 7
    assert [row.times_ns for row in extended.rows[:5]] == [row.times_ns for row in short.rows]


def test_the_same_command_again_measures_nothing(campaign, runtime):
    again = run(campaign.path, 12, runtime)
    assert again == campaign


def test_the_front_is_measured_again_and_what_searches_are_told_stays(device, tmp_path):
    path = tmp_path / "a.db"
    first = run(path, 12, device)
    with CampaignReader.read(path) as reader:
        told = {row.id: reader.costs(row.id) for row in first.rows}
    before = {row.id for row in undecided(first.pareto())}
    sharper = explore(PROGRAM, 12, 0, path, device, families=FAMILIES, search="random")
    assert drawn(sharper) == drawn(first)
    assert not undecided(sharper.pareto())
    for old, new in zip(first.rows, sharper.rows, strict=True):
        assert new.times_ns[: len(old.times_ns)] == old.times_ns
        assert (len(new.times_ns) > len(old.times_ns)) >= (new.id in before)
    with CampaignReader.read(path) as reader:
        assert {row.id: reader.costs(row.id) for row in sharper.rows} == told
    assert (
        explore(PROGRAM, 12, 0, path, device, families=FAMILIES, search="random").rows
        == sharper.rows
    )


def test_a_time_limit_stops_and_the_rest_follows(whole, device, tmp_path):
    with pytest.raises(NothingMeasured, match=r"the time limit of 0 s .* ended while deriving"):
        run(tmp_path / "a.db", 12, device, time_limit=0)
    assert drawn(run(tmp_path / "a.db", 12, device)) == drawn(whole)


def test_a_stopped_campaign_goes_on_as_if_nothing_had_been(whole, device, tmp_path):
    def stop(progress):
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a.db", 12, device, progress=stop)
    assert drawn(run(tmp_path / "a.db", 12, device)) == drawn(whole)


KILLED = f"""
import os, signal
from liftpy.explore.exploring import explore
from liftpy.explore.measure import process
from liftpy.explore.measure.measurer import Measurer
from liftpy.language.text.program import parse
measure, begun = Measurer.measure, []
def killed(*request):
    begun.append(request)
    if len(begun) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return measure(*request)
Measurer.measure = killed
process.START = "tests.plainly"
explore(parse({TEXT!r}), 5, 0, {{path!r}}, "intel", families={FAMILIES!r}, again=False,
        search="random")
"""


def test_a_killed_campaign_goes_on_as_if_nothing_had_been(whole, device, tmp_path):
    path = tmp_path / "killed.db"
    script = KILLED.format(path=str(path))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    }
    ended = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [row.outcome for row in Campaign.read(path).rows] == ["measured", "measured", "running"]
    resumed = run(path, 5, device)
    assert resumed.counts == {"measured": 5}
    assert drawn(resumed) == drawn(whole)[:5]


def test_a_candidate_that_kills_campaigns_is_given_up(whole, device, tmp_path):
    path = tmp_path / "a.db"
    space = space_of(PROGRAM, device, families=FAMILIES)
    killer = places(space, 3)[2]
    run(path, 2, device)
    with Store.open(path, whole.identity) as store:
        for _ in range(ATTEMPTS):
            store.begin(killer)
    resumed = run(path, 4, device)
    assert [row.outcome for row in resumed.rows] == ["measured", "measured", "crashed", "measured"]
    assert "ended abruptly 2 times while it was running" in resumed.rows[2].reason
    again = run(path, 4, device)
    assert again == resumed


def test_a_candidate_is_not_blamed_if_the_user_stops_during_its_first_record(
    device, tmp_path, monkeypatch
):
    """The interrupt is raised after SQLite has written the record, before `begin` returns."""
    begin = Store.begin

    def stopped(store, candidate):
        begin(store, candidate)
        if candidate.ordinal == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "begin", stopped)
    path = tmp_path / "a.db"
    with pytest.raises(KeyboardInterrupt):
        run(path, 3, device)
    with Store.read(path) as store:
        assert not store.under_way()


def test_a_campaign_of_which_nothing_is_right_says_why(device, tmp_path):
    with pytest.raises(NothingMeasured) as nothing:
        run(tmp_path / "a.db", 3, device, tolerance=1e-12)
    assert nothing.value.exit_code == 3
    text = str(nothing.value)
    assert text.startswith(
        "no candidate of tiny was measured; 3 candidates tried:\n  3 x wrong: result["
    )
    assert f"`liftpy candidates {tmp_path / 'a.db'}`" in text


def test_another_seed_is_another_campaign(campaign, runtime):
    with pytest.raises(StoreRefused, match="the seed: it has 0, this is 1"):
        explore(PROGRAM, 12, 1, campaign.path, runtime, families=FAMILIES)


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({"samples": 0}, "samples=0.*give a positive whole number"),
        ({"samples": -2}, "samples=-2"),
        ({"time_limit": -1}, "time_limit=-1.*give 0 s or more"),
        ({"candidate_limit": 0}, "candidate_limit=0.*give more than 0 s"),
        ({"build_limit": 0}, "build_limit=0.*give more than 0 s, or None"),
        ({"tolerance": float("nan")}, "tolerance=nan.*give 0 or more"),
    ],
)
def test_limits_that_leave_nothing_to_do_are_refused_and_leave_no_file(
    device, tmp_path, limits, wanted
):
    with pytest.raises(ArgumentRefused, match=f"(?s){wanted}"):
        run(tmp_path / "a.db", device=device, **{"samples": 3, **limits})
    assert list(tmp_path.iterdir()) == []


def test_each_call_is_kept_with_its_command_and_its_limits(whole, device, tmp_path):
    path = tmp_path / "a.db"
    run(path, 1, device)
    run(path, 2, device, time_limit=1000)
    first, second = Campaign.read(path).calls
    assert [call.limits["samples"] for call in (first, second)] == [1, 2]
    assert second.limits["time_limit"] == 1000
    assert first.started < first.ended <= second.started < second.ended
    assert sys.orig_argv[0] in first.command
    assert first.environment["driver"] == device.driver_version
    assert all(row.rms <= row.error for row in whole.rows)


def test_a_candidate_whose_worker_is_killed_once_is_measured(
    whole, device, tmp_path, plain_workers, processes_of_its_own
):
    killed: list[int] = []

    def kill(progress):
        if progress.done == 1 and progress.outcome is None and not killed:
            for worker in started("liftpy.explore."):
                killed.append(worker.pid)
                worker.kill()

    resumed = run(tmp_path / "a.db", 3, device, progress=kill)
    assert len(killed) == 2
    assert resumed.counts == {"measured": 3}
    assert drawn(resumed) == drawn(whole)[:3]


def test_a_family_that_does_not_apply_is_refused(device, tmp_path):
    with pytest.raises(UnknownName, match="family cannot be 'fast'; it is one of: plain, direct"):
        explore(PROGRAM, 12, 0, tmp_path / "a.db", device, families=["fast"])
    assert not (tmp_path / "a.db").exists()


def test_the_published_sampler_resumes_too(device, tmp_path):
    path = tmp_path / "a.db"
    run(path, 2, device, sampler="incremental")
    resumed = run(path, 4, device, sampler="incremental")
    whole = run(tmp_path / "b.db", 4, device, sampler="incremental")
    assert drawn(resumed) == drawn(whole)
    assert resumed.counts == {"measured": 4}
    assert not resumed.exhausted
    with pytest.raises(StoreRefused, match="sampler"):
        run(path, 4, device)


def test_a_memory_limit_that_nothing_keeps_is_explained(device, tmp_path):
    with pytest.raises(ConstraintRefused, match="memory limit"):
        run(tmp_path / "a.db", 3, device, memory_limit=100)


def test_progress_tells_of_each_candidate_before_and_after(device, tmp_path):
    told = []
    run(tmp_path / "a.db", 2, device, progress=told.append)
    assert [(p.done, p.candidate is not None, p.outcome is not None) for p in told] == [
        (0, False, False),
        (0, True, False),
        (1, True, True),
        (1, True, False),
        (2, True, True),
    ]
    assert told[-1].counts == {"measured": 2}
    (standing,) = told[-1].standings
    assert standing.device == device
    assert standing.best_ns == min(p.outcome.time_ns for p in told if p.outcome)
