"""A module built for a device: it is given constants, run on arrays, checked and timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Any, Self

import numpy as np

from liftpy.errors import ArgumentRefused, StrayWrite
from liftpy.opencl import guards
from liftpy.opencl.allocations import Allocations
from liftpy.opencl.arguments import (
    DTYPES,
    POISON,
    checked,
    overwritten,
    parameters,
    touched_buffers,
)
from liftpy.opencl.driver import OpenDevice, cl, refusal
from liftpy.opencl.kernel import WRITTEN, Buffer, Launch, Module, Names, Phase, Role
from liftpy.opencl.launching import Launcher


class Loaded:
    """A module built for a device, with its device memory; made by `Session.load`.

    `prepare_ns` is the device time of the last prepare phase. `build_seconds` is the time that the
    driver took to build the program (a driver may postpone work to the first launch), and
    `build_log` is its output.

    `poison=True` in `set_constants` makes runs *checked*: everything that a run should write is
    filled with NaN first, every allocation has guard zones, and these and the buffers that kernels
    may only read are inspected after every launch (liftpy/opencl/guards.py). `profile` switches to
    allocations without zones.

    `watched` has, for each kernel, the buffers to fetch after its launch in a checked run; their
    arrays are in `seen`. Later a buffer may have other contents, or its memory may belong to
    another buffer.
    """

    def __init__(
        self,
        on: OpenDevice,
        module: Module,
        memory: Allocations,
        launcher: Launcher,
        build_seconds: float,
        build_log: str,
    ) -> None:
        self.module = module
        self.memory = memory
        self.build_seconds = build_seconds
        self.build_log = build_log
        self.prepare_ns = 0
        self.watched: Mapping[str, Names] = {}
        self.seen: dict[str, Any] = {}
        self._device = on.device
        self._queue = on.queue
        self._launcher = launcher
        self._constants: dict[str, np.ndarray] = {}
        self._inputs: dict[str, np.ndarray] | None = None
        self._prepared = False
        self._ran: tuple[list[int], int] = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the live device allocations; after `run`, those that a run needs.

        Guard zones do not belong to the module and do not count.
        """
        return self.memory.bytes

    def set_constants(self, arrays: Mapping[str, np.ndarray], *, poison: bool = False) -> None:
        """Upload the constants and run the prepare phase; then release what no run reads.

        With `poison` this and the following runs are checked.
        Raises ArgumentRefused for arrays that do not fit, DeviceRefused if the device fails,
        StrayWrite if a checked kernel wrote where it must not.
        """
        given = checked(self.module, "constant", arrays)
        self.close()
        self._constants = given
        self.memory.guarded = poison
        if poison:
            self._poison("prepare", {"packed", "temporary"})
        touched = touched_buffers(self.module, "prepare") | touched_buffers(self.module, "run")
        self._upload({name: array for name, array in given.items() if name in touched})
        self.prepare_ns = sum(self._execute("prepare", poison=poison)[0])
        self.memory.keep({self.module.buffer(x).slot for x in touched_buffers(self.module, "run")})
        self._launcher.disarm()
        self._prepared = True

    def run(self, arrays: Mapping[str, np.ndarray], *, poison: bool = False) -> Any:
        """Upload the inputs, run the launches of the run phase and return the result.

        The result is an array, or a tuple of arrays as the program's type has tuples.

        With `poison` the temporaries and the output are filled with NaN (integers with 0x7f
        bytes) first, so that an element that no kernel writes shows; those that share memory are
        filled again before the first launch that uses them. Without it they keep their contents,
        which under Oclgrind are "uninitialised" in the first run.

        Raises ArgumentRefused for arrays that do not fit or constants that were not set,
        DeviceRefused if the device fails, StrayWrite if a checked kernel wrote where it must not.
        """
        given = checked(self.module, "input", arrays)
        self._prepare_once(poison=poison)
        if poison:
            self._poison("run", WRITTEN)
        self._upload(given)
        self._inputs = given
        self._ran = self._execute("run", poison=poison)
        return self._fetch(self.module.result)

    @property
    def run_ns(self) -> tuple[int, ...]:
        """Device nanoseconds of each run-phase launch of the last `run`.

        Raises ClockRefused for impossible times.
        """
        self._launcher.check(self._launches("run"), *self._ran)
        return tuple(self._ran[0])

    def profile(self, repeats: int, warmup: int) -> list[list[int]]:
        """Device nanoseconds of each run-phase launch: `repeats` rows, one column per launch.

        Like `timed`, without the host's times.
        """
        return [row for row, _ in self.timed(repeats, warmup)]

    def timed(self, repeats: int, warmup: int) -> list[tuple[list[int], int]]:
        """For each of `repeats` runs: device nanoseconds of each launch, and nanoseconds in total.

        The total is the host's, from before the first launch until the last one is over. The runs
        use the inputs of the last `run`, after `warmup` runs that are not counted. Uploads are not
        timed. After a checked run the memory is reallocated without zones, and prepared again.
        Raises ArgumentRefused if there was no `run`, DeviceRefused if the device fails,
        ClockRefused for impossible times.
        """
        if self._inputs is None:
            raise ArgumentRefused(
                f"{self.module.name} cannot be profiled before it has inputs; call run() first."
            )
        if self.memory.guarded:
            inputs = self._inputs
            self.set_constants(self._constants)
            self._upload(inputs)
            self._inputs = inputs
        again = {name: self._inputs[name] for name in overwritten(self.module)}
        launches = self._launches("run")
        rows: list[tuple[list[int], int]] = []
        for _ in range(warmup + repeats):
            self._upload(again)
            rows.append(self._launcher.run(launches))
            self._launcher.check(launches, *rows[-1])
        return rows[warmup:]

    def close(self) -> None:
        """Release the device memory; the constants have to be set again."""
        self.memory.close()
        self._launcher.disarm()
        self._inputs = None
        self._prepared = False

    def _prepare_once(self, *, poison: bool) -> None:
        if self._prepared:
            return
        constants = [b.name for b in parameters(self.module, "constant")]
        if constants:
            raise ArgumentRefused(
                f"{self.module.name} has constants that are not set: {', '.join(constants)}; "
                "call set_constants() before run()."
            )
        self.set_constants({}, poison=poison)

    # --- between the host and the device ----------------------------------------------------------

    def _upload(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            with refusal(self._device, f"to copy {name} of {self.module.name} to the device"):
                cl.enqueue_copy(self._queue, self.memory.of(self.module.buffer(name)), array)

    def _fetch(self, names: Names) -> Any:
        """Fetch a result to the host."""
        if not isinstance(names, str):
            return tuple(self._fetch(part) for part in names)
        result = self.module.buffer(names)
        output = np.empty(result.shape, DTYPES[result.scalar])
        with refusal(self._device, f"to copy {result.name} of {self.module.name} to the host"):
            cl.enqueue_copy(self._queue, output, self.memory.of(result))
        return output

    def _poison(self, phase: Phase, roles: AbstractSet[Role]) -> None:
        for name in sorted(touched_buffers(self.module, phase)):
            buffer = self.module.buffer(name)
            if buffer.role in roles:
                self._fill(buffer)

    def _fill(self, buffer: Buffer) -> None:
        with refusal(self._device, f"to poison {buffer.name} of {self.module.name}"):
            there, value = self.memory.of(buffer), POISON[buffer.scalar]
            cl.enqueue_fill_buffer(self._queue, there, value, 0, buffer.bytes)

    # --- launches ---------------------------------------------------------------------------------

    def _launches(self, phase: Phase) -> list[Launch]:
        return [launch for launch in self.module.launches if launch.phase == phase]

    def _execute(self, phase: Phase, *, poison: bool = False) -> tuple[list[int], int]:
        """Run a phase to the end: device nanoseconds of each launch, and the host's in total."""
        launches = self._launches(phase)
        if not (self.memory.guarded or poison):
            return self._launcher.run(launches)
        times, taken, used = [], 0, set[str]()
        for launch in launches:
            for name in launch.arguments:
                buffer = self.module.buffer(name)
                if name not in used and self.memory.passes_on(buffer):
                    if poison:
                        self._fill(buffer)
                    self.memory.begin(buffer)
                used.add(name)
            own, host_ns = self._launcher.run([launch])
            times, taken = times + own, taken + host_ns
            with refusal(self._device, f"to copy what {launch.function} wrote to the host"):
                self._look(launch)
            if launch.function in self.watched:
                self.seen[launch.function] = self._fetch(self.watched[launch.function])
        return times, taken

    def _look(self, launch: Launch) -> None:
        """Refuse a launch that wrote into a guard zone, or into a buffer that is only read.

        Inputs that share their allocation with others are not checked: their lifetime may be over.
        """
        stray = next(self._strays(launch), None)
        if stray is not None:
            raise StrayWrite(f"{self.module.name}: {stray.sentence}", stray.buffer, stray.first)

    def _strays(self, launch: Launch) -> Iterator[guards.Stray]:
        yield from self.memory.strays(launch.function)
        users = Counter(b.slot for b in self.module.buffers)
        for name in launch.arguments:
            buffer = self.module.buffer(name)
            if buffer.role in {"input", "constant"} and users[buffer.slot] == 1:
                array = (self._constants | (self._inputs or {}))[name]
                there = np.empty(array.nbytes, np.uint8)
                cl.enqueue_copy(self._queue, there, self.memory.of(buffer))
                found = guards.changed(np.ascontiguousarray(array).view(np.uint8).ravel(), there)
                if found is not None:
                    yield guards.Stray(launch.function, name, *found, buffer.bytes)
