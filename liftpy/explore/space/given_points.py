"""The points of F(m, r) that a campaign or a stored candidate uses, and their proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from liftpy.errors import RuleRefused, TransformRefused
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.rewrite.bank import USUAL, Bank, asked_points, laws_of
from liftpy.rewrite.partition import GIVEN_POINTS, Partition, other_algorithms
from liftpy.rewrite.proof_cache import admit, law_of
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved
from liftpy.winograd.choosing import By


def proved(rule: Rule) -> None:
    """Proves a rule that was made from given points; RuleRefused with the verdict if it fails."""
    verdict = prove(rule)
    if not isinstance(verdict, Proved):
        raise RuleRefused(
            f"rule {rule.name} cannot be applied: the proof for its points failed: "
            f"{verdict}. Give other points"
        )


def bank_asked(asked: str | Sequence[str]) -> Bank:
    """The bank of the points that a user asks for: `bound`, `measured`, or points.

    Raises TransformRefused for anything else (`bank.asked_points`).
    """
    return Bank(asked_points((asked,) if isinstance(asked, str) else asked), proved)


def are_listed(asked: str | Sequence[str]) -> bool:
    """Whether a user lists points; `bound` and `measured` choose those of every F(m, r)."""
    words = {asked} if isinstance(asked, str) else {*asked}
    return not words <= set(By)


def bank_in(settings: Mapping[str, Any]) -> Bank:
    """The bank that the settings of a candidate name with `winograd_points`; errors as above."""
    return Bank(asked_points((word,)) if (word := settings.get(GIVEN_POINTS)) else (), proved)


class Made(Protocol):
    """Makes partitions of a program, with forms by the F(m, r) of a bank."""

    def __call__(self, program: Program, bank: Bank = USUAL) -> Iterable[Partition]:
        """The partitions."""
        ...


def with_points(made: Made, bank: Bank) -> Callable[[Program], Iterable[Partition]]:
    """The function that makes the partitions of a program, with the points of a bank."""
    return partial(made, bank=bank) if bank.points else made


def with_points_used(derive: Callable[..., Space], bank: Bank, **given: Any) -> Space:
    """A space in which some form computes with a user's points; TransformRefused if none does."""
    space = derive(**given)
    if not any(f"{GIVEN_POINTS}=" in member.key for member in space.every):
        sizes = " and ".join(f"F({m}, {r})" for (m, r), _ in bank.points)
        raise TransformRefused(
            f"the given points are of {sizes}, and no form of {space.program.name} in this space "
            "computes by one of these. Leave the points out, or give as many as an F(m, r) of the "
            "space has: `liftpy space` without points and families lists these as winograd=..."
        )
    return space


def proofs_for(program: Program, bank: Bank) -> dict[str, str]:
    """The hashes of the laws of a program's rules with given points, by the names of the rules.

    Rules without a proof are proved. A worker process that gets the hashes does not prove the rules
    again.
    """
    if not bank.points:
        return {}
    return laws_of(step.rule for form in other_algorithms(program, bank) for step in form.steps)


def admit_proofs(laws: Mapping[str, str]) -> None:
    """Records that rules with these names and laws have been proved in another process."""
    for name, law in laws.items():
        if law_of(RULES[name]) == law:
            admit(RULES[name])
