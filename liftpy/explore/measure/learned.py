"""Limits that a driver reports for built kernels, learned during a campaign.

A device reports the largest work-group and the size of its local memory. For a built kernel, the
driver may report less: many registers leave room for fewer work-items (CL_KERNEL_WORK_GROUP_SIZE),
and the driver may use some local memory itself (CL_KERNEL_LOCAL_MEM_SIZE). The candidate is then
refused, and the reported limit applies to later draws of its skeleton:

- work-group: if a work-item of that kernel uses at least as many private bytes, the group must not
  be larger than the limit. (With fewer registers in use, the driver may allow more.)
- local memory: the kernel's own, plus what the driver added, must fit into the device's.

A lesson has a position in the drawing order, that of the candidate it was learned from. So a
resumed campaign skips the same candidates. CL_KERNEL_PRIVATE_MEM_SIZE is ignored: OpenCL defines no
limit for it, and drivers spill registers that do not fit.
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
    """The limits that a campaign has learned so far for the skeletons of its space."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lessons: dict[str, list[Lesson]] = {}

    def learn(self, candidate: Candidate, limit: KernelLimit) -> None:
        """Adds a limit that the driver reported for a kernel of a candidate."""
        kernels = {kernel.name: kernel for kernel in chain(candidate.skeleton.program).kernels}
        demand = kernels[limit.kernel].demand
        lesson = self._lesson(demand, candidate.point, limit)
        self._lessons.setdefault(candidate.skeleton.key, []).append(lesson)

    def allows(self, skeleton: Skeleton, sizes: Sizes) -> bool:
        """Whether a point satisfies the limits learned for its skeleton."""
        return all(lesson(sizes) for lesson in self._lessons.get(skeleton.key, ()))

    def _lesson(self, demand: Demand, sizes: Sizes, limit: KernelLimit) -> Lesson:
        if limit.figure == "local":
            added = limit.number - demand.local.value(sizes)
            room = self._device.local_memory - added
            return lambda at: demand.local.value(at) <= room
        group, held = product(demand.local_size()), demand.private.value(sizes)
        return lambda at: demand.private.value(at) < held or group.value(at) <= limit.number
