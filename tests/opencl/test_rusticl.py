"""Mesa's rusticl on llvmpipe, which compiles by SPIR-V; before Mesa 25, its clock stands still.

The loader asks it for devices once per process, so each test starts processes in which it has one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from liftpy.boards.results import read_results
from liftpy.explore.campaign.campaign import Campaign
from liftpy.opencl.clock import BY_HOST
from liftpy.opencl.runtimes import RUSTICL, RUSTICL_DRIVERS
from liftpy.opencl.scalars import fetch_helpers
from liftpy.workloads import workload
from tests.boards.ran import exported, run
from tests.conftest import absent
from tests.fuzz.judge import LIMITED, survey
from tests.opencl.modules import COPY, X, single

FETCHED = "fetch_float(x + i); out[i] = x[i];"
KERNEL = "\n".join([*fetch_helpers(FETCHED), COPY % FETCHED])


def liftpy(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of liftpy in a process of its own."""
    command = [sys.executable, "-m", "liftpy", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def platforms() -> set[str]:
    """The platforms of all devices."""
    known = liftpy("devices", "--json")
    return {d["platform"] for d in json.loads(known.stdout)} if known.returncode == 0 else set()


@pytest.fixture
def rusticl(monkeypatch):
    """Lets the processes that a test starts have rusticl's device."""
    monkeypatch.setenv(RUSTICL_DRIVERS, "llvmpipe")
    if RUSTICL not in platforms():
        absent(RUSTICL, "it has no device: install the Debian package mesa-opencl-icd")


@cache
def clock() -> str:
    """The clock that times its kernels: `host`, or `device` if its timestamps advance."""
    said = json.loads(liftpy("run", "matmul/7x5x3", "-d", RUSTICL, "--json").stdout)
    assert said["device"]["platform"] == RUSTICL
    assert said["time_ns"] > 100
    assert said["error"] < 1e-6
    return said["clock"]


@pytest.mark.soak
def test_a_campaign_ranks_candidates_by_times_of_the_host(rusticl, tmp_path):
    db = tmp_path / "a.db"
    if clock() != "host":
        pytest.skip("its timestamps advance")
    words = ("matmul/7x5x3", "-d", RUSTICL, "--samples", "3", "--family", "plain")
    assert BY_HOST in liftpy("explore", *words, "--db", str(db)).stdout
    campaign = Campaign.read(db)
    assert [row.outcome for row in campaign.rows] == ["measured"] * 3
    assert min(row.time_ns for row in campaign.rows) > 100
    assert campaign.calls[0].environment["clock"] == BY_HOST


def test_a_board_with_rusticl_is_timed_by_the_same_clock(rusticl, board, tmp_path):
    exported(workload("matmul/7x5x3"), tmp_path / "bundle")
    printed = run(board, tmp_path / "bundle", "--repeats", "2", device=RUSTICL)
    (tmp_path / "results.csv").write_text(printed.stdout)
    (row,) = read_results(tmp_path / "results.csv").rows
    assert (row.outcome, dict(row.detail).get("clock", "device")) == ("measured", clock())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", [0, 4])
def test_random_programs_are_right_on_rusticl(rusticl, first):
    found = survey(first, 4, RUSTICL, briefly=True)
    assert set(found.outcomes) <= {"right", LIMITED}, found.failures


BUILD = """
import sys
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from tests.opencl.modules import X, single
with Session(find_device("rusticl")) as session, session.load(single(sys.argv[1])) as loaded:
    assert (loaded.run({"x": X}) == X).all()
"""


def test_a_kernel_with_prefetch_hints_is_built_by_rusticl(rusticl):
    """Mesa's translator to SPIR-V ends the process at Clang's hint."""
    child = subprocess.run(
        [sys.executable, "-c", BUILD, KERNEL], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr


def test_hints_are_left_out_only_where_they_are_not_compiled(session):
    asserted = "\n#if{} HAS_FETCH\n#error unexpected\n#endif\n"
    mesa = "#undef __SPIR__\n#define __SPIR64__ 1\n"
    newer = "#undef __SPIR__\n#undef __SPIR64__\n#define __SPIRV64__ 1\n"
    nvidia = "#define __NV_CL_C_VERSION 120\n"
    none = asserted.format("def")
    without = [before + KERNEL + none for before in (mesa, newer, nvidia)]
    for source in (KERNEL + asserted.format("ndef"), *without):
        with session.load(single(source)) as loaded:
            np.testing.assert_array_equal(loaded.run({"x": X}), X)
