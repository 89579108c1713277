"""choose: a candidate without measuring, its modelled traffic, and what was worse."""

from pathlib import Path

import pytest

from liftpy.constraints.profile import FOLDER
from liftpy.language.text.program import show as program_text
from liftpy.workloads import Convolution, convolution

X86 = ("--device", "profile:xeon-silver-4208")


MATMUL = "matmul/64x64x64"
"""A program of one stage, whose choice takes a twentieth of the time of one of several."""

WINDOWS = convolution(Convolution(3, 6, 7, 4, (3, 1), padding=(1, 1, 0, 0)), "windows")


def test_the_choice_is_a_candidate_that_other_commands_take(liftpy):
    data = liftpy("choose", "tiny.lift", "--set", "pad=copy", *X86, "--json").json
    assert len(data["kernels"]) > 1
    assert data["others"]
    sets = [part for n, v in data["assignment"].items() for part in ("--set", f"{n}={v}")]
    assert liftpy("compile", "tiny.lift", *X86, *sets, "--json").code == 0
    assert liftpy("run", "tiny.lift", *sets, "--json").json["assignment"] == data["assignment"]
    assert data["modelled_ms"] == pytest.approx(sum(data["modelled_parts_ms"].values()))
    assert data["modelled_ms"] == pytest.approx(sum(k["modelled_ms"] for k in data["kernels"]))
    assert all(other["modelled_ms"] >= data["modelled_ms"] for other in data["others"])
    assert set(data["modelled_bytes"]) == {"L2", "L3", "memory", "written"}
    for level, total in data["modelled_bytes"].items():
        arrays = [a[level] for k in data["kernels"] for a in k["modelled_bytes"].values()]
        assert sum(arrays) == total
    assert data["hardware"]["headroom"]["value"] == [0.9, 0.9, 0.9]
    assert data["drawn"] >= data["considered"] > 0


def test_what_is_printed(liftpy):
    said = liftpy("choose", MATMUL, *X86)
    assert said.code == 0, said.err
    assert "modelled time: " in said.out
    assert "modelled traffic, by the level that serves it" in said.out
    assert "why worse" in said.out
    assert "nothing ran" in said.out
    assert "assumed of the device: cache_line, cache_latencies" in said.out
    assert " --set family=" in said.out


@pytest.mark.parametrize(
    "asked",
    [
        (MATMUL,),
        pytest.param(("windows.lift", "--set", "winograd=2x1"), marks=pytest.mark.soak),
    ],
    ids=["one stage", "several"],
)
def test_the_same_request_has_the_same_answer(liftpy, asked):
    """Of one stage, and of partitions into several."""
    Path("windows.lift").write_text(program_text(WINDOWS))
    both = [liftpy("choose", *asked, *X86, "--json").json for _ in range(2)]
    for data in both:
        del data["deriving_s"], data["choosing_s"]
    assert both[0] == both[1]


def test_the_energy_proxy_is_told_on_request(liftpy):
    data = liftpy("choose", MATMUL, *X86, "--energy", "--json").json
    parts = [*data["levels_pj"].values(), *data["operations_pj"].values()]
    assert data["energy_proxy_pj"] == pytest.approx(sum(parts))
    assert data["operations_pj"] == {"* f32": pytest.approx(3.7 * 64**3), "+ f32": 0.9 * 64**3}
    assert set(data["levels_pj"]) == {"L1", "L2", "L3", "memory"}
    assert all(other["energy_proxy_pj"] > 0 for other in data["others"])
    said = liftpy("choose", MATMUL, *X86, "--energy").out
    assert "by the costs of 45nm; no energy is measured" in said
    assert "energy proxy" in said.partition("the best of other families")[2]
    assert "energy" not in liftpy("choose", MATMUL, *X86).out
    alone = liftpy("choose", MATMUL, *X86, "--energy-costs", "45nm")
    assert alone.code == 2
    assert "it needs --energy" in alone.err


def test_settings_narrow_the_choice(liftpy):
    asked = ("--set", "family=direct", "--set", "kappa=2", "--where", "sigma <= 3")
    data = liftpy("choose", "tiny.lift", *X86, *asked, "--json").json
    assert (data["assignment"]["family"], data["assignment"]["kappa"]) == ("direct", 2)
    assert data["assignment"]["sigma"] <= 3


def test_the_profile_decides(liftpy):
    """With caches of a few lines, everything comes from memory again and again."""
    text = (FOLDER / "xeon-silver-4208.toml").read_text()
    assert "value = [32768, 1048576, 4194304]" in text
    Path("small.toml").write_text(
        text.replace("value = [32768, 1048576, 4194304]", "value = [256, 256, 256]")
    )
    usual = liftpy("choose", MATMUL, *X86, "--json").json
    small = liftpy("choose", MATMUL, "--device", "profile:./small.toml", "--json").json
    assert small["modelled_bytes"]["memory"] > 4 * usual["modelled_bytes"]["memory"]
    assert small["modelled_ms"] > usual["modelled_ms"]


def test_no_candidate_is_refused(liftpy):
    said = liftpy("choose", "tiny.lift", *X86, "--memory-limit", 9)
    assert said.code == 1
    assert "the least possible limit is 2464 bytes" in said.err
