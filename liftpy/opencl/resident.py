"""Modules whose buffers are given places in shared device memory, launched one after another.

Unlike a loaded module (liftpy/opencl/loaded.py), these have no memory of their own: what one module
writes, another reads where it is. Nothing is copied between launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from liftpy.errors import ArgumentRefused, DeviceRefused
from liftpy.opencl.arguments import check_times, spell
from liftpy.opencl.driver import arrays, cl, refusal, refused
from liftpy.opencl.foreign import in_device_memory
from liftpy.opencl.images import image_of
from liftpy.opencl.kernel import Launch, Module, Phase
from liftpy.opencl.launching import Armed as ArmedKernel
from liftpy.opencl.launching import Span, failed, launched, nothing, numbers_of
from liftpy.opencl.session import Session

UNWRITTEN = np.array(0xFF, np.uint8)
"""The byte of memory that has not been written in a checked run: NaN in every type of floats."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array is: `bytes` bytes from `offset` of the allocation `memory`."""

    memory: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Armed:
    """The launches of one phase of a module, with kernels whose arguments are set.

    `images` keeps those among the arguments, by launch and buffer: a kernel does not.
    """

    module: Module
    launches: tuple[Launch, ...]
    kernels: tuple[ArmedKernel, ...]
    images: dict[tuple[Launch, str], Any] = field(default_factory=dict[tuple[Launch, str], Any])


class Resident:
    """Allocations by name on one device, and launches on places in them; use it in a `with`.

    A module's kernels are built once, however often it is armed. `alignment` is that of offsets.
    """

    def __init__(self, session: Session) -> None:
        self.device = session.device
        self._session = session
        self._queue = session.opened.queue
        self._memories: dict[str, Any] = {}
        self._regions: dict[Place, Any] = {}
        self._programs: dict[Module, Any] = {}

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
    def alignment(self) -> int:
        """The alignment of offsets in bytes."""
        return self._session.opened.alignment

    @property
    def bytes(self) -> int:
        """The bytes of all allocations."""
        return sum(int(memory.size) for memory in self._memories.values())

    # --- memory -----------------------------------------------------------------------------------

    def has(self, memory: str) -> bool:
        """Whether there is an allocation of this name."""
        return memory in self._memories

    def allocate(self, memory: str, size: int) -> None:
        """Makes an allocation. DeviceRefused if the device has no such memory."""
        where = f"{self.device.name} ({self.device.platform})"
        if size > self.device.largest_buffer:
            raise DeviceRefused(
                f"{memory} needs a buffer of {size} bytes; {where} allows at most "
                f"{self.device.largest_buffer} bytes in one buffer"
            )
        with refusal(self.device, f"{size} bytes for {memory}"):
            flags = cl.mem_flags.READ_WRITE
            self._memories[memory] = cl.Buffer(self._session.opened.context, flags, size=size)

    def release(self, memory: str) -> None:
        """Frees an allocation."""
        for place in [place for place in self._regions if place.memory == memory]:
            self._regions.pop(place).release()
        self._memories.pop(memory).release()

    def close(self) -> None:
        """Frees everything; the kernels stay built."""
        for memory in tuple(self._memories):
            self.release(memory)

    def write(self, place: Place, array: np.ndarray, *, wait: bool = True) -> Any:
        """Copies a contiguous array to a place.

        Without `wait`, the copy is over once the queue is finished. Keep the array and the returned
        event until then: pyopencl waits for the copy when such an event is released.
        """
        with refusal(self.device, f"to copy an array to {place.memory}"):
            return cl.enqueue_copy(self._queue, self._at(place), array, is_blocking=wait)

    def read(self, place: Place, array: np.ndarray, *, wait: bool = True) -> Any:
        """Copies a place to a contiguous array, once what was queued before is over.

        `wait` has the same meaning as for `write`.
        """
        with refusal(self.device, f"to copy an array from {place.memory}"):
            return cl.enqueue_copy(self._queue, array, self._at(place), is_blocking=wait)

    def spoil(self, place: Place) -> None:
        """Fills a place with `UNWRITTEN`."""
        with refusal(self.device, f"to fill {place.memory}"):
            cl.enqueue_fill_buffer(self._queue, self._at(place), UNWRITTEN, 0, place.bytes)

    # --- arrays of pyopencl -----------------------------------------------------------------------

    @property
    def queue(self) -> Any:
        """The queue of all launches and copies."""
        return self._queue

    def holds(self, value: object) -> bool:
        """Whether a value is a contiguous array of pyopencl in the context of this device."""
        if not in_device_memory(value):
            return False
        array: Any = value
        return array.context == self._session.opened.context and array.flags.c_contiguous

    def copy(self, place: Place, array: Any) -> None:
        """Copies an array of pyopencl to a place, on the device."""
        with refusal(self.device, f"to copy an array to {place.memory}"):
            array.finish()  # other queues may write to it
            region = self._at(place)
            cl.enqueue_copy(
                self._queue,
                region,
                array.base_data,
                byte_count=place.bytes,
                src_offset=array.offset,
            )

    def region_of(self, array: Any, offset: int, size: int) -> Any:
        """A part of an array of pyopencl as an argument of kernels; None if there is none.

        OpenCL makes no part of a part of a buffer, nor one that is not aligned.
        """
        start, memory = array.offset + offset, array.base_data
        if start % self.alignment or not isinstance(memory, cl.Buffer):
            return None
        if memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) is not None:
            return None
        with refusal(self.device, "a part of an array of pyopencl"):
            array.finish()
            return array.base_data.get_sub_region(start, size)

    def point(self, armed: Armed, buffer: str, at: Any) -> None:
        """Lets the kernels of a part read a buffer at a place, or in a region of other memory."""
        for launch, (kernel, _, _) in zip(armed.launches, armed.kernels, strict=True):
            with refusal(self.device, f"the arguments of {spell(launch)} of {armed.module.name}"):
                for k, name in enumerate(launch.arguments):
                    if name == buffer:
                        given = self._argument(armed.module, launch, name, at, armed.images)
                        kernel.set_arg(k, given)

    def array_of(self, place: Place, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array of pyopencl with the content of a place."""
        with refusal(self.device, f"{place.bytes} bytes for a result"):
            made = arrays().empty(self._queue, shape, dtype)
            cl.enqueue_copy(self._queue, made.data, self._at(place))
            self._queue.finish()
        return made

    def uploaded(self, name: str, array: np.ndarray | list[Any]) -> Any:
        """A new array of pyopencl with the elements of a result, an array of NumPy.

        ArgumentRefused for strings and for a list of arrays, which pyopencl has no arrays for.
        """
        if isinstance(array, list) or array.dtype.kind in "OSTU":
            what = "a sequence" if isinstance(array, list) else "an array of strings"
            raise ArgumentRefused(
                f"the output {name} is {what}, for which there are no arrays on a device\n"
                "  leave out on_device"
            )
        with refusal(self.device, f"{array.nbytes} bytes for a result"):
            return arrays().to_device(self._queue, np.asarray(array, order="C"))

    def _at(self, place: Place) -> Any:
        """The sub-buffer of a place."""
        if place not in self._regions:
            with refusal(self.device, f"a part of {place.memory}"):
                whole = self._memories[place.memory]
                self._regions[place] = whole.get_sub_region(place.offset, place.bytes)
        return self._regions[place]

    def _argument(
        self,
        module: Module,
        launch: Launch,
        name: str,
        at: Any,
        images: dict[tuple[Launch, str], Any],
    ) -> Any:
        """An argument of a launch: the memory of a buffer at a place, or its image.

        Instead of a place, `at` may be other memory. An image is kept in `images`.
        """
        if name not in launch.images:
            return self._at(at) if isinstance(at, Place) else at
        memory = at
        if isinstance(at, Place):
            whole = self._memories[at.memory]
            memory = whole if at.bytes == whole.size else self._at(at)
        images[launch, name] = image_of(self._session.opened, memory, module.buffer(name))
        return images[launch, name]

    # --- launches ---------------------------------------------------------------------------------

    def armed(self, module: Module, phase: Phase, places: Mapping[str, Place]) -> Armed:
        """The launches of a phase of a module, whose buffers are at `places` by name."""
        launches = tuple(launch for launch in module.launches if launch.phase == phase)
        if module not in self._programs:
            self._programs[module] = self._session.built(module)
        made = self._session.kernels(module, self._programs[module], launches)
        images: dict[tuple[Launch, str], Any] = {}
        for launch, kernel in made.items():
            with refusal(self.device, f"the arguments of {spell(launch)} of {module.name}"):
                given = (
                    self._argument(module, launch, name, places[name], images)
                    for name in launch.arguments
                )
                kernel.set_args(*given, *numbers_of(launch))
        kernels = tuple((made[x], x.global_size, x.local_size) for x in launches)
        return Armed(module, launches, kernels, images)

    def launch(
        self, parts: Sequence[Armed], meanwhile: Callable[[], None] = nothing
    ) -> tuple[Callable[[], list[list[Span]]], int]:
        """Runs all launches and returns a function that reads their spans, and the host's time.

        The spans are grouped by part. The time is in nanoseconds. `meanwhile` is called once all
        launches are queued, while they may still run.

        Raises DeviceRefused for a launch that failed, or for work that was queued before.
        """
        if self._session.opened.clock == "host":
            with refusal(self.device, "what came before the launches"):
                self._queue.finish()  # its time is none of the first launch's
        flat = [one for part in parts for one in part.kernels]
        events: list[Any] = []
        try:
            spans, taken = launched(self._session.opened, flat, events, meanwhile)
        except cl.Error as error:
            raise self._refused(parts, events, error) from error
        return partial(self._by_part, parts, spans), taken

    def _by_part(self, parts: Sequence[Armed], spans: Callable[[], list[Span]]) -> list[list[Span]]:
        """The spans of launches, for each part."""
        with refusal(self.device, "the times of the launches"):
            each = iter(spans())
        return [[next(each) for _ in part.kernels] for part in parts]

    def finish(self, copies: Sequence[Any]) -> None:
        """Wait for copies by their events. DeviceRefused if one failed."""
        with refusal(self.device, "the copies of inputs and outputs"):
            if copies:
                cl.wait_for_events(copies)

    def check(self, parts: Sequence[Armed], times: Sequence[Sequence[int]], host_ns: int) -> None:
        """Refuse impossible times from `launch`, with ClockRefused."""
        counted = any(map(any, times))  # a short launch may take no tick of the clock
        for part, own in zip(parts, times, strict=True):
            if any(own) or not counted:
                check_times(part.module, self.device, part.launches, own, host_ns)

    def _refused(self, parts: Sequence[Armed], events: Sequence[Any], error: Any) -> DeviceRefused:
        """The error of the launch that failed: the first whose event reports it or is missing."""
        launches = [(part.module, launch) for part in parts for launch in part.launches]
        own = failed(self._session.opened, events)
        number, error = own or (min(len(events), len(launches) - 1), error)
        module, launch = launches[number]
        return refused(self.device, f"{spell(launch)} of {module.name}", error)
