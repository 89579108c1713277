"""The OpenCL devices of this machine, in a fixed order, and the device that a name selects."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from liftpy.constraints.device import KNOWN_EXTENSIONS, PROFILE, Device, Kind, fits, those_named
from liftpy.constraints.profile import profile, profiles
from liftpy.errors import DeviceRefused, UnknownName
from liftpy.ir.types import VNNI
from liftpy.language.entry import entry
from liftpy.opencl import byte_dots, runtimes
from liftpy.opencl.driver import cl, opened, reason

HOW_TO_GET_A_DEVICE = (
    "Install an OpenCL runtime: `pip install 'liftpy[cpu]'` on x86-64 (no root needed), "
    "Debian's `pocl-opencl-icd` on other processors, or the driver of the GPU's vendor."
)

NVIDIA_ATTRIBUTES = "cl_nv_device_attribute_query"
"""The extension of drivers that report attributes of NVIDIA's hardware."""

REGISTER = 4
"""Bytes of a register of a work-item."""


@entry("lp.devices")
def devices() -> tuple[Device, ...]:
    """The OpenCL devices of this machine, in a fixed order.

    GPUs come first, then accelerators, then processors (Intel's runtime before the others), and
    simulators (Oclgrind) last. Empty if there is none; `find_device` then says what to install.

    >>> lp.devices()[0].max_work_group_size >= 1  # doctest: +SKIP
    True
    """
    return tuple(device for device, _ in _found()[0])


def device_notes() -> tuple[str, ...]:
    """Sentences about installed runtimes that cannot be used, or have no device."""
    _, failed, empty = _found()
    return (*failed, *empty)


@entry("lp.find_device")
def find_device(selector: str | None = None) -> Device:
    """The device that a selector names.

    None is the first device, a number the one with that index in `devices()`, and anything else
    a part of "PLATFORM DEVICE TYPE" in any case: "portable", "nvidia", "cpu". The words "intel",
    "pocl", "rusticl" and "oclgrind" select these runtimes. "profile:NAME" is a device that is not
    attached (liftpy/constraints/profile.py): nothing runs on it.

    >>> lp.find_device("profile:mali-g72").max_work_group_size
    384

    Raises DeviceRefused if there is no device at all, UnknownName if none fits. If `selector` is
    None, warns about each installed runtime that cannot be used.
    """
    if selector is not None and selector.startswith(PROFILE):
        return profile(selector.removeprefix(PROFILE)).device
    known = devices()
    if not known:
        notes = " ".join(("no OpenCL device was found.", *device_notes(), HOW_TO_GET_A_DEVICE))
        raise DeviceRefused(notes)
    if selector is None:
        for note in _found()[1]:
            warnings.warn(f"{note} Using {known[0].name} ({known[0].platform}).", stacklevel=3)
        return known[0]
    fitting = those_named(selector, known)
    if not fitting:
        listing = [f"  {index}  {d.platform}: {d.name}" for index, d in enumerate(known)]
        refused = f"no device matches '{selector}'; name one by its number or a part of its name:"
        word = selector.casefold().strip()
        named = bool(word) and not word.isdecimal()
        found = [f"{PROFILE}{p.name}" for p in profiles() if named and word in p.name]
        hint = [f"or, for its limits only, {' or '.join(found)}"] if found else []
        _, failed, empty = _found()
        meant = [note for note in empty if word and word in note.casefold()]
        raise UnknownName("\n".join((refused, *listing, *hint, *failed, *meant)))
    return fitting[0]


def handle_of(device: Device) -> cl.Device:
    """The pyopencl handle of a device. Raises DeviceRefused if this machine does not have it."""
    wanted = (device.fingerprint, device.ordinal)
    handle = next((h for d, h in _found()[0] if (d.fingerprint, d.ordinal) == wanted), None)
    if handle is None:
        here = ", ".join(f"{d.platform}: {d.name}" for d in devices()) or "none"
        raise DeviceRefused(
            f"this machine has no device {device.platform}: {device.name} with driver "
            f"{device.driver_version}; it has: {here}. {HOW_TO_GET_A_DEVICE}"
        )
    return handle


def reported_figures(device: Device) -> dict[str, int]:
    """The figures of its hardware (`Hardware`) that a driver reports; none if it is not attached.

    All of OpenCL's drivers report the clock and the cache line of a device, some as 0. NVIDIA's
    report the size of a warp and the registers of a group; a unit has at least as many.
    """
    wanted = (device.fingerprint, device.ordinal)
    handle = next((h for d, h in _found()[0] if (d.fingerprint, d.ordinal) == wanted), None)
    return {} if handle is None else figures_of(handle)


def figures_of(handle: cl.Device) -> dict[str, int]:
    """The figures of hardware that the driver of a device reports."""
    found = {"clock": handle.max_clock_frequency, "cache_line": handle.global_mem_cacheline_size}
    if NVIDIA_ATTRIBUTES in handle.extensions.split():
        found["subgroup"] = handle.warp_size_nv
        found["register_bytes"] = REGISTER * handle.registers_per_block_nv
    return {key: int(value) for key, value in found.items() if value > 0}


def other_reports(device: Device) -> list[str]:
    """What a driver reports of the hardware of an attached device beside limits and figures."""
    handle = handle_of(device)
    found = [f"its cache of global memory has {handle.global_mem_cache_size} bytes"]
    if NVIDIA_ATTRIBUTES in handle.extensions.split():
        major, minor = handle.compute_capability_major_nv, handle.compute_capability_minor_nv
        found.append(f"its compute capability is {major}.{minor}")
    return found


@functools.cache
def _found() -> tuple[tuple[tuple[Device, cl.Device], ...], tuple[str, ...], tuple[str, ...]]:
    """Devices with their handles, in order; notes on runtimes that fail, and on those without any.

    The latter matter only to users who want such a runtime.
    """
    module, said = opened()
    if module is None:
        return (), said, ()
    notes, empty = list(said), list[str]()
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        if error.code != cl.status_code.PLATFORM_NOT_FOUND_KHR:
            notes.append(f"The OpenCL loader failed: {reason(error)}.")
        return (), tuple(notes), ()
    handles: list[tuple[Device, cl.Device]] = []
    for platform in platforms:
        name = platform.name.strip()
        try:
            found = platform.get_devices()
            handles += [(_describe(platform, handle), handle) for handle in found]
        except cl.Error as error:
            notes.append(f"The platform {name} failed: {reason(error)}.")
            continue
        if not found:
            empty += runtimes.why_empty(name)
    handles.sort(key=lambda pair: _rank(pair[0]))
    return tuple(_numbered(handles)), tuple(notes), tuple(empty)


def _describe(platform: cl.Platform, handle: cl.Device) -> Device:
    sizes = tuple(int(size) for size in handle.max_work_item_sizes[:3])
    offered = extensions_of(handle) | processor_extensions(platform.name, handle)
    return Device(
        name=handle.name.strip(),
        vendor=handle.vendor.strip(),
        platform=platform.name.strip(),
        driver_version=handle.driver_version.strip(),
        opencl_c=handle.opencl_c_version.strip(),
        type=_kind(handle.type),
        compute_units=handle.max_compute_units,
        max_work_group_size=handle.max_work_group_size,
        max_work_item_sizes=(sizes[0], sizes[1], sizes[2]),
        local_memory=handle.local_mem_size,
        largest_buffer=handle.max_mem_alloc_size,
        global_memory=handle.global_mem_size,
        vector_width=handle.native_vector_width_float,  # preferred is 1 if the driver vectorizes
        image_texels=handle.image_max_buffer_size if handle.image_support else 0,
        extensions=tuple(e for e in KNOWN_EXTENSIONS if e in offered),
    )


def extensions_of(handle: cl.Device) -> set[str]:
    """The extensions of a device and, if it has OpenCL 3, the features of its compiler."""
    found = set(handle.extensions.split())
    if int(handle.version.split()[1].partition(".")[0]) >= 3:  # "OpenCL 3.0 ..."
        found |= {feature.name for feature in handle.opencl_c_features}
    return found


def processor_extensions(platform: str, handle: cl.Device) -> set[str]:
    """The instructions of this machine's processor for which liftpy knows a way to call them."""
    if not handle.type & cl.device_type.CPU or platform.strip() not in byte_dots.PLATFORMS:
        return set()
    return {VNNI} & byte_dots.of_processor()


def _kind(bits: int) -> Kind:
    """The type of a device; a simulator, which claims every type, counts as a processor."""
    if bits & cl.device_type.CPU:
        return "CPU"
    return "GPU" if bits & cl.device_type.GPU else "ACCELERATOR"


def _rank(device: Device) -> tuple[int, bool, str, str, str]:
    """The sort key of a device; the loader's own order is that of a directory."""
    kind = {"GPU": 0, "ACCELERATOR": 1, "CPU": 2}[device.type]
    rank = 3 if fits(device, "oclgrind") else kind
    return rank, not fits(device, "intel"), device.platform, device.name, device.driver_version


def _numbered(
    handles: Iterable[tuple[Device, cl.Device]],
) -> Iterator[tuple[Device, cl.Device]]:
    """Yield the devices, with ordinals for equal ones."""
    seen: Counter[str] = Counter()
    for device, handle in handles:
        yield replace(device, ordinal=seen[device.fingerprint]), handle
        seen[device.fingerprint] += 1
