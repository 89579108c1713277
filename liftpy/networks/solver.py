"""Placements and choices of candidates by CP-SAT, the constraint solver of OR-Tools.

All searches are deterministic: they run in one thread with a fixed seed, and their limits count the
solver's own steps, not seconds. So the same measurements give the same plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ortools.sat.python import cp_model

from liftpy.networks.arena import Block

EFFORT = 1.0
"""The limit of a placement in units of the solver: about half a minute for 200 blocks."""


def solver(effort: float) -> Any:
    """A deterministic solver with a limit."""
    made: Any = cp_model.CpSolver()
    made.parameters.random_seed = 1
    made.parameters.num_workers = 8
    made.parameters.interleave_search = True  # eight strategies in turn, in one thread
    made.parameters.max_deterministic_time = effort
    return made


def smallest(
    blocks: Sequence[Block], bound: int, hint: Mapping[str, int], effort: float = EFFORT
) -> tuple[dict[str, int], bool]:
    """Offsets of least total, and whether that is proved; `hint` is a placement to improve.

    Each block is a rectangle of steps and bytes, of which only the bytes can move.
    """
    unit = math.gcd(bound, *(b.bytes for b in blocks))
    upper = max(hint[b.name] + b.bytes for b in blocks) // unit
    model: Any = cp_model.CpModel()
    top = model.new_int_var(bound // unit, upper, "arena")
    offsets: dict[str, Any] = {}
    steps: list[Any] = []
    places: list[Any] = []
    for b in blocks:
        size = b.bytes // unit
        offsets[b.name] = model.new_int_var(0, upper - size, b.name)
        steps.append(model.new_fixed_size_interval_var(b.first, b.last + 1 - b.first, ""))
        places.append(model.new_fixed_size_interval_var(offsets[b.name], size, ""))
        model.add(offsets[b.name] + size <= top)
        model.add_hint(offsets[b.name], hint[b.name] // unit)
    model.add_no_overlap_2d(steps, places)
    model.minimize(top)
    made = solver(effort)
    status = made.solve(model)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return dict(hint), False
    found = {name: made.value(at) * unit for name, at in offsets.items()}
    return found, status == cp_model.OPTIMAL
