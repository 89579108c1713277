"""Where a campaign's time goes: deriving, compiling, building, checking, timing.

    python benchmarks/campaign_time.py [PROGRAM] [--samples 30] [--families direct]

The steps of a campaign's worker, one after another in this process, for the first candidates of a
search (seed 0). `derive` and `meaning` are there once for a campaign: skeletons and their counted
space, and the program in float64 at the points of the check. For each candidate: `choose` (the
search), `compile` (to OpenCL C), `build` (the driver), `check` (uploads, the prepare phase, a run
in poisoned buffers, the comparison), `time` (the repeated runs).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from report import table

import liftpy as lp
from liftpy.compile import compile_candidate
from liftpy.explore.check import Error
from liftpy.explore.inputs import inputs
from liftpy.explore.meaning import Judge, expected
from liftpy.explore.measurement import run_poisoned, timed
from liftpy.explore.search import DEFAULT, SEARCHES, Trial, named
from liftpy.explore.space import everything
from liftpy.opencl.run import Session, find_device

ONCE = ("derive", "meaning")
EACH = ("choose", "compile", "build", "check", "time")


def main() -> int:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="vgg16/7")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--families", nargs="*", default=None)
    parser.add_argument("--search", default=DEFAULT, choices=list(SEARCHES))
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    spent: dict[str, list[float]] = {stage: [] for stage in (*ONCE, *EACH)}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        spent[name].append(time.perf_counter() - start)

    program = lp.workload(options.program)
    device = find_device(options.device)
    with stage("derive"):
        space = lp.space(program, device, families=options.families)
        space.count()
    arrays = inputs(program)
    with stage("meaning"):
        judge = Judge(program, arrays, expected(program, arrays))
    trials: list[Trial] = []
    candidates = named(options.search)(space, 0, trials, everything)
    best: int | None = None
    with Session(device) as session:
        for _ in range(options.samples):
            with stage("choose"):
                candidate = next(candidates, None)
            if candidate is None:
                break
            with stage("compile"):
                module = compile_candidate(candidate.skeleton, candidate.assignment)
            with stage("build"):
                loaded = session.load(module)
            with loaded:
                with stage("check"):
                    error = judge.judge(run_poisoned(loaded, arrays))
                assert isinstance(error, Error), error
                with stage("time"):
                    rows = timed(loaded, best)
            took = round(statistics.median(map(sum, rows)))
            best = took if best is None else min(best, took)
            trials.append(Trial(candidate, took, module.memory.peak))
    each = sum(sum(spent[s]) for s in EACH)
    rows = [[s, f"{sum(spent[s]) * 1e3:.0f}", "", ""] for s in ONCE]
    rows += [
        [
            s,
            f"{sum(spent[s]) * 1e3:.0f}",
            f"{statistics.median(spent[s]) * 1e3:.1f}",
            f"{sum(spent[s]) / each:.0%}",
        ]
        for s in EACH
    ]
    print(table(["stage", "all ms", "median ms", "share"], rows))
    print(
        f"\n{len(trials)} candidates of {options.program}, {options.search}: {each:.1f} s, "
        f"{len(trials) * 60 / each:.0f} a minute"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
