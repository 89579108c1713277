"""The conditions on the sizes of each stage of a program.

The sizes of one stage are chosen without knowing those of another. So the global memory that all
stages share is divided in advance: for each stage, the buffers of the others are assumed to have
their largest possible sizes. Few of them depend on sizes at all (constants in groups that do not
divide their length).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liftpy.constraints.collect import Around
from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat
from liftpy.ir.types import size_bytes
from liftpy.kernels.chain import chain
from liftpy.rewrite.partition import Partition, Stage
from liftpy.rewrite.skeleton import Skeleton


def around_each(
    partition: Partition, made: Sequence[Sequence[Skeleton]]
) -> Iterator[tuple[Stage, Around]]:
    """Yield each stage with the memory that others use; `made` has the skeletons of each stage."""
    resident = [max(map(kept, group), default=0) for group in made]
    constants = [is_constant(stage) for stage in partition.stages]
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
        bytes_ += sum(n for j, n in enumerate(resident) if j != k)
        if k != last:
            bytes_ += int(size_bytes(partition.program.type))
        temporary = {
            other.param.name
            for j, other in enumerate(partition.stages[:k])
            if other.param is not None and not constants[j] and last_read(partition, other) == k
        }
        name = "output" if stage.param is None else stage.param.name
        yield stage, Around(bytes_, frozenset({*temporary, *([] if k == last else [name])}), name)


def is_constant(stage: Stage) -> bool:
    """Whether a stage reads constants only, so that it runs once."""
    params = stage.program.params
    return bool(params) and all(map(stage.is_constant, params)) and stage.param is not None


def last_read(partition: Partition, stage: Stage) -> int:
    """The position of the last stage that reads the value of a stage."""
    return max(
        k
        for k, other in enumerate(partition.stages)
        if any(p == stage.param for p in other.program.params)
    )


def kept(skeleton: Skeleton) -> int:
    """The most bytes that the constants of a skeleton take while other stages run."""
    total: Nat = ZERO
    for buffer in chain(skeleton.program).buffers:
        if buffer.role in ("constant", "packed") and buffer.span is not None:
            total = total + buffer.bytes
    most = total.substitute({p.name: p.nat for p in skeleton.parameters}).bounds[1]
    if most is None:
        message = f"the constants of {skeleton.key} take {total} bytes, which has no bound"
        raise InternalError(message)
    return most
