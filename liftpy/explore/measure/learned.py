"""Limits that a driver gives a kernel once it is built, learned in the course of a campaign.

A device says how large a work-group may be and how much local memory it has. Of a built kernel its
driver may say less: many registers leave room for fewer work-items (CL_KERNEL_WORK_GROUP_SIZE), and
the driver may want some local memory itself (CL_KERNEL_LOCAL_MEM_SIZE). The candidate is refused,
and what was said holds for the draws of its skeleton that come after it:

- work-group: where a work-item of that kernel holds as many private bytes as there, or more, the
  group is at most as large. (With fewer registers in use the driver may well allow more.)
- local memory: the kernel's own and what the driver added to it fit into the device's.

The lesson stands at a place in the drawing order, that of the candidate that taught it. So a
campaign that is resumed skips what it would have skipped. CL_KERNEL_PRIVATE_MEM_SIZE teaches
nothing: OpenCL names no limit for it, and drivers spill what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from liftpy.constraints.device import Device
from liftpy.explore.measure.outcome import KernelLimit
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.nat import product
from liftpy.kernels.chain import chain
from liftpy.kernels.launch import Demand
from liftpy.rewrite.skeleton import Skeleton

Sizes: TypeAlias = Mapping[str, int]
Lesson: TypeAlias = Callable[[Sizes], bool]


class Lessons:
    """What a campaign has learned so far of the skeletons of its space on a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lessons: dict[str, list[Lesson]] = {}

    def learn(self, candidate: Candidate, limit: KernelLimit) -> None:
        """Takes in the limit of a kernel of a candidate."""
        kernels = {kernel.name: kernel for kernel in chain(candidate.skeleton.program).kernels}
        demand = kernels[limit.kernel].demand
        lesson = self._lesson(demand, candidate.point, limit)
        self._lessons.setdefault(candidate.skeleton.key, []).append(lesson)

    def allows(self, skeleton: Skeleton, sizes: Sizes) -> bool:
        """Whether a point keeps the limits learned."""
        return all(lesson(sizes) for lesson in self._lessons.get(skeleton.key, ()))

    def _lesson(self, demand: Demand, sizes: Sizes, limit: KernelLimit) -> Lesson:
        if limit.figure == "local":
            added = limit.number - demand.local.value(sizes)
            room = self._device.local_memory - added
            return lambda at: demand.local.value(at) <= room
        group, held = product(demand.local_size()), demand.private.value(sizes)
        return lambda at: demand.private.value(at) < held or group.value(at) <= limit.number
