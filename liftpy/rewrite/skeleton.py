"""A skeleton: a program lowered by a derivation whose sizes are still open.

A space is its skeletons (structural choices) times the sizes that satisfy each one's conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from liftpy.errors import RuleRefused
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, Var, var
from liftpy.ir.program import Program
from liftpy.ir.walk import substitute_sizes
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.strategy import Derivation, Strategy, derive, derived

FAMILY = "family"
"""The structural choice that every skeleton makes."""


@dataclass(frozen=True)
class Parameter:
    """A tuning size: its name, inclusive range, and meaning in words."""

    name: str
    low: int
    high: int
    meaning: str

    @property
    def nat(self) -> Nat:
        """The parameter as a size."""
        return var(self.name, self.low, self.high)


def key_of(family: str, choices: tuple[tuple[str, str], ...]) -> str:
    """The key of the skeleton that a family makes with these choices."""
    return f"{family}({', '.join(f'{n}={w}' for n, w in choices)})"


class Lowering(Protocol):
    """A lowered program and its derivation from the source."""

    @property
    def program(self) -> LoweredProgram:
        """The lowered program."""
        ...

    @property
    def derivation(self) -> Derivation:
        """The steps that lead to the program."""
        ...


@dataclass(frozen=True)
class Lowered:
    """A program that a strategy has lowered."""

    program: LoweredProgram
    derivation: Derivation


@dataclass(frozen=True)
class Skeleton:
    """One derivation of one program, with the sizes it leaves open.

    family: the strategy's name, such as `direct`. choices: the structural choices, name to word;
    the first `cuts` of them are the cuts that are not stored (`partition.py`).
    """

    family: str
    choices: tuple[tuple[str, str], ...]
    lowering: Lowering
    parameters: tuple[Parameter, ...]
    cuts: int = 0

    @property
    def program(self) -> LoweredProgram:
        """The lowered program, its sizes open."""
        return self.lowering.program

    @property
    def derivation(self) -> Derivation:
        """The steps from the source to the program."""
        return self.lowering.derivation

    @property
    def key(self) -> str:
        """A stable name: `direct(pad=copy, unroll=no)`."""
        return key_of(self.family, self.choices)

    @property
    def words(self) -> dict[str, str]:
        """The structural choices, the family first."""
        return {FAMILY: self.family, **dict(self.choices)}

    def at(self, assignment: dict[str, int]) -> LoweredProgram:
        """The program with numbers for its sizes; TypeRefused if a condition does not hold."""
        body = substitute_sizes(self.program.body.body, assignment)
        function = Lambda(self.program.params, body)
        return LoweredProgram(self.program.name, function, self.program.constants)


OWN = "own"  # the family of a skeleton made by a user's strategy


def skeleton_of(program: Program, strategy: Strategy) -> Skeleton:
    """The skeleton that a user's strategy makes from a program.

    Its parameters are the sizes that the strategy gave to rules as variables. RuleRefused if the
    strategy fails, or if such a size has no range; TypeRefused if it lowers only part of the
    program.
    """
    derivation = derive(program.body.body, strategy)
    known = {name for p in program.params for n in p.type.lengths() for name in n.names()}
    sizes: dict[str, Parameter] = {}
    for step in derivation.steps:
        for name, size in step.sizes:
            for v in size.atoms():
                if isinstance(v, Var) and v.name not in known:
                    sizes[v.name] = parameter(v, f"{name} of {step.rule}")
    return Skeleton(
        OWN,
        (),
        Lowered(LoweredProgram.of(derived(program, derivation)), derivation),
        tuple(sizes[name] for name in sorted(sizes)),
    )


def parameter(v: Var, meaning: str) -> Parameter:
    """A variable as a tuning size; RuleRefused if it has no range."""
    if v.low is None or v.high is None:
        message = (
            f"the size {v.name} ({meaning}) has no range to choose from: "
            f"give it one, as in var({v.name!r}, 1, 64)"
        )
        raise RuleRefused(message)
    return Parameter(v.name, v.low, v.high, meaning)
