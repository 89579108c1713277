"""The energy proxy as a figure of stored campaigns: computed, never stored."""

import csv
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import StoreRefused
from liftpy.explore.campaign.campaign import Campaign, two_digits
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.measure.pareto import rule
from liftpy.explore.report import tables as report
from liftpy.explore.report.plot import drawn
from liftpy.explore.report.wording import in_energy
from liftpy.explore.spaces import space_of
from liftpy.traffic.energy import energy_proxy
from liftpy.traffic.energy_costs import energy_costs
from liftpy.traffic.machine import hardware_of
from tests.explore.test_page import row
from tests.pages import Page

PROGRAM = lp.workload("matmul/24x20x16")
DEVICE = replace(DEFAULT_DEVICE, type="CPU", vector_width=4, compute_units=2)
SPACE = space_of(PROGRAM, DEVICE, families=["plain", "direct", "cooperative"])
COSTS = energy_costs()


def stored(candidate, ordinal, time_ns):
    """A row as it is read from a file, with the settings and the skeleton of a candidate."""
    made = row(ordinal, time_ns, 4096)
    return replace(
        made,
        id=candidate.key,
        skeleton=candidate.skeleton.key,
        assignment=dict(candidate.assignment),
    )


CANDIDATES = SPACE.sample(9, seed=3)
ROWS = [stored(c, k, 1000 + 311 * (k * 5 % 9)) for k, c in enumerate(CANDIDATES)]
REFUSED = row(9, None, None, "refused", "too large")
IDENTITY = Identity(
    PROGRAM.name, str(lp.show(PROGRAM)), DEVICE.to_json(), "0.1.0", 7, {"search": "guided"}
)
CAMPAIGN = Campaign(Path("some.db"), IDENTITY, (*ROWS, REFUSED))


def proxy(candidate, costs=COSTS):
    lowered = candidate.skeleton.at(candidate.point)
    return energy_proxy(lowered, DEVICE, hardware_of(DEVICE), costs).total


def test_a_measured_candidate_is_derived_again_for_its_proxy():
    found = lp.with_energy(CAMPAIGN)
    assert [r.energy for r in found.rows] == [*map(proxy, CANDIDATES), None]
    assert [replace(r, energy=None) for r in found.rows] == list(CAMPAIGN.rows)
    assert len({r.energy for r in found.rows}) > 5


def test_other_costs_give_other_proxies():
    dear = COSTS.model_copy(update={"memory": COSTS.memory.model_copy(update={"value": 1e6})})
    large = COSTS.model_copy(update={"add": dict.fromkeys(COSTS.add, COSTS.memory)})
    few = replace(CAMPAIGN, rows=CAMPAIGN.rows[:3])
    for costs in (dear, large):
        found = lp.with_energy(few, costs)
        assert [r.energy for r in found.rows] == [proxy(c, costs) for c in CANDIDATES[:3]]
    assert lp.with_energy(found, COSTS) == lp.with_energy(few)


def test_the_front_of_time_and_energy_compares_two_digits():
    found = lp.with_energy(CAMPAIGN)
    front = {r.id for r in found.pareto("energy")}
    known = [(r.time_ns, two_digits(r.energy or 0), r.id) for r in found.rows[:-1]]
    wanted = {
        id_
        for time, energy, id_ in known
        if not any(other[0] < time and other[1] <= energy for other in known)
    }
    assert front == wanted
    assert {r.id for r in found.pareto("peak", also="energy")} == front, "of one peak"
    assert 1 < len(front) < len(known)


def test_tables_and_pictures_call_it_a_proxy(tmp_path):
    found = lp.with_energy(CAMPAIGN)
    rows = found.pareto("energy")
    data = report.front_json(found, rows, "energy")
    assert [one["energy_proxy_pj"] for one in data["front"]] == [r.energy for r in rows]
    assert "no energy is measured" in data["rule"]
    (hypervolume,) = data["hypervolume"].values()
    assert hypervolume["ideal"]["energy_proxy_pj"] == min(r.energy for r in found.rows if r.energy)
    lines = list(csv.DictReader(report.front_csv(found, rows).splitlines()))
    assert [float(line["energy_proxy_pj"]) for line in lines] == [r.energy for r in rows]
    assert "energy_proxy_pj" not in report.front_csv(CAMPAIGN, CAMPAIGN.pareto())
    table = report.front_table(rows, 200, axis="energy")
    assert "energy proxy" in [column.header for column in table.columns]
    figure = drawn(found, "peak", "energy")
    assert figure.axes[0].get_legend().get_title().get_text() == "energy proxy"
    assert drawn(found, "energy").axes[0].get_ylabel().startswith("energy proxy [")
    report.page(found, "energy", tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert f"{rule('energy')} The costs are those of the table 45nm." in page.text
    assert "Time and energy proxy" in page.text
    for r in rows:
        assert f"energy proxy {in_energy(r.energy)}" in page.text
    assert not re.search(r"energy(?! proxy| is measured)", page.text.partition("Outcomes")[0])


def test_a_campaign_of_another_version_is_refused_with_the_candidate(tmp_path):
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(Path(__file__).with_name("version_2.sql").read_text(encoding="utf-8"))
    found = Campaign.read(path)
    assert len(found.pareto()) == 2
    with pytest.raises(
        StoreRefused, match=r"candidate 13845bfd813d of .*old\.db has the skeleton plain\(\)"
    ):
        lp.with_energy(found)


def test_units_of_energy():
    values = (0.5, 999, 1000, 21_480_000, 3e9, 2e12)
    said = ["0.5 pJ", "999 pJ", "1 nJ", "21.5 uJ", "3 mJ", "2 J"]
    assert [in_energy(value) for value in values] == said
