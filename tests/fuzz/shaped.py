"""Random candidates of a family for products and convolutions of odd shapes, on each device.

    PYTHONPATH=. .venv/bin/python tests/fuzz/shaped.py --family cooperative --count 250 --points 8

Inputs are small whole numbers, so that most results have to be equal to those of numpy. Where the
family makes no candidate of a shape, as `cooperative` of a depthwise convolution, that is counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from random import Random

from liftpy.constraints.collect import ALONE
from liftpy.constraints.device import Device
from liftpy.ir.program import Program
from liftpy.language.text.program import parse, show
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_program
from liftpy.workloads import Convolution, convolution
from tests.fuzz.generator import inputs
from tests.fuzz.judge import OPTIMIZER, Case, Form, verdicts
from tests.staged import by_definition, candidates, points_of

SIDES = (1, 2, 3, 5, 6, 7, 9, 11, 12, 13, 15, 16, 17)
PRODUCT = """{a} |> map(row => {b} |> transpose |> map(column =>
    zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))"""
TOGETHER = 16  # programs that are judged in one process before the next
NONE = "no candidate"
DRIVERS = {OPTIMIZER, "killed"}  # a driver's defects are counted


def product(some: Random, sides: Sequence[int]) -> Program:
    """A product of matrices."""
    m, k, n = (some.choice(sides) for _ in "mkn")
    body = PRODUCT.format(a="a", b="b")
    return parse(f"def product(a: [{m}][{k}]f32, b: [{k}][{n}]f32) = {body}")


def batched(some: Random, sides: Sequence[int]) -> Program:
    """A product of each two matrices of two batches."""
    s, m, k, n = (some.choice(sides[:9]) for _ in "smkn")
    body = f"zip(a, b) |> map((xs, ys) => {PRODUCT.format(a='xs', b='ys')})"
    return parse(f"def batched(a: [{s}][{m}][{k}]f32, b: [{s}][{k}][{n}]f32) = {body}")


def layer(some: Random, sides: Sequence[int], layout: str, *, depthwise: bool = False) -> Program:
    """A convolution, with kernels, strides and padding that fit."""
    window = some.choice((1, 2, 3, 5)), some.choice((1, 2, 3, 5))
    height, width = (some.choice([s for s in sides if s >= least]) for least in window)
    channels = some.choice(sides[1:7])
    shape = Convolution(
        channels,
        height,
        width,
        channels if depthwise else some.choice(sides[:10]),
        window,
        (some.choice((1, 1, 2)), some.choice((1, 1, 3))),
        (some.randint(0, 2), some.randint(0, 2), some.randint(0, 2), some.randint(0, 2)),
        groups=channels if depthwise else 1,
        layout="nchw" if layout == "nchw" else "nhwc",
    )
    return convolution(shape, "layer")


SHAPES: dict[str, Callable[[Random, Sequence[int]], Program]] = {
    "product": product,
    "batched": batched,
    "channels last": lambda some, sides: layer(some, sides, "nhwc"),
    "channels first": lambda some, sides: layer(some, sides, "nchw"),
    "depthwise": lambda some, sides: layer(some, sides, "nhwc", depthwise=True),
}
"""Programs by kind, of sides that are chosen among those given."""


def cases_of(seed: int, family: str, device: Device, points: int) -> list[Case]:
    """The program of a seed by a random choice of a family, at random points."""
    some = Random(seed)
    program = SHAPES[kind_of(seed)](some, SIDES)
    found = next(candidates(program, device, family, some, by_definition), None)
    if found is None:
        return []
    cases, arrays = list[Case](), inputs(program)
    for point in points_of(found.skeleton, device, ALONE, points, some):
        made = compile_program(found.skeleton.at(point))
        form = Form(family, f"{found.skeleton.key} {point}", program, made, drawn=True)
        cases.append(Case(seed, program, form, arrays))
    return cases


def kind_of(seed: int) -> str:
    """The shapes take turns."""
    return [*SHAPES][seed % len(SHAPES)]


def judged(
    seeds: Sequence[int], family: str, device: str, points: int
) -> list[tuple[int, str, str]]:
    """For each candidate its seed, its outcome, and what is wrong; a process runs it."""
    with Session(find_device(device)) as session:
        made = {seed: cases_of(seed, family, session.device, points) for seed in seeds}
        found = [(seed, NONE, "") for seed, cases in made.items() if not cases]
        for verdict in verdicts(session, [case for cases in made.values() for case in cases]):
            what = f"{verdict.how}: {verdict.why}\n{show(verdict.program)}"
            found.append((verdict.seed, verdict.outcome, what))
    return found


class Apart:
    """Judges in a worker process, and starts a new one if the driver ends it."""

    def __init__(self) -> None:
        self.process = self.started()

    @staticmethod
    def started() -> ProcessPoolExecutor:
        """A pool of one process."""
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def __call__(
        self, seeds: Sequence[int], family: str, device: str, points: int
    ) -> list[tuple[int, str, str]]:
        """As `judged`; a part in which the process ends is halved."""
        try:
            return self.process.submit(judged, seeds, family, device, points).result()
        except BrokenProcessPool:
            self.process = self.started()
            if len(seeds) == 1:
                return [(seeds[0], "killed", "")]
            half = len(seeds) // 2
            parts = seeds[:half], seeds[half:]
            return [one for part in parts for one in self(part, family, device, points)]


def main() -> int:
    """Judges candidates; returns 1 if one is not right, other than by a defect of a driver."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--family", default="cooperative")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--points", type=int, default=4, help="candidates of each program")
    parser.add_argument("--devices", nargs="+", default=["intel", "pocl"])
    given = parser.parse_args()
    outcomes, apart = Counter[tuple[str, str, str]](), Apart()
    end = given.start + given.count
    for start in range(given.start, end, TOGETHER):
        seeds = range(start, min(end, start + TOGETHER))
        for device in given.devices:
            for seed, outcome, what in apart(seeds, given.family, device, given.points):
                outcomes[device, kind_of(seed), outcome] += 1
                if outcome not in {"right", NONE}:
                    print(device, "seed", seed, outcome, what, flush=True)
        print(f"seeds to {seeds[-1]}:", by_outcome(outcomes), flush=True)
    apart.process.shutdown()
    for (device, kind, outcome), many in sorted(outcomes.items()):
        print(device, kind, outcome, many)
    found = {outcome for _, _, outcome in outcomes}
    return int("right" not in found or bool(found - {"right", NONE} - DRIVERS))


def by_outcome(outcomes: Counter[tuple[str, str, str]]) -> dict[str, int]:
    """How often each outcome occurred."""
    found = Counter[str]()
    for (_, _, outcome), many in outcomes.items():
        found[outcome] += many
    return dict(found)


if __name__ == "__main__":
    sys.exit(main())
