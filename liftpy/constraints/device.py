"""What the constraint system knows of a device: its limits, as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from liftpy.errors import DeviceRefused
from liftpy.ir.types import EXTENSIONS, INTEGER_DOTS, SUBGROUPS, VNNI

Kind = Literal["CPU", "GPU", "ACCELERATOR"]

PRIVATE_LIMIT = 8192
"""Bytes of private memory that a work-item may hold, if no better figure is known.

OpenCL defines no limit: what does not fit into registers is spilled, which is slow. The largest
register files hold 1 KiB per work-item (256 registers of 32 bits); eight times as much is beyond
any use.
"""


KNOWN_EXTENSIONS = (*EXTENSIONS.values(), *INTEGER_DOTS, *SUBGROUPS, VNNI)
"""The OpenCL extensions that kernels may use: those of scalar types, and those of instructions.

The instructions of processors are among them."""


@dataclass(frozen=True, slots=True)
class Device:
    """An OpenCL device and the limits that programs for it must keep.

    All sizes are in bytes. `opencl_c` is the version of OpenCL C that its driver compiles,
    `vector_width` the number of f32 lanes of its vectors, `max_work_item_sizes` the largest
    work-group in each dimension, `extensions` those of `KNOWN_EXTENSIONS` that it has, and
    `private_memory` what a work-item may hold before it is assumed to spill. `image_texels` is the
    number of texels of the largest image of a buffer (`CL_DEVICE_IMAGE_MAX_BUFFER_SIZE`); it is 0
    if the device has no images, or if its limit is not known.
    `ordinal` distinguishes devices that are equal in all else: it is 1 for the second of two cards
    of one model, and so on. `profile` is the name of the file with the limits, if the device is not
    attached (liftpy/constraints/profile.py).
    """

    name: str
    vendor: str
    platform: str
    driver_version: str
    opencl_c: str
    type: Kind
    compute_units: int
    max_work_group_size: int
    max_work_item_sizes: tuple[int, int, int]
    local_memory: int
    largest_buffer: int
    global_memory: int
    vector_width: int
    ordinal: int = 0
    extensions: tuple[str, ...] = tuple(EXTENSIONS.values())
    private_memory: int = PRIVATE_LIMIT
    profile: str = ""
    image_texels: int = 0

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits for name, driver and platform, the same on every machine.

        Times of two devices may be compared in one table only if their fingerprints are equal.
        """
        identity = json.dumps([self.name, self.driver_version, self.platform])
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """A readable name of the device: `PLATFORM: NAME`."""
        return f"{self.platform}: {self.name}"

    def to_json(self) -> dict[str, Any]:
        """The device as JSON data, with its fingerprint."""
        data = asdict(self)
        data["max_work_item_sizes"] = list(self.max_work_item_sizes)
        data["extensions"] = list(self.extensions)
        return data | {"fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Device:
        """The device that `to_json` wrote; the fingerprint follows from the rest.

        Raises TypeError for a missing or unknown field.
        """
        fields = {name: value for name, value in data.items() if name != "fingerprint"}
        for name in {"max_work_item_sizes", "extensions"} & fields.keys():
            fields[name] = tuple(fields[name])
        return cls(**fields)


PROFILE = "profile:"
"""The prefix of a profile's name where a device is named."""

DEFAULT_DEVICE = Device(
    name="generic",
    vendor="liftpy",
    platform="generic",
    driver_version="0",
    opencl_c="OpenCL C 1.2",
    type="GPU",
    compute_units=1,
    max_work_group_size=1024,
    max_work_item_sizes=(1024, 1024, 1024),
    local_memory=32 * 1024,
    largest_buffer=1024**3,
    global_memory=4 * 1024**3,
    vector_width=4,
)
"""The device for a program that is compiled for no device in particular.

The limits are those that desktop and server devices of the last ten years satisfy; local memory is
what the full profile of OpenCL 1.2 guarantees. A small GPU may allow less (a Mali of 2015 has
work-groups of 256): name the device to get its own limits.
"""


LIMITS = (
    "max_work_group_size",
    "local_memory",
    "largest_buffer",
    "global_memory",
    "private_memory",
    "image_texels",
)
"""The limits of a device that are one number each, in bytes, work-items or texels."""


def meet(devices: Sequence[Device]) -> Device:
    """A device whose programs run on all of these devices: its limits are the least of theirs.

    If the devices are equal in all else, the result is like them; otherwise its name lists them.
    """
    first = devices[0]
    least = {name: min(getattr(d, name) for d in devices) for name in (*LIMITS, "compute_units")}
    items = tuple(
        min(sizes) for sizes in zip(*(d.max_work_item_sizes for d in devices), strict=True)
    )
    common = [e for e in first.extensions if all(e in d.extensions for d in devices)]
    texts = {
        name: " + ".join(dict.fromkeys(str(getattr(d, name)) for d in devices))
        for name in ("name", "vendor", "platform", "driver_version", "opencl_c")
    }
    return replace(
        first,
        **texts,
        **least,
        max_work_item_sizes=(items[0], items[1], items[2]),
        vector_width=min(d.vector_width for d in devices),
        extensions=tuple(common),
        ordinal=min(d.ordinal for d in devices),
    )


def shortfalls(device: Device, needed: Device) -> list[str]:
    """The limits in which a device is below the one candidates were drawn for, with the values."""
    found = [
        f"{name.replace('_', ' ')} {has}, candidates may need {asked}"
        for name in LIMITS
        if (has := getattr(device, name)) < (asked := getattr(needed, name))
    ]
    for has, asked in zip(device.max_work_item_sizes, needed.max_work_item_sizes, strict=True):
        if has < asked:
            found.append(f"work-group of {has} in a dimension, candidates may need {asked}")
    found += [f"no {e}" for e in needed.extensions if e not in device.extensions]
    return found


def check_attached(device: Device) -> None:
    """Refuse to run anything on a device that is known only by its profile."""
    if device.profile:
        raise DeviceRefused(
            f"nothing can run on {PROFILE}{device.profile}: a profile holds the limits of a device "
            f"that is not attached ({device.name}). `space`, `explain`, `choose`, `show`, "
            "`derive`, `compile`, `export` and `explore --modelled` take one; to run and measure, "
            "name a device of `liftpy devices`."
        )


def check_extensions(what: str, needed: Iterable[str], device: Device) -> None:
    """Refuse a computation in a scalar type that the device does not have."""
    types = {extension: t.name for t, extension in EXTENSIONS.items()}
    for extension in needed:
        if extension not in device.extensions:
            raise DeviceRefused(
                f"{what} computes in {types[extension]}; {device.name} ({device.platform}) has no "
                f"{types[extension]}, as it lacks {extension}. Use f32, or a device that has it."
            )


# A selector that is one of these words names the runtime, not a processor of that vendor.
_RUNTIMES = {
    "intel": "intel(r) opencl",
    "pocl": "portable computing language",
    "rusticl": "rusticl",
    "oclgrind": "oclgrind",
}


def those_named(selector: str, known: Sequence[Device]) -> Sequence[Device]:
    """The devices that a selector names, by their number or a part of their name."""
    if selector.isdecimal():
        return known[int(selector) : int(selector) + 1]
    return tuple(device for device in known if fits(device, selector.casefold().strip()))


def fits(device: Device, word: str) -> bool:
    """Whether a lowercase word is part of a device's name, or names its runtime."""
    if word in _RUNTIMES:
        return _RUNTIMES[word] in device.platform.casefold()
    return bool(word) and word in f"{device.platform} {device.name} {device.type}".casefold()
