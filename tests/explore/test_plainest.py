"""A campaign's first candidate is the plainest there is, and the search has the places after it."""

import itertools
from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused
from liftpy.explore import exploring
from liftpy.explore import search as searches
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.campaign.store import Store
from liftpy.explore.space import plainest as first_candidate
from liftpy.explore.space.plainest import PLAIN, begun_with, plainest, plainness
from liftpy.explore.spaces import space_of
from liftpy.rewrite.forms import as_declared, other_forms, partitions
from liftpy.rewrite.stages import WINOGRAD
from tests.fuzz.correlations import Case

pytestmark = pytest.mark.usefixtures("in_one_process")

ROWS = lp.parse("def rows(xs: [6][8]f32) = xs |> map(row => row |> map(x => x + x))")


def test_the_plainest_has_a_loop_inside_parallel_maps(device):
    found = plainest(space_of(ROWS, device))
    assert found.assignment == {"family": "plain", "pad": "fused", "map": "glb0.seq"}


def test_one_that_would_run_for_seconds_is_not_the_first(device, monkeypatch):
    """The ids of dimension 0 would be the three columns of a window."""
    layer = lp.workload("convolution/strided/56x56x256x256x3x1")
    space = space_of(lp.gradient(layer, wrt=["w"]), device, families=["plain"])
    assert plainest(space).assignment["map"].endswith("glb0")
    monkeypatch.setattr(first_candidate, "SLOW", float("inf"))
    assert plainest(space).assignment["map"] == "glb2.glb1.glb0.seq"


def test_short_code_comes_before_everything(device):
    members = space_of(ROWS, device).members
    ranks = [plainness(c) for c in space_of(ROWS, device).sample(12, 0)]
    assert members
    assert all(b[0] == 0 for b in ranks)
    assert min(ranks)[1:] == (False, False, False, 1)


def test_without_the_family_plain_another_one_is_the_first(device):
    space = space_of(ROWS, device, families=["tiled"])
    assert plainest(space).skeleton.family == "tiled"


def test_the_search_has_the_places_after_it_and_each_candidate_once(device):
    space = space_of(ROWS, device)
    first = plainest(space)
    drawn = [*space.draws(3)]
    tried = [*begun_with(first, iter(drawn))]
    assert tried[0] == replace(first, ordinal=0)
    assert [c.key for c in tried[1:]] == [c.key for c in drawn if c.key != first.key]
    assert [c.ordinal for c in tried] == [*range(space.count())]
    assert [*begun_with(None, iter(drawn))] == drawn


@pytest.mark.parametrize("search", ["random", "guided"])
def test_a_campaign_begins_with_it_and_an_older_one_goes_on_without(search, device, tmp_path):
    space = space_of(ROWS, device)
    new = lp.explore(ROWS, 4, 1, tmp_path / "new.db", device, search=search, again=False)
    assert new.rows[0].assignment == plainest(space).assignment
    assert new.identity.settings["first"] == "plain"
    identity = identity_of(space, 1, search=search)
    older = {n: v for n, v in identity.settings.items() if n != "first"}
    Store.open(tmp_path / "old.db", replace(identity, settings=older)).close()
    old = lp.explore(ROWS, 4, 1, tmp_path / "old.db", device, search=search, again=False)
    if search == "random":
        drawn = [c.key for c in space.draws(1)]
        assert [row.id for row in old.rows] == drawn[:4]
        after = [key for key in drawn if key != new.rows[0].id]
        assert [row.id for row in new.rows[1:]] == [*itertools.islice(after, 3)]
    assert len(old.rows) == 4


def test_it_is_measured_before_other_families_are_derived(device, tmp_path, monkeypatch):
    derived, events = exploring.whole_space, []

    def whole_space(program, limits, *, families=None, **others):
        events.append(families)
        return derived(program, limits, families=families, **others)

    def progress(at):
        events.extend([at.outcome.kind] if at.outcome is not None else [])

    monkeypatch.setattr(exploring, "whole_space", whole_space)
    lp.explore(ROWS, 1, 1, tmp_path / "one.db", device, again=False)
    assert events == [("plain",)]
    events.clear()
    new = lp.explore(ROWS, 2, 1, tmp_path / "two.db", device, again=False, progress=progress)
    assert events[:2] == [("plain",), "measured"]
    assert "plain" not in events[2]
    assert len(events) == 4
    whole = space_of(ROWS, device)
    assert new.rows[1].id == next(c.key for c in whole.draws(1) if c.key != plainest(whole).key)


def test_direct_candidates_are_measured_before_other_algorithms_are_derived(
    device, tmp_path, monkeypatch
):
    """An interrupted campaign goes on with the same candidates, each of them once."""
    derived, events = exploring.whole_space, []
    program = Case((7,), 2, 2, (2,), 0).program
    asked = {"device": device, "again": False}

    def whole_space(program, limits, *, made=partitions, **others):
        events.append(made)
        return derived(program, limits, made=made, **others)

    def progress(at):
        events.extend([at.outcome.kind] if at.outcome is not None else [])

    monkeypatch.setattr(exploring, "whole_space", whole_space)
    monkeypatch.setattr(exploring, "DIRECT_FIRST", 5)
    first = 5 + 1  # and the plainest
    begun = lp.explore(program, 4, 1, tmp_path / "p.db", progress=progress, **asked)
    assert events == [as_declared, "measured", as_declared, *["measured"] * 3]
    events.clear()
    whole = lp.explore(program, first + 3, 1, tmp_path / "p.db", progress=progress, **asked)
    left = ["measured"] * (first - 4)
    assert events == [as_declared, as_declared, *left, other_forms, *["measured"] * 3]
    assert [row.id for row in whole.rows[:4]] == [row.id for row in begun.rows]
    assert len({row.id for row in whole.rows}) == first + 3
    assert all(WINOGRAD not in row.assignment for row in whole.rows[:first])
    assert any(WINOGRAD in row.assignment for row in whole.rows[first:])


def test_a_stored_campaign_without_the_setting_has_no_direct_part(device, tmp_path):
    program = Case((7,), 2, 2, (2,), 0).program
    space = space_of(program, device)
    identity = identity_of(space, 1, search="guided", first=PLAIN)
    assert identity.settings["direct_first"] is None
    Store.open(tmp_path / "old.db", identity).close()
    old = lp.explore(program, 2, 1, tmp_path / "old.db", device, again=False)
    drawn = searches.named("guided")(space, 1, [], lambda *_: True)
    assert old.rows[1].id == next(c.key for c in drawn if c.key != old.rows[0].id)


@pytest.mark.parametrize("search", ["random", "guided"])
def test_a_campaign_may_begin_with_given_settings_and_goes_on_without_them(
    search, device, tmp_path
):
    given = next(c for c in space_of(ROWS, device).draws(7) if c.skeleton.family != PLAIN)
    file = tmp_path / "a.db"
    one = lp.explore(ROWS, 1, 1, file, device, search=search, again=False, first=given.assignment)
    assert [row.id for row in one.rows] == [given.key]
    assert not one.exhausted
    more = lp.explore(ROWS, 4, 1, file, device, search=search, again=False)
    assert [row.ordinal for row in more.rows] == [0, 1, 2, 3]
    assert [row.id for row in more.rows].count(given.key) == 1
    assert more.rows[0].id == given.key
    if search == "random":
        draws = (c.key for c in space_of(ROWS, device).draws(1))
        others = [key for key in itertools.islice(draws, 4) if key != given.key]
        assert [row.id for row in more.rows[1:]] == others[:3]


def test_nothing_is_derived_before_a_given_candidate_is_measured(device, tmp_path, monkeypatch):
    derived = []
    monkeypatch.setattr(exploring, "whole_space", lambda *_a, **_b: derived.append(1))
    given = plainest(space_of(ROWS, device)).assignment
    lp.explore(ROWS, 1, 1, tmp_path / "a.db", device, again=False, first=given)
    assert not derived


def test_a_campaign_that_began_with_a_given_candidate_can_be_exhausted(device, tmp_path):
    few = lp.parse("def f(xs: [3]f32) = xs |> map(x => x * x)")
    space = space_of(few, device)
    given = [*space.draws(0)][-1].assignment
    done = lp.explore(few, 10_000, 1, tmp_path / "a.db", device, again=False, first=given)
    assert done.exhausted
    assert len(done.rows) == space.count()


def test_settings_that_no_candidate_of_the_space_has_are_refused(device, tmp_path):
    """Such as those of a family that does not suit the device, or of a larger memory."""
    product = lp.workload("matmul/16x16x16")
    cooperative = next(space_of(product, device, families=["cooperative"]).draws(0)).assignment
    plain = next(space_of(ROWS, device).draws(0)).assignment
    for program, given, limits in [
        (ROWS, {"family": PLAIN, "map": "odd"}, {}),
        (product, cooperative, {}),
        (ROWS, plain, {"memory_limit": 10}),
    ]:
        with pytest.raises(ArgumentRefused, match="no candidate with the settings of `first`"):
            lp.explore(program, 1, 1, tmp_path / "a.db", device, first=given, **limits)
