"""The plan that the C program of a bundle reads: the manifests as lines of text.

Every rule that both hosts follow is stated in Python, and written to the plan as data: the buffers
that a phase uses, the inputs that are uploaded again, the fill patterns of unwritten memory, the
number of timed runs, the kernel that shows whether the device is disturbed. `host/plan.c` reads the
plan.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liftpy.constraints.device import DEFAULT_DEVICE, KNOWN_EXTENSIONS, Device
from liftpy.explore.campaign.store import ATTEMPTS
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.reference import MODULE, RUNS, TOO_LONG, WARM
from liftpy.explore.measure.samples import (
    ENOUGH_SECONDS,
    FAR,
    FIRST_SECONDS,
    MOST_REPEATS,
    REPEATS,
    SLOW,
    SLOW_REPEATS,
    SLOW_SECONDS,
)
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.types import SCALARS, STORAGE
from liftpy.opencl.arguments import DTYPES, POISON, overwritten, touched_buffers
from liftpy.opencl.images import texel_bytes
from liftpy.opencl.kernel import Launch, Module, flat
from liftpy.opencl.session import BUILD_OPTIONS, extension_options

FORMAT = "liftpy-plan 6"
"""The program `board` also reads version 1, which has no reference kernel, and version 2, which has
no build options for devices with an extension (`optional`). In version 3, these lines did not name
the version of OpenCL that they need; `board` refuses a plan of version 3 that has such lines.
Version 4 has no images, and version 5 no loops of the host."""

REFERENCE = f"kernels/{MODULE.name}.cl"
"""The file of the kernel by which a disturbed board is recognised (measure/reference.py)."""

WARMUP = 1
"""Runs before the timed ones."""

SLOWLY = (SLOW, SLOW_REPEATS, SLOW_SECONDS * 1e9, FIRST_SECONDS * 1e9, FAR)
"""How often a candidate is run that is slower than the best (measure/samples.py)."""

KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool"}


@dataclass(frozen=True)
class BundledCandidate:
    """A candidate of a bundle: its kernels, and the file with their source."""

    candidate: Candidate
    module: Module
    file: str
    sha256: str


@dataclass(frozen=True)
class Wanted:
    """The expected values of a component: its number of elements, and a file of points."""

    scalar: str
    elements: int
    points: int
    tolerance: float
    file: str
    sha256: str

    @property
    def words(self) -> str:
        """The values as words of a line of the plan."""
        return (
            f"{self.scalar} {self.elements} {self.points} {self.tolerance!r} {self.file} "
            f"{self.sha256}"
        )


def second_poison(scalar: str) -> np.ndarray:
    """The fill value of memory before a second run, whose result must equal that of the first.

    It differs from `POISON` in every type, and is not NaN: the minimum of a number and NaN is the
    number, which would hide the NaN.
    """
    t = DTYPES[scalar]
    if t.kind == "f":
        return np.array(-np.finfo(t).max / 4, t)
    if t.kind == "u":
        return np.array(np.iinfo(t).max, t)
    return np.array(0 if t.kind == "b" else np.iinfo(t).min, t)


def plan_text(
    campaign: dict[str, Any],
    device: Device,
    inputs: Sequence[tuple[str, str]],
    wanted: Sequence[Wanted],
    parts: Sequence[BundledCandidate],
    best_ns: float = 0,
) -> str:
    """The plan as text. `inputs` are files with their hashes, in the order of the parameters.

    `best_ns` is the median time of the fastest candidate so far, 0 if there is none. `device` is
    the device that the candidates were made for; its platform is known only if it was attached.
    """
    lines = [
        FORMAT,
        f"campaign {json.dumps(campaign, sort_keys=True)}",
        *target_lines(device),
        f"options {' '.join(BUILD_OPTIONS)}",
        f"timing {WARMUP} {REPEATS} {MOST_REPEATS} {round(ENOUGH_SECONDS * 1e9)}",
        f"slow {' '.join(map(str, (*SLOWLY, best_ns)))}",
        f"attempts {ATTEMPTS}",
        *(f"extension {name}" for name in KNOWN_EXTENSIONS),
        *(scalar_line(name) for name, t in SCALARS.items() if t not in STORAGE),
        *(f"input {file} {sha}" for file, sha in inputs),
        *(f"expected {w.words}" for w in wanted),
        *_reference(),
    ]
    for part in parts:
        lines += _candidate(part)
    return "".join(f"{line}\n" for line in lines)


def target_lines(device: Device) -> list[str]:
    """The lines about the device that a bundle is made for; a profile has no platform."""
    if device == DEFAULT_DEVICE:
        return []
    platform = [] if device.profile else [f"platform {device.platform}"]
    return [f"device {device.name}", *platform]


def scalar_line(name: str) -> str:
    """The line about a scalar type: its size, its kind, and two fills of unwritten memory."""
    t = DTYPES[name]
    poisons = (p.tobytes().hex() for p in (POISON[name], second_poison(name)))
    return f"scalar {name} {t.itemsize} {KINDS[t.kind]} {' '.join(poisons)}"


def _reference() -> Iterator[str]:
    looks = f"{RUNS} {WARM * 1e9:.0f} {TOO_LONG * 1e9:.0f}"
    yield f"reference {REFERENCE} {source_sha(MODULE.source)} {looks}"
    yield from _module(MODULE)
    yield "end"


def _candidate(part: BundledCandidate) -> Iterator[str]:
    candidate, module = part.candidate, part.module
    sizes = " ".join(f"{name}={value}" for name, value in candidate.sizes)
    yield f"candidate {candidate.key} {part.file} {part.sha256}"
    yield f"row {csv_line([str(candidate.ordinal), candidate.skeleton.key, sizes])}"
    yield f"allocated {module.memory.allocated}"
    yield from _module(module)
    yield f"result {' '.join(flat(module.result))}"
    yield "end"


def _module(module: Module) -> Iterator[str]:
    """The lines about the memory and the launches of some kernels."""
    yield from (f"extension {name}" for name in module.extensions)
    for found in extension_options(module, BUILD_OPTIONS):
        yield f"optional {found.extension} {found.version} {' '.join(found.options)}"
    yield from (f"slot {name} {size}" for name, size in module.slots().items())
    inputs = {name: number for number, name in enumerate(flat(module.parameters))}
    phases = {
        (False, False): "none",
        (True, False): "prepare",
        (False, True): "run",
        (True, True): "both",
    }
    prepare, run = touched_buffers(module, "prepare"), touched_buffers(module, "run")
    again = overwritten(module)
    for b in module.buffers:
        state = "overwritten" if b.name in again else "kept"
        phase = phases[b.name in prepare, b.name in run]
        number = f" {inputs[b.name]}" if b.name in inputs else ""
        yield f"buffer {b.name} {b.role} {b.scalar} {b.bytes} {b.slot} {phase} {state}{number}"
    for launch in module.launches:
        given = " ".join(_argument(module, launch, name) for name in launch.arguments)
        yield f"launch {launch.phase} {range_words(launch)} {given}"


def _argument(module: Module, launch: Launch, name: str) -> str:
    """A buffer; if it is passed as an image, with the bytes of a texel."""
    texel = texel_bytes(module, launch, name)
    return f"{name}@{texel}" if texel else name


def range_words(launch: Launch) -> str:
    """The kernel and the NDRange of a launch; local sizes of 0 leave them to the driver.

    `@` and the number of the iteration follow a kernel that has this number as an argument.
    """
    sizes = (*launch.global_size, *(launch.local_size or (0,) * len(launch.global_size)))
    again = "" if launch.iteration is None else f"@{launch.iteration}"
    return f"{launch.function}{again} {len(launch.global_size)} {' '.join(map(str, sizes))}"


def csv_line(fields: Sequence[str]) -> str:
    """Fields as one line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
