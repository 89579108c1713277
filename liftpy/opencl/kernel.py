"""What the compiler passes to the runtime: kernels, buffers between them, launch order and sizes.

Everything here is plain immutable data: a board that only measures needs this module, NumPy and an
OpenCL driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Role = Literal["input", "constant", "packed", "temporary", "output"]
Phase = Literal["prepare", "run"]
#: The roles of buffers that a run writes before it reads them, so that they may share a slot.
WRITTEN: frozenset[Role] = frozenset({"temporary", "output"})
#: The name of a buffer, or the names for a tuple's components.
Names: TypeAlias = "str | tuple[Names, ...]"


def by_kernel(module: Module, times: Iterable[int]) -> dict[str, int]:
    """The time of each kernel of the run phase: the sum of the `times` of its launches."""
    found: dict[str, int] = {}
    launches = (launch for launch in module.launches if launch.phase == "run")
    for launch, time in zip(launches, times, strict=True):
        found[launch.function] = found.get(launch.function, 0) + time
    return found


def flat(names: Names) -> tuple[str, ...]:
    """The names of all components, in order."""
    return (names,) if isinstance(names, str) else tuple(n for part in names for n in flat(part))


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array in global memory.

    `shape` is in elements of `scalar` (`f32`, `i64`, `bool`, ...). Roles: `input` is given at
    each run, `constant` once (weights), `packed` is made from constants by the prepare phase,
    `temporary` lives between two kernels of a run, or in one kernel as its scratch, `output` is the
    result. `slot` names the device allocation the buffer lives in: buffers with disjoint lifetimes
    share one.
    """

    name: str
    role: Role
    scalar: str
    shape: tuple[int, ...]
    bytes: int
    slot: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch: the function, its buffer arguments in order, and its NDRange.

    Those in `images` are passed as images of these buffers (`liftpy.opencl.images`). `local_size`
    is None if the kernel leaves the work-group size to the driver. A kernel in a loop of the host
    has a launch for each iteration. Its last argument is the number of the `iteration`, an int; if
    the kernel does not depend on it, `iteration` is None and the argument is left out.
    """

    function: str
    arguments: tuple[str, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    phase: Phase
    images: tuple[str, ...] = ()
    iteration: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """Memory figures of a candidate in bytes (docs/design.md, "Memory of a candidate").

    peak: largest sum of live global buffers during a run, inputs and weights included, and outputs
        from the first kernel that writes them.
    allocated: sum of the device allocations that the run needs, after sharing.
    scratch: peak beyond inputs, outputs and weights (packed weights stand for raw ones).
    local: per work-group, the largest over the kernels. private: per work-item, likewise.
    prepare: sum of the allocations that live while the prepare phase runs.
    """

    peak: int
    allocated: int
    scratch: int
    local: int
    private: int
    prepare: int


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled program: OpenCL source and everything a host needs to run it.

    `parameters` are the buffers the caller supplies, in the program's order (roles `input` and
    `constant`); `result` names the output buffer. For a tuple, or an array of tuples, these are
    tuples of names, a buffer for each component. `extensions` are the OpenCL extensions that the
    device must have.
    """

    name: str
    source: str
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    parameters: tuple[Names, ...]
    result: Names
    memory: MemoryFigures
    extensions: tuple[str, ...] = ()

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(b for b in self.buffers if b.name == name)

    def slots(self) -> dict[str, int]:
        """Bytes of each device allocation: the largest buffer that lives in it."""
        sizes: dict[str, int] = {}
        for b in self.buffers:
            sizes[b.slot] = max(sizes.get(b.slot, 0), b.bytes)
        return sizes

    def manifest(self) -> dict[str, Any]:
        """The module as JSON data without its source: arguments, NDRanges, buffers, figures.

        A launch without images has no `images`, and one without an iteration has no `iteration`, as
        in data of earlier versions.
        """
        data = asdict(self)
        del data["source"]
        for launch in data["launches"]:
            if not launch["images"]:
                del launch["images"]
            if launch["iteration"] is None:
                del launch["iteration"]
        return data

    @classmethod
    def of_manifest(cls, source: str, data: Mapping[str, Any]) -> Module:
        """The module with this source and this manifest, as `manifest_json` writes it."""
        buffers = (
            Buffer(b["name"], b["role"], b["scalar"], tuple(b["shape"]), b["bytes"], b["slot"])
            for b in data["buffers"]
        )
        launches = (
            Launch(
                one["function"],
                tuple(one["arguments"]),
                tuple(one["global_size"]),
                None if one["local_size"] is None else tuple(one["local_size"]),
                one["phase"],
                tuple(one.get("images", ())),
                one.get("iteration"),
            )
            for one in data["launches"]
        )
        return cls(
            data["name"],
            source,
            tuple(buffers),
            tuple(launches),
            tuple(map(_names, data["parameters"])),
            _names(data["result"]),
            MemoryFigures(**data["memory"]),
            tuple(data.get("extensions", ())),
        )

    def manifest_json(self) -> str:
        """The manifest as text, stable byte for byte."""
        return json.dumps(self.manifest(), indent=2, sort_keys=True) + "\n"


def _names(data: Any) -> Names:
    """Names of buffers from JSON, which has lists in place of tuples."""
    return data if isinstance(data, str) else tuple(map(_names, data))


@dataclass(frozen=True)
class Binary:
    """The driver's binary of a module's source, its build time in seconds, and the build log.

    `code` is for the same device and driver; it is empty if the driver returns none.
    """

    code: bytes
    seconds: float
    log: str
