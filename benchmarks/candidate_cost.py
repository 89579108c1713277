"""What a candidate costs before the driver sees it, from text to OpenCL source.

    python benchmarks/candidate_cost.py [PROGRAM] [--samples 20]

For each family: parsing, derivation, collecting constraints, and code (types at the drawn sizes,
kernels, views, C); drawing, which counts the space first, apart. Nothing is kept between
candidates, though a campaign derives and counts once. Medians, and the dearest candidate. Exit
status 1 if one candidate, drawing apart, takes more than 100 ms.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time

from liftpy.compile import compile_candidate
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.primitives.text import parse, show
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import workload

LIMIT_MS = 100.0
STAGES = ("parse", "derive", "constraints", "draw", "code")


def main() -> int:
    """Print a Markdown table of medians in ms."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="vgg16/7")
    parser.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    text = show(workload(options.program))
    print(
        f"| family | {' | '.join(s for s in STAGES if s != 'draw')} "
        "| all but draw | the dearest | draw |"
    )
    print("| --- |" + " --- |" * (len(STAGES) + 2))
    slow = 0
    for name, family in FAMILIES.items():
        rows: list[list[float]] = []
        for seed in range(options.samples):
            marks = [time.perf_counter()]
            program = parse(text)
            marks.append(time.perf_counter())
            made = skeletons_of(family, program)
            if isinstance(made, str):
                break  # the family does not apply to this program
            skeleton = made[seed % len(made)]
            marks.append(time.perf_counter())
            system = collect(skeleton, DEFAULT_DEVICE)
            marks.append(time.perf_counter())
            (assignment,) = Space(system).sample(1, seed)
            marks.append(time.perf_counter())
            compile_candidate(skeleton, assignment)
            marks.append(time.perf_counter())
            steps = [(b - a) * 1e3 for a, b in itertools.pairwise(marks)]
            steps[1] /= len(made)  # all skeletons of the family were derived
            rows.append(steps)
        if not rows:
            continue
        parse_ms, derive, constraints, draw, code = (
            statistics.median(column) for column in zip(*rows, strict=True)
        )
        totals = [sum(row) - row[STAGES.index("draw")] for row in rows]
        dearest = max(totals)
        slow += dearest > LIMIT_MS
        cells = [
            *(parse_ms, derive, constraints, code),
            *(statistics.median(totals), dearest, draw),
        ]
        print(f"| {name} | " + " | ".join(f"{c:.1f}" for c in cells) + " |", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
