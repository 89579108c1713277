"""Launches on a device's queue, one after another, and what both clocks say of them.

A launch is stated once, whether it is timed, checked, or prepares constants.
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
        self._armed: set[Launch] = set()  # whose kernels have their arguments

    def disarm(self) -> None:
        """Forgets the kernels' arguments: some of these buffers have been released."""
        self._armed.clear()

    def run(self, launches: Sequence[Launch]) -> tuple[list[int], int]:
        """Runs launches to the end: device nanoseconds of each, and the host's of all.

        The latter are from before the first launch until the last one is over.
        Raises DeviceRefused, of the launch that failed, or of what was under way before.
        """
        armed = [(self._kernel(x), x.global_size, x.local_size) for x in launches]
        queue = self._queue
        events: list[cl.Event] = []
        with refusal(self._device, f"what came before the launches of {self._module.name}"):
            queue.finish()
        # After a kernel the caches hold nothing of the host's code, so each line of it here takes
        # microseconds: the clock stands around no more than there has to be.
        try:
            start = time.perf_counter_ns()
            for kernel, size, group in armed:
                events.append(cl.enqueue_nd_range_kernel(queue, kernel, size, group))
            queue.finish()
            taken = time.perf_counter_ns() - start
            return [_nanoseconds(event) for event in events], taken
        except cl.Error as error:
            raise self._refused(launches, events, error) from error

    def check(self, launches: Sequence[Launch], times: Sequence[int], host_ns: int) -> None:
        """Refuses times that `run` gave and that cannot be, with ClockRefused."""
        check_times(self._module, self._device, launches, times, host_ns)

    def _kernel(self, launch: Launch) -> cl.Kernel:
        """The kernel of a launch, with its arguments."""
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
        """The error of the launch that failed: the first whose event says so, or that has none."""
        for launch, event in zip(launches, events, strict=False):
            try:
                _nanoseconds(event)
            except cl.Error as own:
                return refused(self._device, self._spell(launch), own)
        if len(events) < len(launches):
            return refused(self._device, self._spell(launches[len(events)]), error)
        return refused(self._device, " or ".join(map(self._spell, launches)), error)

    def _spell(self, launch: Launch) -> str:
        return f"{spell(launch)} of {self._module.name}"


def _nanoseconds(event: cl.Event) -> int:
    """How long a launch took, by the device's clock, when it is over.

    Of a failed one Intel's `finish` says nothing and its profile is wrong: only `wait` tells.
    """
    event.wait()
    return int(event.profile.end - event.profile.start)
