"""What a candidate costs before the driver sees it: processor time, in ms.

    python benchmarks/candidate_cost.py [PROGRAM ...] [--samples 60] [--largest 400]

As in a campaign: the program is parsed once; each skeleton is derived once, with its sizes open,
and its conditions are collected and counted once; every candidate is made from its skeleton and its
sizes: numbers for sizes in the expression, types, kernels, views, OpenCL C. `first` is what the
first candidate of a skeleton takes, counting apart, `each` what every one takes. The candidates of
a family are drawn from all its skeletons; nothing is kept between them that a campaign does not
keep. The skeletons are those of the program as one stage. With `--largest`, so many are drawn of a
family and made once, and of these only those with the most statements are timed. Exit status 1 if
one takes more than 30 ms.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse, show
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import of_stage
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, Family, derived, shape_of
from liftpy.workloads import workload

T = TypeVar("T")
LIMIT_MS = 30.0
STAGES = ("derive", "conditions", "count")
COLUMNS = (
    *("program", "family", "skeletons", "candidates", *STAGES),
    *("first: median", "first: dearest", "each: median", "each: dearest", "the dearest"),
)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The processor time of some work in ms, and what came out."""
    start = time.process_time()
    result = work()
    return (time.process_time() - start) * 1e3, result


@dataclass(frozen=True)
class Prepared:
    """A skeleton, what its candidates share in ms, and the sizes of those that are made."""

    skeleton: Skeleton
    derive: float
    conditions: float
    count: float
    sizes: list[dict[str, int]]


def prepared(family: Family, program: Program, samples: int) -> list[Prepared]:
    """What a campaign does once, for each skeleton of a family; nothing if it does not apply."""
    found: list[Prepared] = []
    for partition in partitions(program):
        (stage, *others) = partition.stages
        if others or not stage.is_for(family.name):
            continue
        form = family.match(shape_of(family.name, stage.canonical))
        every = [] if isinstance(form, str) else [(form, choices) for choices in form.choices()]
        for seed, of in enumerate(every):
            derive, made = timed(partial(derived, family.name, of[0], stage.canonical, of[1]))
            if not isinstance(made, Skeleton):
                raise SystemExit(f"{family.name}: {made}")
            skeleton = of_stage(made, partition, stage)
            conditions, system = timed(lambda skeleton=skeleton: collect(skeleton, DEFAULT_DEVICE))
            space = Space(system)
            count, number = timed(space.count)
            sizes = space.sample(min(number, -(-samples // len(every))), seed)
            found.append(Prepared(skeleton, derive, conditions, count, [dict(s) for s in sizes]))
    return found


def largest(shared: list[Prepared], number: int) -> list[Prepared]:
    """The skeletons with those of their candidates that are among the `number` largest of all."""
    every = [
        (compile_candidate(one.skeleton, sizes).source.count(";"), k, sizes)
        for k, one in enumerate(shared)
        for sizes in one.sizes
    ]
    kept = sorted(every, key=lambda made: made[0], reverse=True)[:number]
    return [
        replace(one, sizes=[sizes for _, of, sizes in kept if of == k])
        for k, one in enumerate(shared)
    ]


def costs(shared: list[Prepared]) -> tuple[list[str], float]:
    """The cells of a family, and its dearest candidate in ms."""
    gc.collect()
    gc.freeze()  # as the worker of a campaign does
    firsts: list[float] = []
    each: list[tuple[float, str]] = []
    for one in shared:
        for number, sizes in enumerate(one.sizes):
            code, _ = timed(lambda one=one, sizes=sizes: compile_candidate(one.skeleton, sizes))
            spelled = ", ".join(f"{name}={size}" for name, size in sizes.items())
            each.append((code, f"{one.skeleton.key} {spelled}".strip()))
            if number == 0:
                firsts.append(one.derive + one.conditions + code)
    dearest, which = max(each)
    times = (
        *(statistics.median(getattr(one, n) for one in shared) for n in STAGES),
        *(statistics.median(firsts), max(firsts)),
        *(statistics.median(code for code, _ in each), dearest),
    )
    cells = [str(len(shared)), str(len(each)), *(f"{t:.1f}" for t in times), which]
    return cells, dearest


def main() -> int:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", default=["vgg16/7"])
    parser.add_argument("--samples", type=int, default=60, help="timed candidates of a family")
    parser.add_argument("--largest", type=int, default=0, help="draws from which they are chosen")
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    parses: list[float] = []
    slow = 0
    for name in options.programs:
        text = show(parse(Path(name).read_text())) if Path(name).is_file() else show(workload(name))
        parse(text)  # the grammar is made once
        spent, program = timed(lambda text=text: parse(text))
        parses.append(spent)
        for family in FAMILIES.values():
            shared = prepared(family, program, max(options.samples, options.largest))
            if not any(one.sizes for one in shared):
                continue
            if options.largest:
                shared = largest(shared, options.samples)
            cells, dearest = costs(shared)
            slow += dearest > LIMIT_MS
            print(f"| {name} | {family.name} | {' | '.join(cells)} |", flush=True)
    print(f"\nTo parse a program, once in a campaign: {statistics.median(parses):.1f} ms.")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
