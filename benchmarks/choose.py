"""What is chosen without measuring, against the fastest of a campaign; and slicing's orders.

    python benchmarks/choose.py [WORKLOAD ...] [--samples 60] [--device D] [--rounds 5]
    python benchmarks/choose.py --orders
    python benchmarks/choose.py [WORKLOAD ...] --cost [--device profile:xeon-silver-4208]

For each workload: `lp.choose`, a campaign of some samples, and both candidates timed turn about in
one process. A row says the measured times and their ratio, the modelled time, the seconds that
deriving and choosing and the campaign took, and the rank correlation of modelled and measured times
over the candidates of the campaign.

`--orders` runs nothing. It prints in Markdown which order of loops, input stationary (IS) or weight
stationary (WS), convolution slicing analysis chooses for the layers of seven networks on the two
machines of its paper (Ferrari et al., TACO 2023).

`--cost` runs no kernel. For each workload, in the given order, it prints the processor time in ms
of deriving the space and of choosing in it. A candidate of a small program is chosen first, which
is not counted. Then it derives the space again, since a space keeps what was modelled in it,
chooses in it under a profiler, and prints the share of each step.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import liftpy as lp
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.choosing import Choice, chosen
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.slicing_cost import slicing
from liftpy.traffic.time import modelled
from liftpy.workloads.model_zoo import MODEL_ZOO

WORKLOADS = ("matmul/512x512x512", "vgg16/7", "vgg16/17", "vgg16/24", "mobilenet/1")
MACHINES = {"xeon-silver-4208": "WS", "power10": "IS"}
"""The paper's machines, with the order that it reports for each."""


def turns(kernels: Mapping[str, lp.Kernel], arrays: list[Any], rounds: int) -> dict[str, float]:
    """The median milliseconds of kernels that take turns."""
    times: dict[str, list[float]] = {name: [] for name in kernels}
    for _ in range(rounds):
        for name, kernel in kernels.items():
            times[name].append(sum(kernel.profile(*arrays).values()) / 1e6)
    return {name: statistics.median(mine) for name, mine in times.items()}


def correlation(space: Space, campaign: Campaign) -> tuple[float, int]:
    """The rank correlation of modelled and measured times, and the number of candidates."""
    hardware = hardware_of(space.device)
    model: list[float] = []
    measured: list[float] = []
    for row in campaign.rows:
        if row.time_ns is not None:
            found = space.exactly(row.assignment)
            lowered = found.skeleton.at(found.point)
            model.append(modelled(lowered, space.device, hardware).milliseconds)
            measured.append(row.time_ns)
    if len(model) < 3:
        return float("nan"), len(model)
    modelled_ranks, ranks = (np.argsort(np.argsort(values)) for values in (model, measured))
    return float(np.corrcoef(modelled_ranks, ranks)[0, 1]), len(model)


def compared(name: str, samples: int, device: str | None, rounds: int) -> str:
    """A row of the table."""
    program = lp.workload(name)
    began = time.perf_counter()
    space = space_of(program, device)
    choice: Choice = chosen(space, time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        campaign = lp.explore(program, samples, db=Path(folder) / "choose.db", device=device)
        spent = time.perf_counter() - began
        rank, count = correlation(space, campaign)
        settings = {"chosen": choice.assignment, "campaign": campaign.best().assignment}
    kernels = {n: lp.compile(program, dict(a), device=device) for n, a in settings.items()}
    found = turns(kernels, [*inputs(program).values()], rounds)
    for kernel in kernels.values():
        kernel.close()
    return (
        f"| {name} | {found['chosen']:.3g} | {found['campaign']:.3g} | "
        f"{found['chosen'] / found['campaign']:.2f} | {choice.best.milliseconds:.3g} | "
        f"{choice.deriving:.1f} + {choice.choosing:.1f} | {spent:.0f} | {rank:.2f} of {count} |"
    )


PARTS = {
    "draws": ("draw.py", "unrank"),
    "figures": ("cost_model.py", "figures_at"),
    "sizes put in": ("skeleton.py", "at"),
    "kernels": ("pipeline.py", "chain_of"),
    "loops": ("pipeline.py", "counted_loops_of"),
    "model": ("time.py", "kernel_of"),
}
"""The steps of choosing: the heading of each, the file and the name of its function."""


def cost(names: Iterable[str], device: str) -> Iterator[str]:
    """The cost of choosing, a row for each workload."""
    lp.choose(lp.workload("matmul/16x16x16"), device)
    yield f"| workload | derive ms | choose ms | modelled | ms each | {' | '.join(PARTS)} |"
    yield f"| --- | --- | --- | --- | --- |{' --- |' * len(PARTS)}"
    for name in names:
        program = lp.workload(name)
        marks = [time.process_time()]
        space = space_of(program, device)
        marks.append(time.process_time())
        choice = chosen(space)
        marks.append(time.process_time())
        derived, taken = (1000 * (b - a) for a, b in itertools.pairwise(marks))
        cells = " | ".join(f"{share:.0%}" for share in shares(space_of(program, device)))
        yield (
            f"| {name} | {derived:.0f} | {taken:.0f} | {choice.considered} | "
            f"{taken / choice.considered:.1f} | {cells} |"
        )


def shares(space: Space) -> list[float]:
    """The share of the time of each step of `PARTS` in choosing in a space."""
    profiler = cProfile.Profile()
    profiler.runcall(chosen, space)
    spent: dict[tuple[str, str], float] = {}
    for entry in profiler.getstats():
        if isinstance(entry.code, CodeType):
            place = Path(entry.code.co_filename).name, entry.code.co_name
            spent[place] = max(entry.totaltime, spent.get(place, 0.0))
    whole = spent["choosing.py", "chosen"]
    return [spent.get(part, 0.0) / whole for part in PARTS.values()]


def orders() -> Iterator[str]:
    """The table of orders, a row for each network."""
    machines = {name: hardware_of(lp.find_device(f"profile:{name}")) for name in MACHINES}
    first = next(iter(machines.values()))
    machines["16 x 16 on the first"] = replace(first, micro_kernel=(16, 16))
    yield f"| network | layers | {' | '.join(machines)} |"
    yield f"| --- | --- |{' --- |' * len(machines)}"
    total: dict[str, Counter[str]] = {name: Counter() for name in machines}
    for network, layers in MODEL_ZOO.items():
        words: list[str] = []
        for name, machine in machines.items():
            made = (slicing(layer, machine) for layer in layers)
            counts = Counter("tie" if c.tie else c.tiling.order for c in made if c is not None)
            total[name] += counts
            words.append(spelled(counts))
        yield f"| {network} | {len(layers)} | {' | '.join(words)} |"
    count = sum(map(len, MODEL_ZOO.values()))
    yield f"| all | {count} | {' | '.join(map(spelled, total.values()))} |"
    yield f"| in the paper | 393 | {' | '.join(f'{word} 393' for word in MACHINES.values())} | |"


def spelled(counts: Counter[str]) -> str:
    """Counts of orders in words."""
    return ", ".join(f"{order} {counts[order]}" for order in ("IS", "WS", "tie") if counts[order])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    if asked.orders:
        print("\n".join(orders()))
        return
    if asked.cost:
        for line in cost(asked.workloads, asked.device or "profile:xeon-silver-4208"):
            print(line, flush=True)
        return
    print(f"on {lp.find_device(asked.device).label}; times in ms, seconds of the calls in s")
    print("| workload | chosen | campaign | ratio | modelled | choose | explore | ranks |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.workloads:
        print(compared(name, asked.samples, asked.device, asked.rounds), flush=True)


if __name__ == "__main__":
    main()
