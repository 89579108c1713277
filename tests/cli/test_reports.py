"""What commands say of campaigns that are there: tables, pictures, pages."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from liftpy.explore.campaign import Campaign, explore
from tests.cli.said import PROGRAM

LONG = "the driver did not build it: " + "[a very long reason] " * 20 + "\nwith a second line"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Twelve candidates, four of them made to have other outcomes than they had."""
    path = tmp_path_factory.mktemp("campaign") / "some.db"
    explore(PROGRAM, 12, db=path, families=["plain", "direct"])
    with sqlite3.connect(path) as tampered:
        for ordinal, kind, reason in ((1, "build_failed", LONG), (4, "refused", "too <b>large")):
            tampered.execute(
                "UPDATE outcome SET kind = ?, reason = ?, time_ns = NULL, peak = NULL WHERE"
                " candidate IN (SELECT key FROM candidate WHERE ordinal IN (?, ?))",
                (kind, reason, ordinal, ordinal + 1),
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


def test_the_version_is_said(liftpy):
    assert liftpy("--version").out == "liftpy 0.1.0\n"
