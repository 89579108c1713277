"""The differences between the campaign in a file and the requested one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from liftpy.explore.campaign.rows import Identity

BEFORE = {"search": "random", "sampler": "uniform", "lag": 1, "first": None, "direct_first": None}
"""Settings that files of older formats lack, with the values that they imply."""


def setting(there: Identity, name: str) -> Any:
    """A setting of a stored campaign; if its file lacks it, the value that this implies."""
    return there.settings.get(name, BEFORE.get(name))


def differences(there: Identity, wanted: Identity) -> list[str]:
    """All differences between two campaigns, one line each."""
    return [
        *_programs(there, wanted),
        *(
            f"the {name}: it has {old}, this is {new}"
            for name, old, new in (
                ("device", device_text(there.device), device_text(wanted.device)),
                ("version of liftpy", there.version, wanted.version),
                ("seed", there.seed, wanted.seed),
            )
            if old != new
        ),
        *_settings(there, wanted),
    ]


def _programs(there: Identity, wanted: Identity) -> list[str]:
    if there.text == wanted.text:
        return []
    if there.program != wanted.program:
        return [f"the program: it has {there.program}, this is {wanted.program} (another program)"]
    if there.settings.get("sizes") != wanted.settings.get("sizes"):
        return []  # the texts differ in these numbers: `sizes` reports them
    pairs = zip(there.text.splitlines(), wanted.text.splitlines(), strict=False)
    apart = ((old.strip(), new.strip()) for old, new in pairs if old != new)
    old, new = next(apart, ("no more lines", "more lines"))
    return [f"the text of the program {there.program}: it has `{old}`, this has `{new}`"]


def _settings(there: Identity, wanted: Identity) -> list[str]:
    lines: list[str] = []
    for name in sorted(there.settings.keys() | wanted.settings.keys()):
        old, new = (s.settings.get(name, BEFORE.get(name)) for s in (there, wanted))
        same = name == "sizes" and there.text == wanted.text  # the numbers are in the text
        if name == "devices" and old and new:  # older files lack some of their limits
            same = _setting(old) == _setting(new)
        if old != new and not same:
            was, now = ("none" if v is None else _setting(v) for v in (old, new))
            lines.append(f"{name.replace('_', ' ')}: it has {was}, this has {now}")
    return lines


def _setting(value: Any) -> str:
    if isinstance(value, list):  # families, conditions, devices
        each = cast("list[Any]", value)
        return ", ".join(device_text(v) if isinstance(v, dict) else str(v) for v in each)
    if isinstance(value, dict):  # sizes
        return ", ".join(f"{n} = {v}" for n, v in cast("dict[str, int]", value).items())
    return str(value)


def device_text(device: Mapping[str, Any]) -> str:
    """A device by what determines its kernels and times, in words."""
    ordinal = f" (number {device['ordinal'] + 1})" if device["ordinal"] else ""
    return f"{device['platform']}: {device['name']}, driver {device['driver_version']}{ordinal}"
