"""Whole campaigns in which candidates, workers and the device misbehave, through real processes."""

import functools
import json
import sys
from dataclasses import replace

import pytest

from liftpy.cli import main
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import WorkerRefused
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.exploring import explore
from liftpy.explore.measure.measurer import BENCH, Measurer
from liftpy.explore.space.candidate import program_text
from liftpy.explore.spaces import space_of
from tests.explore.killing import TINY as PROGRAM
from tests.explore.misbehaving import command
from tests.explore.pace import ceiling, limits
from tests.explore.spaces import places
from tests.processes import started
from tests.shared import in_one_process

FAMILIES = ["plain", "direct"]
OPTIONS = ["--family", "plain", "--family", "direct", "--search", "random"]

# What candidates do by their place, and what then is to be said of them; limits in seconds.
DOES = {
    1: (
        "loops",
        "timed_out",
        "running it for the first time did not end within {candidate_limit:.0f} s",
    ),
    2: ("is wrong", "wrong", "it should be"),
    3: ("strays", "stray", "wrote from byte 672 to byte 675 of buffer output"),
    4: ("dies", "crashed", "signal SIG"),
    6: (
        "builds",
        "timed_out",
        "building it did not end within {build_limit:.0f} s (--build-limit)",
    ),
    7: ("fills", "out_of_memory", "its process held"),
}

pytestmark = pytest.mark.usefixtures("derived_once", "plain_workers")

INTEL = pytest.mark.parametrize("runtime", ["intel"], indirect=True)


@pytest.fixture
def misbehave(monkeypatch, runtime, tmp_path):
    """Has candidates do something else, by their place; the workers of the campaigns that run."""
    drawn = places(space_of(PROGRAM, runtime, families=FAMILIES), 10)
    start, made = Measurer.__init__, []

    def change(does):
        compiling = command([(drawn[k], what) for k, what in does.items()], tmp_path / "fifo")

        @functools.wraps(start)
        def init(self, *args, **kwargs):
            start(self, *args, **kwargs, compiling=compiling, ceiling=ceiling(runtime))
            made.append(self)

        monkeypatch.setattr(Measurer, "__init__", init)
        return made

    return change


@pytest.fixture
def liftpy(capsys, monkeypatch, tmp_path):
    """The exit code of a command, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    (tmp_path / "tiny.lift").write_text(program_text(PROGRAM))

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return call


def run(path, samples, device, **options):
    options |= {"families": FAMILIES, "search": "random", "again": False}
    return explore(PROGRAM, samples, 0, path, device, **options)


@pytest.mark.parametrize(
    ("runtime", "all_of"),
    [
        *(pytest.param(name, True, marks=pytest.mark.soak) for name in ("intel", "pocl")),
        ("pocl", False),
    ],
    indirect=["runtime"],
)
def test_a_campaign_goes_on_whatever_its_candidates_do(
    misbehave, runtime, all_of, tmp_path, liftpy
):
    """Without `all_of`, candidates that run until they are ended are left to test_bench.py."""
    doing = {place: d for place, d in DOES.items() if all_of or d[0] not in {"loops", "fills"}}
    misbehave({place: does for place, (does, _, _) in doing.items()})
    killed, seconds = [], limits(runtime)

    def kill(progress):  # while a candidate that does nothing wrong is under way
        if progress.done == 9 and progress.outcome is None and not killed:
            killed.extend(started(BENCH))
            for bench in killed:
                bench.kill()

    found = run(tmp_path / "a.db", 10, runtime, progress=kill, **seconds)
    assert len(killed) == 1
    for row in found.rows:
        _, outcome, reason = doing.get(row.ordinal, ("", "measured", "right to"))
        assert row.outcome == outcome, row.reason
        assert reason.format(**seconds) in row.reason
    kinds = [doing[k][1] if k in doing else "measured" for k in range(10)]
    assert found.counts == {kind: kinds.count(kind) for kind in kinds}
    assert {row.outcome for row in found.pareto()} == {"measured"}

    counts = ", ".join(f"{n} {kind}" for kind, n in found.counts.items())
    code, said = liftpy(
        "explore",
        "tiny.lift",
        "-n",
        10,
        *OPTIONS,
        "--device",
        runtime.platform,
        "--no-again",
        "--db",
        "a.db",
    )
    assert (code, f"10 of 10 candidates: {counts}" in said) == (0, True), said
    _, said = liftpy("candidates", "a.db")
    assert f"10 candidates: {counts}" in said
    _, said = liftpy("candidates", "a.db", "--json")
    assert [row["outcome"] for row in json.loads(said)] == kinds


@pytest.mark.soak  # test_campaign.py::test_a_campaign_of_which_nothing_is_right_says_why
@INTEL
def test_a_campaign_in_which_nothing_is_right_exits_with_3(misbehave, liftpy):
    misbehave({1: "strays", 0: "is wrong"})
    code, said = liftpy(
        "explore", "tiny.lift", "-n", 2, *OPTIONS, "--device", "intel", "--db", "a.db"
    )
    assert code == 3
    assert "no candidate of tiny was measured; 2 candidates tried:" in said
    assert "1 x stray: " in said
    assert "1 x wrong: " in said


@INTEL
@pytest.mark.sampled(2)
@pytest.mark.parametrize("dies", [False, True], ids=["between candidates", "under a candidate"])
def test_a_campaign_whose_device_is_gone_says_so_and_goes_on_later(
    misbehave, runtime, tmp_path, monkeypatch, dies
):
    path = tmp_path / "a.db"
    measurers = misbehave({1: "dies"} if dies else {})

    def lose(progress):
        if progress.done == 1 and progress.outcome is None:
            (measurer,) = measurers
            there = measurer.bench.setup
            measurer.bench.setup = replace(there, device=replace(DEFAULT_DEVICE, name="Gone"))
            if not dies:
                measurer.bench.kill()

    with pytest.raises(WorkerRefused) as lost:
        run(path, 4, runtime, progress=lose)
    assert lost.value.exit_code == 1
    text = str(lost.value)
    assert text.startswith("the campaign stopped: this machine has no device")
    stored = "2 candidates are" if dies else "1 candidate is"
    assert f"{stored} stored in {path}; fix this, and repeat the command to continue" in text
    first, *others = Campaign.read(path).rows
    assert first.outcome == "measured"
    ended = [row.outcome for row in others if row.outcome != "pending"]  # it was not launched
    assert ended == ["crashed"] * dies
    if dies:
        assert "signal SIG" in others[0].reason
        assert "no other process could be started: this machine has no" in others[0].reason
    monkeypatch.undo()
    with in_one_process(tmp_path):
        kinds = [row.outcome for row in run(path, 4, runtime).rows]
    assert kinds == ["measured", "crashed" if dies else "measured", "measured", "measured"]
