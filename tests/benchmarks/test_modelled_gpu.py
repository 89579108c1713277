"""The benchmark that compares modelled times with those that a GPU took."""

from __future__ import annotations

import liftpy as lp
from liftpy.opencl.devices import find_device
from tests.benchmarks.scripts import script
from tests.cli.said import PROGRAM

modelled_gpu = script("modelled_gpu")


def pair(measured, modelled):
    return modelled_gpu.Pair("1234", "plain", measured, modelled, "loads")


def test_ranks_and_ratios_are_summarized():
    found = [pair(10, 20), pair(30, 10), pair(20, 10), pair(40, 40)]
    first, second = modelled_gpu.summary(found)
    assert modelled_gpu.ranks([p.modelled for p in found]) == [3, 1.5, 1.5, 4]
    assert first == "4 candidates; rank correlation 0.316"
    assert second == (
        "measured / modelled: least 0.50, median 1.50, geometric mean 1.32, largest 3.00; "
        "3 within a factor of 2"
    )


def test_each_measured_candidate_is_modelled(in_one_process, tmp_path):
    path = tmp_path / "some.db"
    campaign = lp.explore(PROGRAM, 4, db=path, families=["plain"])
    device = find_device("profile:nvidia-hopper")
    found = [*modelled_gpu.pairs(path, device)]
    timed = {row.id: row.time_ns / 1e3 for row in campaign.rows if row.time_ns is not None}
    assert {p.id: p.measured for p in found} == timed
    assert all(p.modelled >= 2 for p in found)  # a launch
