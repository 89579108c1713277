"""Launches on a device's queue, one after another, and their times by both clocks.

The code is the same whether a launch is timed, checked, or prepares constants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from liftpy.errors import DeviceRefused
from liftpy.opencl.allocations import Allocations
from liftpy.opencl.arguments import check_times, spell
from liftpy.opencl.driver import OpenDevice, cl, refusal, refused
from liftpy.opencl.images import image_of
from liftpy.opencl.kernel import Launch, Module

Armed: TypeAlias = tuple[Any, tuple[int, ...], tuple[int, ...] | None]
"""A kernel whose arguments are set, with its global and its local size."""

Span: TypeAlias = tuple[int, int]
"""The start and the end of a launch in nanoseconds."""


class Launcher:
    """The kernels of a module, with the buffers that they take."""

    def __init__(
        self,
        on: OpenDevice,
        module: Module,
        kernels: Mapping[Launch, cl.Kernel],
        memory: Allocations,
    ) -> None:
        self._on = on
        self._device = on.device
        self._module = module
        self._kernels = kernels
        self._memory = memory
        self._armed: set[Launch] = set()  # whose kernels have their arguments set
        self._images: dict[str, Any] = {}  # of buffers, by their names

    def disarm(self) -> None:
        """Forget the kernels' arguments, because some of these buffers have been released."""
        self._armed.clear()
        while self._images:
            self._images.popitem()[1].release()

    def run(self, launches: Sequence[Launch]) -> tuple[list[int], int]:
        """Run launches to the end: nanoseconds of each, and the host's in total.

        The total is from before the first launch until the last one is over.
        Raises DeviceRefused for the launch that failed, or for work that was queued before.
        """
        armed = [(self._kernel(x), x.global_size, x.local_size) for x in launches]
        events: list[cl.Event] = []
        with refusal(self._device, f"what came before the launches of {self._module.name}"):
            self._on.queue.finish()
        try:
            told, taken = launched(self._on, armed, events)
            spans = told()
        except cl.Error as error:
            raise self._refused(launches, events, error) from error
        return [end - start for start, end in spans], taken

    def check(self, launches: Sequence[Launch], times: Sequence[int], host_ns: int) -> None:
        """Refuse impossible times from `run`, with ClockRefused."""
        check_times(self._module, self._device, launches, times, host_ns)

    def _kernel(self, launch: Launch) -> cl.Kernel:
        """The kernel of a launch, with its arguments set."""
        kernel = self._kernels[launch]
        if launch not in self._armed:
            buffers = [self._memory.of(self._module.buffer(name)) for name in launch.arguments]
            with refusal(self._device, f"the arguments of {self._spell(launch)}"):
                given = zip(launch.arguments, buffers, strict=True)
                kernel.set_args(
                    *(self._argument(launch, name, b) for name, b in given), *numbers_of(launch)
                )
            self._armed.add(launch)
        return kernel

    def _argument(self, launch: Launch, name: str, memory: cl.Buffer) -> Any:
        """An argument of a launch: a buffer, or its image, which is kept while kernels have it."""
        if name not in launch.images:
            return memory
        if name not in self._images:
            self._images[name] = image_of(self._on, memory, self._module.buffer(name))
        return self._images[name]

    def _refused(
        self, launches: Sequence[Launch], events: Sequence[cl.Event], error: cl.Error
    ) -> DeviceRefused:
        """The error of the launch that failed: the first whose event reports it or is missing."""
        if own := failed(self._on, events):
            number, error = own
            return refused(self._device, self._spell(launches[number]), error)
        if len(events) < len(launches):
            return refused(self._device, self._spell(launches[len(events)]), error)
        return refused(self._device, " or ".join(map(self._spell, launches)), error)

    def _spell(self, launch: Launch) -> str:
        return f"{spell(launch)} of {self._module.name}"


def numbers_of(launch: Launch) -> tuple[np.int32, ...]:
    """The arguments of a launch after its buffers: its iteration, if it has one."""
    return () if launch.iteration is None else (np.int32(launch.iteration),)


def nothing() -> None:
    """Does nothing."""


def launched(
    on: OpenDevice,
    kernels: Iterable[Armed],
    events: list[cl.Event],
    meanwhile: Callable[[], None] = nothing,
) -> tuple[Callable[[], list[Span]], int]:
    """Runs kernels to the end and returns a function that reads the spans, and the host's time.

    Spans are by the clock of `on`; with the host's clock, each launch ends before the next begins.
    The time is in nanoseconds. `events` gets the event of each launch. `meanwhile` is called once
    all kernels are queued, while they may still run. Raises cl.Error for a launch that failed.
    """
    queue = on.queue
    if on.clock == "host":
        spans = [_by_host(queue, kernel, events) for kernel in kernels]
        meanwhile()
        return lambda: spans, spans[-1][1] - spans[0][0] if spans else 0
    # After a kernel the caches hold none of the host's code, so each line here takes
    # microseconds. The timed section is therefore short, and spans are read only on request.
    start = time.perf_counter_ns()
    for kernel, size, group in kernels:
        events.append(cl.enqueue_nd_range_kernel(queue, kernel, size, group))
    meanwhile()
    if events:
        cl.wait_for_events(events)  # Intel's `finish` does not report that a launch failed
    taken = time.perf_counter_ns() - start
    return lambda: [span(event) for event in events], taken


def _by_host(queue: cl.CommandQueue, armed: Armed, events: list[cl.Event]) -> Span:
    """Launches one kernel to the end; its start and end by the host's clock."""
    kernel, size, group = armed
    start = time.perf_counter_ns()
    events.append(cl.enqueue_nd_range_kernel(queue, kernel, size, group))
    queue.finish()
    end = time.perf_counter_ns()
    events[-1].wait()  # `finish` does not report a launch that failed
    return start, end


def failed(on: OpenDevice, events: Sequence[cl.Event]) -> tuple[int, cl.Error] | None:
    """The first of some launches whose event reports a failure: its number, and the error.

    By the host's clock, events are only awaited: they may have no timestamps.
    """
    for number, event in enumerate(events):
        try:
            if on.clock == "host":
                event.wait()
            else:
                span(event)
        except cl.Error as error:
            return number, error
    return None


def span(event: cl.Event) -> Span:
    """The start and the end of a launch by the device's clock, once it is over.

    For a failed launch, Intel's `finish` reports nothing and the profile is wrong; only `wait`
    reports the failure.
    """
    event.wait()
    # `event.profile.start` looks up its name in Python, which takes ten times as long; a network
    # has a hundred launches.
    told: Callable[[int], Any] = event.get_profiling_info
    return told(cl.profiling_info.START), told(cl.profiling_info.END)
