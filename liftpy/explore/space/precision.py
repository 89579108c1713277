"""The forms of a program that a limit on the error leaves out of its space, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from liftpy.errors import ArgumentRefused, plural
from liftpy.ir.formats import QUANTISED
from liftpy.rewrite.algorithms import Algorithm, algorithms_of
from liftpy.rewrite.composition import Composition
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import WINOGRAD
from liftpy.semantics.rounding import Unbounded, worst_path
from liftpy.winograd.error import CHANNELS, above


@dataclass(frozen=True)
class LeftOut:
    """Forms that are left out: a word of a choice, and a sentence that says why."""

    word: str
    why: str


def within_error(
    made: Sequence[Partition], limit: float | None
) -> tuple[list[Partition], tuple[LeftOut, ...]]:
    """The partitions whose error bounds do not exceed a limit, and the words of the others.

    The bound of an F(m, r) is relative to the largest possible result of the convolution
    (`winograd/error.py`), that of storing values in other types to the largest possible result of
    the program. Other forms are always kept. ArgumentRefused if the limit is not 0 or more.
    """
    if limit is not None and not limit >= 0:
        raise ArgumentRefused(f"max_error={limit} is not an error: give 0 or more, or None")
    if limit is None or math.isinf(limit):
        return [*made], ()
    allowed = Fraction(str(limit))  # as it is written: 1e-5, not the nearest float
    used_by = {dict(p.words)[WINOGRAD]: [*algorithms_of(p)] for p in made if p.other_algorithm}
    worst = {word: max(used, key=bounded) for word, used in used_by.items() if used}
    beyond = {word for word, used in worst.items() if bounded(used) > allowed}
    left = {word: used for word, used in worst.items() if word not in beyond}
    coarse = {p.storage: bound for p in made if (bound := storage_bound(p)) > limit}
    return (
        [p for p in made if dict(p.words).get(WINOGRAD) not in beyond and p.storage not in coarse],
        (
            *(LeftOut(w, why(w, worst[w], limit, left)) for w in worst if w in beyond),
            *(LeftOut(spelled(s), why_coarse(s, bound, limit)) for s, bound in coarse.items()),
        ),
    )


def storage_bound(form: Partition) -> float:
    """The bound of the error of storing values in other types; infinite if there is none."""
    if not form.storage:
        return 0.0
    try:
        return worst_path(form.program).stored
    except Unbounded:
        return math.inf


def other_meaning(skeleton: Skeleton) -> str | None:
    """How a candidate's meaning differs from that of its program; None if it does not."""
    partition = partition_of(skeleton)
    if partition is None or not partition.storage:
        return None
    bound = storage_bound(partition)
    size = (
        "has no known relative bound"
        if math.isinf(bound)
        else f"is at most {bound:.3g} of the largest"
    )
    return (
        f"another meaning: {spelled(partition.storage)} rounds what it stores, and the error "
        f"{size}{'' if math.isinf(bound) else ' possible result'}"
    )


def partition_of(skeleton: Skeleton) -> Partition | None:
    """The partition of a skeleton of several stages."""
    lowering = skeleton.lowering
    return lowering.partition if isinstance(lowering, Composition) else None


def spelled(storage: tuple[tuple[str, str], ...]) -> str:
    """The choices of a form that stores values in other types."""
    return ", ".join(f"{name}={t}" for name, t in storage)


def why_coarse(storage: tuple[tuple[str, str], ...], bound: float, limit: float) -> str:
    """The reason why a form with values in other types is left out, and accepted alternatives."""
    if math.isinf(bound):
        if any(t in QUANTISED for _, t in storage):
            return (
                f"{spelled(storage)} is left out: its error has no relative bound, since it "
                "depends on the largest of the numbers that share a scale. Leave out the limit, "
                "and limit the measured error instead (`liftpy pareto --max-error`)"
            )
        return (
            f"{spelled(storage)} is left out: no bound is known for its error, since the program "
            "computes more than sums, products and maxima of f32. Leave out the limit"
        )
    return (
        f"{spelled(storage)} is left out: its error is bounded by {bound:.3g} of the largest "
        f"possible result, and {limit:g} is allowed. Store fewer values, or in types with more "
        f"bits, or allow an error of {bound:.3g}"
    )


def bounded(used: Algorithm) -> Fraction | float:
    """The bound of an algorithm's relative error; infinite where it sums too many products."""
    return used.bound.relative if used.summed in CHANNELS else math.inf


def why(word: str, used: Algorithm, limit: float, left: dict[str, Algorithm]) -> str:
    """Why a form is left out, and what would be accepted. `left` has the forms that are kept."""
    summed = plural(used.channels, "channel")
    if used.rows > 1:
        summed += f" and {used.rows} rows"
    if used.summed not in CHANNELS:
        return (
            f"{WINOGRAD}={word} is left out: no bound is known for the error of {used} with "
            f"{summed}, only for up to {CHANNELS[-1]} products in a sum. Leave out the limit, or "
            f"take a form without this choice, which computes directly"
        )
    least = above(used.bound.relative)
    other = ", ".join(
        f"{WINOGRAD}={name}, whose bound is {above(kept.bound.relative)}"
        for name, kept in left.items()
    )
    return (
        f"{WINOGRAD}={word} is left out: the error of {used} with {summed} is bounded by "
        f"{least} of the largest possible result, and {limit:g} is allowed. "
        f"Take {other or 'a form without this choice, which computes directly'}, or allow "
        f"an error of {least}"
    )
