"""What deriving, counting, drawing and generating code cost, as layers and unrolled code grow.

    python benchmarks/scaling.py [--repeats 3] [--plot docs/scaling.png]

Two series of the family `direct`, on VGG-like layers with 64 channels and 64 kernels of 3x3:
images from 8x8 to 224x224 with one block, and blocks of 1 to 64 unrolled statements on one image.
Each run is a fork of its own, so that nothing is remembered from the one before: processor time,
the median of the repeats, and the most memory that Python held (tracemalloc, in a run apart).
`exponent` is the slope of the logarithm of a cost over that of the work (series of images) or of
the length of the code that comes out (series of blocks).

Exit status 1 if a cost grows faster than the code that it emits: with an exponent over `MOST` at
the largest points.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from report import table

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads.convolution import convolution
from liftpy.workloads.networks import square

SIDES = (8, 14, 28, 56, 112, 224)
BLOCKS = (1, 2, 4, 8, 16, 32, 64)
CHANNELS = 64
ONE_IMAGE = 56
ONE_BLOCK = 8
DRAWS = 100
STAGES = ("derive", "count", "draw", "code")
LAST = 3
"""So many of the largest points tell how a series goes on."""

MOST = 1.1
"""Largest exponent: a cost in proportion to the code, and a tenth for noise."""


T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """A layer of this side, in blocks of so many statements, and what its stages cost."""

    side: int
    block: int
    seconds: tuple[float, ...] = ()
    bytes: tuple[int, ...] = ()
    code: int = 0

    @property
    def work(self) -> float:
        """Operations of the layer."""
        return float(self.side**2)


def stages(point: Point, mark: Callable[[], None]) -> int:
    """Goes through the stages, calls `mark` after each; the length of the code."""
    program = convolution(square(CHANNELS, point.side, CHANNELS))
    mark()
    made = skeletons_of(FAMILIES["direct"], program)
    assert not isinstance(made, str), made
    skeleton = made[0]
    mark()
    points = Space(collect(skeleton, DEFAULT_DEVICE))
    points.count()
    mark()
    for _ in itertools.islice(points.draws(0), DRAWS):
        pass
    mark()
    module = compile_candidate(skeleton, {"kappa": point.block, "sigma": 1, "v": 1})
    mark()
    return len(module.source)


def timed(point: Point) -> tuple[list[float], int]:
    """Processor seconds of each stage, and the length of the code."""
    marks: list[float] = []
    code = stages(point, lambda: marks.append(time.process_time()))
    return [b - a for a, b in itertools.pairwise(marks)], code


def held(point: Point) -> list[int]:
    """The most bytes that Python held in each stage, beyond those at its start."""
    tracemalloc.start()
    found: list[int] = []
    start = 0

    def mark() -> None:
        nonlocal start
        now, most = tracemalloc.get_traced_memory()
        found.append(most - start)
        start = now
        tracemalloc.reset_peak()

    stages(point, mark)
    return found[1:]


def forked(function: Callable[[Point], T], point: Point) -> T:
    """The function's value, computed in a fork of this process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(function, point).result()


def measured(point: Point, repeats: int) -> Point:
    """The costs of a point."""
    runs = [forked(timed, point) for _ in range(repeats)]
    memory = forked(held, point)
    columns = zip(*(seconds for seconds, _ in runs), strict=True)
    seconds = tuple(statistics.median(column) for column in columns)
    return replace(point, seconds=seconds, bytes=tuple(memory), code=runs[0][1])


def exponent(xs: list[float], ys: list[float]) -> float:
    """The slope of log y over log x."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def shown(points: list[Point], head: str, of: Callable[[Point], float]) -> tuple[str, list[float]]:
    """A table of a series with its exponents, and those of the largest points.

    What costs the same at every size hides the growth of the rest, the less the larger they are.
    """
    heads = [head, *(f"{s} ms" for s in STAGES), *(f"{s} MiB" for s in STAGES), "code KiB"]
    rows = [
        [
            f"{p.side}x{p.side}" if head == "image" else str(p.block),
            *(f"{s * 1e3:.1f}" for s in p.seconds),
            *(f"{b / 2**20:.2f}" for b in p.bytes),
            f"{p.code / 2**10:.1f}",
        ]
        for p in points
    ]
    xs = [of(p) for p in points]
    costs = [*zip(*(p.seconds for p in points), strict=True)]
    costs += [*zip(*(p.bytes for p in points), strict=True)]
    costs += [tuple(p.code for p in points)]
    slopes: list[float] = []
    for name, part in (("exponent", slice(None)), (f"of the last {LAST}", slice(-LAST, None))):
        slopes = [
            exponent(xs[part], [max(float(c), 1e-9) for c in column[part]]) for column in costs
        ]
        rows.append([name, *(f"{s:.2f}" for s in slopes)])
    return table(heads, rows), slopes


def plot(images: list[Point], blocks: list[Point], path: Path) -> None:
    """Both series, seconds over work and over code."""
    from matplotlib.figure import Figure  # noqa: PLC0415  the tables need no plot

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for k, stage in enumerate(STAGES):
        left.loglog([p.side for p in images], [p.seconds[k] * 1e3 for p in images], "o-")
        right.loglog(
            [p.code for p in blocks], [p.seconds[k] * 1e3 for p in blocks], "o-", label=stage
        )
    left.set_xlabel("side of the image")
    left.set_ylabel("processor ms")
    right.set_xlabel("characters of OpenCL emitted")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> int:
    """Print both tables, draw the plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plot", type=Path, default=None, help="a PNG file")
    options = parser.parse_args()
    stages(Point(5, 1), lambda: None)  # what Python loads when first asked
    images = [measured(Point(side, ONE_BLOCK), options.repeats) for side in SIDES]
    blocks = [measured(Point(ONE_IMAGE, block), options.repeats) for block in BLOCKS]
    text, by_work = shown(images, "image", lambda p: p.work)
    print(text + "\n")
    text, by_code = shown(blocks, "statements", lambda p: float(p.code))
    print(text)
    if options.plot:
        plot(images, blocks, options.plot)
    return 1 if max(by_work + by_code) > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
