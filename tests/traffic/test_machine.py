"""The hardware of a device: what sysfs says, what a profile says, and what is assumed."""

from dataclasses import replace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.hardware import EACH_CACHE, FIGURES
from liftpy.constraints.profile import profiles
from liftpy.opencl.devices import find_device
from liftpy.traffic import machine
from liftpy.traffic.machine import caches, clock, hardware_of, units


def cache(folder, level, kind="Unified", size="1024K", shared="0-3", line="64"):
    folder.mkdir(parents=True)
    said = {
        "level": str(level),
        "type": kind,
        "size": size,
        "shared_cpu_list": shared,
        "coherency_line_size": line,
    }
    for name, text in said.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def test_caches_of_sysfs(tmp_path):
    cache(tmp_path / "index0", 1, "Data", "48K", "0,4")
    cache(tmp_path / "index1", 1, "Instruction", "32K", "0")
    cache(tmp_path / "index2", 2, size="2048K", shared="0,4")
    cache(tmp_path / "index10", 3, size="30720K", shared="0-7")
    assert caches(tmp_path) == {
        "cache_sizes": (48 << 10, 2 << 20, 30 << 20),
        "cache_units": (2, 2, 8),
        "cache_line": 64,
    }


@pytest.mark.parametrize("wrong", [{"size": "-1"}, {"line": ""}, {"line": "0"}, {"kind": ""}])
def test_a_cache_that_sysfs_does_not_describe_is_not_known(tmp_path, wrong):
    cache(tmp_path / "index0", 1, **wrong)
    assert caches(tmp_path) == {}
    assert caches(tmp_path / "absent") == {}


def test_lists_of_processors():
    assert [units(text) for text in ("0", "0-3", "0-1,8-9", "0,2,4")] == [1, 4, 4, 3]


def test_the_clock(tmp_path):
    frequency, processor = tmp_path / "frequency", tmp_path / "cpuinfo"
    assert clock(frequency, processor) == (0, processor)
    processor.write_text("processor\t: 0\ncpu MHz\t\t: 2500.123\n", encoding="utf-8")
    assert clock(frequency, processor) == (2500, processor)
    frequency.write_text("3400000\n", encoding="utf-8")
    assert clock(frequency, processor) == (3400, frequency)


@pytest.mark.parametrize("name", [known.name for known in profiles()])
def test_every_profile_has_hardware(name):
    """What it does not state is assumed, and says so."""
    found, known = hardware_of(find_device(f"profile:{name}")), profiles()
    stated = next(p for p in known if p.name == name)
    assert found.sources.keys() == set(FIGURES)
    assert all(
        text.startswith(("assumed", "not used"))
        for k, text in found.sources.items()
        if k not in stated.figures
    )
    assert len({len(getattr(found, key)) for key in EACH_CACHE}) == 1
    assert found.levels[-1] == "memory"
    assert len(found.levels) == len(found.cache_sizes) + 1


def test_a_processor_of_this_machine_is_described_by_the_system(monkeypatch):
    processor = replace(DEFAULT_DEVICE, type="CPU", vector_width=8, compute_units=4)
    said = {"cache_sizes": (1 << 15, 1 << 20), "cache_line": 64}
    monkeypatch.setattr(machine, "of_this_machine", lambda: (said, dict.fromkeys(said, "/sys")))
    found = hardware_of(processor)
    assert found.cache_sizes == (1 << 15, 1 << 20)
    assert found.cache_latencies == (14, 200)  # memory is behind the second cache
    assert found.cache_units == (1, 4)
    assert found.sources["cache_sizes"] == "/sys"
    assert {"cache_latencies", "headroom", "flops_per_cycle"} <= set(found.assumed)
    assert found.to_json()["cache_line"] == {"value": 64, "source": "/sys"}


def test_a_gpu_is_assumed():
    assert set(hardware_of(DEFAULT_DEVICE).assumed) == set(FIGURES)
