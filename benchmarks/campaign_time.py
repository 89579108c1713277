"""Where a campaign's time goes: deriving, compiling, building, checking, timing.

    python benchmarks/campaign_time.py [PROGRAM] [--samples 30] [--families direct]

The steps of a campaign's worker, one after another in this process, for the first candidates of a
search (seed 0). `derive` and `meaning` are there once for a campaign: skeletons and their counted
space, and the program in float64 at the points of the check. For each candidate: `choose` (the
search), `compile` (to OpenCL C), `build` (the driver), `check` (uploads, the prepare phase, a run
in poisoned buffers, the comparison), `time` (the repeated runs; of a slow candidate the run that
was checked may be enough). First a row for each stage, then one for each family with the means of
its candidates. Not in it: messages between processes, the file, samples that are taken again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from report import table

import liftpy as lp
from liftpy.explore.measure.check import Error
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.measurement import run_poisoned, timed
from liftpy.explore.search import DEFAULT, SEARCHES, Trial, named
from liftpy.explore.space.member import everything
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

ONCE = ("derive", "meaning")
EACH = ("choose", "compile", "build", "check", "time")

Spent: TypeAlias = dict[str, list[float]]
"""Seconds of each stage, a candidate after another."""


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
    spent: Spent = {stage: [] for stage in (*ONCE, *EACH)}
    families: list[str] = []

    @contextmanager
    def stage(name: str) -> Generator[None]:
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
        room = session.room()
        for _ in range(options.samples):
            with stage("choose"):
                candidate = next(candidates, None)
            if candidate is None:
                spent["choose"].pop()  # stages have a time for each candidate
                break
            with stage("compile"):
                module = compile_candidate(candidate.skeleton, candidate.assignment)
            with stage("build"):
                loaded = session.load(module, room=room)
            with loaded:
                with stage("check"):
                    error = judge.judge(run_poisoned(loaded, arrays))
                assert isinstance(error, Error), error
                with stage("time"):
                    rows = timed(loaded, best)
            families.append(candidate.skeleton.family)
            took = round(statistics.median(map(sum, rows)))
            best = took if best is None else min(best, took)
            trials.append(Trial(candidate, took, module.memory.peak))
    tell(options.program, options.search, spent, families)
    return 0


def tell(program: str, search: str, spent: Spent, families: list[str]) -> None:
    """Print both tables, and how many candidates a minute that is."""
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
    columns = ["family", "candidates", *(f"{s} ms" for s in EACH), "all ms", "share"]
    print(f"\n{table(columns, list(of_families(spent, families)))}")
    print(
        f"\n{len(families)} candidates of {program}, {search}: {each:.1f} s, "
        f"{len(families) * 60 / each:.0f} a minute"
    )


def of_families(spent: Spent, families: list[str]) -> Iterator[list[str]]:
    """A row a family: mean ms of each stage, the mean of all, the family's share of the time."""
    totals = [sum(stages) for stages in zip(*(spent[s] for s in EACH), strict=True)]
    for family in dict.fromkeys(families):
        mine = [k for k, name in enumerate(families) if name == family]
        means = [f"{statistics.mean(spent[s][k] for k in mine) * 1e3:.0f}" for s in EACH]
        own = sum(totals[k] for k in mine)
        yield [
            family,
            str(len(mine)),
            *means,
            f"{own / len(mine) * 1e3:.0f}",
            f"{own / sum(totals):.0%}",
        ]


if __name__ == "__main__":
    sys.exit(main())
