"""Campaigns that begin with the times that others measured of the same stages."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ArgumentRefused, StoreRefused
from liftpy.explore.campaign.borrowed import Elsewhere, nameless, stage_settings
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.same_kernel import Kernels
from liftpy.explore.exploring import explore
from liftpy.explore.measure.samples import departs
from liftpy.explore.search import Trial, named
from liftpy.explore.search import local as local_search
from liftpy.explore.search.stage_search import AGAIN
from liftpy.explore.search.stages import StageSearches
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import everything
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.rewrite.composition import StagedSkeleton

pytestmark = pytest.mark.usefixtures("in_one_process")

#: Both have the same product; its names, what is around it and how it is read on are not the same.
ROWS = parse("""def rows(xs: [16][12]f32, w: [10][12]f32) =
  let score = xs |> map(r => w |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0))) in
  score |> map(reduce(add, 0))""")
COLUMNS = parse("""def columns(bank: [10][12]f32, images: [16][12]f32, bias: [10]f32) =
  let product = images |> map(i => bank |> map(f => zip(i, f) |> map(mul) |> reduce(add, 0))) in
  let most = product |> transpose |> map(reduce(maximum, 0)) in
  zip(most, bias) |> map((m, b) => m + b)""")
PRODUCT = parse("""def product(a: [16][12]f32, b: [10][12]f32) =
  a |> map(i => b |> map(f => zip(i, f) |> map(mul) |> reduce(add, 0)))""")
OTHER = parse("""def other(a: [16][12]f32, b: [11][12]f32) =
  let score = a |> map(i => b |> map(f => zip(i, f) |> map(mul) |> reduce(add, 0))) in
  score |> map(reduce(add, 0))""")
SAMPLES = 9


def run(program, path, device, samples=SAMPLES, **options):
    """A campaign in which the product is a stage of its own."""
    settings = {"again": False, "seed": 1} | options
    return explore(program, samples, db=path, device=device, **settings)


def of_stage(campaign: Campaign, stage: str) -> list[frozenset]:
    """What each candidate has for a stage; nothing where it has no such stage."""
    before = f"{stage}." if stage else ""
    return [
        frozenset((n.removeprefix(before), v) for n, v in row.assignment.items() if before in n)
        for row in campaign.rows
    ]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_disturbed():
    """What is disturbed is not borrowed; this machine may be busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[departs.__module__], "DEPARTURE", math.inf)
        yield


@pytest.fixture(scope="module")
def rows(device, tmp_path_factory):
    """A campaign of the first program."""
    path = tmp_path_factory.mktemp("times") / "rows.db"
    return run(ROWS, path, device, 12, fixed={"score": "stored"}, seed=0)


def known_of(rows: Campaign) -> dict[frozenset, int]:
    """The times that another campaign can have of the product, by its choices and sizes."""
    there = Elsewhere.read(rows.path, rows.device)
    text = nameless(PRODUCT)
    return {part.words | part.sizes: 0 for part in there.parts[text]}


def test_what_another_campaign_has_measured_is_not_measured_again(rows, device, tmp_path):
    """But the plainest, with which each campaign begins, and the fastest."""
    notes: list[str] = []
    stored = {"product": "stored", "most": "stored"}
    begun = run(
        COLUMNS, tmp_path / "b.db", device, fixed=stored, times=[rows.path], note=notes.append
    )
    assert begun.counts == {"measured": SAMPLES}
    known = known_of(rows)
    assert len(known) >= 8
    assert f"begins with {len(known)} times of stages from {rows.path}" in notes[0]
    mine = of_stage(begun, "product")
    again = {part for part in mine if part in known}
    assert len(again) <= 1 + AGAIN + 1  # the plainest, the fastest; their front
    assert mine[1] in known  # the search begins with the fastest


def test_the_fastest_that_is_known_is_tried_first(rows, device, tmp_path):
    stored = {"product": "stored", "most": "stored"}
    begun = run(COLUMNS, tmp_path / "b.db", device, 2, fixed=stored, times=[rows.path])
    with closing(sqlite3.connect(begun.path)) as db:
        kept = [json.loads(times) for (times,) in db.execute("SELECT times FROM borrowed")]
    (known,) = [times for times in kept if times]
    fastest = min(known, key=lambda one: one["time_ns"])
    assert of_stage(begun, "product")[1] == {*fastest["words"].items(), *fastest["sizes"].items()}
    there = dict(zip(of_stage(rows, "score"), rows.rows, strict=True))  # of equal ones the last
    for one in known:  # the time of the stage's launches, which are not all
        row = there[frozenset({*one["words"].items(), *one["sizes"].items()})]
        assert one["time_ns"] > 0
        assert one["peak"] <= row.peak


def test_a_stage_measured_there_may_be_the_whole_program_here(rows, device, tmp_path):
    begun = run(PRODUCT, tmp_path / "p.db", device, 8, times=[rows.path])
    known = known_of(rows)
    assert sum(part in known for part in of_stage(begun, "")) <= 4
    assert of_stage(begun, "")[1] in known


def test_and_the_other_way_round(device, tmp_path):
    alone = run(PRODUCT, tmp_path / "p.db", device, 5)
    stored = {"product": "stored", "most": "stored"}
    begun = run(COLUMNS, tmp_path / "b.db", device, 2, fixed=stored, times=[alone.path])
    assert of_stage(begun, "product")[1] in {*of_stage(alone, "")}


def test_a_campaign_that_is_resumed_needs_the_other_file_no_more(rows, device, tmp_path):
    other = tmp_path / "other.db"
    other.write_bytes(rows.path.read_bytes())
    options = {"times": [other], "search": "local", "fixed": {"product": "stored"}}
    first = run(COLUMNS, tmp_path / "b.db", device, 5, **options)
    other.unlink()
    more = run(COLUMNS, tmp_path / "b.db", device, 9, **options)
    assert [row.id for row in more.rows][:5] == [row.id for row in first.rows]
    assert len(more.rows) == 9
    with pytest.raises(StoreRefused, match=r"times: it has .*other\.db, this has none"):
        run(COLUMNS, tmp_path / "b.db", device, 9, **{**options, "times": ()})


def test_a_program_that_shares_no_stage_is_told_so(rows, device, tmp_path):
    notes: list[str] = []
    run(OTHER, tmp_path / "o.db", device, 3, times=[rows.path], note=notes.append)
    assert f"{rows.path} has no time of a stage of this program" in "\n".join(notes)


def test_other_kernels_than_were_measured_are_not_known(rows, device, tmp_path):
    """As where another version of liftpy made them, of the same expression and sizes."""
    changed = tmp_path / "changed.db"
    there = Elsewhere.read(rows.path, rows.device)
    assert there.times
    changed.write_bytes(rows.path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Kernels.__module__], "BUILD_OPTIONS", ("-cl-std=CL1.2",))
        notes: list[str] = []
        run(COLUMNS, tmp_path / "b.db", device, 2, times=[changed], note=notes.append)
    assert "has no time of a stage" in "\n".join(notes)


def test_what_cannot_be_used_is_refused_before_there_is_a_file(rows, device, tmp_path):
    path = tmp_path / "b.db"
    with pytest.raises(ArgumentRefused, match="the search random does not look at times"):
        run(COLUMNS, path, device, times=[rows.path], search="random")
    with pytest.raises(StoreRefused, match="no campaign is stored in"):
        run(COLUMNS, path, device, times=[tmp_path / "absent.db"])
    with pytest.raises(ArgumentRefused, match="is the file of this campaign"):
        run(COLUMNS, path, device, times=[path])
    assert not path.exists()
    with pytest.raises(StoreRefused, match=r"has no times of generic: generic, driver 0"):
        Elsewhere.read(rows.path, DEFAULT_DEVICE)


def test_the_parts_of_a_candidate_are_those_of_its_stages(rows):
    score, result = (text for text, _ in stage_settings(ROWS, rows.rows[0]))
    assert score == nameless(PRODUCT)
    assert result == nameless(parse("def p(a: [16][10]f32) = a |> map(reduce(add, 0))"))


# --- how a search uses them, with made-up times ---------------------------------------------------

TIMES = itertools.cycle([700, 400, 900, 500, 800])


@pytest.fixture(scope="module")
def product() -> Space:
    return space_of(PRODUCT, DEFAULT_DEVICE)


def searched(space: Space, known: list[Trial], now, count: int) -> tuple[StageSearches, list]:
    """The candidates of a search that begins with some trials; `now` has times of today."""
    trials: list[Trial] = []
    searches = StageSearches(space, 0, trials, everything, local_search.search, lambda _: known)
    found: list[Candidate] = []
    for candidate in itertools.islice(searches.candidates(), count):
        found.append(candidate)
        trials.append(Trial(candidate, now(candidate), 64))
    searches.learn()
    return searches, found


def known_trials(space: Space) -> list[Trial]:
    return [Trial(c, next(TIMES) + k, 64) for k, c in enumerate(space.sample(20, seed=5))]


def test_times_of_another_day_are_put_in_proportion(product):
    """The machine is half as fast today: what was known is no faster for it."""
    known = known_trials(product)
    then = {t.candidate.key: t.time_ns for t in known}
    searches, found = searched(product, known, lambda c: 2 * then.get(c.key, 3000), 30)
    again = [c.key for c in found if c.key in then]
    assert again == sorted(then, key=lambda key: then[key])[:AGAIN]
    (arm,) = searches.arms
    now = {t.candidate.key: t.time_ns for t in arm.whole.trials}
    assert all(now[key] == 2 * time for key, time in then.items())


def test_a_time_that_does_not_hold_today_is_replaced(product):
    """What was fastest is slow: the next fastest is the best."""
    known = known_trials(product)
    then = {t.candidate.key: t.time_ns for t in known}
    best, second = sorted(then, key=lambda key: then[key])[:2]
    searches, found = searched(
        product, known, lambda c: 9000 if c.key == best else then.get(c.key, 9000), 30
    )
    (arm,) = searches.arms
    assert [c.key for c in found if c.key in then][:2] == [best, second]
    assert arm.whole.best.candidate.key == second


def test_what_may_need_less_memory_is_measured_too(product):
    known = known_trials(product)
    small = max(known, key=lambda t: t.time_ns)
    known = [replace(t, peak=32) if t is small else t for t in known]
    then = {t.candidate.key: t.time_ns for t in known}
    _, found = searched(product, known, lambda c: then.get(c.key, 3000), 20)
    assert small.candidate.key in {c.key for c in found}


def test_all_of_a_small_space_is_tried_once_whatever_is_known(product):
    small = product.narrow({"family": "direct", "level": "glb", "rows": "columns", "v": 2})
    known = [Trial(c, 100 + k, 64) for k, c in enumerate(small.sample(12, seed=2))]
    _, found = searched(small, known, lambda _: 50, small.count() + 5)
    assert len(found) == len({c.key for c in found}) == small.count()


def test_a_stage_with_known_times_is_best_from_the_start():
    space = space_of(ROWS, DEFAULT_DEVICE).narrow({"score": "stored"})
    known: list[Trial] = []

    def prior(stage: Space) -> list[Trial]:
        if stage.program.name != "rows_score":
            return []
        known[:] = [Trial(c, 500 - k, 64) for k, c in enumerate(stage.sample(9))]
        return known

    (first,) = itertools.islice(named("guided", prior)(space, 0, [], everything), 1)
    assert isinstance(first.skeleton, StagedSkeleton)
    assert dict(first.skeleton.stages)["score"].key == known[-1].candidate.skeleton.key
