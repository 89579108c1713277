"""The compiler: from a program and its choices to kernels, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.draw import Space as Points
from liftpy.errors import ArgumentRefused, ConstraintRefused, UnknownName
from liftpy.ir.expr import Program
from liftpy.kernels.chain import Chain, chain
from liftpy.opencl.generate import EmittedKernel, assemble
from liftpy.opencl.kernel import Memory, Module
from liftpy.opencl.run import Session, find_device
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons

__all__ = [
    "Compilation",
    "Kernel",
    "compile_candidate",
    "compile_program",
    "compile_to_kernel",
    "skeletons",
]


@dataclass(frozen=True)
class Compilation:
    """The result of every stage (`liftpy show --stage`)."""

    lowered: Program
    chain: Chain
    kernels: tuple[EmittedKernel, ...]
    module: Module


def compile_program(lowered: Program) -> Compilation:
    """Compile a lowered program whose sizes are numbers.

    Types and size conditions were checked when the program was built. It is cut into kernels
    (address spaces, launches, lifetimes); each kernel is emitted through views, its barriers
    decided on the index maps; buffers are allocated.
    """
    cut = chain(lowered)
    module, kernels = assemble(lowered, cut)
    return Compilation(lowered, cut, kernels, module)


def compile_candidate(skeleton: Skeleton, assignment: Mapping[str, int]) -> Module:
    """The kernels of one point of a space."""
    missing = sorted({p.name for p in skeleton.parameters} - set(assignment))
    if missing:
        message = (
            f"{skeleton.key} needs a value for {', '.join(missing)}: "
            f"give it with --set {missing[0]}=..."
        )
        raise ConstraintRefused(message)
    return compile_program(skeleton.at(dict(assignment))).module


class Kernel:
    """A compiled program as a function: numpy in, numpy out, on one device.

    Constant parameters are prepared again only when other arrays are given for them.
    """

    def __init__(
        self, program: Program, skeleton: Skeleton, assignment: Mapping[str, int], device: Device
    ) -> None:
        self.program = program
        self.skeleton = skeleton
        self.assignment = dict(assignment)
        self.device = device
        self.module = compile_candidate(skeleton, assignment)
        self._session = Session(device)
        self._loaded = self._session.load(self.module)
        self._constants: dict[str, np.ndarray] | None = None

    @property
    def sources(self) -> str:
        """The OpenCL text of all kernels."""
        return self.module.source

    @property
    def memory(self) -> Memory:
        """The memory figures in bytes."""
        return self.module.memory

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """The program's value, computed on the device."""
        if len(arrays) != len(self.program.params):
            params = self.program.params
            names = ", ".join(p.name for p in params)
            message = f"{self.program.name} takes {len(params)} arrays ({names}), got {len(arrays)}"
            raise ArgumentRefused(message)
        by_name = dict(zip(self.module.parameters, arrays, strict=True))
        roles = {b.name: b.role for b in self.module.buffers}
        constants = {n: a for n, a in by_name.items() if roles[n] == "constant"}
        if not self._is_prepared(constants):
            self._loaded.set_constants(constants)
            self._constants = {n: np.array(a) for n, a in constants.items()}
        return self._loaded.run({n: a for n, a in by_name.items() if n not in constants})

    def profile(self, *arrays: np.ndarray, repeats: int = 7, warmup: int = 2) -> dict[str, int]:
        """Nanoseconds of each run-phase kernel by device events: the median of repeated runs."""
        self(*arrays)
        times = np.median(np.array(self._loaded.profile(repeats, warmup)), axis=0)
        run = [launch.function for launch in self.module.launches if launch.phase == "run"]
        return {name: int(t) for name, t in zip(run, times, strict=True)}

    def close(self) -> None:
        """Release the device memory."""
        self._loaded.close()
        self._session.close()

    def _is_prepared(self, constants: dict[str, np.ndarray]) -> bool:
        known = self._constants
        return known is not None and all(np.array_equal(known[n], a) for n, a in constants.items())


def compile_to_kernel(
    program: Program,
    assignment: Mapping[str, int | str] | None = None,
    strategy: str | None = None,
    device: Device | str | None = None,
) -> Kernel:
    """Compile a program for a device.

    strategy: a family (`plain`, `direct`, `staged`); `plain` without one. assignment: values for
    its sizes and words for its structural choices; what is left open is drawn with seed 0.
    """
    target = device if isinstance(device, Device) else find_device(device)
    skeleton, sizes = choose_candidate(program, assignment or {}, strategy, target)
    return Kernel(program, skeleton, sizes, target)


def choose_candidate(
    program: Program,
    assignment: Mapping[str, int | str],
    strategy: str | None,
    device: Device = DEFAULT_DEVICE,
) -> tuple[Skeleton, dict[str, int]]:
    """The skeleton and the sizes that an assignment names; the rest is drawn with seed 0."""
    words = {n: v for n, v in assignment.items() if isinstance(v, str)}
    family = strategy or words.pop("family", None) or ("direct" if assignment else "plain")
    if family not in FAMILIES:
        message = f"no family {family!r}; there are {', '.join(FAMILIES)}"
        raise UnknownName(message)
    made = skeletons(program, (family,))
    fitting = [s for s in made if words.items() <= dict(s.choices).items()]
    if not fitting:
        offered = (
            "; ".join(s.key for s in made) or f"none: {family} does not apply to {program.name}"
        )
        message = f"{program.name} has no derivation with {words or family}: there is {offered}"
        raise ConstraintRefused(message)
    given = {n: v for n, v in assignment.items() if isinstance(v, int)}
    reasons: list[str] = []
    for skeleton in fitting:
        system = collect(skeleton, device)
        unknown = sorted(set(given) - {p.name for p in skeleton.parameters})
        if unknown:
            reasons.append(f"{skeleton.key} has no size {', '.join(unknown)}")
            continue
        if not system.broken(given) and (found := Points(system.fix(given)).sample(1, seed=0)):
            return skeleton, found[0]
        reasons.append(f"{skeleton.key}: no valid sizes with {given}")
    message = "; ".join(reasons) + "\n  `liftpy explain` says which conditions clash"
    raise ConstraintRefused(message)
