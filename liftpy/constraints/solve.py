"""Feasibility by z3: an assignment, or a set of conditions that no assignment satisfies.

z3 is strong at finding a clash among many conditions and weak at multiplication, so conditions on
one or two parameters with small ranges become tables of values.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any, TypeAlias

import z3

from liftpy.constraints.levels import divisors
from liftpy.constraints.system import (
    RANGE,
    WITH_FORMULA,
    Assignment,
    Clause,
    ConstraintSystem,
    Source,
    divided,
    formulas,
    ranges,
    terms,
)
from liftpy.deadline import check, seconds_left
from liftpy.errors import InternalError
from liftpy.ir.constraint import AtMost, at_most
from liftpy.ir.nat import nat, var
from liftpy.rewrite.skeleton import Parameter

STEPS = 10_000_000  # of z3, per query: about 2 million take a second; the same on every machine
A_MONTH = 30 * 86_400  # seconds, the timeout of a call without a time limit
TABLE = 40_000  # a condition with at most this many assignments becomes a table
SLOW_TABLE = 1000  # the same for a condition without a formula, which is slow to check


@dataclass(frozen=True)
class Feasible:
    """There is a point, this one."""

    assignment: Assignment


class Infeasible:
    """There is no point: some conditions exclude each other.

    z3 takes longer to find a small set of them than to see that there is one, so it searches for
    the set when `core` is first read.
    """

    def __init__(self, few: Callable[[], tuple[Clause, ...]]) -> None:
        self._few = few

    @cached_property
    def core(self) -> tuple[Clause, ...]:
        """Conditions, ranges included, that exclude each other."""
        return self._few()


@dataclass(frozen=True)
class Unknown:
    """z3 gave up."""

    reason: str


Verdict: TypeAlias = Feasible | Infeasible | Unknown

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "//": operator.truediv,  # z3's integer division; it rounds down where divisors are positive
    "%": operator.mod,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "or": z3.Or,
}


def build(operator_: str, left: Any, right: Any) -> Any:
    """A z3 term of two terms or numbers; of two numbers, a number."""
    if not (isinstance(left, int) and isinstance(right, int)):
        return OPERATORS[operator_](left, right)
    if operator_ in {"//", "%"}:  # a guard refuses divisors below 1: any number will do
        return 0 if right < 1 else divmod(left, right)[operator_ == "%"]
    return OPERATORS[operator_](left, right)


def feasible(
    system: ConstraintSystem, given: Mapping[str, int] | None = None, *, steps: int = STEPS
) -> Verdict:
    """Whether the system has a point in which the given parameters have the given values.

    The given values are not conditions: a core does not contain them.
    """
    return ask(system, given or {}, None, steps)


def implied(system: ConstraintSystem, clause: Clause, *, steps: int = STEPS) -> Verdict:
    """Whether a condition follows from those of a system: whether no point breaks it.

    `Infeasible` if it does: the core has the conditions that imply it. `Feasible` gives a point
    that breaks it and no condition of the system.
    """
    return ask(system, {}, clause, steps)


def redundant(system: ConstraintSystem, *, steps: int = STEPS) -> dict[Clause, Verdict]:
    """The conditions that the others imply, each with those that imply it.

    The conditions are checked one after another, the last first. An implied one is removed before
    the next is checked, so the conditions that are not in the result suffice. `steps` is for each
    check; if z3 gives up, the condition stays, and the result has its `Unknown`.
    """
    kept = list(system.clauses)
    found: dict[Clause, Verdict] = {}
    for clause in reversed(system.clauses):
        others = [c for c in kept if c is not clause]
        verdict = implied(ConstraintSystem(system.parameters, tuple(others)), clause, steps=steps)
        if isinstance(verdict, Infeasible):
            kept = others
        if not isinstance(verdict, Feasible):
            found[clause] = verdict
    return found


@dataclass(frozen=True)
class Tightened:
    """The least and the largest value of a parameter in the points of a system."""

    low: int
    high: int


def tightened(
    system: ConstraintSystem, name: str, *, steps: int = STEPS
) -> Tightened | Infeasible | Unknown:
    """The part of a parameter's range that the conditions leave; `Infeasible` if no point exists.

    Found by bisection: each query asks for a point in the half that is further out. `steps` is for
    each query.
    """
    parameter = system.by_name[name]

    def between(low: int, high: int) -> Verdict:
        size = var(name, None, None)
        bounds = (at_most(nat(low), size), at_most(size, nat(high)))
        clauses = (*system.clauses, *(Clause(b, (f"{RANGE}{name}",)) for b in bounds))
        return feasible(ConstraintSystem(system.parameters, clauses), steps=steps)

    found = between(parameter.low, parameter.high)
    if not isinstance(found, Feasible):
        return found
    ends: list[int] = []
    for outermost in (parameter.low, parameter.high):
        known = found.assignment[name]  # a value that some point has
        while known != outermost:
            middle = (known + outermost) // 2 if known > outermost else (known + outermost + 1) // 2
            verdict = between(*sorted((outermost, middle)))
            if isinstance(verdict, Unknown):
                return verdict
            if isinstance(verdict, Feasible):
                known = verdict.assignment[name]
            else:
                outermost = middle + 1 if known > outermost else middle - 1  # noqa: PLW2901
        ends.append(known)
    return Tightened(*ends)


def ask(
    system: ConstraintSystem, given: Mapping[str, int], denied: Clause | None, steps: int
) -> Verdict:
    """Whether there is a point with the given values that breaks the denied condition, if any.

    Each query has a context of its own, so an answer does not depend on earlier ones. If the solver
    gives up, the answer is `Unknown`, never a yes or a no. If the time limit of a call ends
    meanwhile, TimeUp is raised.
    """
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("random_seed", 0)
    solver.set("core.minimize", True)
    variables = {p.name: z3.Int(p.name, context) for p in system.parameters}
    for name, value in given.items():
        solver.add(variables[name] == value)
    known = domains(system.fix(given))
    asked: dict[str, Clause] = {}
    for clause in (*(c for p in system.parameters for c in ranges(p)), *system.clauses):
        formula = translate(clause, system, known, variables, context)
        if formula is None:
            return Unknown(f"z3 cannot express: {clause.constraint}")
        label = f"clause {len(asked)}"
        asked[label] = clause
        solver.assert_and_track(formula, label)
    if denied is not None:
        formula = translate(denied, system, known, variables, context)
        if formula is None:
            return Unknown(f"z3 cannot express: {denied.constraint}")
        solver.add(z3.Not(formula))
    check()
    solver.set("rlimit", steps)
    solver.set("timeout", ceil(1000 * seconds_left(A_MONTH)) + 1)
    answer = solver.check()
    if answer == z3.sat:
        model: Any = solver.model()
        found = {
            n: int(model.eval(x, model_completion=True).as_long()) for n, x in variables.items()
        }
        if not system.holds(found):
            raise InternalError(f"z3's point {found} breaks {system.broken(found)}")
        return Feasible(found)
    if answer == z3.unsat:
        return Infeasible(lambda: tuple(asked[str(label)] for label in solver.unsat_core()))
    check()
    return Unknown(f"z3 gave up within {steps:,} steps: {solver.reason_unknown()}")


def domains(system: ConstraintSystem) -> dict[str, Sequence[int]]:
    """The values of each parameter that its range and the conditions on it alone allow."""
    found: dict[str, Sequence[int]] = {p.name: range(p.low, p.high + 1) for p in system.parameters}
    for clause in system.clauses:
        if len(clause.names) != 1 or not has_formula(clause):
            continue
        (name,) = clause.names
        if len(found[name]) <= TABLE:
            source = Source(system.parameters)
            holds = source.function([name], source.condition(clause.constraint))
            found[name] = [value for value in found[name] if holds(value)]
    return found


def has_formula(clause: Clause) -> bool:
    """Whether a condition has a formula for z3."""
    return isinstance(clause.constraint, WITH_FORMULA)


def translate(
    clause: Clause,
    system: ConstraintSystem,
    known: Mapping[str, Sequence[int]],
    variables: Mapping[str, Any],
    context: Any,
) -> Any:
    """A condition for z3; None if it has neither a formula nor a small table.

    A table has rows only for values in `known`, because conditions on one parameter exclude the
    others. The table of such a condition has rows for the parameter's whole range.
    """
    parameters = [system.by_name[n] for n in sorted(clause.names)]
    values = {p.name: known[p.name] for p in parameters}
    if len(parameters) == 1:
        values = {p.name: range(p.low, p.high + 1) for p in parameters}
    rows = prod(map(len, values.values()))
    if not has_formula(clause):
        return table(clause, parameters, values, variables) if 1 < rows <= SLOW_TABLE else None
    for parameter in parameters:
        whole = divided(clause.constraint, parameter.name)
        if clause.constraint.left == parameter.nat and whole is not None and whole.constant:
            every = divisors(whole.constant, 1, abs(whole.constant))
            return among(variables[parameter.name], every)
    if 1 <= len(parameters) <= 2 and rows <= TABLE and not isinstance(clause.constraint, AtMost):
        return table(clause, parameters, values, variables)
    mine = terms(system.parameters, variables, build)
    conjuncts = formulas(clause.constraint, mine, build)
    return z3.And(*(z3.BoolVal(f, context) if isinstance(f, bool) else f for f in conjuncts))


def table(
    clause: Clause,
    parameters: list[Parameter],
    values: Mapping[str, Sequence[int]],
    variables: Mapping[str, Any],
) -> Any:
    """A condition as a list of satisfying values; values outside `values` are unrestricted."""
    source = Source(tuple(parameters))
    *outer, last = names = [p.name for p in parameters]
    holds = source.function(names, source.condition(clause.constraint))
    outside = [z3.Not(among(variables[n], values[n])) for n in names]
    rows: list[Any] = []
    written: dict[tuple[int, ...], Any] = {}  # many rows allow the same values
    for row in itertools.product(*(values[n] for n in outer)):
        allowed = tuple(v for v in values[last] if holds(*row, v))
        if allowed:
            if allowed not in written:
                written[allowed] = among(variables[last], allowed)
            here = [variables[n] == v for n, v in zip(outer, row, strict=True)]
            rows.append(z3.And(*here, written[allowed]))
    return z3.Or(*outside, *rows)


def among(variable: Any, values: Sequence[int]) -> Any:
    """The formula that a variable has one of some ascending values; a run is an interval."""
    if isinstance(values, range):
        return z3.And(variable >= values.start, variable < values.stop)
    if not values:
        return z3.BoolVal(False, variable.ctx)
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return z3.Or(
        *(
            variable == low if low == high else z3.And(variable >= low, variable <= high)
            for low, high in runs
        )
    )
