"""The hardware of a device: from its profile, from the operating system, or assumed."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liftpy.constraints.device import PROFILE, Device
from liftpy.constraints.hardware import FIGURES, OF_GPUS, Hardware
from liftpy.constraints.profile import Profile, profile, profiles
from liftpy.constraints.profile_text import reported
from liftpy.opencl.devices import reported_figures

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
FREQUENCY = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
PROCESSOR = Path("/proc/cpuinfo")

WORD = 4
"""Bytes of an f32."""

WIDEST = 16 * WORD
"""Bytes of the widest vector."""

PIPES = 2
"""The vector units that compute multiply-adds, of a processor whose profile does not say more."""


def hardware_of(device: Device) -> Hardware:
    """The hardware of a device, each figure with its source.

    A figure is from the device's own profile or, if the device is attached, from its driver or the
    operating system; otherwise from the profile of its model or class (`kin_of`). The rest is
    assumed.
    """
    values, sources = assumed(device)
    found, said = stated(device)
    many = len(found.get("cache_sizes", values["cache_sizes"]))
    for key in FIGURES:
        if key in found:
            values[key], sources[key] = found[key], said[key]
        elif key in ("cache_units", "cache_latencies", "headroom"):
            values[key] = for_caches(values[key], many)
    values |= {k: v for k, v in following(values).items() if k not in found}
    return Hardware.of(values, sources)


def stated(device: Device) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The figures that a profile, the driver or the system states, and the source of each."""
    if device.type == "CPU" and not device.profile:
        return of_this_machine()
    if device.profile:
        own = profile(device.profile)
        found, said = dict(own.figures), dict(own.sources)
    else:
        found = dict[str, Any](reported_figures(device))
        said = dict.fromkeys(found, f"reported by the driver {device.driver_version}")
    kin, exact = kin_of(device)
    if kin is None:
        return found, said
    for key, value in kin.figures.items():
        if key not in found:
            words = f"of {PROFILE}{kin.name}: {kin.sources[key]}"
            said[key] = words if exact else f"assumed: the nearest class, {words}"
            units = {kin.device.compute_units: device.compute_units}
            shares = key == "cache_units"
            found[key] = [units.get(n, n) for n in value] if shares else value
    return found, said


def kin_of(device: Device) -> tuple[Profile | None, bool]:
    """The shipped profile of a GPU's model or nearest class, and whether it is that of its model.

    A profile fits if its name, or a word of its `similar`, occurs in the name of the device; the
    longest one that occurs decides. A word may be the name of a vendor, which stands for all of its
    devices. It is None if none fits, or for a device with a shipped profile or
    that is no GPU.
    """
    known = profiles()
    if device.type != "GPU" or any(p.name == device.profile for p in known):
        return None, False
    words = f"{device.platform} {device.name}".casefold()
    fitting = [
        (len(name), p.device.name == name and name not in p.similar, p)
        for p in known
        for name in dict.fromkeys((p.device.name, *p.similar))
        if p.device.type == "GPU" and name.casefold() in words
    ]
    if not fitting:
        return None, False
    _, exact, kin = max(fitting, key=lambda fit: fit[:2])
    return kin, exact


def profile_of(device: Device, day: str) -> Profile:
    """A device as a profile; the driver of an attached one was asked on this day.

    It has the limits and the figures of hardware that the driver reports; those of a processor of
    this machine are from the operating system. A device from a profile keeps that profile.
    """
    if device.profile:
        return profile(device.profile)
    if device.type == "CPU":
        return reported(device, day, *of_this_machine())
    figures = reported_figures(device)
    by_driver = f"reported by the driver {device.driver_version}"
    return reported(device, day, figures, dict.fromkeys(figures, by_driver))


def following(values: Mapping[str, Any]) -> dict[str, Any]:
    """Assumed figures of a GPU that follow from others.

    Operations and loads are issued side by side. A load from the first cache takes whole lines, one
    after the other unless several fit into what is loaded in a cycle.
    """
    lanes = WORD * values["subgroup"]
    computed = values["flops_per_cycle"] * WORD // 2
    return {
        "instructions": max(1, computed // lanes) + max(1, values["load_bytes"] // lanes),
        "line_lookups": max(1, values["load_bytes"] // values["cache_line"]),
        "sector": values["cache_line"],
    }


def for_caches(values: tuple[Any, ...], many: int) -> tuple[Any, ...]:
    """Assumed values for another number of caches; the last one is that of the last level."""
    *front, last = values
    filled = [*front, *[front[-1] if front else last] * many][: many - 1]
    return (*filled, last)


def assumed(device: Device) -> tuple[dict[str, Any], dict[str, str]]:
    """Figures of a device of which only its limits are known."""
    width = max(device.vector_width, 1)
    if device.type == "CPU":
        values: dict[str, Any] = {
            "cache_sizes": (32 << 10, 1 << 20, 16 << 20),
            "cache_units": (1, 1, device.compute_units),
            "cache_line": 64,
            "cache_latencies": (14, 50, 200),
            "outstanding_misses": 10,
            "vector_registers": 32 if width >= 16 else 16,
            "flops_per_cycle": 2 * PIPES * width,
            "clock": 3000,
            "subgroup": 1,
            "resident_items": 1,
            "register_bytes": 4 * width * (32 if width >= 16 else 16),
            "load_bytes": 2 * 4 * width,
            "memory_bandwidth": 20000,
            "load_latency": 4,
        }
    else:
        values = {
            "cache_sizes": (16 << 10, 1 << 20),
            "cache_units": (1, device.compute_units),
            "cache_line": 64,
            "cache_latencies": (150, 400),
            "outstanding_misses": 64,
            "vector_registers": 256,
            "flops_per_cycle": 2 * 32 * width,
            "clock": 800,
            "subgroup": 32,
            "resident_items": 1024,
            "register_bytes": 256 << 10,
            "load_bytes": 128,
            "memory_bandwidth": 100_000,
            "load_latency": 30,
        }
    values |= {
        "resident_groups": values["resident_items"],
        "unit_local_memory": device.local_memory,
        "item_register_bytes": device.private_memory,
        "unaligned_bytes": WIDEST,
        "launch_ns": 5000,
    }
    values |= following(values)
    values |= {"headroom": (0.9,) * len(values["cache_sizes"]), "micro_kernel": (16, 24)}
    kind = "processor" if device.type == "CPU" else "GPU"
    sources = dict.fromkeys(values, f"assumed: usual for a {kind}")
    if device.type == "CPU":
        sources |= dict.fromkeys(OF_GPUS, "not used by the model of a processor")
    return values, sources


@functools.cache
def of_this_machine() -> tuple[dict[str, Any], dict[str, str]]:
    """The caches and the clock of this machine's processor, as far as Linux states them."""
    values = caches(CACHES)
    sources = dict.fromkeys(values, f"{CACHES}")
    mhz, where = clock(FREQUENCY, PROCESSOR)
    if mhz:
        values["clock"], sources["clock"] = mhz, str(where)
    return values, sources


def caches(folder: Path) -> dict[str, Any]:
    """Sizes, sharing and line of the caches for data that a folder of sysfs describes."""
    found: dict[int, tuple[int, int, int]] = {}
    for index in sorted(folder.glob("index*")):
        said = {
            name: content(index / name)
            for name in ("level", "type", "size", "coherency_line_size", "shared_cpu_list")
        }
        size = re.fullmatch(r"(\d+)K", said["size"])
        numbers = said["level"].isdecimal() and said["coherency_line_size"].isdecimal()
        if said["type"] not in ("Data", "Unified") or size is None or not numbers:
            continue
        line = int(said["coherency_line_size"])
        found[int(said["level"])] = int(size[1]) << 10, units(said["shared_cpu_list"]), line
    levels = [found[level] for level in sorted(found)]
    if not levels or 0 in (line for *_, line in levels):
        return {}
    return {
        "cache_sizes": tuple(size for size, _, _ in levels),
        "cache_units": tuple(shared for _, shared, _ in levels),
        "cache_line": levels[0][2],
    }


def units(text: str) -> int:
    """The number of processors in a list of sysfs.

    >>> units("0-3,8")
    5
    >>> units("")
    1
    """
    ranges = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges) or 1


def clock(frequency: Path, processor: Path) -> tuple[int, Path]:
    """The clock in MHz and the file that states it; 0 if neither file does."""
    text = content(frequency)
    if text.isdecimal():
        return int(text) // 1000, frequency
    found = re.search(r"^cpu MHz\s*:\s*(\d+)", content(processor), re.MULTILINE)
    return (int(found[1]) if found else 0), processor


def content(path: Path) -> str:
    """The text of a file of the operating system, without white space around it; "" if absent."""
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
