"""How much of many candidates is tried on each runtime."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeVar

from liftpy.constraints.device import Device
from liftpy.opencl.devices import find_device

T = TypeVar("T")
PART = 6


def subsample(many: Iterable[T], device: Device) -> list[T]:
    """All of them on the first runtime there is, every sixth on another.

    The code is the same for every driver; another one shows what of it is not portable, which
    seldom hangs on one candidate.
    """
    found = list(many)
    return found if is_first(device) else found[::PART]


def is_first(device: Device) -> bool:
    """Whether it is that device; its limits may have changed (PoCL's follow the free memory)."""
    return device.fingerprint == first().fingerprint


@cache
def first() -> Device:
    """The device that is taken where none is named."""
    return find_device()
