"""The conditions on the sizes of each stage of a program.

The sizes of one stage are chosen without knowing those of another. So the global memory that all
stages share is divided in advance: for each stage, the buffers of the others are assumed to have
their largest possible sizes. Few of them depend on sizes at all (constants in groups that do not
divide their length).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from liftpy.constraints.collect import ALONE, Around, Collected
from liftpy.ir.expr import Param
from liftpy.ir.types import size_bytes
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.stages import Stage


def around_each(
    partition: Partition, made: Sequence[Sequence[Collected]]
) -> Iterator[tuple[Stage, Around]]:
    """Yield each stage with the memory that others use; `made` has the skeletons of each stage."""
    packed = [max((one.packed for one in group), default=0) for group in made]
    once = [stage.runs_once for stage in partition.stages]
    for k, stage in enumerate(partition.stages):
        mine = {p.name for p in stage.program.params}
        outer = {
            p
            for p in partition.program.params
            if p.name not in mine and p.name not in partition.program.constants
        }
        alive = {
            other.param
            for j, other in enumerate(partition.stages[:k])
            if other.param is not None and other.param.name not in mine
            if not once[j] and last_read(partition, other) > k
        }
        others = [(j, other) for j, other in enumerate(partition.stages) if j != k]
        constants = {p for j, other in others if not once[j] for p in constants_of(other, mine)}
        early = {p for j, other in others if once[j] for p in constants_of(other, mine)}
        bytes_ = size_of(outer | alive | constants) + sum(
            packed[j] for j, _ in others if not once[j]
        )
        prepared = size_of(early - constants) + sum(packed[j] for j, _ in others if once[j])
        temporary = {
            other.param.name
            for j, other in enumerate(partition.stages[:k])
            if other.param is not None and not once[j] and last_read(partition, other) == k
        }
        yield stage, Around(bytes_, frozenset(temporary), result_of(stage), prepared)


def constants_of(stage: Stage, known: AbstractSet[str]) -> Iterator[Param]:
    """The constants that a stage reads, without those with these names."""
    return (p for p in stage.program.params if stage.is_constant(p) and p.name not in known)


def size_of(params: Iterable[Param]) -> int:
    """The bytes of the values of variables."""
    return sum(int(size_bytes(p.type)) for p in params)


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
