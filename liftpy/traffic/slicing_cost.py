"""The cost model of convolution slicing analysis: cache lines from each level, and cycles.

Equation numbers are those of Ferrari et al. (TACO 2023). Groups are counted with ceilings. Loads
from the first cache are free; results are left out, as they are the same in both orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from liftpy.constraints.hardware import Hardware
from liftpy.traffic.slicing import ORDERS, Heuristic, Order, Tiling, tiling
from liftpy.workloads.convolution import Convolution

Form: TypeAlias = Literal["paper", "exact"]


@dataclass(frozen=True, slots=True)
class Lines:
    """The cache lines that the second cache, the third cache and memory serve."""

    second: Fraction
    third: Fraction
    memory: Fraction

    def cycles(self, hardware: Hardware) -> Fraction:
        """The cycles that the accesses take: equation (6)."""
        second, third, memory = hardware.cache_latencies
        return second * self.second + third * self.third + memory * self.memory


def lines(found: Tiling, line: int, form: Form) -> Lines:
    """The lines that each level serves.

    The paper's equation (14) counts every pass of the moving tiles but the first as served by the
    second cache, also those that (11) already counts as served by memory. The exact form counts
    these passes once.
    """
    outer, inner = found.groups
    stationary = Fraction(found.sets * found.stationary * found.stationary_bytes, line)
    moving = Fraction(found.sets * found.moving * found.moving_bytes, line)
    again = min(inner - 1, 1) * (outer - 1)  # (9), (10): passes that begin in memory
    served = found.stationary - 1 - (again if form == "exact" else 0)  # (14)
    return Lines(
        second=served * moving,
        third=(inner - 1) * stationary,  # (12), (13)
        memory=stationary + moving + again * moving,  # (7), (8), (11)
    )


def cost(found: Tiling, hardware: Hardware, form: Form = "paper") -> Fraction:
    """The cycles of a tiling."""
    return lines(found, hardware.cache_line, form).cycles(hardware)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cheaper of the two orders, its cost in cycles, and that of each order that is possible.

    In a tie, the order is IS.

    """

    tiling: Tiling
    costs: dict[Order, Fraction]

    @property
    def tie(self) -> bool:
        """Whether both orders cost the same."""
        return len(self.costs) > 1 and len({*self.costs.values()}) == 1


def slicing(
    layer: Convolution,
    hardware: Hardware,
    heuristic: Heuristic = "halve",
    form: Form = "paper",
) -> Chosen | None:
    """The tiling that the analysis chooses for a layer; None if nothing fits into the caches."""
    each = (tiling(layer, hardware, order, heuristic) for order in ORDERS)
    found = [one for one in each if one is not None]
    if not found:
        return None
    costs: dict[Order, Fraction] = {one.order: cost(one, hardware, form) for one in found}
    return Chosen(min(found, key=lambda one: costs[one.order]), costs)
