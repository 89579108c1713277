"""The energy proxy: bytes by the level that serves them, and operations, each times a cost.

The bytes are those of the model of traffic, and the operations are counted in the emitted code. It
is a proxy: it has no cost for addresses, instructions, registers, waiting or leakage, and nothing
is measured. It orders candidates by the data that they move and the operations that they execute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import MEMORY, Hardware
from liftpy.ir.operators import OPERATORS
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Store,
    Update,
)
from liftpy.loops.values import (
    SUBGROUP_LOCAL_ID,
    Dot,
    Operate,
    SubgroupReduce,
    SubgroupsReduce,
    Value,
    values_in,
)
from liftpy.pipeline import run_code
from liftpy.primitives.dialects import LoweredProgram
from liftpy.traffic.energy_costs import EnergyCosts
from liftpy.traffic.model import Modelled
from liftpy.traffic.subgroups import step_of, with_subgroups_of
from liftpy.traffic.time import modelled

Executed: TypeAlias = dict[tuple[str, str], float]
"""How often each operator is executed on values of each scalar type; a vector counts its lanes."""


@dataclass(frozen=True)
class EnergyProxy:
    """The proxy of a program's run phase, in pJ.

    `levels` has the part of the bytes that each level serves, memory last, with what is written to
    it; `operations` has the part of each operator and scalar type. `costs` names the table.
    """

    levels: Mapping[str, float]
    operations: Mapping[tuple[str, str], float]
    costs: str

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(self.levels.values()) + sum(self.operations.values())

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON data."""
        return {
            "energy_proxy_pj": self.total,
            "costs": self.costs,
            "levels_pj": dict(self.levels),
            "operations_pj": {f"{op} {t}": spent for (op, t), spent in self.operations.items()},
        }


def energy_proxy(
    lowered: LoweredProgram, device: Device, hardware: Hardware, costs: EnergyCosts
) -> EnergyProxy:
    """The energy proxy of one of many runs of a lowered program whose sizes are numbers."""
    counted: Executed = {}
    for code in run_code(lowered):
        sized = with_subgroups_of(code, hardware.subgroup)
        add(counted, executed(sized, hardware.subgroup))
    return proxy_of(modelled(lowered, device, hardware), counted, costs)


def proxy_of(model: Modelled, counted: Executed, costs: EnergyCosts) -> EnergyProxy:
    """The proxy of a modelled program that executes these operations."""
    hardware = model.hardware
    each = {
        name: costs.cache(size)
        for name, size in zip(hardware.levels, hardware.cache_sizes, strict=False)
    }
    each[MEMORY] = costs.memory.value
    served = {hardware.levels[0]: model.moved, **model.bytes}
    served[MEMORY] += served.pop("written")
    return EnergyProxy(
        {name: served[name] * each[name] for name in hardware.levels},
        {(op, t): many * costs.operation(op, t) for (op, t), many in sorted(counted.items())},
        costs.name,
    )


def executed(code: LoopKernel, subgroup: int = 1) -> Executed:
    """The operations that all work-items of a kernel execute, with subgroups of a size.

    Guards are taken to hold; of two branches, the one with more operations counts.
    """
    group = code.local_size[0]
    average = group / -(-group // subgroup)  # work-items of a subgroup: the last one may have fewer
    return in_block(code.block, math.prod(code.global_size), subgroup, average)


def in_block(block: Block, times: float, subgroup: int, average: float) -> Executed:
    """The operations of a block that all work-items together execute `times` times.

    `average` is the average number of work-items of a subgroup, which divide arrays among them.
    """
    found: Executed = {}
    for s in block:
        match s:
            case For(first=int(first)):
                turns = -(-(s.bound - first) // step_of(s))
                add(found, in_block(s.body, times * turns, subgroup, average))
            case For():  # it begins at an id: the ids below the step, or of a subgroup, share it
                sharing = average if s.first == SUBGROUP_LOCAL_ID else step_of(s)
                add(found, in_block(s.body, times * s.bound / sharing, subgroup, average))
            case If():
                branches = (in_block(b, times, subgroup, average) for b in (s.then, s.otherwise))
                add(found, max(branches, key=lambda counted: sum(counted.values())))
            case Let() | Store() | Update():
                add(found, in_value(s.value, times, subgroup))
                if isinstance(s, Update):
                    add(found, {(s.op, str(s.cell.type)): times})
            case _:
                pass
    return found


def in_value(value: Value, times: float, subgroup: int) -> Executed:
    """The operations of an expression that is evaluated `times` times."""
    found: Executed = {}
    for part in values_in(value):
        if isinstance(part, Operate):
            typed = part.parts[0] if OPERATORS[part.op].truth else part
            add(found, {(part.op, str(typed.type)): times * part.width})
        elif isinstance(part, SubgroupReduce):  # one operation for each value of a subgroup but one
            add(found, {(part.op, str(part.type)): times * (subgroup - 1) / subgroup})
        elif isinstance(part, SubgroupsReduce):
            results = -(-part.cell.memory.length // subgroup)
            add(found, {(part.op, str(part.type)): times * (results - 1)})
        elif isinstance(part, Dot):
            products = part.parts[0].width * part.width
            add(found, {(op, str(part.type)): times * products for op in "*+"})
    return found


def add(found: Executed, more: Executed) -> None:
    """Adds counts to those found so far."""
    for key, count in more.items():
        found[key] = found.get(key, 0) + count
