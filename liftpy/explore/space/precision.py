"""The forms of a program that a limit on the error leaves out of its space, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from liftpy.errors import ArgumentRefused, plural
from liftpy.rewrite.algorithms import Algorithm, algorithms_of
from liftpy.rewrite.partition import WINOGRAD, Partition
from liftpy.winograd.error import CHANNELS, above


@dataclass(frozen=True)
class LeftOut:
    """A form that is left out: its word of the choice `winograd`, and a sentence that says why."""

    word: str
    why: str


def within_error(
    made: Sequence[Partition], limit: float | None
) -> tuple[list[Partition], tuple[LeftOut, ...]]:
    """The partitions whose uses of F(m, r) have bounds up to a limit, and the words of the others.

    A bound is relative to the largest possible result of the convolution (`winograd/error.py`).
    Forms that compute directly are always kept. ArgumentRefused if the limit is not 0 or more.
    """
    if limit is not None and not limit >= 0:
        raise ArgumentRefused(f"max_error={limit} is not an error: give 0 or more, or None")
    if limit is None or math.isinf(limit):
        return [*made], ()
    allowed = Fraction(str(limit))  # as it is written: 1e-5, not the nearest float
    used_by = {dict(p.words)[WINOGRAD]: [*algorithms_of(p)] for p in made if p.other_algorithm}
    worst = {word: max(used, key=bounded) for word, used in used_by.items()}
    beyond = {word for word, used in worst.items() if bounded(used) > allowed}
    left = {word: used for word, used in worst.items() if word not in beyond}
    return (
        [p for p in made if dict(p.words).get(WINOGRAD) not in beyond],
        tuple(
            LeftOut(word, why(word, worst[word], limit, left)) for word in worst if word in beyond
        ),
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
