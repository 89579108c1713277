"""The conditions on the sizes of each stage of a program.

The sizes of one stage are chosen without knowing those of another. So the global memory that all
stages share is divided in advance: for each stage, the buffers of the others are assumed to have
their largest possible sizes. Few of them depend on sizes at all (constants in groups that do not
divide their length).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liftpy.constraints.collect import ALONE, Around, Collected
from liftpy.ir.types import size_bytes
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.stages import Stage


def around_each(
    partition: Partition, made: Sequence[Sequence[Collected]]
) -> Iterator[tuple[Stage, Around]]:
    """Yield each stage with the memory that others use; `made` has the skeletons of each stage."""
    resident = [max((one.kept for one in group), default=0) for group in made]
    constants = [stage.runs_once for stage in partition.stages]
    last = len(partition.stages) - 1
    for k, stage in enumerate(partition.stages):
        mine = {p.name for p in stage.program.params}
        outer = [
            p
            for p in partition.program.params
            if p.name not in mine and p.name not in partition.program.constants
        ]
        alive = [
            other
            for j, other in enumerate(partition.stages[:-1])
            if j != k and other.param is not None and other.param.name not in mine
            if constants[j] or (j < k and last_read(partition, other) > k)
        ]
        bytes_ = sum(int(size_bytes(p.type)) for p in outer)
        bytes_ += sum(int(size_bytes(s.param.type)) for s in alive if s.param is not None)
        # What only the prepare phase reads is not there during a run.
        bytes_ += sum(n for j, n in enumerate(resident) if j != k and not constants[j])
        if k != last:
            bytes_ += int(size_bytes(partition.program.type))
        temporary = {
            other.param.name
            for j, other in enumerate(partition.stages[:k])
            if other.param is not None and not constants[j] and last_read(partition, other) == k
        }
        name = result_of(stage)
        yield stage, Around(bytes_, frozenset({*temporary, *([] if k == last else [name])}), name)


def result_of(stage: Stage) -> str:
    """The name of the buffer that holds a stage's value."""
    return ALONE.name if stage.param is None else stage.param.name


def last_read(partition: Partition, stage: Stage) -> int:
    """The position of the last stage that reads the value of a stage."""
    return max(
        k
        for k, other in enumerate(partition.stages)
        if any(p == stage.param for p in other.program.params)
    )
