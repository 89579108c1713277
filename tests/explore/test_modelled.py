"""Campaigns whose times are modelled: on a profile, without a driver, never taken as measured."""

import json

import pytest
from typer.testing import CliRunner

import liftpy as lp
from liftpy.cli.application import application
from liftpy.errors import ArgumentRefused, StoreRefused
from liftpy.explore import exploring
from liftpy.explore.campaign.forms import Spaces
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.search import modelled_choice
from liftpy.opencl.devices import find_device
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.time import modelled

PROGRAM = lp.workload("matmul/64x96x48")
DEVICE = "profile:mali-g72"
FAMILIES = ["plain", "direct"]
ASKED = {"samples": 12, "device": DEVICE, "modelled": True, "search": "random"}
ASKED |= {"families": FAMILIES}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return lp.explore(PROGRAM, db=tmp_path_factory.mktemp("modelled") / "m.db", **ASKED)


def test_each_candidate_has_the_time_of_the_model(campaign):
    device = find_device(DEVICE)
    space, hardware = lp.space(PROGRAM, DEVICE, families=FAMILIES), hardware_of(device)
    assert campaign.counts == {"modelled": 12}
    assert campaign.modelled
    for row in campaign.rows:
        found = space.exactly(row.assignment)
        model = modelled(found.skeleton.at(found.point), device, hardware)
        assert row.time_ns == pytest.approx(1e6 * model.milliseconds, abs=len(model.kernels))
        assert len(row.times_ns) == 1
        assert len(row.times_ns[0]) == len(model.kernels)
        assert row.error is None
        assert row.reason.startswith("modelled, bound by ")
        assert row.peak > 0


def test_the_front_is_of_modelled_times(campaign):
    front = campaign.pareto()
    costs = {(row.time_ns, row.peak) for row in campaign.rows}
    best = {c for c in costs if not any(a <= c[0] and b <= c[1] and (a, b) != c for a, b in costs)}
    assert {(row.time_ns, row.peak) for row in front} == best


def test_the_same_call_models_the_same_again(campaign, tmp_path):
    other = lp.explore(PROGRAM, db=tmp_path / "m.db", **ASKED)
    assert [(r.id, r.time_ns) for r in other.rows] == [(r.id, r.time_ns) for r in campaign.rows]
    more = lp.explore(PROGRAM, db=tmp_path / "m.db", **ASKED | {"samples": 15})
    assert [r.id for r in more.rows[:12]] == [r.id for r in campaign.rows]
    assert more.counts == {"modelled": 15}


def test_a_modelled_campaign_is_not_continued_by_measuring(campaign):
    identity = campaign.identity
    attached = find_device()
    assert identity.settings["modelled"] is True
    with pytest.raises(StoreRefused, match="modelled: it has True, this has none"):
        lp.explore(
            PROGRAM, 3, db=campaign.path, device=attached, search="random", families=FAMILIES
        )


def test_a_search_learns_from_modelled_times(campaign, tmp_path):
    asked = ASKED | {"search": "guided", "samples": 24}
    guided = lp.explore(PROGRAM, db=tmp_path / "g.db", **asked)
    assert guided.counts == {"modelled": 24}
    least = min(row.time_ns for row in campaign.rows)
    assert min(row.time_ns for row in guided.rows) < least


def test_workers_are_refused(tmp_path):
    workers = Workers("tcp://127.0.0.1:1")
    with pytest.raises(ArgumentRefused, match="a modelled campaign runs nothing"):
        lp.explore(PROGRAM, db=tmp_path / "m.db", workers=workers, **ASKED)


def command(*arguments):
    name, *_ = arguments
    result = CliRunner().invoke(application(name), [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_tables_say_that_times_are_modelled(campaign):
    said = command("pareto", campaign.path)
    assert "modelled time" in said
    assert "All times are modelled." in said
    assert "easured" not in said


def test_the_fastest_are_exported_to_be_measured(campaign, tmp_path):
    command("export", campaign.path, "--fastest", 3, "-o", tmp_path / "bundle")
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    fastest = sorted((row.time_ns, row.id) for row in campaign.rows)[:3]
    assert {c["id"] for c in manifest["candidates"]} == {id_ for _, id_ in fastest}
    assert "modelled" not in manifest["campaign"]["settings"]


def test_a_call_with_the_spaces_of_another_derives_and_chooses_nothing_again(tmp_path, monkeypatch):
    """A program of several stages, with searches in their spaces, and forms derived in parts."""
    program = lp.workload("convolution/depthwise/9x8x4x3x1")
    asked = {"db": tmp_path / "m.db", "device": "profile:xeon-silver-4208", "modelled": True}
    works = []
    whole, choose = exploring.whole_space, modelled_choice.Chooser.modelled
    monkeypatch.setattr(exploring, "whole_space", lambda *a, **k: works.append(a) or whole(*a, **k))
    monkeypatch.setattr(
        modelled_choice.Chooser, "modelled", lambda *a: works.append(a) or choose(*a)
    )
    spaces = Spaces()
    first = lp.explore(program, 4, spaces=spaces, **asked)
    begun = len(works)
    lp.explore(program, 14, spaces=spaces, **asked)
    assert len(works) > begun  # the search has reached forms that the first call did not need
    reached = len(works)
    modelled = [given[1].key for given in works if isinstance(given[0], modelled_choice.Chooser)]
    assert len({*modelled}) == len(modelled)
    third = lp.explore(program, 18, spaces=spaces, **asked)
    assert len(works) == reached
    assert [row.id for row in third.rows[:4]] == [row.id for row in first.rows]
    alone = lp.explore(program, 18, **asked | {"db": tmp_path / "alone.db"})
    assert [row.id for row in third.rows] == [row.id for row in alone.rows]


def test_spaces_that_were_not_used_for_long_are_given_up():
    spaces = Spaces(most=1)
    space = lp.space(lp.workload("dot/64"), DEVICE, families=["plain"])
    assert len(space.every) == 1
    for name in ("one", "two"):
        spaces.of(name)["whole"] = space
    assert spaces.of("two") == {"whole": space}  # the other one is given up when this is asked for
    assert spaces.of("one") == {}
