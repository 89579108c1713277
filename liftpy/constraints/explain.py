"""Why an assignment is refused, and what would be accepted instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from liftpy.constraints.core import smallest
from liftpy.constraints.draw import Completer, Space, first, search
from liftpy.constraints.levels import Levels
from liftpy.constraints.solve import Infeasible, feasible
from liftpy.constraints.system import (
    MEMORY_LIMIT,
    Assignment,
    Clause,
    ConstraintSystem,
    Source,
    is_range,
    ranges,
)
from liftpy.errors import ConstraintRefused

NEAREST = 3  # values suggested for a parameter
WIDTH = 120  # characters shown of a condition
EFFORT = 300_000  # values tried to decide whether a condition is needed
STEPS = 2_000_000  # for z3 to narrow down a clash, before conditions are dropped one by one
SMALLEST_SECONDS = 2.0  # for the search for a clash of fewer conditions, or a proof of none
UNKNOWN = f"maybe not the fewest: the search ended after {SMALLEST_SECONDS:g} s"


@dataclass(frozen=True)
class Explanation:
    """What is known of an assignment of some parameters.

    completions: the number of points with the given values. clashes: if there are none, the
    conditions that the values break, or else conditions that exclude each other, all of them
    needed. fewest: whether no fewer exclude each other; False if the time ended before that was
    known. nearest: for each given parameter, values that work with the other given ones. example:
    if there are none of these, a point that keeps each given value that the ones before it allow.
    least_memory: if a memory limit is among the clashes, the least possible one. total: whether
    every parameter is given. blameless: there is no point whatever the given values are.
    """

    given: Assignment
    completions: int
    clashes: tuple[Clause, ...] = ()
    fewest: bool = True
    nearest: tuple[tuple[str, tuple[int, ...]], ...] = ()
    example: tuple[tuple[str, int], ...] = ()
    least_memory: int | None = None
    total: bool = False
    blameless: bool = False

    @property
    def valid(self) -> bool:
        """Whether some point has the given values."""
        return self.completions > 0

    @property
    def blamed(self) -> Assignment:
        """The given values that may break conditions; none if there is no point at all."""
        return {} if self.blameless else self.given

    @property
    def gist(self) -> tuple[object, ...]:
        """What explanations have in common that differ only in the sources of conditions."""
        conditions = tuple(str(c.constraint) for c in self.clashes)
        return conditions, self.nearest or self.example, self.least_memory

    def text(self) -> str:
        """The explanation in sentences, one per line."""
        shown = show(self.given)
        if not self.given and self.valid:
            return f"The space has {points(self.completions)}."
        if self.valid and self.total:
            return f"{shown} satisfies every condition."
        if self.valid:
            return f"{shown} is possible: {points(self.completions)} of the space have it."
        lines = [f"{shown} is refused." if shown else "The space is empty."]
        if self.blameless:
            lines = [f"There is no point for any {' and '.join(self.given)}."]
        broken = [c for c in self.clashes if c.names <= self.blamed.keys()]
        if broken:
            lines += [f"Broken: {self.clash(c)}." for c in broken]
        elif len(self.clashes) == 1:
            lines.append(f"Nothing satisfies {self.clash(self.clashes[0])}.")
        elif self.clashes:
            unknown = "" if self.fewest else f" ({UNKNOWN})"
            lines.append(f"These exclude each other{unknown}:")
            lines += [f"- {line}" for line in self.clash_lines()]
        if self.least_memory is not None:
            lines.append(f"The least possible memory limit is {self.least_memory} bytes.")
        for name, values in self.nearest:
            rest = " with the others kept" if len(self.given) > 1 else ""
            lines.append(f"{name}: {', '.join(map(str, values))} would work{rest}.")
        if self.example and not self.nearest:
            lines.append(f"A nearby point: {show(dict(self.example))}.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON data."""
        return {
            "given": self.given,
            "completions": self.completions,
            "conditions": [
                {
                    "condition": str(c.constraint),
                    "asked_by": list(c.askers),
                    "broken": self.denial(c),
                }
                for c in self.clashes
            ],
            "fewest": self.fewest,
            "nearest": {name: list(values) for name, values in self.nearest},
            "example": dict(self.example),
            "least_memory": self.least_memory,
        }

    def denial(self, clause: Clause) -> str | None:
        """The sentence that the given values break a condition; None if they alone do not."""
        mine = clause.constraint.substitute(self.blamed)
        return None if mine.names() or mine.holds({}) else mine.denial()

    def clash_lines(self) -> list[str]:
        """The clashing conditions, then the ranges that take part, both ends together."""
        ends: dict[str, list[str]] = {}
        for clause in self.clashes:
            if is_range(clause):
                ends.setdefault(clause.asked_by, []).append(str(clause.constraint))
        conditions = [self.clash(c) for c in self.clashes if not is_range(c)]
        return conditions + [f"{' and '.join(e)} ({asker})" for asker, e in ends.items()]

    def clash(self, clause: Clause) -> str:
        """A condition with the given values substituted."""
        mine = {n: v for n, v in self.blamed.items() if n in clause.names}
        text = f"{shorten(str(clause.constraint))} (required by {clause.asked_by_few})"
        if not mine:
            return text
        if (denial := self.denial(clause)) is not None:
            return f"{text}: {shorten(denial)}"
        return f"{text}, that is, {shorten(str(clause.constraint.substitute(mine)))}"


def show(assignment: Mapping[str, int]) -> str:
    """An assignment as text."""
    return ", ".join(f"{name} = {value}" for name, value in assignment.items())


def shorten(text: str) -> str:
    """A long formula without its middle."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH // 2]} ... {text[-WIDTH // 2 :]}"


def points(count: int) -> str:
    """A number of points as text."""
    return "1 point" if count == 1 else f"{count} points"


def explain(system: ConstraintSystem, given: Mapping[str, int]) -> Explanation:
    """The number of completions of an assignment of some parameters, or why there are none."""
    check(system, given)
    fixed = system.fix(given)
    total = len(given) == len(system.parameters)
    completions = Space(fixed).count()
    if completions:
        return Explanation(dict(given), completions, total=total)
    if given and search(system, EFFORT) == (None, True):
        return replace(explain(system, {}), given=dict(given), total=total, blameless=True)
    broken = tuple(system.broken(given))
    clashes, fewest = (broken, True) if broken else clash(system, given)
    near = tuple(nearest(system, given))
    example = None if near else close_by(system, given)
    limited = any(is_memory_limit(c) for c in clashes)
    return Explanation(
        dict(given),
        0,
        clashes,
        fewest,
        near,
        tuple((example or {}).items()),
        least_memory(fixed) if limited else None,
        total=total,
    )


def check(system: ConstraintSystem, given: Mapping[str, int]) -> None:
    """Refuse names that are not parameters, and values out of range."""
    for name in given:
        if name not in system.by_name:
            names = ", ".join(p.name for p in system.parameters) or "none"
            raise ConstraintRefused(f"no parameter is named {name}: this program has {names}")
    if (why := out_of_range(system, given)) is not None:
        raise ConstraintRefused(why)


def out_of_range(system: ConstraintSystem, given: Mapping[str, int]) -> str | None:
    """The message that a value is out of its parameter's range; None if all are in range."""
    for name, value in given.items():
        parameter = system.by_name[name]
        if not parameter.low <= value <= parameter.high:
            return (
                f"{name} = {value} is out of range: {name} ({parameter.meaning}) ranges from"
                f" {parameter.low} to {parameter.high}"
            )
    return None


def clash(system: ConstraintSystem, given: Mapping[str, int]) -> tuple[tuple[Clause, ...], bool]:
    """Conditions that leave no point with the given values, and whether there are no fewer.

    z3 gives a first set if it can in time. Then conditions that are not needed are dropped, many at
    a time at first and one by one at last, and a smaller set is searched for. (A condition stays if
    it would take too much effort to see whether it is needed.) Ranges are not counted; those that
    z3 needs are kept.
    """
    fixed = system.fix(given)

    def empty(clauses: list[Clause]) -> bool:
        return search(ConstraintSystem(fixed.parameters, tuple(clauses)), EFFORT) == (None, True)

    verdict = feasible(system, given, steps=STEPS)
    core = verdict.core if isinstance(verdict, Infeasible) else system.clauses
    needed = [c for c in system.clauses if c in core]
    for part in ConstraintSystem(fixed.parameters, tuple(needed)).components:
        if empty(list(part.clauses)):
            needed = list(part.clauses)
            break
    size = len(needed) // 2
    while size:
        start = 0
        while start < len(needed):
            without = needed[:start] + needed[start + size :]
            if empty(without):
                needed = without
            else:
                start += size
        size //= 2
    few, fewest = smallest(fixed, needed, lambda part: search(part, EFFORT), SMALLEST_SECONDS)
    needed = list(few)
    verdict = feasible(ConstraintSystem(system.parameters, tuple(needed)), given, steps=STEPS)
    free = {n for c in needed for n in c.names} - given.keys()
    bounds = [c for p in system.parameters if p.name in free for c in ranges(p)]
    if isinstance(verdict, Infeasible):
        bounds = [c for c in bounds if c in verdict.core]
    return (*needed, *bounds), fewest


def nearest(
    system: ConstraintSystem, given: Mapping[str, int]
) -> list[tuple[str, tuple[int, ...]]]:
    """For each given parameter, the closest values that work with the other given ones."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for name, value in given.items():
        others = {n: v for n, v in given.items() if n != name}
        values = Space(system.fix(others)).values(name)
        closest = sorted(values, key=lambda v, value=value: (abs(v - value), v))[:NEAREST]
        if closest:
            found.append((name, tuple(sorted(closest))))
    return found


def close_by(system: ConstraintSystem, given: Mapping[str, int]) -> Assignment | None:
    """A point that keeps each given value that earlier ones allow; None if the space is empty."""
    point = first(system)
    kept: Assignment = {}
    for name, value in given.items():
        if point is None:
            break
        if (further := first(system.fix({**kept, name: value}))) is not None:
            kept[name], point = value, further
    return point


# --- memory limits --------------------------------------------------------------------------------


def is_memory_limit(clause: Clause) -> bool:
    """Whether a memory limit is among the sources of a condition."""
    return any(asker.startswith(MEMORY_LIMIT) for asker in clause.askers)


def least_memory(system: ConstraintSystem) -> int | None:
    """The least memory limit under which a system has points.

    None if no limit helps, if none is needed, or if it would take too much effort to find out. The
    parameters that the limited sizes mention are assigned first; only assignments that lower the
    limit need completion.
    """
    limits = [c for c in system.clauses if is_memory_limit(c)]
    if not limits:
        return None
    others = [c for c in system.clauses if not all(a.startswith(MEMORY_LIMIT) for a in c.askers)]
    mentioned = {n for c in limits for n in c.names}
    order = sorted(system.order, key=lambda p: p.name not in mentioned)
    levels = Levels(ConstraintSystem(system.parameters, tuple(others)), tuple(order))
    if not levels.possible:
        return None
    source = Source(system.parameters)
    source.scope["max"] = max
    sizes = ", ".join(source.number(c.constraint.left) for c in limits)
    names = [p.name for p in order[: len(mentioned)]]
    peak = source.function(names, f"max([{sizes}])")
    completer = Completer(levels)
    least: int | None = None
    for tried, given in enumerate(levels.prefixes(len(mentioned))):
        if tried > EFFORT:
            return None
        bytes_ = peak(*given)
        if (least is None or bytes_ < least) and completer.complete(given) is not None:
            least = bytes_
    return least
