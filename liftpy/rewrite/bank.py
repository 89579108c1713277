"""Rules by F(m, r) from other points than the usual ones: given by a user, or chosen.

A bank has points for some F(m, r). The name of a rule that is made from them contains them, and so
does the word of a form that uses such rules: a stored candidate is derived again from its name.
Such a rule is proved in the process that first applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from liftpy.errors import RuleRefused, TransformRefused, plural
from liftpy.rewrite.proof_cache import is_proved, law_of
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.correlation import (
    FLAT,
    SIZES,
    PointsOf,
    base_of,
    points_of_word,
    read_points,
    spelled_points,
    triple,
    with_points,
)
from liftpy.rewrite.strategy import Step
from liftpy.winograd.choosing import By, of_rules
from liftpy.winograd.error import DIGITS, FORMS, Transforms
from liftpy.winograd.linear import Form, ScaledValue
from liftpy.winograd.matrices import Exact, exact
from liftpy.winograd.points import Points

Prove: TypeAlias = Callable[[Rule], None]
"""Proves a rule; raises RuleRefused if it does not hold."""


def nothing_proved(rule: Rule) -> None:
    """Refuses to prove: the usual points have recorded proofs."""
    raise RuleRefused(
        f"rule {rule.name} cannot be applied: it has no valid proof, and no prover was given"
    )


@dataclass(frozen=True)
class Bank:
    """The points of some F(m, r), each by (m, r), and the prover of the rules that use them."""

    points: PointsOf = ()
    prove: Prove = field(default=nothing_proved, compare=False)

    def name(self, rule: str) -> str:
        """The name of the rule that has these points instead of the usual ones."""
        return with_points(rule, self.points)

    def law(self, name: str) -> Rule:
        """The rule with a name of `name`, proved."""
        rule = RULES[name]
        if not is_proved(rule):
            self.prove(rule)
        return rule


USUAL = Bank()
"""The points of the rules of the catalogue, whose proofs are recorded."""


def points_in(steps: Iterable[Step]) -> str:
    """The points in the names of applied rules, as text; empty if all are usual."""
    given = (read_points(step.rule) for step in steps)
    return spelled_points(tuple(sorted({pair for pairs in given for pair in pairs})))


def asked_points(asked: Sequence[str]) -> PointsOf:
    """The points of each F(m, r) that a user asks for, without those that are the usual ones.

    `bound` asks for the usual ones, `measured` for those with the smallest measured error. A list
    of points, such as `0,1,-1,1/2,-1/2`, is for every F(m, r) with as many points; several lists
    have different lengths. A word of `winograd_points` is for the F(m, r) in it. TransformRefused
    if points make no F(m, r), or lead to a constant that f32 rounds.

    >>> spelled_points(asked_points(["0,1,-1,1/2,-1/2"]))
    '2.5_0_1_-1_1/2_-1/2+4.3_0_1_-1_1/2_-1/2'
    >>> asked_points(["2.2_0_1/2"]) == asked_points(["0,1/2"])
    True
    """
    asked = [*dict.fromkeys(asked)]
    if asked in ([], [str(By.BOUND)]):
        return ()
    if asked == [str(By.MEASURED)]:
        chosen = {size: of_rules(*size, By.MEASURED) for size in SIZES}
    else:
        chosen = dict[tuple[int, int], Points]()
        for text in asked:
            found = by_word(text) if "_" in text else by_list(text, asked)
            if twice := [size for size in found if size in chosen]:
                raise TransformRefused(
                    f"the points {' and '.join(asked)} are refused: two of them are for "
                    f"F({twice[0][0]}, {twice[0][1]}). Give one of them"
                )
            chosen |= found
    return tuple(
        sorted((size, given) for size, given in chosen.items() if given != triple(*size).points)
    )


def by_word(text: str) -> dict[tuple[int, int], Points]:
    """The points in a word of `winograd_points`."""
    return {size: checked_points(size, some) for size, some in points_of_word(text)}


def by_list(text: str, asked: Sequence[str]) -> dict[tuple[int, int], Points]:
    """The points of each F(m, r) with as many as a list; `asked` has all lists."""
    words = [str(By.BOUND), str(By.MEASURED)]
    if text in words:
        raise TransformRefused(
            f"the points {' and '.join(asked)} are refused: {text} chooses the points of every "
            f"F(m, r), and other points are given too. Give {text} alone, or lists of points"
        )
    listed = text.split(",")
    fitting = [(m, r) for m, r in SIZES if m + r - 2 == len(listed)]
    if not fitting:
        counts = sorted({m + r - 2 for m, r in SIZES})
        raise TransformRefused(
            f"the points {text} are refused: a list of {plural(len(listed), 'point')} fits no "
            f"F(m, r) of a rule. Give {', '.join(map(str, counts[:-1]))} or {counts[-1]} points, "
            f"such as {','.join(map(str, triple(4, 3).points))}, or one of: {', '.join(words)}"
        )
    return {size: checked_points(size, listed) for size in fitting}


def checked_points(size: tuple[int, int], some: Sequence[Exact]) -> Points:
    """The points of F(m, r). TransformRefused if they make none, or f32 rounds a constant."""
    m, r = size
    given = tuple(exact(p, f"point {j} of F({m}, {r})") for j, p in enumerate(some))
    if size not in SIZES:
        raise TransformRefused(
            f"the points {', '.join(map(str, given))} are refused: there is no rule for "
            f"F({m}, {r}). Give points of one of: {', '.join(f'F({k}, {s})' for k, s in SIZES)}"
        )
    made = triple(m, r, given)
    for form in (FORMS[2], *((Form.FLAT,) if size in FLAT else ())):
        transforms = Transforms.of(made, form)
        for code in (transforms.kernel, transforms.input, transforms.output):
            for step in code.steps:
                if isinstance(step, ScaledValue) and is_rounded(step.factor):
                    raise TransformRefused(
                        f"the points {', '.join(map(str, given))} are refused: a transform of "
                        f"{made} multiplies by {step.factor}, and f32 rounds its numerator or "
                        "denominator, so kernels would not compute what the law states. Give "
                        "points with smaller numerators and denominators"
                    )
    return made.points


def is_rounded(factor: Fraction) -> bool:
    """Whether f32 rounds the numerator or the denominator of a constant."""
    parts = (abs(factor.numerator), factor.denominator)
    return any(n and (n // (n & -n)).bit_length() > DIGITS for n in parts)


def laws_of(names: Iterable[str]) -> dict[str, str]:
    """The hashes of the laws of those rules that have given points, by name."""
    return {name: law_of(RULES[name]) for name in names if base_of(name) != name}
