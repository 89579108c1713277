"""The hardware of a device: what sysfs says, what a profile says, and what is assumed."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.hardware import EACH_CACHE, FIGURES
from liftpy.constraints.profile import profile, profiles
from liftpy.opencl import devices
from liftpy.opencl.devices import figures_of, find_device
from liftpy.traffic import machine
from liftpy.traffic.machine import caches, clock, hardware_of, kin_of, profile_of, units


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


def gpu(name, platform="NVIDIA CUDA", **others):
    """An attached GPU, as its driver describes it."""
    fields = {"type": "GPU", "vendor": platform, "driver_version": "5.1", **others}
    return replace(DEFAULT_DEVICE, name=name, platform=platform, **fields)


H100 = gpu("NVIDIA H100 80GB HBM3", compute_units=132)


@pytest.mark.parametrize(
    ("device", "kin", "exact"),
    [
        (H100, "nvidia-hopper", True),
        (gpu("NVIDIA GH200 480GB"), "nvidia-hopper", False),
        (gpu("Tesla T4"), "nvidia-ampere", False),
        (gpu("Mali-G72 r0p3", "ARM Platform"), "mali-g72", True),
        (gpu("gfx1100", "AMD Accelerated Parallel Processing"), "amd-rdna2", False),
        (gpu("Intel(R) Iris(R) Xe Graphics", "Intel(R) OpenCL Graphics"), "intel-xe", False),
    ],
)
def test_an_attached_gpu_is_modelled_by_a_profile(device, kin, exact):
    found, same = kin_of(device)
    assert (found.name, same) == (kin, exact)
    hardware = hardware_of(device)
    assert hardware.flops_per_cycle == found.figures["flops_per_cycle"]
    begin = "of profile:" if exact else "assumed: the nearest class, of profile:"
    assert hardware.sources["flops_per_cycle"].startswith(f"{begin}{kin}: ")
    assert hardware.cache_units[-1] == device.compute_units
    assert ("flops_per_cycle" in hardware.assumed) is not exact


@pytest.mark.parametrize(
    "device",
    [DEFAULT_DEVICE, gpu("NVIDIA H100", type="CPU"), find_device("profile:nvidia-ampere")],
)
def test_no_profile_stands_for_another_kind_of_device(device):
    assert kin_of(device) == (None, False)


NVIDIA = {
    "extensions": "cl_khr_fp64 cl_nv_device_attribute_query",
    "max_clock_frequency": 1980,
    "global_mem_cacheline_size": 128,
    "global_mem_cache_size": 4325376,
    "warp_size_nv": 32,
    "registers_per_block_nv": 65536,
    "compute_capability_major_nv": 9,
    "compute_capability_minor_nv": 0,
}


def test_a_driver_reports_figures():
    known = {"clock": 1980, "cache_line": 128, "subgroup": 32, "register_bytes": 262144}
    assert figures_of(SimpleNamespace(**NVIDIA)) == known
    other = SimpleNamespace(
        extensions="cl_khr_fp16", max_clock_frequency=850, global_mem_cacheline_size=0
    )
    assert figures_of(other) == {"clock": 850}


def test_the_profile_of_an_attached_gpu_has_what_its_driver_reports(monkeypatch):
    handle = SimpleNamespace(**{**NVIDIA, "max_clock_frequency": 1755})
    monkeypatch.setattr(devices, "_found", lambda: (((H100, handle),), (), ()))
    made = profile_of(H100, "2026-11-27")
    assert made.figures == figures_of(handle)
    assert made.sources["subgroup"] == "reported by the driver 5.1 on 2026-11-27"
    assert devices.other_reports(H100) == [
        "its cache of global memory has 4325376 bytes",
        "its compute capability is 9.0",
    ]
    hardware = hardware_of(H100)
    assert hardware.clock == 1755  # not the boost clock of the profile
    assert hardware.sources["clock"] == "reported by the driver 5.1"
    assert hardware.load_bytes == profile("nvidia-hopper").figures["load_bytes"]
