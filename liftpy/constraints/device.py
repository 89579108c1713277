"""What the constraint system knows of a device: its limits, as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["CPU", "GPU", "ACCELERATOR"]


@dataclass(frozen=True, slots=True)
class Device:
    """An OpenCL device and the limits that programs for it must keep.

    All sizes are in bytes. `opencl_c` is the version of OpenCL C that its driver compiles,
    `vector_width` the number of f32 lanes that the driver prefers, `max_work_item_sizes` the
    largest work-group in each dimension. `ordinal` tells devices apart that are equal in all else:
    it is 1 for the second of two cards of one model, and so on.
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

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that stand for name, driver and platform, the same on every machine.

        Times of two devices may be compared in one table only if their fingerprints are equal.
        """
        identity = json.dumps([self.name, self.driver_version, self.platform])
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """The device as JSON data, with its fingerprint."""
        data = asdict(self)
        data["max_work_item_sizes"] = list(self.max_work_item_sizes)
        return data | {"fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Device:
        """The device that `to_json` wrote; the fingerprint follows from the rest.

        Raises TypeError for a field that is missing or that nobody knows.
        """
        fields = {name: value for name, value in data.items() if name != "fingerprint"}
        if "max_work_item_sizes" in fields:
            fields["max_work_item_sizes"] = tuple(fields["max_work_item_sizes"])
        return cls(**fields)


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
"""Stands in where a program is compiled for no device in particular.

The limits are those that desktop and server devices of the last ten years keep; local memory is
what the full profile of OpenCL 1.2 guarantees. A small GPU may allow less (a Mali of 2015 has
work-groups of 256): name the device to get its own limits.
"""
