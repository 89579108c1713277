"""Modelled off-chip traffic of e-PlaNNer's plans, beside fixed policies. No device is needed.

    python benchmarks/offchip.py

For each network and each of the four published sets of memories, the first table has the traffic in
MiB of the best plan, of each policy, and of moving each array once (`ideal`), the mean reduction
from the three policies, and the reduction from the best of them. The second table has, for each
network on the smallest memories, the candidates (tilings times orders), the share that the search
compares, and the processor time of the search: with equal layers planned once, and with each layer
planned. Exits with 1 if a policy moves fewer bytes than the best plan, or if the search compares 1
% of the candidates or more.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import mean

from liftpy.errors import ConstraintRefused
from liftpy.networks.offchip.hardware import Accelerator, accelerator
from liftpy.networks.offchip.planning import Layers, TrafficPlan, plan_traffic, published_layers
from liftpy.networks.offchip.policies import POLICIES, Policy, planned
from liftpy.networks.offchip.published import NETWORKS

SETUPS = ("setup-a", "setup-b", "setup-c", "setup-d")
MIB = 1 << 20
MOST_COMPARED = 0.01


def plan_or_none(found: Layers, chip: Accelerator, policy: Policy) -> TrafficPlan | None:
    """The plan of a policy; None if no tiles of some layer fit the memories."""
    try:
        return plan_traffic(found, chip, policy)
    except ConstraintRefused:
        return None


def reductions(setup: str) -> tuple[list[str], list[float], bool]:
    """The rows of a set of memories, the mean reductions, and whether `best` moves fewest bytes."""
    chip = accelerator(setup)
    rows: list[str] = []
    means: list[float] = []
    right = True
    for name in NETWORKS:
        found = published_layers(name)
        plans = {policy: plan_or_none(found, chip, policy) for policy in POLICIES}
        best = plans["best"]
        assert best is not None, f"{name} has no plan on {setup}"
        others = [p.traffic for policy, p in plans.items() if p is not None and policy != "best"]
        right = right and all(best.traffic <= other for other in others)
        means.append(mean(1 - best.traffic / other for other in others))
        moved = (f"{p.traffic / MIB:.0f}" if p is not None else "none" for p in plans.values())
        rows.append(
            f"| {setup} | {name} | {' | '.join(moved)} | {best.ideal / MIB:.0f} "
            f"| {100 * means[-1]:.1f} % | {100 * (1 - best.traffic / min(others)):.1f} % |"
        )
    return rows, means, right


def searched(name: str, setup: str) -> tuple[str, float]:
    """The row of a network's search, and the share of candidates that it compares."""
    chip, found = accelerator(setup), published_layers(name)
    begun = time.process_time()
    plan = plan_traffic(found, chip)
    once = time.process_time() - begun
    begun = time.process_time()
    for layer in found.layers:
        planned(layer.nest, chip)
    each = time.process_time() - begun
    every = sum(one.candidates for one in plan.found.values())
    compared = sum(one.compared for one in plan.found.values())
    return (
        f"| {name} | {len(found.layers)} | {len(found.distinct)} | {every:.2e} | {compared} "
        f"| {100 * compared / every:.2g} % | {once:.2f} | {each:.2f} |"
    ), compared / every


def main() -> None:
    """Prints both tables in Markdown."""
    argparse.ArgumentParser(description="off-chip traffic of e-PlaNNer's plans").parse_args()
    print(f"| memories | network | {' | '.join(POLICIES)} | ideal | mean | best |")
    print(f"| --- | --- |{' ---: |' * (len(POLICIES) + 3)}")
    right = True
    every: list[float] = []
    for setup in SETUPS:
        rows, means, best = reductions(setup)
        right, every = right and best, [*every, *means]
        print(*rows, sep="\n")
        print(f"\n{setup}: {100 * mean(means):.1f} % in the mean\n")
    print(f"all: {100 * mean(every):.1f} % in the mean\n")
    print("| network | layers | distinct | candidates | compared | share | once, s | each, s |")
    print(f"| --- |{' ---: |' * 7}")
    for name in NETWORKS:
        row, share = searched(name, SETUPS[0])
        right = right and share < MOST_COMPARED
        print(row)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
