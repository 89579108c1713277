"""The conditions on a program's tuning sizes, each with its sources.

A condition holds at an assignment if every divisor in it is at least 1 and its comparison is true.
Conditions are compiled to Python functions by the walk that evaluates naturals, `Nat.evaluate`,
with a `SymbolicNumber` in place of each number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any

from liftpy.errors import ConstraintRefused
from liftpy.ir.constraint import AtMost, Constraint, Divides, Equal, OneOf, Unequal
from liftpy.ir.nat import Nat, nat, var
from liftpy.rewrite.skeleton import Parameter

Assignment = dict[str, int]
Build = Callable[[str, Any, Any], Any]

WITH_FORMULA = (Divides, AtMost, Equal, Unequal, OneOf)
"""The conditions that `formulas` can write; for others, `holds` is called."""

MEMORY_LIMIT = "memory limit"
RANGE = "range of "
STEP = re.compile(r"\(step (\d+)\)$")
ASKERS_SHOWN = 2


@dataclass(frozen=True)
class Clause:
    """A condition and all its sources: primitives, rules, the device, a parameter's range."""

    constraint: Constraint
    askers: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """The parameters that the condition mentions."""
        return self.constraint.names()

    @property
    def asked_by(self) -> str:
        """All sources, in the order met."""
        return "; ".join(self.askers)

    @property
    def asked_by_few(self) -> str:
        """The first sources, and the number of the others."""
        shown = "; ".join(self.askers[:ASKERS_SHOWN])
        others = len(self.askers) - ASKERS_SHOWN
        more = f" and {others} other place{'s' if others > 1 else ''}" if others > 0 else ""
        return f"{shown}{more}"

    @property
    def steps(self) -> dict[int, str]:
        """The first steps of a derivation among the sources, by number, with their text."""
        found = ((STEP.search(asker), asker) for asker in self.askers)
        named = {int(match[1]): asker for match, asker in found if match is not None}
        return dict(list(named.items())[:ASKERS_SHOWN])

    def __str__(self) -> str:
        return f"{self.constraint} (required by {self.asked_by_few})"


class SymbolicNumber:
    """An operand of `Nat.evaluate` that is not a number: source text, or a solver's term.

    `build(operator, left, right)` makes a larger value. A division by a value that may be below 1
    adds to `guards`. `positive` says that the value is at least 1.
    """

    __slots__ = ("build", "guards", "positive", "value")

    def __init__(
        self, value: Any, build: Build, guards: list[Any], *, positive: bool = False
    ) -> None:
        self.value = value
        self.build = build
        self.guards = guards
        self.positive = positive

    def make(
        self, operator: str, left: Any, right: Any, *, positive: bool = False
    ) -> SymbolicNumber:
        """The term of an operator and two terms or numbers."""
        value = self.build(operator, bare(left), bare(right))
        return SymbolicNumber(value, self.build, self.guards, positive=positive)

    def __add__(self, other: SymbolicNumber | int) -> SymbolicNumber:
        if isinstance(other, int) and other == 0:
            return self
        return self.make("+", self, other, positive=self.positive and above_zero(other))

    __radd__ = __add__

    def __mul__(self, other: SymbolicNumber | int) -> SymbolicNumber:
        if isinstance(other, int) and other == 1:
            return self
        return self.make("*", self, other, positive=self.positive and above_zero(other))

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> SymbolicNumber:
        power = self
        for _ in range(exponent - 1):
            power = power * self
        return power

    def __floordiv__(self, other: SymbolicNumber | int) -> SymbolicNumber:
        return self if isinstance(other, int) and other == 1 else self.divide("//", self, other)

    def __rfloordiv__(self, other: int) -> SymbolicNumber:
        return self.divide("//", other, self)

    def __mod__(self, other: SymbolicNumber | int) -> SymbolicNumber:
        return self.divide("%", self, other)

    def __rmod__(self, other: int) -> SymbolicNumber:
        return self.divide("%", other, self)

    def divide(
        self, operator: str, left: SymbolicNumber | int, right: SymbolicNumber | int
    ) -> SymbolicNumber:
        """A quotient or remainder with a guard on its divisor."""
        if not above_zero(right):
            self.guards.append(self.build("<=", 1, bare(right)))
        return self.make(operator, left, right)


def bare(operand: SymbolicNumber | int) -> Any:
    """The value behind a symbolic number; a number stays as it is."""
    return operand.value if isinstance(operand, SymbolicNumber) else operand


def above_zero(operand: SymbolicNumber | int) -> bool:
    """Whether an operand is known to be at least 1."""
    return operand.positive if isinstance(operand, SymbolicNumber) else operand > 0


def terms(
    parameters: Iterable[Parameter], values: Mapping[str, Any], build: Build
) -> dict[str, SymbolicNumber]:
    """A term for each parameter; they share one list of guards."""
    guards: list[Any] = []
    return {
        p.name: SymbolicNumber(values[p.name], build, guards, positive=p.low >= 1)
        for p in parameters
    }


def formulas(constraint: Constraint, at: Mapping[str, SymbolicNumber], build: Build) -> list[Any]:
    """The conditions whose conjunction is the constraint, guards of divisors first."""
    guards: list[Any] = []
    for term in at.values():
        term.guards = guards
    left, right = constraint.left.evaluate(at), constraint.right.evaluate(at)
    match constraint:
        case Divides():
            if not above_zero(left):
                guards.append(build("<=", 1, bare(left)))
            body = build("==", build("%", bare(right), bare(left)), 0)
        case AtMost():
            body = build("<=", bare(left), bare(right))
        case Equal():
            body = build("==", bare(left), bare(right))
        case Unequal():
            body = build("!=", bare(left), bare(right))
        case OneOf():
            same = [build("==", bare(left), number) for number in constraint.numbers]
            body = reduce(lambda a, b: build("or", a, b), same)
        case _:
            message = f"no formula for {type(constraint).__name__}"
            raise TypeError(message)
    return [*guards, body]


class SumSource(str):
    """Source of a sum, which grows without parentheses: Python reads at most 200 nested ones."""

    __slots__ = ()


def infix(operator: str, left: Any, right: Any) -> str:
    """Python source of an operator."""
    if operator == "+":
        return SumSource(f"{left[:-1] if isinstance(left, SumSource) else f'({left}'} + {right})")
    return f"({left} {operator} {right})"


class Source:
    """Conditions of one system as Python source; its parameters are the variables `x0`, `x1`, ...

    `scope` holds what the source calls: conditions that have no formula.
    """

    def __init__(self, parameters: tuple[Parameter, ...]) -> None:
        self.variables = {p.name: f"x{i}" for i, p in enumerate(parameters)}
        self.sizes = {p.name: p.nat for p in parameters}
        self.terms = terms(parameters, self.variables, infix)
        self.scope: dict[str, Any] = {"__builtins__": {}}
        self._conditions: dict[Constraint, str] = {}
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {}

    def condition(self, constraint: Constraint) -> str:
        """The source of a condition."""
        if constraint not in self._conditions:
            self._conditions[constraint] = self._condition(constraint)
        return self._conditions[constraint]

    def _condition(self, constraint: Constraint) -> str:
        if isinstance(constraint, WITH_FORMULA):
            return " and ".join(map(str, formulas(constraint, self.terms, infix)))
        name = f"holds{len(self.scope)}"
        self.scope[name] = constraint.holds
        values = ", ".join(f"{n!r}: {self.variables[n]}" for n in sorted(constraint.names()))
        return f"{name}({{{values}}})"

    def number(self, size: Nat) -> str:
        """The source of a natural."""
        return str(bare(size.evaluate(self.terms)))

    def function(self, names: Iterable[str], body: str) -> Callable[..., Any]:
        """The function of some parameters that returns `body`, a source from this class."""
        head = ", ".join(self.variables[n] for n in names)
        if (head, body) not in self._functions:
            made = eval(f"lambda {head}: {body}", self.scope)  # noqa: S307  sizes, conditions only
            self._functions[head, body] = made
        return self._functions[head, body]


@dataclass(frozen=True)
class ConstraintSystem:
    """Tuning parameters and the conditions on them.

    `parameters` have finite ranges, which are conditions too; `clauses` holds the others.
    """

    parameters: tuple[Parameter, ...]
    clauses: tuple[Clause, ...]

    def __post_init__(self) -> None:
        known = {p.name for p in self.parameters}
        for clause in self.clauses:
            if not clause.names <= known:
                unknown = ", ".join(sorted(clause.names - known))
                raise ConstraintRefused(
                    f"the condition {clause} uses {unknown}, which is not a tuning parameter"
                    f" ({', '.join(sorted(known)) or 'there are none'}): give it a number"
                )

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return {p.name: p for p in self.parameters}

    @cached_property
    def components(self) -> tuple[ConstraintSystem, ...]:
        """The systems without common parameters whose product this one is.

        Conditions without parameters go to the first; the parameters keep their order.
        """
        group = {p.name: {p.name} for p in self.parameters}
        for clause in self.clauses:
            joined = set[str]().union(*(group[n] for n in clause.names))
            group.update(dict.fromkeys(joined, joined))
        parts: list[ConstraintSystem] = []
        left = list(self.parameters)
        while left:
            members = group[left[0].name]
            clauses = [c for c in self.clauses if c.names & members or not (c.names or parts)]
            parts.append(
                ConstraintSystem(tuple(p for p in left if p.name in members), tuple(clauses))
            )
            left = [p for p in left if p.name not in members]
        return tuple(parts) or (self,)

    @cached_property
    def order(self) -> tuple[Parameter, ...]:
        """The parameters in dependency order, component by component."""
        return tuple(p for part in self.components for p in cheapest_order(part))

    @cached_property
    def _checks(self) -> list[tuple[Callable[..., bool], tuple[str, ...]]]:
        source = Source(self.parameters)
        checks: list[tuple[Callable[..., bool], tuple[str, ...]]] = []
        for clause in self.clauses:
            names = tuple(sorted(clause.names))
            if names:
                checks.append((source.function(names, source.condition(clause.constraint)), names))
            else:
                checks.append((lambda constraint=clause.constraint: constraint.holds({}), ()))
        return checks

    def holds(self, assignment: Mapping[str, int]) -> bool:
        """Whether an assignment of all parameters is in range and satisfies every condition."""
        in_range = all(p.low <= assignment[p.name] <= p.high for p in self.parameters)
        return in_range and all(f(*(assignment[n] for n in names)) for f, names in self._checks)

    def broken(self, assignment: Mapping[str, int]) -> list[Clause]:
        """The conditions that an assignment breaks: ranges or, if all values are in them, others.

        A partial assignment is checked only against conditions on its own parameters. Conditions
        have a meaning only in the ranges, since they may divide by a parameter.
        """
        given = [self.by_name[n] for n in assignment if n in self.by_name]
        outside = [c for p in given for c in ranges(p) if not c.constraint.holds(assignment)]
        return outside or [
            clause
            for clause, (f, names) in zip(self.clauses, self._checks, strict=True)
            if clause.names <= assignment.keys() and not f(*(assignment[n] for n in names))
        ]

    def fix(self, assignment: Mapping[str, int]) -> ConstraintSystem:
        """The system with some parameters at one value; they remain parameters."""
        return ConstraintSystem(
            tuple(
                Parameter(p.name, assignment[p.name], assignment[p.name], p.meaning)
                if p.name in assignment
                else p
                for p in self.parameters
            ),
            self.clauses,
        )

    def to_json(self, count: int | None = None) -> dict[str, Any]:
        """The space as JSON data; `count` is the number of points, if it is known."""
        return {
            "parameters": [
                {"name": p.name, "low": p.low, "high": p.high, "meaning": p.meaning}
                for p in self.order
            ],
            "constraints": [
                {"text": str(c.constraint), "asked_by": c.asked_by} for c in self.clauses
            ],
            "count": count,
        }


def ranges(parameter: Parameter) -> tuple[Clause, Clause]:
    """A parameter's range as conditions, in a form that is not simplified to true."""
    size = var(parameter.name, None, None)
    asker = (f"{RANGE}{parameter.name}",)
    return (
        Clause(AtMost(nat(parameter.low), size), asker),
        Clause(AtMost(size, nat(parameter.high)), asker),
    )


def is_range(clause: Clause) -> bool:
    """Whether a condition is one end of a parameter's range."""
    return clause.askers[0].startswith(RANGE)


def divided(constraint: Constraint, name: str) -> Nat | None:
    """The natural that a condition requires parameter `name` to divide; None if there is none."""
    if not isinstance(constraint, Divides) or name in constraint.right.names():
        return None
    if len(constraint.left.terms) != 1:
        return None
    ((monomial, _),) = constraint.left.terms.items()
    if any(exponent < 0 for _, exponent in monomial):
        return None
    return constraint.right if any(a.key == name for a, _ in monomial) else None


def after(clauses: Iterable[Clause], name: str) -> Iterator[frozenset[str]]:
    """Yield sets of parameters; once one is assigned, `name` has to divide a known number."""
    for clause in clauses:
        whole = divided(clause.constraint, name)
        if whole is not None:
            yield whole.names()


DIVISORS = 16  # how many divisors a number is assumed to have when orders are compared
BEAM = 256  # sets of parameters that are followed: all of them, up to ten parameters


def cheapest_order(system: ConstraintSystem) -> tuple[Parameter, ...]:
    """An order in which counting visits few states.

    The cost of a step is the number of values of the parameters that open conditions still mention,
    times the number of values tried. Over sets of assigned parameters, the least cost is a shortest
    path; if there are many sets, only the cheapest are followed.
    """
    names = [p.name for p in system.parameters]
    sizes = {p.name: p.high - p.low + 1 for p in system.parameters}
    mentions = list(dict.fromkeys(c.names for c in system.clauses if c.names))
    chains = {n: list(after(system.clauses, n)) for n in names}

    def tried(done: frozenset[str], name: str) -> int:
        narrow = any(whole <= done for whole in chains[name])
        return min(sizes[name], DIVISORS) if narrow else sizes[name]

    def states(done: frozenset[str]) -> int:
        seen = frozenset[str]().union(*(m for m in mentions if not m <= done)) & done
        return prod(tried(done, n) for n in seen)

    best: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {frozenset(): (0, ())}
    for _ in names:
        further: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {}
        for done, (total, order) in best.items():
            partial = states(done)
            for name in names:
                if name in done:
                    continue
                key, cost = done | {name}, total + partial * tried(done, name)
                if key not in further or cost < further[key][0]:
                    further[key] = (cost, (*order, name))
        best = dict(sorted(further.items(), key=lambda entry: entry[1][0])[:BEAM])
    ((_, order),) = best.values()
    return tuple(system.by_name[n] for n in order)
