"""What commands say of campaigns that are there: tables, pictures, pages."""

import io
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from rich.console import Console

from liftpy.cli.progress import CampaignView
from liftpy.explore import campaign as campaigns
from liftpy.explore.campaign import Campaign, explore
from liftpy.explore.outcome import Refused
from liftpy.explore.run import Progress
from liftpy.explore.search import SEARCHES
from tests.cli.said import PROGRAM
from tests.explore.spaces import small_space

LONG = "the driver did not build it: " + "[a very long reason] " * 20 + "\nwith a second line"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Eight candidates, four of them made to have other outcomes than they had."""
    path = tmp_path_factory.mktemp("campaign") / "some.db"
    explore(PROGRAM, 8, db=path, families=["plain", "direct"])
    with sqlite3.connect(path) as tampered:
        for ordinal, kind, reason in ((1, "build_failed", LONG), (4, "refused", "too <b>large")):
            tampered.execute(
                "UPDATE outcome SET kind = ?, reason = ?, time_ns = NULL, peak = NULL WHERE"
                " candidate IN (SELECT key FROM candidate WHERE ordinal IN (?, ?))",
                (kind, reason, ordinal, ordinal + 1),
            )
        tampered.execute(
            "DELETE FROM run WHERE candidate IN (SELECT candidate FROM outcome"
            " WHERE time_ns IS NULL)"
        )
    tampered.close()
    return Campaign.read(path)


@pytest.fixture
def db(campaign, liftpy):
    """That campaign in the folder of the command."""
    shutil.copy(campaign.path, "some.db")
    return "some.db"


@pytest.mark.parametrize("width", [80, 160])
def test_a_long_reason_costs_no_column(liftpy, db, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = liftpy("candidates", db).out
    rows = Campaign.read(Path(db)).rows
    assert all(row.id in said for row in rows)
    assert said.count("build_failed") == 3, "two rows and the count"
    assert said.split()[:5] == ["id", "outcome", "time", "candidate", "reason"]
    assert said.count("family=") == len(rows)
    assert said.count("the driver") == 2
    assert "with a second line" not in said
    assert "with a second line" in liftpy("candidates", db, "--full").out
    assert liftpy("candidates", db, "--json").json[1]["reason"] == LONG


@pytest.mark.parametrize(
    ("stage", "key"),
    [
        ("source", "text"),
        ("types", "types"),
        ("lowered", "text"),
        ("constraints", "skeletons"),
        ("memory", "buffers"),
        ("views", "kernels"),
        ("code", "text"),
    ],
)
def test_a_stage_is_shown_as_data(liftpy, stage, key):
    chosen = ("--set", "family=direct", "--set", "pad=copy", "--set", "kappa=2")
    data = liftpy("show", "tiny.lift", "--stage", stage, *chosen, "--json").json
    assert data["program"] == "tiny"
    assert data["stage"] == stage
    assert data[key]
    if key == "text":
        shown = liftpy("show", "tiny.lift", "--stage", stage, *chosen).out
        assert data["text"].strip() in shown
    if stage in ("memory", "views", "code"):
        assert data["assignment"]["kappa"] == 2


@pytest.mark.parametrize("colour", [True, False])
def test_a_live_view_says_how_far_it_is(colour):
    text = io.StringIO()
    screen = Console(file=text, force_terminal=True, width=100, no_color=not colour)
    candidate = small_space().sample(1, seed=0)[0]
    refused = Refused("the work-group of k1 is too large")
    with CampaignView("tiny", 8, screen) as view:
        counts = {"measured": 3, "refused": 1}
        view(Progress(4, 8, counts, 1_500_000, candidate, refused, 2))
        view(Progress(4, 8, counts, 1_500_000, candidate, None, 2))
    if not colour:
        assert text.getvalue() == ""
        return
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue()).split("\n")
    joined = "\n".join(said)
    for part in ("4/8", "a minute", "left", "best", "1.500 ms", "2 on the front", "measured"):
        assert part in joined, joined
    assert "1 x refused: the work-group of k1 is too large" in joined
    assert candidate.label in joined


def test_a_search_is_tried_on_what_is_stored(liftpy, db, monkeypatch):
    """No device is asked for, nothing is measured, and only stored candidates are drawn."""
    monkeypatch.setattr(campaigns, "find_device", None)
    rows = {row.id: row for row in Campaign.read(Path(db)).rows}
    command = ("explore", "tiny.lift", "--family", "plain", "--family", "direct", "--replay", db)
    for search in SEARCHES:
        data = liftpy(*command, "--search", search, "--json").json
        assert sorted(data["tried"]) == sorted(rows), search
        assert data["stored"] == len(rows)
        assert data["best_ns"][-1] == min(r.time_ns for r in rows.values() if r.time_ns)
        assert data["hypervolume"] == sorted(data["hypervolume"])
        assert data["within_5_percent"] <= len(rows)
    assert "within 5 % of the best time" in liftpy(*command, "--samples", 5).out


def test_the_commands_write_a_page_and_a_picture(liftpy, db):
    assert liftpy("report", db, "-o", "some.html").out == "written to some.html\n"
    page = Path("some.html").read_text(encoding="utf-8")
    assert all(row.id in page for row in Campaign.read(Path(db)).rows if row.time_ns)
    assert "too &lt;b&gt;large" in page
    assert liftpy("pareto", db, "--plot", "some.png").code == 0
    assert Path("some.png").read_bytes().startswith(b"\x89PNG")


def test_the_version_is_said(liftpy):
    assert liftpy("--version").out == "liftpy 0.1.0\n"
