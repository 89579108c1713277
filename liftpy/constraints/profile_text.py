"""The text of a profile: what `profile.read` reads, written from a device or by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import FIGURES
from liftpy.constraints.profile import LIMITS, OPTIONAL, SIMILAR, TEXTS, Profile, read


def text_of(profile: Profile, remarks: Sequence[str] = ()) -> str:
    """A profile as a TOML text, with remarks as comments at its beginning.

    Raises SyntaxRefused if it cannot be read again, for example because a driver reports 0 bytes of
    local memory.

    >>> from liftpy.constraints.profile import profile
    >>> print(text_of(profile("mali-g72"), ["A phone."])[:29])
    # A phone.
    <BLANKLINE>
    name = "Mali-G72"
    """
    device = profile.device
    values = {key: getattr(device, key) for key in LIMITS} | dict(profile.figures)
    values |= {key: limit for key in OPTIONAL if (limit := getattr(device, key))}
    lines = [f"# {remark}".rstrip() for remark in remarks]
    lines += ["", *(f"{key} = {toml(getattr(device, key))}" for key in TEXTS)]
    lines += [f"{SIMILAR} = {toml(profile.similar)}"] if profile.similar else []
    for key in (*LIMITS, *OPTIONAL, *FIGURES):
        if key in values:
            lines += ["", f"[{key}]", f"value = {toml(values[key])}"]
            lines.append(f"source = {toml(profile.sources[key])}")
    text = "\n".join(lines).lstrip("\n") + "\n"
    read(text, profile.name)
    return text


def toml(value: Any) -> str:
    """A value of a profile as TOML: a text, a number, or a list of these.

    >>> toml(("cl_khr_fp16", 7))
    '["cl_khr_fp16", 7]'
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):  # strings of JSON are strings of TOML, but for this character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def reported(
    device: Device, day: str, figures: Mapping[str, Any], sources: Mapping[str, str]
) -> Profile:
    """The profile of an attached device: its limits, and the known figures of its hardware.

    `day` is the date on which the driver reported the limits.
    """
    by_driver = f"reported by the driver {device.driver_version} on {day}"
    assumed = "assumed: no driver reports it; liftpy's bound for any device"
    said = {key: assumed if key == "private_memory" else by_driver for key in LIMITS}
    said |= {key: by_driver for key in OPTIONAL if getattr(device, key)}
    said |= {key: f"{source} on {day}" for key, source in sources.items()}
    return Profile(device.name, device, said, figures)
