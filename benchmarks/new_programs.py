"""What a new program gains: the best of a campaign against the plain sequential lowering.

    python benchmarks/new_programs.py [--samples 100] [--seed 0] [--search local]

For two programs of a few lines (examples/): one work-item that runs all loops, built and timed as
the candidates of the campaign are, on the same device. Medians of device-event times. Exit status 1
if a campaign finds nothing at least five times as fast for the blur. The scalar product reads each
number once, and a driver that puts its one loop in vectors reads as fast as memory gives: there the
ratio says how little is left to gain.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

import liftpy as lp
from liftpy.explore.search import DEFAULT, SEARCHES
from liftpy.rewrite.strategies.lower import exposed, sequential
from liftpy.rewrite.strategy import seq

EXAMPLES = Path(__file__).parent.parent / "examples"
SIZES = {"box_blur": {"h": 512, "w": 512}, "complex_dot": {"n": 1 << 22}}
DEMANDED = {"box_blur": 5.0}
REPEATS = 7


def sequential_ms(program: lp.Program) -> float:
    """The median time of the program with every loop in one work-item."""
    rng = np.random.default_rng(1)
    shapes = [tuple(int(n) for n in getattr(p.type, "shape", ())) for p in program.params]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    kernel = lp.compile(program, strategy=seq(exposed(), sequential()))
    times = [sum(kernel.profile(*arrays).values()) for _ in range(REPEATS)]
    kernel.close()
    return statistics.median(times) / 1e6


def main() -> int:
    """Print a Markdown table; 1 if a ratio is too small."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", default=DEFAULT, choices=list(SEARCHES))
    options = parser.parse_args()
    print(
        "| program | sequential ms | best ms | ratio | the best |\n| --- | --- | --- | --- | --- |"
    )
    slow = 0
    for name, sizes in SIZES.items():
        text = (EXAMPLES / f"{name}.lift").read_text(encoding="utf-8")
        program = lp.at_sizes(lp.parse(text), sizes)
        before = sequential_ms(program)
        with tempfile.TemporaryDirectory() as folder:
            campaign = lp.explore(
                program,
                samples=options.samples,
                seed=options.seed,
                search=options.search,
                db=f"{folder}/new.db",
            )
            best = min(campaign.pareto(), key=lambda row: row.time_ns or 0)
        after = (best.time_ns or 0) / 1e6
        ratio = before / after
        slow += ratio < DEMANDED.get(name, 0.0)
        settings = ", ".join(f"{k}={v}" for k, v in best.assignment.items())
        print(
            f"| {name} | {before:.2f} | {after:.2f} | {ratio:.1f} | {settings} |",
            flush=True,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
