"""Finding the stage that a wrong result comes from: the first whose stored value is wrong.

Candidates with correct results have no extra work. A wrong one runs once more. Each stored value is
fetched as soon as it is computed, and compared with its meaning like a result (`check.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from liftpy.explore.measure.bounding import narrow_bounds
from liftpy.explore.measure.check import TOLERANCE
from liftpy.explore.measure.meaning import Meaning, allowed, bounds_at, expected, narrowed, settled
from liftpy.explore.measure.messages import Inspected, Setup, Stored, StoredValue
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.space.precision import partition_of
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.walk import at, replace_at
from liftpy.kernels.chain import chain
from liftpy.opencl.generate import buffer_names, stored_names
from liftpy.rewrite.composition import StagedSkeleton
from liftpy.rewrite.cuts import RESULT
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.shapes import lets, parameter


def up_to(program: Program, partition: Partition) -> Iterator[Program]:
    """For each stored value of a partition, the program that ends with it."""
    for depth in range(len(partition.stages) - 1):
        place = (1,) * depth
        value = at(partition.cut_form, (*place, 0))
        body = replace_at(partition.cut_form, place, value)
        yield Program(program.name, Lambda(program.params, body), program.constants)


def stored(skeleton: Skeleton, sizes: Mapping[str, int], setup: Setup, program: Program) -> Stored:
    """The values that a candidate stores between its stages, with their expected values."""
    partition = partition_of(skeleton)
    if not isinstance(skeleton, StagedSkeleton) or partition is None:
        return Stored(())
    lowered = skeleton.at(dict(sizes))
    cut = chain(lowered)
    names = buffer_names(cut)
    by_let = {param.name: buffer for param, buffer in cut.lets.items()}
    kernels = {kernel.writes: kernel.name for kernel in cut.kernels}
    tolerance, arrays = tolerance_of(program, setup), setup.inputs.arrays()
    params = [parameter(let).name for let in lets(lowered.body.body)]
    found: list[StoredValue] = []
    for (stage, _), param, own in zip(
        skeleton.stages, params, up_to(program, partition), strict=False
    ):
        buffer = by_let.get(param)
        if buffer is not None and buffer in kernels:
            wanted = expected(own, arrays, tolerance=tolerance)
            if setup.bounded:
                limits = bounds_at(wanted, narrow_bounds(own, arrays, wanted))
                pairs = zip_longest(wanted, limits)
                wanted = tuple(replace(part, bounds=limit) for part, limit in pairs)
            value = StoredValue(stage, kernels[buffer], stored_names(buffer, names), wanted)
            found.append(value)
    return Stored(tuple(found))


def tolerance_of(program: Program, setup: Setup) -> float:
    """The user's tolerance, which applies to f32 and short sums."""
    known = [part.tolerance for part in setup.wanted if part.tolerance]
    added = narrowed(program)
    return (known[0] - added) / (allowed(program, 1.0) - added) if known else TOLERANCE


def blamed(
    skeleton: Skeleton,
    wrong: WrongResult,
    there: Stored,
    found: Inspected,
    program: Program,
    arrays: Mapping[str, Any],
) -> WrongResult:
    """A wrong result with its first wrong stage: the last stage if all stored values are right."""
    partition = partition_of(skeleton)
    if partition is None or not there.values:
        return wrong
    programs = dict(
        zip((s.name for s in partition.stages), up_to(program, partition), strict=False)
    )
    for value, verdict in zip(there.values, found.verdicts, strict=True):
        own = verdict
        if not isinstance(own, WrongResult) and own.doubts:
            part = programs[value.stage]
            limited = any(wanted.bounds is not None for wanted in value.wanted)
            limits = narrow_bounds(part, dict(arrays), value.wanted) if limited else None
            own = settled(Meaning(part, dict(arrays)), value.wanted, own, limits)
        if isinstance(own, WrongResult):
            return replace(wrong, stage=value.stage, inside=own)
    return replace(wrong, stage=RESULT)
