"""Results of strategies: a new expression with the steps to it, or a reason for failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from liftpy.ir.constraint import Constraint
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, NatLike
from liftpy.ir.walk import Path
from liftpy.language.text.program import show_expr

ELSEWHERE = "the predicate is false"  # why `where` fails: not reported when other parts are tried


@dataclass(frozen=True)
class Step:
    """One applied rule: its path, sizes and hints, and the conditions it left open."""

    rule: str
    path: Path
    sizes: tuple[tuple[str, Nat], ...] = ()
    hints: tuple[tuple[str, Path], ...] = ()
    conditions: tuple[Constraint, ...] = ()

    def moved(self, prefix: Path) -> Step:
        """The step in an enclosing expression, in which this one is at `prefix`."""
        return Step(self.rule, (*prefix, *self.path), self.sizes, self.hints, self.conditions)

    def renamed(self, sizes: Mapping[str, NatLike]) -> Step:
        """The step with sizes substituted for variables."""
        given = tuple((name, size.substitute(sizes)) for name, size in self.sizes)
        conditions = tuple(c.substitute(sizes) for c in self.conditions)
        return Step(self.rule, self.path, given, self.hints, conditions)


@dataclass(frozen=True)
class Success:
    """A new expression and the steps that led to it."""

    expr: Expr
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return show_expr(self.expr)


@dataclass(frozen=True)
class Failure:
    """Which strategy did not apply, and why."""

    strategy: str
    reason: str

    def __str__(self) -> str:
        return f"{self.strategy}: {self.reason}"


Result: TypeAlias = Success | Failure
Strategy: TypeAlias = Callable[[Expr], Result]
Predicate: TypeAlias = Callable[[Expr], bool]
