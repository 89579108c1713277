"""Launches on a device's queue, one after another, and their times by both clocks.

The code is the same whether a launch is timed, checked, or prepares constants.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from liftpy.errors import DeviceRefused
from liftpy.opencl.allocations import Allocations
from liftpy.opencl.arguments import check_times, spell
from liftpy.opencl.driver import OpenDevice, cl, refusal, refused
from liftpy.opencl.kernel import Launch, Module


class Launcher:
    """The kernels of a module, with the buffers that they take."""

    def __init__(
        self,
        on: OpenDevice,
        module: Module,
        kernels: Mapping[Launch, cl.Kernel],
        memory: Allocations,
    ) -> None:
        self._device = on.device
        self._queue = on.queue
        self._module = module
        self._kernels = kernels
        self._memory = memory
        self._armed: set[Launch] = set()  # whose kernels have their arguments set

    def disarm(self) -> None:
        """Forget the kernels' arguments, because some of these buffers have been released."""
        self._armed.clear()

    def run(self, launches: Sequence[Launch]) -> tuple[list[int], int]:
        """Run launches to the end: device nanoseconds of each, and the host's in total.

        The total is from before the first launch until the last one is over.
        Raises DeviceRefused for the launch that failed, or for work that was queued before.
        """
        armed = [(self._kernel(x), x.global_size, x.local_size) for x in launches]
        queue = self._queue
        events: list[cl.Event] = []
        with refusal(self._device, f"what came before the launches of {self._module.name}"):
            queue.finish()
        # After a kernel the caches hold none of the host's code, so each line of it here takes
        # microseconds: the clock spans as little code as possible.
        try:
            start = time.perf_counter_ns()
            for kernel, size, group in armed:
                events.append(cl.enqueue_nd_range_kernel(queue, kernel, size, group))
            queue.finish()
            taken = time.perf_counter_ns() - start
            return [nanoseconds(event) for event in events], taken
        except cl.Error as error:
            raise self._refused(launches, events, error) from error

    def check(self, launches: Sequence[Launch], times: Sequence[int], host_ns: int) -> None:
        """Refuse impossible times from `run`, with ClockRefused."""
        check_times(self._module, self._device, launches, times, host_ns)

    def _kernel(self, launch: Launch) -> cl.Kernel:
        """The kernel of a launch, with its arguments set."""
        kernel = self._kernels[launch]
        if launch not in self._armed:
            buffers = [self._memory.of(self._module.buffer(name)) for name in launch.arguments]
            with refusal(self._device, f"the arguments of {self._spell(launch)}"):
                kernel.set_args(*buffers)
            self._armed.add(launch)
        return kernel

    def _refused(
        self, launches: Sequence[Launch], events: Sequence[cl.Event], error: cl.Error
    ) -> DeviceRefused:
        """The error of the launch that failed: the first whose event reports it or is missing."""
        for launch, event in zip(launches, events, strict=False):
            try:
                nanoseconds(event)
            except cl.Error as own:
                return refused(self._device, self._spell(launch), own)
        if len(events) < len(launches):
            return refused(self._device, self._spell(launches[len(events)]), error)
        return refused(self._device, " or ".join(map(self._spell, launches)), error)

    def _spell(self, launch: Launch) -> str:
        return f"{spell(launch)} of {self._module.name}"


def nanoseconds(event: cl.Event) -> int:
    """The duration of a launch by the device's clock, once it is over."""
    start, end = span(event)
    return end - start


def span(event: cl.Event) -> tuple[int, int]:
    """The start and the end of a launch by the device's clock, once it is over.

    For a failed launch, Intel's `finish` reports nothing and the profile is wrong; only `wait`
    reports the failure.
    """
    event.wait()
    return int(event.profile.start), int(event.profile.end)
