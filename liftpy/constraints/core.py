"""The smallest set of conditions that exclude each other.

The method is that of implicit hitting sets (Ignatiev et al., Smallest MUS extraction, CP 2015).
Every point breaks a group of conditions, and every set that clashes has one of these. So no clash
is smaller than the smallest set that has one condition of each group found so far. That set is
either a clash itself, or it has a point that yields another group.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import z3

from liftpy.constraints.system import Assignment, Clause, ConstraintSystem
from liftpy.deadline import seconds_left

#: Returns a point of a system or None, and whether the answer is certain.
Search = Callable[[ConstraintSystem], tuple[Assignment | None, bool]]


def smallest(
    system: ConstraintSystem, clash: Sequence[Clause], search: Search, seconds: float
) -> tuple[tuple[Clause, ...], bool]:
    """A clash of conditions of the system, and whether it is known that none has fewer.

    `clash` is a clash whose conditions are all needed. It is the result if none is smaller, or if
    that cannot be decided within `seconds`. `search` finds points.
    """
    if len(clash) <= 1:
        return tuple(clash), True
    deadline = time.monotonic() + seconds_left(seconds)
    clauses = system.clauses
    groups: list[frozenset[int]] = []
    while (left := deadline - time.monotonic()) > 0:
        chosen = hitting_set(groups, left)
        if chosen is None:
            break
        if len(chosen) >= len(clash):
            return tuple(clash), True
        here = ConstraintSystem(system.parameters, tuple(clauses[k] for k in chosen))
        point, certain = search(here)
        if point is None:
            return (here.clauses, True) if certain else (tuple(clash), False)
        groups.append(broken_by(system, point, search))
    return tuple(clash), False


def hitting_set(groups: Sequence[frozenset[int]], seconds: float) -> list[int] | None:
    """As few numbers as have one of each group, ascending; None if z3 does not decide in time."""
    if not groups:
        return []
    context = z3.Context()
    solver = z3.Optimize(ctx=context)
    solver.set("timeout", max(1, int(seconds * 1000)))
    taken = {k: z3.Bool(f"clause {k}", context) for k in sorted(frozenset[int]().union(*groups))}
    for group in groups:
        solver.add(z3.Or([taken[k] for k in sorted(group)]))
    for one in taken.values():
        solver.add_soft(z3.Not(one), "1")
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return [k for k, one in taken.items() if z3.is_true(model.eval(one))]


def broken_by(system: ConstraintSystem, point: Assignment, search: Search) -> frozenset[int]:
    """A minimal group of conditions that some point breaks, among those that `point` breaks."""
    kept = [c for c in system.clauses if c not in system.broken(point)]
    for clause in system.clauses:
        if clause not in kept:
            further, _ = search(ConstraintSystem(system.parameters, (*kept, clause)))
            if further is not None:
                broken = system.broken(further)
                kept = [c for c in system.clauses if c not in broken]
    return frozenset(k for k, c in enumerate(system.clauses) if c not in kept)
