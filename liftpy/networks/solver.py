"""Placements and choices of candidates by CP-SAT, the constraint solver of OR-Tools.

All searches are deterministic: they run in one thread with a fixed seed, and their limits count the
solver's own steps, not seconds. So the same measurements give the same plan.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from liftpy.networks.arena import Block
from liftpy.networks.costs import Costs, Ordered, Stored

EFFORT = 1.0
"""The limit of a placement in units of the solver: about half a minute for 200 blocks."""


def solver(effort: float) -> Any:
    """A deterministic solver with a limit."""
    made: Any = cp_model.CpSolver()
    made.parameters.random_seed = 1
    made.parameters.num_workers = 1
    made.parameters.max_deterministic_time = effort
    made.parameters.use_timetabling_in_no_overlap_2d = True
    return made


def smallest(
    blocks: Sequence[Block], bound: int, hint: Mapping[str, int], effort: float = EFFORT
) -> tuple[dict[str, int], bool]:
    """Offsets of least total, and whether that is proved; `hint` is a placement to improve.

    First an arena of exactly the lower bound is sought, which usually exists; if none is found with
    half of the effort, the smallest one.
    """
    found, exact = _placed(blocks, bound, bound, {}, effort / 2)
    if found is not None:
        return found, True
    upper = max(hint[b.name] + b.bytes for b in blocks)
    found, proved = _placed(blocks, bound + 1 if exact else bound, upper, hint, effort / 2)
    return dict(hint) if found is None else found, proved


def _placed(
    blocks: Sequence[Block], lower: int, upper: int, hint: Mapping[str, int], effort: float
) -> tuple[dict[str, int] | None, bool]:
    """The smallest placement between two sizes of the arena, and whether the answer is proved.

    Each block is a rectangle of steps and bytes. Only its offset in bytes is variable, and the
    blocks of a group have one variable in common.
    """
    unit = math.gcd(*(b.bytes for b in blocks), *(b.at for b in blocks))
    most = upper // unit
    model: Any = cp_model.CpModel()
    top = model.new_int_var(-(-lower // unit), most, "arena")
    ends: dict[str, int] = {}
    for b in blocks:
        ends[b.group] = max(ends.get(b.group, 0), (b.at + b.bytes) // unit)
    groups: dict[str, Any] = {}
    offsets: dict[str, Any] = {}
    steps: list[Any] = []
    places: list[Any] = []
    for b in blocks:
        size, at = b.bytes // unit, b.at // unit
        if b.group not in groups:
            groups[b.group] = model.new_int_var(0, most - ends[b.group], b.group)
            if b.name in hint:
                model.add_hint(groups[b.group], hint[b.name] // unit - at)
        offsets[b.name] = groups[b.group] + at
        steps.append(model.new_fixed_size_interval_var(b.first, b.last + 1 - b.first, ""))
        places.append(model.new_fixed_size_interval_var(offsets[b.name], size, ""))
        model.add(offsets[b.name] + size <= top)
    model.add_no_overlap_2d(steps, places)
    model.add_cumulative(steps, [b.bytes // unit for b in blocks], top)
    model.minimize(top)
    made = solver(effort)
    status = made.solve(model)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, status == cp_model.INFEASIBLE
    return {n: made.value(at) * unit for n, at in offsets.items()}, status == cp_model.OPTIMAL


@dataclass(frozen=True)
class ArenaCut:
    """A selection whose arena cannot be smaller than `arena` bytes, by a proved placement."""

    selection: tuple[int, ...]
    arena: int


def select(
    options: Sequence[Sequence[Costs]],
    live: Sequence[int],
    limit: int | None = None,
    cuts: Sequence[ArenaCut] = (),
    *,
    least_memory: bool = False,
) -> tuple[tuple[int, ...], bool] | None:
    """One option of each operation, by position, and whether it is proved to be best.

    The arena has at least the bytes that are live during an operation and its scratch; a constant
    that several options keep counts once. Arena and constants have at most `limit` bytes together.
    The time is least, and then the memory; with `least_memory`, the other way round. None if no
    selection is within the limit.

    A selection with no less scratch than that of a cut in any operation has no smaller arena.
    """
    model: Any = cp_model.CpModel()
    most = max(live[k] + max(o.scratch for o in own) for k, own in enumerate(options))
    arena = model.new_int_var(0, most, "arena")
    chosen = [[model.new_bool_var("") for _ in own] for own in options]
    items: dict[Any, tuple[Any, int]] = {}
    for k, own in enumerate(options):
        model.add_exactly_one(chosen[k])
        model.add(
            arena >= live[k] + sum(o.scratch * x for o, x in zip(own, chosen[k], strict=True))
        )
        for o, x in zip(own, chosen[k], strict=True):
            for key, size in o.constants.items():
                if key not in items:
                    items[key] = model.new_bool_var(""), size
                model.add_implication(x, items[key][0])
    constants = sum(size * kept for kept, size in items.values())
    memory = arena + constants
    if limit is not None:
        model.add(memory <= limit)
        for cut in cuts:
            fits = model.new_bool_var("")
            model.add(constants <= limit - cut.arena).only_enforce_if(fits)
            less = [
                x
                for k, at in enumerate(cut.selection)
                for o, x in zip(options[k], chosen[k], strict=True)
                if o.scratch < options[k][at].scratch
            ]
            model.add_bool_or([fits, *less])
    time = sum(
        o.time_ns * x
        for own, xs in zip(options, chosen, strict=True)
        for o, x in zip(own, xs, strict=True)
    )
    proved = True
    found: tuple[int, ...] | None = None
    for goal in (memory, time) if least_memory else (time, memory):
        model.minimize(goal)
        made = solver(EFFORT)
        status = made.solve(model)
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            break
        proved = proved and status == cp_model.OPTIMAL
        found = tuple(next(j for j, x in enumerate(xs) if made.value(x)) for xs in chosen)
        model.add(goal <= made.value(goal))
        model.clear_hints()
        for j, xs in zip(found, chosen, strict=True):
            for at, x in enumerate(xs):
                model.add_hint(x, at == j)
    return None if found is None else (found, proved)


def orders(
    options: Sequence[Sequence[Ordered]],
    copies: Mapping[Stored, int],
    given: Collection[Stored],
    needed: Collection[Stored],
    excluded: Sequence[tuple[int, ...]] = (),
) -> tuple[tuple[int, ...] | None, float]:
    """One option of each operation, by position, of least time with the copies that it needs.

    A tensor in an order is `given`, stored by an operation, or a copy, which takes its time of
    `copies`; `needed` are read at the end. The second result is a lower bound in nanoseconds of the
    time of all selections that are not `excluded`: infinite if there are none. The first one is
    None if there are none, or if the solver's effort ended before it found one.
    """
    model: Any = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in own] for own in options]
    copied = {key: model.new_bool_var("") for key in copies}
    stored: dict[Stored, list[Any]] = {key: [x] for key, x in copied.items()}
    pairs = [
        (o, x)
        for own, xs in zip(options, chosen, strict=True)
        for o, x in zip(own, xs, strict=True)
    ]
    for o, x in pairs:
        for key in sorted(o.stores):
            stored.setdefault(key, []).append(x)
    for xs in chosen:
        model.add_exactly_one(xs)
    for o, x in pairs:
        for key in sorted(o.reads.difference(given)):
            model.add_bool_or([x.negated(), *stored.get(key, ())])
    for key in sorted({*needed}.difference(given)):
        model.add_bool_or(stored.get(key, []))
    for selection in excluded:
        model.add_bool_or([xs[k].negated() for xs, k in zip(chosen, selection, strict=True)])
    kernels = sum(o.time_ns * x for o, x in pairs)
    model.minimize(kernels + sum(copies[key] * x for key, x in copied.items()))
    made = solver(EFFORT)
    status = made.solve(model)
    if status == cp_model.INFEASIBLE:
        return None, math.inf
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, 0
    found = tuple(next(k for k, x in enumerate(xs) if made.value(x)) for xs in chosen)
    return found, math.ceil(made.best_objective_bound)
