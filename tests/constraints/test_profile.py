"""Devices that are not attached: what their files say, and what is said of files that are wrong."""

import json
import os
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, PROFILE, fits
from liftpy.constraints.hardware import FIGURES
from liftpy.constraints.profile import FOLDER, LIMITS, OPTIONAL, profile, profiles, read
from liftpy.constraints.profile_text import text_of
from liftpy.errors import DeviceRefused, LiftError, SyntaxRefused, UnknownName
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from tests.cli.said import PROGRAM

TEXT = (FOLDER / "mali-g72.toml").read_text(encoding="utf-8")
KNOWN = [
    "adreno-540",
    "adreno-650",
    "adreno-740",
    "amd-rdna2",
    "desktop-gpu",
    "intel-xe",
    "mali-g610",
    "mali-g710",
    "mali-g72",
    "mali-g76",
    "mali-g78",
    "nvidia-ampere",
    "nvidia-hopper",
    "power10",
    "powervr-rogue",
    "xeon-silver-4208",
]


def test_the_profiles_are_listed():
    assert [p.name for p in profiles()] == KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_every_limit_has_its_source(name):
    found = profile(name)
    given = {key for key in OPTIONAL if getattr(found.device, key)}
    assert found.sources.keys() == {*LIMITS, *given, *found.figures}
    assert all(len(source) > 10 for source in found.sources.values())
    assert found.device.profile == name
    assert set(found.assumed) <= {*LIMITS, *OPTIONAL, *found.figures}


OF_PROCESSORS = {
    "cache_latencies",
    "headroom",
    "outstanding_misses",
    "vector_registers",
    "micro_kernel",
    "launch_ns",
}
"""The figures that the profile of a GPU may leave to the model."""

OF_SOME_GPUS = {
    "resident_groups",
    "unit_local_memory",
    "item_register_bytes",
    "instructions",
    "line_lookups",
    "load_latency",
    "unaligned_bytes",
    "sector",
}
"""Further ones, which follow from the others if nothing else is known."""


@pytest.mark.parametrize("name", [p.name for p in profiles() if p.device.type == "GPU"])
def test_a_gpu_states_what_its_model_uses(name):
    found = profile(name)
    has = found.figures
    assert has.keys() >= set(FIGURES) - OF_PROCESSORS - OF_SOME_GPUS
    assert sorted(has["cache_sizes"]) == list(has["cache_sizes"])
    assert 1 <= has["cache_units"][0] <= has["cache_units"][-1] == found.device.compute_units
    assert has["resident_items"] % has["subgroup"] == 0
    assert has["resident_items"] >= found.device.max_work_group_size
    assert has["register_bytes"] / has["resident_items"] >= 64


@pytest.mark.parametrize(
    ("name", "driver"),
    [
        ("adreno-650", "QUALCOMM Snapdragon(TM): QUALCOMM Adreno(TM)"),
        ("adreno-740", "QUALCOMM Snapdragon(TM): QUALCOMM Adreno(TM) 740"),
        ("mali-g710", "ARM Platform: Mali-G710 r0p0"),
        ("powervr-rogue", "PowerVR: PowerVR B-Series BXE-4-32"),
        ("nvidia-ampere", "NVIDIA CUDA: NVIDIA GeForce RTX 3090"),
        ("nvidia-hopper", "NVIDIA CUDA: NVIDIA H100 80GB HBM3"),
        ("amd-rdna2", "AMD Accelerated Parallel Processing: gfx1030"),
        ("intel-xe", "Intel(R) OpenCL Graphics: Intel(R) Iris(R) Xe Graphics"),
    ],
)
def test_a_board_finds_its_device_by_a_profile(name, driver):
    platform, _, device = driver.partition(": ")
    attached = replace(DEFAULT_DEVICE, platform=platform, name=device)
    assert fits(attached, profile(name).device.name.casefold())


def test_the_mali_g72_is_that_of_the_published_search():
    device = find_device("profile:Mali-G72")
    assert device.max_work_group_size == 384
    assert device.max_work_item_sizes == (384, 384, 384)
    assert device.local_memory == 32 * 1024
    assert device.largest_buffer == 1024**3
    assert device.global_memory == 4 * 1024**3
    assert device.private_memory == 10 * 64 * 4
    assert device.extensions == ("cl_khr_fp16",)


LOWERED = {
    "max_work_group_size": 7,
    "max_work_item_sizes": (7, 7, 7),
    "local_memory": 100,
    "largest_buffer": 400,
    "global_memory": 2000,
    "private_memory": 12,
}


@cache
def limits(device):
    """Every condition that a device asks for, and who asks."""
    space = lp.space(PROGRAM, device, families=["local", "staged"])
    return {(c["text"], c["asked_by"]) for c in space.constraints}


@pytest.mark.parametrize("limit", LOWERED)
def test_a_limit_enters_the_system(limit):
    assert limits(replace(DEFAULT_DEVICE, **{limit: LOWERED[limit]})) - limits(DEFAULT_DEVICE)


def test_what_bounds_nothing_is_known():
    """Extensions refuse a program as a whole; how many units, and how wide, bounds no size."""
    assert set(LIMITS) - LOWERED.keys() == {"extensions", "compute_units", "vector_width"}


@pytest.mark.parametrize(("name", "group"), [("mali-g72", 384), ("adreno-650", 1024)])
def test_a_space_on_a_profile_keeps_its_limits(name, group):
    asked = dict(map(reversed, limits(find_device(f"profile:{name}"))))
    assert asked["device work-group size of kernel k1_t3"].endswith(f"<= {group}")


def test_a_scalar_type_that_a_profile_lacks_is_refused():
    program = lp.parse("def p(xs: [12]f64) = xs |> map(x => x * x)")
    assert lp.space(program, device="profile:desktop-gpu").count()
    with pytest.raises(DeviceRefused, match="has no f64, as it lacks cl_khr_fp64"):
        lp.space(program, device="profile:mali-g72")


def test_a_file_of_the_users_is_a_profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("board.toml").write_text(TEXT.replace("value = 384", "value = 100"), encoding="utf-8")
    for name in ("board.toml", "./board.toml", str(tmp_path / "board.toml")):
        device = find_device(f"{PROFILE}{name}")
        assert device.max_work_group_size == 100
        assert device.profile == name


def test_nothing_runs_on_a_profile(golden):
    with pytest.raises(DeviceRefused) as refusal:
        Session(find_device("profile:adreno-650"))
    golden(str(refusal.value))
    for use in (lp.explore, lp.compile):
        with pytest.raises(DeviceRefused, match="nothing can run on profile:mali-g72"):
            use(lp.parse("def p(xs: [4]f32) = xs"), device="profile:mali-g72")


WRONG = {
    "no toml": ("value = 384\n", "value = 384 items\n"),
    "cut off": (TEXT[TEXT.index("[vector_width]") :], "[vector_width"),
    "a truth value": ("value = 384\n", "value = true\n"),
    "a number below 1": ("value = 32768", "value = 0"),
    "a fraction": ("value = 32768", "value = 32.5"),
    "two sizes": ("[384, 384, 384]", "[384, 384]"),
    "a number as extension": ('["cl_khr_fp16"]', "[16]"),
    "a misspelt limit": ("[local_memory]", "[local_memry]"),
    "an unknown limit": ("[vector_width]", "[threads]"),
    "a limit that is missing": ("[vector_width]\nvalue = 4\n", ""),
    "an empty source": ('source = "settings of Lift"', 'source = " "'),
    "no source": ('source = "settings of Lift: 1 GiB"\n', ""),
    "a limit without a table": ('type = "GPU"\n', 'type = "GPU"\nlargest_buffer = 7\n'),
    "more than a limit has": ("value = 1073741824\n", "value = 1073741824\nunit = 1\n"),
    "a type of device": ('type = "GPU"', 'type = "NPU"'),
    "a name that is missing": ('name = "Mali-G72"\n', ""),
    "a name that is a number": ('name = "Mali-G72"', "name = 72"),
    "nothing": (TEXT, ""),
    "similar devices that are no list": ('type = "GPU"\n', 'type = "GPU"\nsimilar = "Mali"\n'),
    "a similar device without a name": ('type = "GPU"\n', 'type = "GPU"\nsimilar = [""]\n'),
    "brackets in brackets": (TEXT, f"name = {'[' * 5000}{']' * 5000}"),
    "tables in tables": ("value = 384\n", f"value{'.a' * 1500} = 1\n"),
    "a number of 5000 digits": ("value = 384\n", f"value = {'1' * 5000}\n"),
    "a number of 64 bits": ("value = 384\n", f"value = {2**63}\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_profile_is_refused_with_the_line(golden, name):
    old, new = WRONG[name]
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if name == "a limit without a table":
        text = text[: text.index("[largest_buffer]")] + text[text.index("[global_memory]") :]
    if name == "a limit that is missing":
        text = text[: text.index('source = "assumed: clinfo of other')] + text[text.index("[ext") :]
    with pytest.raises(SyntaxRefused) as refusal:
        read(text, "./board.toml")
    golden(str(refusal.value))


@pytest.mark.parametrize("name", ["mali-g27", "gtx"])
def test_a_profile_that_is_not_there_is_refused_with_those_there_are(golden, name):
    with pytest.raises(UnknownName) as refusal:
        profile(name)
    golden(str(refusal.value))


def test_a_copy_of_a_profile_names_the_same_similar_devices():
    found = profile("nvidia-hopper")
    assert found.similar == ("NVIDIA GH200", "NVIDIA H20", "NVIDIA H200", "NVIDIA H800")
    assert read(text_of(found), found.name) == found


def test_a_file_that_is_not_there_is_said(tmp_path):
    for name in ("./none.toml", "folder/none"):
        with pytest.raises(
            LiftError, match=f"the profile {Path(name)} cannot be read: No such file"
        ):
            profile(name)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(LiftError, match="cannot be read: it is not UTF-8 text"):
        profile(str(tmp_path / "bytes.toml"))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(LiftError, match="cannot be read: it is a pipe, not a file"):
        profile(str(tmp_path / "pipe.toml"))


XEON = (FOLDER / "xeon-silver-4208.toml").read_text(encoding="utf-8")
WRONG_FIGURES = {
    "a headroom above 1": ("value = [0.9, 0.9, 0.9]", "value = [0.9, 1.9, 0.9]"),
    "a latency too few": ("value = [14, 50, 200]", "value = [14, 200]"),
    "no sizes of caches": ("[cache_sizes]\n", "[vector_registers]\n"),
    "a clock that is a fraction": ("value = 2100", "value = 2.1"),
    "a micro-kernel of one number": ("value = [16, 24]", "value = [16]"),
}


@pytest.mark.parametrize("name", WRONG_FIGURES)
def test_hardware_that_cannot_be_is_refused_with_the_line(golden, name):
    old, new = WRONG_FIGURES[name]
    assert old in XEON
    text = XEON.replace(old, new, 1)
    if name == "no sizes of caches":
        text = XEON[: XEON.index("[cache_sizes]")] + XEON[XEON.index("[cache_units]") :]
    with pytest.raises(SyntaxRefused) as refusal:
        read(text, "./board.toml")
    golden(str(refusal.value))


def test_a_profile_may_be_json(tmp_path, golden):
    data = tomllib.loads(XEON)
    path = tmp_path / "board.json"
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    device, known = find_device(f"{PROFILE}{path}"), find_device("profile:xeon-silver-4208")
    assert device == replace(known, profile=str(path))
    assert profile(str(path)).figures == profile("xeon-silver-4208").figures
    wrong = {
        "cut off": path.read_text(encoding="utf-8")[:-9],
        "a list": "[1]",
        "a wrong value": json.dumps(data | {"clock": {"value": 0, "source": "x"}}, indent=2),
    }
    said: list[str] = []
    for name, text in wrong.items():
        with pytest.raises(SyntaxRefused) as refusal:
            read(text, "./board.json")
        said.append(f"{name}: {refusal.value}\n")
    golden("".join(said))
