"""Random candidates of products and convolutions on devices that are not attached keep all limits.

    PYTHONPATH=. .venv/bin/python tests/fuzz/limits.py --draws 10000

Programs of odd shapes take turns. Of each, candidates are drawn over all sizes of the space of the
families, and compiled. The figures of the compiled module, not the conditions of the space, are
compared with the limits of the device. Exit status 1 if a candidate exceeds one.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random

from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from tests.fuzz.shaped import SHAPES, kind_of

SIDES = (2, 3, 7, 12, 17, 31, 48, 60, 63, 64, 65, 96, 100, 127, 128)
EACH = 100
"""The most candidates of a program."""
PATIENCE = 50
"""The most successive programs without a candidate."""


def exceeded(module: Module, device: Device) -> Iterator[str]:
    """The limits of a device that a module exceeds, with its figures."""
    figures = {
        "local memory": (module.memory.local, device.local_memory),
        "private memory": (module.memory.private, device.private_memory),
        "global memory": (module.memory.allocated, device.global_memory),
        "a buffer": (max(b.bytes for b in module.buffers), device.largest_buffer),
    }
    for launch in module.launches:
        group = launch.local_size or ()
        figures[f"group of {launch.function}"] = math.prod(group), device.max_work_group_size
        for k, (items, most) in enumerate(zip(group, device.max_work_item_sizes, strict=False)):
            figures[f"dimension {k} of a group of {launch.function}"] = items, most
    for name, (found, most) in figures.items():
        if found > most:
            yield f"{name}: {found}, at most {most}"


def drawn(seed: int, device: Device, families: list[str]) -> Iterator[Candidate]:
    """Candidates of the program of a seed; none if no family makes it in one stage."""
    program = SHAPES[kind_of(seed)](Random(seed), SIDES)
    skeletons = list[Skeleton]()
    for family in families:
        found = skeletons_of(FAMILIES[family], program)
        skeletons += () if isinstance(found, str) else found
    space = Space.of(program, device, skeletons)
    yield from space.sample(min(EACH, space.count()), seed)


def candidates(start: int, device: Device, families: list[str]) -> Iterator[tuple[int, Candidate]]:
    """The candidates of programs from a seed on, with their seeds, up to `PATIENCE` without any."""
    without = 0
    for seed in itertools.count(start):
        found = [*drawn(seed, device, families)]
        without = 0 if found else without + 1
        if without == PATIENCE:
            seeds = f"{seed - PATIENCE + 1} to {seed}"
            print(f"{', '.join(families)}: no candidates of {PATIENCE} programs, seeds {seeds}")
            return
        yield from ((seed, candidate) for candidate in found)


def main() -> int:
    """Compiles candidates for each device; 1 if one exceeds a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=10_000, help="candidates for each device")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--families", nargs="+", default=["cooperative", "blocked"])
    parser.add_argument("--profiles", nargs="+", default=["mali-g72", "adreno-650"])
    given = parser.parse_args()
    faults = 0
    for name in given.profiles:
        device = find_device(f"profile:{name}")
        families, largest, last = Counter[str](), 0, given.start
        found = candidates(given.start, device, given.families)
        for seed, candidate in itertools.islice(found, given.draws):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            families[candidate.skeleton.family] += 1
            largest = max(largest, *(math.prod(x.local_size or ()) for x in module.launches))
            last = seed
            for fault in exceeded(module, device):
                faults += 1
                print(f"{name}: seed {seed}, {candidate.label}: {fault}", flush=True)
        kinds = ", ".join(f"{many} of {family}" for family, many in sorted(families.items()))
        print(
            f"{name}: {families.total()} candidates of seeds {given.start} to {last} ({kinds});"
            f" the largest group has {largest} of {device.max_work_group_size} work-items",
            flush=True,
        )
    print(f"{faults} limits exceeded")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
