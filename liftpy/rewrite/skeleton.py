"""A skeleton: a program lowered by a derivation whose sizes are still open.

A space is skeletons (structural choices) times the sizes that satisfy each skeleton's conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.expr import Lambda, Program
from liftpy.ir.nat import Nat, var
from liftpy.ir.walk import substitute_sizes
from liftpy.rewrite.strategy import Derivation


@dataclass(frozen=True)
class Parameter:
    """A tuning size: its name, inclusive range, and what it is in words."""

    name: str
    low: int
    high: int
    meaning: str

    @property
    def nat(self) -> Nat:
        """The parameter as a size."""
        return var(self.name, self.low, self.high)


@dataclass(frozen=True)
class Skeleton:
    """One derivation of one program, with the sizes it leaves open.

    family: the strategy's name: `plain`, `direct`, `staged`. choices: the structural choices it was
    made with, name to word. program: the lowered program. derivation: how it came from the source.
    """

    family: str
    choices: tuple[tuple[str, str], ...]
    program: Program
    derivation: Derivation
    parameters: tuple[Parameter, ...]

    @property
    def key(self) -> str:
        """A stable name: `direct(pad=copy, unroll=no)`."""
        return f"{self.family}({', '.join(f'{n}={w}' for n, w in self.choices)})"

    def at(self, assignment: dict[str, int]) -> Program:
        """The lowered program with numbers for sizes; TypeRefused where a condition breaks."""
        body = substitute_sizes(self.program.body.body, assignment)
        return Program(self.program.name, Lambda(self.program.params, body), self.program.constants)
