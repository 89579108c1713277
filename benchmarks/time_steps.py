"""Steps of a stencil in one kernel, against a kernel for each step.

    python benchmarks/time_steps.py [--side 4096] [--samples 60] [--time-limit 75] [--rounds 15]

The program takes two steps of the mean of a cell and its eight neighbours, with borders that repeat
the cells at the edge. The result of the first step is either held, a block at a time with its halo
(`a=held`), or stored (`a=stored`). A campaign finds the fastest candidate for each choice. The two
candidates and a copy, which moves the least number of bytes for one step, are timed in turn. Times
are medians of wall-clock time on the host.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from gradients import ours
from turns import host, timed_alternately, turn

import liftpy as lp
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

STEPS = """
fun step(x: [{n}][{n}]f32) =
  x |> padClamp2d(1, 1, 1, 1) |> slide2d(3, 1)
    |> map2d(w => w |> join |> reduce(add, 0) |> (sum => sum / 9))
def two_steps(x: [{n}][{n}]f32) = let a = step(x) in step(a)
"""


def fastest(
    program: lp.Program, word: str, session: Session, folder: Path, given: argparse.Namespace
) -> tuple[Loaded, str]:
    """The fastest candidate whose first step is `word`, loaded, and a line that describes it."""
    campaign = lp.explore(
        program,
        given.samples,
        db=folder / f"{word}.db",
        device=session.device,
        time_limit=given.time_limit,
        fixed={"a": word},
    )
    row = min((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    candidate = lp.space(program, session.device).exactly(row.assignment)
    loaded = session.load(compile_candidate(candidate.skeleton, candidate.point))
    return loaded, f"{word}: {len(campaign.rows)} candidates, peak {row.peak}, {candidate.label}"


def main() -> None:
    """Prints the candidates, their times, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=4096)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--time-limit", type=float, default=75)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    program = lp.parse(STEPS.format(n=given.side))
    x = np.random.default_rng(0).uniform(-1, 1, (given.side, given.side)).astype(np.float32)
    target = np.empty_like(x)
    turns = {"copy": partial(turn, host(partial(np.copyto, target, x)))}
    results: list[np.ndarray] = []
    with tempfile.TemporaryDirectory() as folder, Session(find_device(given.device)) as session:
        print(f"{session.device.name} ({session.device.platform})")
        for word in ("held", "stored"):
            loaded, line = fastest(program, word, session, Path(folder), given)
            print(line, flush=True)
            results.append(run_poisoned(loaded, {"x": x}))
            turns[word] = partial(turn, partial(ours, loaded))
        np.testing.assert_allclose(*results, rtol=0, atol=1e-6)
        samples, others = timed_alternately(turns, given.rounds)
    times = {name: statistics.median(found["wall"]) / 1e6 for name, found in samples.items()}
    print(", ".join(f"{name} {time:.2f} ms" for name, time in times.items()), end="; ")
    print(f"stored / held {times['stored'] / times['held']:.2f}; others {others:.0%}")


if __name__ == "__main__":
    main()
