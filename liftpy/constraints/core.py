"""The smallest set of conditions that exclude each other.

By hitting sets (Ignatiev et al., Smallest MUS extraction, CP 2015). Whatever has a point leaves
some conditions broken, and every set that clashes has one of these. So the smallest set that has
one of each group met so far is the smallest clash, or it has a point that shows another group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from liftpy.constraints.system import Assignment, Clause, ConstraintSystem

GROUPS = 80  # groups of broken conditions met, after which the search is given up
SUBSETS = 200_000  # sets of conditions looked at, likewise

#: A point of a system, or None; and whether that is certain.
Search = Callable[[ConstraintSystem], tuple[Assignment | None, bool]]


def smallest(
    system: ConstraintSystem, clash: Sequence[Clause], search: Search
) -> tuple[Clause, ...]:
    """A clash of as few conditions of the system as there is.

    `clash` is one whose conditions are all needed; it is the answer where none is smaller, or where
    it would take too long to tell. `search` looks for points.
    """
    clauses = system.clauses
    groups: list[int] = []  # as bits: clause number k is 1 << k
    looked = 0
    for size in range(1, len(clash)):
        for chosen in itertools.combinations(range(len(clauses)), size):
            looked += 1
            if looked > SUBSETS:
                return tuple(clash)
            bits = sum(1 << k for k in chosen)
            if any(not bits & group for group in groups):
                continue
            here = ConstraintSystem(system.parameters, tuple(clauses[k] for k in chosen))
            point, certain = search(here)
            if point is None:
                return here.clauses if certain else tuple(clash)
            groups.append(broken_by(system, point, search))
            if len(groups) > GROUPS:
                return tuple(clash)
    return tuple(clash)


def broken_by(system: ConstraintSystem, point: Assignment, search: Search) -> int:
    """The conditions that a point breaks, and no more of them than some point has to break."""
    kept = [c for c in system.clauses if c not in system.broken(point)]
    for clause in system.clauses:
        if clause not in kept:
            further, _ = search(ConstraintSystem(system.parameters, (*kept, clause)))
            if further is not None:
                broken = system.broken(further)
                kept = [c for c in system.clauses if c not in broken]
    return sum(1 << k for k, c in enumerate(system.clauses) if c not in kept)
