"""Random depthwise convolutions in every form by F(m, r), compared with float64 within the bound.

    PYTHONPATH=. .venv/bin/python tests/fuzz/depthwise.py --devices intel pocl --count 100
    PYTHONPATH=. .venv/bin/python tests/fuzz/depthwise.py --watched --count 20

Sides are from 1 to 17, so that most tiles are partial. There are at least two channels: with one,
the convolution is a dense one, too (correlations.py). With `--watched`, small cases run under
Oclgrind, which reports races and stray accesses.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np

from liftpy.compile import Kernel
from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.program import Program
from liftpy.opencl.devices import find_device
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.algorithms import algorithms_of, shape_of
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import WINOGRAD
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import workload
from tests.fuzz.correlations import MOST, ROUNDING, SMALL
from tests.fuzz.watched import TARGET
from tests.oclgrind import check_all_under_oclgrind
from tests.staged import of_partition

TAPS = (3, 3, 5)


def name_of(seed: int, *, small: bool = False) -> str:
    """The name of the convolution of a seed: sides, channels, taps, layout and epilogue."""
    rng = random.Random(seed)
    most, few = SMALL if small else (MOST, 9)
    r = rng.choice(TAPS)
    height, width, channels = rng.randint(1, most), rng.randint(1, most), rng.randint(2, few)
    return f"convolution/depthwise/{height}x{width}x{channels}x{r}x1" + rng.choice(
        ("", "", ":nchw", ":relu")
    )


def arrays_of(program: Program, seed: int) -> list[np.ndarray]:
    """Arrays of both signs, so that sums cancel."""
    rng = np.random.default_rng(seed)
    shapes = (shape_of(p) for p in program.params)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def forms(program: Program, device: Device, seed: int) -> Iterator[tuple[str, Candidate, float]]:
    """A candidate of each form by F(m, r), with the word of its tiles and its largest error."""
    rng = random.Random(seed)
    for partition in partitions(program):
        if partition.other_algorithm:
            (used,) = algorithms_of(partition)
            allowed = float(used.bound.absolute) + 4 * ROUNDING * (used.triples[0].r ** 2 + 2)
            names = [["small", "plain"] for _ in partition.stages]
            candidate = of_partition(program, partition, device, names, rng)
            if candidate is None:
                raise ValueError(f"{program.name}: {dict(partition.words)} has no candidate")
            yield dict(partition.words)[WINOGRAD], candidate, allowed


def shares(seed: int, device: Device, *, watched: bool = False) -> dict[str, float]:
    """For each form of a case, its error relative to the largest one that its bound allows.

    With `watched` under Oclgrind; infinite if it complains.
    """
    program = workload(name_of(seed, small=watched))
    arrays = arrays_of(program, seed)
    meant = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    found: dict[str, float] = {}
    for word, candidate, allowed in forms(program, device, seed):
        if watched:
            module = compile_candidate(candidate.skeleton, candidate.point)
            named = dict(zip((p.name for p in program.params), arrays, strict=True))
            ((got, complaints),) = check_all_under_oclgrind([(module, named)])
            apart = np.inf if complaints else np.abs(got - meant).max()
        else:
            with contextlib.closing(Kernel(candidate, device)) as kernel:
                apart = np.abs(kernel(*arrays) - meant).max()
        found[word] = float(apart) / allowed
    return found


def main() -> int:
    """Tries the cases; returns 1 if a form exceeds its error bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel"])
    parser.add_argument("--watched", action="store_true", help="small cases under Oclgrind")
    given = parser.parse_args()
    outcomes, largest = Counter[str](), 0.0
    for seed in range(given.start, given.start + given.count):
        for name in [TARGET] if given.watched else given.devices:
            for word, share in shares(seed, find_device(name), watched=given.watched).items():
                outcomes["right" if share <= 1 else "wrong"] += 1
                largest = max(largest, share)
                if share > 1:
                    print(name, seed, name_of(seed, small=given.watched), word, share, flush=True)
    print(dict(outcomes), f"largest error {largest:.2g} of the bound")
    return int(not outcomes["right"] or bool(outcomes["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
