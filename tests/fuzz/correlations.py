"""Random convolutions in every transformed form, compared with float64 within the derived bound.

    PYTHONPATH=. .venv/bin/python tests/fuzz/correlations.py --count 2000 --devices intel pocl

Sides are from 1 to 17, so that most tiles are partial and some are larger than the array.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from liftpy.compile import Kernel
from liftpy.constraints.device import Device
from liftpy.explore.exploring import space_of
from liftpy.ir.expr import Program
from liftpy.opencl.devices import find_device
from liftpy.primitives.text import parse
from liftpy.rewrite.partition import WINOGRAD
from liftpy.rewrite.rules.correlation import SIZES
from liftpy.winograd.error import bound_of
from liftpy.winograd.triple import cook_toom, integral

TAPS = (3, 3, 3, 5, 7)
MOST = 17  # the largest side
ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Case:
    """A convolution of `rows` x `columns` points, padded so that the result has as many."""

    rows: int
    columns: int
    channels: int
    kernels: int
    taps: int
    seed: int

    @staticmethod
    def drawn(seed: int) -> Case:
        """A case of a seed."""
        rng = random.Random(seed)
        sides = rng.randint(1, MOST), rng.randint(1, MOST)
        return Case(*sides, rng.randint(1, 9), rng.randint(1, 9), rng.choice(TAPS), seed)

    @property
    def program(self) -> Program:
        """The convolution, in the language."""
        return parse(self.text("x", "w", "b"))

    def text(self, x: str, w: str, b: str) -> str:
        """The text of the convolution with these parameters."""
        r, around, k = self.taps, self.taps // 2, self.kernels
        return f"""
        def p({x}: [{self.rows}][{self.columns}][{self.channels}]f32,
              const {w}: [{k}][{r}][{r}][{self.channels}]f32, const {b}: [{k}]f32) =
          {x} |> pad({around}, {around}, 0) |> map(pad({around}, {around}, 0))
            |> slide({r}, 1) |> map(map(slide({r}, 1)) |> transpose)
            |> map(row => row |> map(part => zip({w}, {b}) |> map(k =>
              zip(part |> join |> join, k.0 |> join |> join) |> map(mul) |> reduce(add, k.1))))
        """

    @property
    def arrays(self) -> list[np.ndarray]:
        """Image, weights and bias: of both signs, so that sums cancel."""
        rng, r = np.random.default_rng(self.seed), self.taps
        shapes = (self.rows, self.columns, self.channels), (self.kernels, r, r, self.channels)
        return [rng.uniform(-1, 1, s).astype(np.float32) for s in (*shapes, (self.kernels,))]

    @property
    def expected(self) -> np.ndarray:
        """The result in float64."""
        x, w, b = (a.astype(np.float64) for a in self.arrays)
        around = self.taps // 2
        padded = np.pad(x, ((around, around), (around, around), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.taps,) * 2, axis=(0, 1))
        return np.einsum("ijcab,kabc->ijk", windows, w) + b

    def allowed(self, m: int) -> float:
        """The largest error: the bound of F(m, r) for data up to 1, and the bias's rounding."""
        found = bound_of(integral(cook_toom(m, self.taps)), 2, self.channels)
        return float(found.absolute) + 2 * ROUNDING * (1 + self.taps**2 * self.channels)


def errors(case: Case, device: Device, seeds: int = 1) -> dict[int, list[float]]:
    """For each m, the errors of drawn candidates, relative to the largest allowed one."""
    whole = space_of(case.program, device)
    found: dict[int, list[float]] = {}
    for m, r in SIZES:
        if r != case.taps:
            continue
        space = whole.asking((), {WINOGRAD: (f"{m}x{m}",)})
        for candidate in space.sample(min(seeds, space.count()), case.seed):
            with contextlib.closing(Kernel(candidate, device)) as kernel:
                apart = np.abs(kernel(*case.arrays) - case.expected).max()
            found.setdefault(m, []).append(float(apart) / case.allowed(m))
    return found


def main() -> int:
    """Tries as many cases as asked for; 1 if a form is missing or an error is not allowed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel"])
    given = parser.parse_args()
    outcomes, largest = Counter[str](), 0.0
    for seed in range(given.start, given.start + given.count):
        case = Case.drawn(seed)
        for name in given.devices:
            found = errors(case, find_device(name))
            forms = {m for m, r in SIZES if r == case.taps}
            wrong = [m for m, each in found.items() if not max(each) <= 1]
            outcomes.update("wrong" if m in wrong else "right" for m in found)
            outcomes.update("no candidate" for _ in forms - found.keys())
            largest = max(largest, *(e for each in found.values() for e in each), 0.0)
            if wrong or forms - found.keys():
                print(name, case, found, flush=True)
        if seed % 50 == 0:
            print(seed, dict(outcomes), f"largest error {largest:.2g} of the bound", flush=True)
    print(dict(outcomes), f"largest error {largest:.2g} of the bound")
    return int(bool(outcomes.keys() - {"right"}))


if __name__ == "__main__":
    sys.exit(main())
