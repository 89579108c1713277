"""Fixed policies of published accelerators, to which plans are compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from liftpy.networks.offchip.hardware import Accelerator, fits
from liftpy.networks.offchip.nest import Nest
from liftpy.networks.offchip.search import EXACT, Found, Objective, Rule, search, sizes_of

Policy: TypeAlias = Literal["best", "zhang", "ma", "smart-shuttle"]

POLICIES: Mapping[Policy, str] = {
    "best": "the best tiles and order of each nest",
    "zhang": "only results stay on the chip, sums are innermost (Zhang et al., FPGA 2015)",
    "ma": "sums are never divided (Ma et al., FPGA 2017)",
    "smart-shuttle": "only results or only weights stay, by their sizes (Li et al., DATE 2018)",
}
"""The policies. `best` is the search itself; the search also finds what the others leave open."""


def planned(
    nest: Nest,
    chip: Accelerator,
    policy: Policy = "best",
    objective: Objective = "traffic",
    rules: Collection[Rule] = EXACT,
) -> Found | None:
    """The best schedule that a policy allows; None if none fits the memories."""
    if policy == "zhang":
        return search(
            nest,
            chip,
            objective,
            rules,
            lambda o: inside(o, nest.summed),
            stationary=nest.result.name,
        )
    if policy == "ma":
        whole = {name: nest.extents[name] for name in nest.summed}
        return search(nest, chip, objective, rules, fixed=whole)
    if policy == "smart-shuttle":
        return shuttled(nest, chip, objective, rules)
    return search(nest, chip, objective, rules)


def inside(order: tuple[str, ...], loops: Collection[str]) -> bool:
    """Whether these loops are the innermost ones of an order."""
    chosen = [name for name in order if name in loops]
    return order[len(order) - len(chosen) :] == tuple(chosen)


def shuttled(
    nest: Nest, chip: Accelerator, objective: Objective, rules: Collection[Rule]
) -> Found | None:
    """Smart-Shuttle: which array stays follows from sizes, and tiles are as large as they can be.

    If a channel of results has more elements than one of weights, results stay, and tiles are
    enlarged along OC, then OH, then IC. Otherwise weights stay, and tiles are enlarged along OC,
    IC, OH.
    """
    results = nest.result.bytes // extent(nest, nest.weight.loops, but=nest.summed)
    weights = nest.weight.bytes // extent(nest, nest.weight.loops, but=nest.summed)
    rows = [n for n in nest.extents if n in nest.data.loops and n in nest.result.loops]
    kernels = [n for n in nest.extents if n not in nest.data.loops]
    summed = [n for n in nest.extents if n in nest.summed]
    output = results > weights
    free = sizes_of(nest, chip, rules)[-1]
    tiles = {name: int(sizes[0]) for name, sizes in free.items()}
    for name in (*kernels, *rows, *summed) if output else (*kernels, *summed, *rows):
        for size in range(tiles[name] + 1, nest.extents[name] + 1):
            if not fits(nest, {**tiles, name: size}, chip.capacities):
                break
            tiles[name] = size
    stays, loops = (nest.result, nest.summed) if output else (nest.weight, frozenset(rows))
    return search(nest, chip, objective, rules, lambda o: inside(o, loops), tiles, stays.name)


def extent(nest: Nest, names: Collection[str], but: Collection[str]) -> int:
    """The iterations of some loops without others."""
    found = 1
    for name in names:
        found *= 1 if name in but else nest.extents[name]
    return found
