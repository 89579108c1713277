"""Rules: laws between programs, as data.

A rule is two expressions with metavariables and the conditions under which they mean the same. The
same value is matched, proved by z3 (liftpy/semantics), printed in the documentation, and adds its
conditions to the constraint system. A rule that is not proved cannot be applied.

Metavariables: `Param` stands for any expression, `FunVar` for any function, `TypeVar` for any type,
and the sizes in `sizes` for any naturals. `FunVar("f")` applied to bound variables stands for any
expression that mentions those variables and no other bound variable of the rule: that is how "the
operator does not depend on the outer element" is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self

from liftpy.ir.constraint import Constraint
from liftpy.ir.expr import Expr

LawName = Literal["associative", "commutative", "neutral"]
Proof = Literal["pointwise", "lockstep", "definition", "blocks", "nested", "exchange"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A declared law of the function that metavariable `function` stands for.

    For `neutral`, `value` names the literal metavariable that is bound to the declared element.
    """

    law: LawName
    function: str
    value: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.law}({self.function})"
            if self.value is None
            else f"neutral({self.value}, {self.function})"
        )


@dataclass(frozen=True)
class Rule:
    """A law, directed from `left` to `right`.

    where: conditions on the sizes, beyond what the primitives of `left` require anyway.
    assuming: laws of user functions.
    tunes: sizes that only the right side mentions; each application makes a fresh parameter of it.
    proof: how semantics/prove.py proves it:
        pointwise   sizes and elements agree at every index
        lockstep    both sides fold over as many steps, and the steps keep the accumulators equal
        definition  the right side's primitive means what the left side's does
        blocks      a fold over blocks: induction over and within the blocks, by associativity
        nested      a fold over a join: induction over rows and within a row
        exchange    two folds exchanged: induction over the rows, by associativity and commutativity
    """

    name: str
    family: str
    left: Expr
    right: Expr
    where: tuple[Constraint, ...] = ()
    assuming: tuple[Assumption, ...] = ()
    tunes: tuple[str, ...] = ()
    proof: Proof = "pointwise"
    reassociates: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reassociates", any(a.law != "neutral" for a in self.assuming))

    def __str__(self) -> str:
        return self.name


class ValueVar(float):
    """An unknown constant in a rule: a float in form, a name in fact."""

    name: str

    def __new__(cls, name: str) -> Self:
        self = super().__new__(cls, "nan")
        self.name = name
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueVar) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__
