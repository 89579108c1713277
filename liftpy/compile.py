"""`lp.compile`: a program or one of its candidates as a function of NumPy arrays, on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused
from liftpy.explore.one_candidate import candidate_of, exact_candidate
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.settings import Settings
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import MemoryFigures, by_kernel
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.skeleton import FAMILY, skeleton_of
from liftpy.rewrite.strategy import Strategy
from liftpy.semantics.evaluate import fitting
from liftpy.semantics.storage import StorageLike


class Kernel:
    """A compiled program as a function of NumPy arrays, on one device; `lp.compile` makes it.

    >>> squares = lp.parse("def squares(xs: [3]f32) = xs |> map(x => x * x)")
    >>> kernel = lp.compile(squares)  # doctest: +SKIP
    >>> kernel(np.float32([1, 2, 3])).tolist()  # doctest: +SKIP
    [1.0, 4.0, 9.0]
    >>> kernel.close()  # doctest: +SKIP

    Constant parameters are prepared again only when their arrays change.
    """

    def __init__(self, candidate: Candidate, device: Device) -> None:
        self.program = candidate.program
        self.assignment = candidate.assignment
        self.device = device
        self.module = compile_candidate(candidate.skeleton, candidate.point)
        self._session = Session(device)
        self._loaded = self._session.load(self.module)
        self._constants: dict[str, np.ndarray] | None = None
        self._closed = False

    def __repr__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.assignment.items())
        return f"<Kernel of {self.program.name} on {self.device.name}: {settings}>"

    @property
    def sources(self) -> str:
        """The OpenCL text of all kernels."""
        return self.module.source

    @property
    def memory(self) -> MemoryFigures:
        """The memory figures in bytes."""
        return self.module.memory

    @entry("kernel")
    def __call__(self, *arrays: Any) -> Any:
        """The program's value, computed on the device; the arguments are those of the program.

        Arrays of tuples are passed and returned as tuples of arrays.
        """
        if self._closed:
            message = (
                f"the kernel of {self.program.name} is closed, and its device memory released: "
                "compile the program again"
            )
            raise ArgumentRefused(message)
        given = fitting(self.program.name, self.program.params, arrays)
        by_name = by_buffer(self.module, given)
        roles = {b.name: b.role for b in self.module.buffers}
        constants = {n: a for n, a in by_name.items() if roles[n] == "constant"}
        if not self._is_prepared(constants):
            self._loaded.set_constants(constants)
            self._constants = {n: np.array(a) for n, a in constants.items()}
        return self._loaded.run({n: a for n, a in by_name.items() if n not in constants})

    def profile(self, *arrays: Any, repeats: int = 7, warmup: int = 2) -> dict[str, int]:
        """Nanoseconds of each run-phase kernel, from device events: medians of repeated runs.

        The time of a kernel launched several times in a run is the sum over its launches.
        """
        self(*arrays)
        times = np.median(np.array(self._loaded.profile(repeats, warmup)), axis=0)
        return by_kernel(self.module, map(int, times))

    def close(self) -> None:
        """Release the device memory; the kernel cannot be called afterwards."""
        self._closed = True
        self._loaded.close()
        self._session.close()

    def _is_prepared(self, constants: dict[str, np.ndarray]) -> bool:
        known = self._constants
        return known is not None and all(np.array_equal(known[n], a) for n, a in constants.items())


@entry("lp.compile")
def compile_to_kernel(
    program: Program,
    assignment: Mapping[str, int | str] | None = None,
    strategy: str | Strategy | None = None,
    device: Device | str | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    storage: StorageLike | None = None,
) -> Kernel:
    """Compiles a program for a device; `sizes` gives numbers for its open sizes.

    >>> squares = lp.parse("size n: 1..64 def squares(xs: [n]f32) = xs |> map(x => x * x)")
    >>> kernel = lp.compile(squares, sizes={"n": 3})  # doctest: +SKIP
    >>> kernel(np.float32([1, 2, 3])).tolist()  # doctest: +SKIP
    [1.0, 4.0, 9.0]
    >>> kernel.close()  # doctest: +SKIP

    `storage` has types in which its values may be stored (`lp.with_storage`).

    strategy: a family (docs/design.md, Rewriting), or your own strategy that lowers the program
    (docs/strategies.md). assignment: the structural choices and sizes of one candidate, as in a row
    of a campaign or a candidate of `lp.space`: `lp.compile(program, campaign.best().assignment)`.
    Raises ConstraintRefused if it does not determine one candidate.

    Without an assignment, the kernel is the first skeleton of the family, with sizes drawn with
    seed 0. Without a strategy either, the family is `plain`: loops in one kernel, correct and slow.
    `explore` finds fast ones.
    """
    target = device if isinstance(device, Device) else find_device(device)
    if callable(strategy):
        space = Space.of(program, target, [skeleton_of(program, strategy)])
        return Kernel(space.exactly(assignment) if assignment else space.candidate({}), target)
    family: Settings = {} if strategy is None else {FAMILY: strategy}
    if assignment:
        chosen = {**assignment, **family}
        exact = exact_candidate(program, target, chosen, sizes=sizes, storage=storage)
        return Kernel(exact, target)
    return Kernel(candidate_of(program, target, family, sizes=sizes, storage=storage), target)
