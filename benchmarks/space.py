"""The constraint system: how fast it builds, counts, draws and explains, and whether it is right.

    python benchmarks/space.py [--program vgg16/7] [--draws 10000] [--candidates 0] [--builds]

1. Building and counting the space of a program with all families, drawing from it, and the
   commands `space` and `explain`. The same of a program of ten stages (`programs/ten.lift`), of
   which a draw is made of one of each stage.
2. The published example: the four-stage family of VGG-16's layer 7 under the stated bounds.
3. Draws over all built-in programs and three devices: every assignment satisfies every condition,
   evaluated in plain integers by other code than what drew it.
4. With `--candidates N`, instead of the above: N candidates of every built-in program on the
   attached device, each compiled, launched and compared with float64. Programs of many operations
   have smaller sizes here, which are printed.
5. With `--builds`: how long the attached device's driver takes to build kernels of more and more
   unrolled statements, which is why the system has a limit of them.

Exit status 1 if something is slower than the goal, or if one draw is not right. Times are those of
the processor (everything here runs in one thread), so that what else the machine does is left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import liftpy as lp
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.profile import profile
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import Measurer
from liftpy.explore.measure.messages import Setup
from liftpy.explore.measure.outcome import KINDS
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.space import Space
from liftpy.ir.constraint import divides
from liftpy.ir.nat import var
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeletons
from liftpy.workloads import FAMILIES, Convolution, convolution, workloads
from liftpy.workloads.family import Family

TEN = Path(__file__).parent / "programs/ten.lift"

BUILD_S, DRAWS_PER_S, EXPLAIN_S = 5.0, 2000, 2.0
"""The goals."""

SETTINGS = (("theta=7", "kappa=5"), ("theta=50", "omega=2"), ("theta=7", "sigma=25", "kappa=4"))
"""Settings that clash: a broken condition, two conditions, a condition of some skeletons only."""

CANDIDATE_S = 60.0
"""Section 4: seconds for deriving and for the float64 of a program; for a candidate."""

MOST_MFLOP = 15.0  # operations of a program of section 4


def devices() -> dict[str, Device]:
    """The devices that programs are drawn for: three of the profiles."""
    return {name: profile(name).device for name in ("mali-g72", "adreno-650", "desktop-gpu")}


# --- 1. speed -------------------------------------------------------------------------------------


def speed(name: str) -> list[str]:
    """Times of one program; what is slower than its goal."""
    program = lp.workload(name)
    marks = [time.process_time()]
    derived = skeletons(program)
    marks.append(time.process_time())
    space = Space.of(program, DEFAULT_DEVICE, derived)
    marks.append(time.process_time())
    count = space.count()
    marks.append(time.process_time())
    drawn = sum(1 for _ in itertools.islice(space.draws(0), 10_000))
    marks.append(time.process_time())
    derive, collected, counted, drawing = (b - a for a, b in itertools.pairwise(marks))
    build, rate = derive + collected + counted, drawn / drawing
    print(f"{name}: {len(derived)} skeletons, {count:,} points\n")
    print("| derive s | conditions s | count s | all s | draws a second |")
    print("| --- | --- | --- | --- | --- |")
    print(f"| {derive:.2f} | {collected:.2f} | {counted:.2f} | {build:.2f} | {rate:,.0f} |\n")
    missed = [f"building takes {build:.1f} s, not {BUILD_S:g}"] if build >= BUILD_S else []
    if rate < DRAWS_PER_S:
        missed.append(f"{rate:.0f} draws a second, not {DRAWS_PER_S}")
    print("| command | processor s | s |")
    print("| --- | --- | --- |")
    for goal, words in (
        (BUILD_S, ["space", name]),
        *((EXPLAIN_S, ["explain", name, *with_set(given)]) for given in SETTINGS),
    ):
        begun, used = time.perf_counter(), children_s()
        done = subprocess.run(
            [sys.executable, "-m", "liftpy", *words], capture_output=True, text=True, check=False
        )
        seconds, worked = time.perf_counter() - begun, children_s() - used
        assert done.returncode in {0, 1}, done.stderr
        print(f"| liftpy {' '.join(words)} | {worked:.2f} | {seconds:.2f} |")
        if worked >= goal:
            missed.append(f"liftpy {' '.join(words)} takes {worked:.1f} s, not {goal:g}")
    return missed


def of_stages() -> list[str]:
    """Times of a program of ten stages; what is slower than its goal."""
    marks = [time.process_time()]
    program = parse(TEN.read_text(encoding="utf-8"))
    space = Space.whole(program, DEFAULT_DEVICE)
    count = space.count()
    marks.append(time.process_time())
    draws = space.draws(0)
    next(draws)
    marks.append(time.process_time())
    drawn = sum(1 for _ in itertools.islice(draws, 10_000))
    marks.append(time.process_time())
    counted, first, drawing = (b - a for a, b in itertools.pairwise(marks))
    rate = drawn / drawing
    most = max(len(product.partition.stages) for product in space.products)
    print(
        f"\n{program.name}: {len(space.products)} partitions of up to {most} stages, "
        f"{len(space.every)} skeletons of stages, {count:.2e} points\n"
    )
    print("| counted s | first draw s | draws a second |")
    print("| --- | --- | --- |")
    print(f"| {counted:.2f} | {first:.2f} | {rate:,.0f} |")
    missed: list[str] = []
    if counted + first >= BUILD_S:
        missed.append(
            f"{program.name} is drawn from after {counted + first:.1f} s, not {BUILD_S:g}"
        )
    if rate < DRAWS_PER_S:
        missed.append(f"{rate:.0f} draws of {program.name} a second, not {DRAWS_PER_S}")
    return missed


def children_s() -> float:
    """Processor time of the commands run so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def with_set(settings: tuple[str, ...]) -> list[str]:
    """Settings as options."""
    return [word for setting in settings for word in ("--set", setting)]


# --- 2. the published example ---------------------------------------------------------------------


def published() -> list[str]:
    """The four-stage form of layer 7, by the readings of its bounds."""
    device = replace(
        DEFAULT_DEVICE,
        max_work_group_size=384,
        max_work_item_sizes=(384, 384, 384),
        largest_buffer=1 << 60,
        global_memory=1 << 60,
    )
    derived = {s.key: s for s in skeletons(lp.workload("vgg16/7"))}
    print("\n| theta to | v | conditions | points |")
    print("| --- | --- | --- | --- |")
    counts: list[int] = []
    for most, lanes, own, key in (
        (146, 4, False, "staged(coalesce=no, unroll=no)"),
        (114, 4, False, "staged(coalesce=no, unroll=no)"),
        (146, 16, False, "staged(coalesce=no, unroll=no)"),
        (146, 4, True, "staged(coalesce=no, unroll=no)"),
        (146, 16, True, "staged(coalesce=no, unroll=no)"),
        (146, 16, True, "staged(coalesce=no, unroll=yes)"),
    ):
        system = collect(derived[key], device)
        kept = [c for c in system.clauses if own or not c.asked_by.startswith(OWN)]
        wider = Clause(divides(var("v", 1), lanes), ("the reading",))
        parameters = tuple(
            replace(p, high=min(p.high, most)) if p.name == "theta" else p
            for p in system.parameters
        )
        counts.append(Points(ConstraintSystem(parameters, (*kept, wider))).count())
        what = "and limits of private memory and code" if own else "work-group of 384"
        unroll = ", unrolled" if "unroll=yes" in key else ""
        print(f"| {most} | 1 .. {lanes} | {what}{unroll} | {counts[-1]:,} |")
    near = abs(counts[0] - PUBLISHED) / PUBLISHED
    return [] if near < 0.005 else [f"{counts[0]} points, not about {PUBLISHED}"]


OWN = ("private memory", "code size")
PUBLISHED = 369_000
"""Points that the notes derive from the paper's bounds (specs: lift-convolution, section 6)."""


# --- 3. draws are right ---------------------------------------------------------------------------


def systems() -> Iterator[tuple[str, str, Space]]:
    """The space of each built-in program on each device."""
    where = devices()
    for known in workloads():
        program = lp.workload(known.name)
        for name, device in where.items():
            yield known.name, name, Space.whole(program, device)


def draws(total: int, seed: int) -> list[str]:
    """As many draws from each space, more after one with few; those that break a condition."""
    pairs = len(workloads()) * len(devices())
    each, owed = -(-total // pairs), 0
    drawn: Counter[str] = Counter()
    conditions = 0
    wrong: list[str] = []
    for program, device, space in systems():
        members = {m.skeleton.key: m.system for m in space.members}
        composed = cache(partial(collect, device=space.device))
        owed += each
        for candidate in itertools.islice(space.draws(seed), owed):
            owed -= 1
            drawn[device] += 1
            skeleton = candidate.skeleton
            system = members.get(skeleton.key) or composed(skeleton)
            point = candidate.point
            inside = all(p.low <= point[p.name] <= p.high for p in system.parameters)
            conditions += len(system.clauses)
            broken = [str(c) for c in system.clauses if not c.constraint.holds(point)]
            if broken or not inside:
                wrong.append(f"{program} on {device}: {candidate.label} breaks {broken}")
    print(
        f"\n{sum(drawn.values()):,} draws of {len(workloads())} programs "
        f"({', '.join(f'{n:,} for {d}' for d, n in drawn.items())}): "
        f"{conditions:,} conditions evaluated, {len(wrong)} draws break one"
    )
    return wrong


# --- 4. candidates are right ----------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """What a process found of one candidate of a program: its outcome, in what time."""

    label: str
    outcome: str
    reason: str
    seconds: float


def affordable() -> Iterator[tuple[str, Program]]:
    """The built-in programs: of those with more operations than `MOST_MFLOP`, smaller ones.

    Their largest sizes are halved: of layers height and width, or channels and kernels. Layers that
    become the same are one program.
    """
    layers: dict[Convolution, list[str]] = {}
    for family in FAMILIES.values():
        if isinstance(family, Family):
            for sizes in map(list, family.listed):
                while family.flops(*sizes) > MOST_MFLOP * 1e6:
                    sizes[sizes.index(max(sizes))] //= 2
                name = family.workload(tuple(sizes)).name
                yield name, lp.workload(name)
        else:
            for number, layer in family.layers.items():
                layers.setdefault(smaller(layer), []).append(f"{family.name}/{number}")
    for layer, names in layers.items():
        yield f"{', '.join(names)} as {layer}", convolution(layer)


def smaller(layer: Convolution) -> Convolution:
    """A layer, or one of the same kind with fewer operations."""
    while layer.flops > MOST_MFLOP * 1e6:
        if layer.height > layer.channels:
            layer = replace(layer, height=layer.height // 2, width=layer.width // 2)
        else:
            layer = replace(layer, channels=layer.channels // 2, kernels=layer.kernels // 2)
    return layer


def tried(text: str, count: int, seed: int) -> Iterator[Tried]:
    """What becomes of a program's drawn candidates, as a campaign judges them.

    The first is the plain form, which every program has. Two timed runs are enough: 1 ns as the
    best time so far makes every candidate a slow one.
    """
    program, device = parse(text), lp.find_device()
    space = lp.space(program, device)
    drawn = [*space.sample(1, seed, "plain"), *space.sample(count, seed)]
    drawn = list({candidate.key: candidate for candidate in drawn}.values())[:count]
    given, arrays = Inputs.of(program)
    setup = Setup(text, device, given, expected(program, arrays))
    with Measurer(setup, CANDIDATE_S) as measurer:
        for candidate in drawn:
            begun = time.perf_counter()
            outcome = measurer.measure(candidate, best_ns=1)
            seconds = time.perf_counter() - begun
            yield Tried(candidate.label, outcome.kind, outcome.reason, seconds)


def candidates(each: int, seed: int) -> list[str]:
    """As many candidates of every built-in program; what came out of them other than right.

    A program for each processor at a time: most of the time is the driver's compiler.
    """
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    begun = time.perf_counter()
    known = list(affordable())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = pool.map(lambda one: list(tried(program_text(one[1]), each, seed)), known)
        for number, ((name, _), found) in enumerate(zip(known, judged, strict=True), 1):
            mine = Counter(one.outcome for one in found)
            outcomes.update(mine)
            wrong += [
                f"{name}: {one.label}: {one.outcome}: {one.reason}"
                for one in found
                if one.outcome != "measured"
            ]
            counted = ", ".join(f"{n} {outcome}" for outcome, n in mine.items())
            slowest = max(found, key=lambda one: one.seconds)
            print(
                f"{time.perf_counter() - begun:>4.0f} s  {number:>3} of {len(known)}  {name}: "
                f"{counted} (up to {slowest.seconds:.1f} s: {slowest.label})",
                flush=True,
            )
    print(
        f"\n{sum(outcomes.values())} candidates of {len(known)} programs in "
        f"{time.perf_counter() - begun:.0f} s: "
        + ", ".join(f"{outcomes[kind]} {kind}" for kind in KINDS)
    )
    return wrong


# --- 5. the length of code ------------------------------------------------------------------------


def builds() -> None:
    """Build times of register blocks of rising size; the larger ones are not in the space."""
    name = "vgg16/24"
    derived = {s.key: s for s in skeletons(lp.workload(name), ("direct",))}
    direct = derived["direct(pad=fused, level=glb, stores=cached)"]
    device = lp.find_device()
    print(f"\nbuilding {direct.key} of {name} for {device.name} ({device.platform})\n")
    print("| statements | in the space | processor s |")
    print("| --- | --- | --- |")
    system = collect(direct, device)
    with Session(device) as session:
        for kappa, sigma in ((32, 1), (32, 2), (64, 2), (128, 2), (128, 7), (256, 7)):
            point = {"kappa": kappa, "sigma": sigma, "v": 1}
            module = compile_candidate(direct, point)
            begun = time.process_time()
            with session.load(module):
                seconds = time.process_time() - begun
            inside = "yes" if system.holds(point) else "no"
            print(f"| {2 * kappa * sigma} | {inside} | {seconds:.2f} |", flush=True)


def main() -> int:
    """Print the tables; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default="vgg16/7")
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--builds", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.candidates:
        missed = candidates(options.candidates, options.seed)
    else:
        missed = speed(options.program) + of_stages() + published()
    if options.draws and not options.candidates:
        missed += draws(options.draws, options.seed)
    if options.builds:
        builds()
    print("\n".join(["", *(f"missed: {text}" for text in missed)]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
