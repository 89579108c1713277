"""Gradients derived by rules, timed alternately with PyTorch's backward functions.

    python benchmarks/gradients.py [--cases 'conv/64x56*' ...] [--samples 60] [--rounds 15]

Each case is a program and one of its parameters. The gradient with respect to the parameter is
derived (`lp.gradient`) and has a campaign with the default search, limited to `--time-limit`
seconds. The fastest candidate is timed alternately with the backward function of PyTorch that
computes the same, in the faster of its two memory layouts where it has two. `ratio` is PyTorch's
time over liftpy's. `error` is the largest difference between the two results, relative to the
largest number. `peak` is the candidate's peak memory. Times are medians on the host.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from turns import SPINNING, Figures, host, timed_alternately, turn

import liftpy as lp
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

Arrays = Mapping[str, np.ndarray]
Run = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A program, a parameter, and what PyTorch runs for the gradient with respect to it.

    `rival` makes the function from the arrays of the gradient's parameters and whether channels are
    innermost in PyTorch's memory; `layouts` says whether that makes a difference. Its result has
    the layout of the parameter after `back`.
    """

    name: str
    program: lp.Program
    wrt: str
    rival: Callable[[Arrays, bool], Run]
    back: Callable[[torch.Tensor], np.ndarray]
    layouts: bool = True


def image(x: np.ndarray, *, last: bool) -> torch.Tensor:
    """An image `[H][W][C]` as a batch of one; in memory, channels are innermost if `last`."""
    tensor = torch.from_numpy(np.ascontiguousarray(x)).permute(2, 0, 1)[None]
    return tensor.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def from_image(result: torch.Tensor) -> np.ndarray:
    """A batch of one image as `[H][W][C]`."""
    return result[0].permute(1, 2, 0).numpy()


def convolution(channels: int, size: int, kernels: int, wrt: str) -> Case:
    """A convolution with windows of 3x3, stride 1 and padding 1."""
    sizes = f"{size}x{size}x{channels}x{kernels}x3x1"
    mask = [wrt == name for name in ("x", "w", "b")]

    def rival(arrays: Arrays, last: bool) -> Run:  # noqa: FBT001
        form = torch.channels_last if last else torch.contiguous_format
        x, d = (image(arrays[name], last=last) for name in ("x", "dresult"))
        w = torch.from_numpy(arrays["w"]).permute(0, 3, 1, 2).contiguous(memory_format=form)

        def run() -> torch.Tensor:
            found = torch.ops.aten.convolution_backward(
                d, x, w, [kernels], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask
            )
            return found[mask.index(True)]

        return run

    def back(result: torch.Tensor) -> np.ndarray:
        if wrt == "x":
            return from_image(result)
        return (result.permute(0, 2, 3, 1) if wrt == "w" else result).numpy()

    program = lp.workload(f"convolution/strided/{sizes}")
    return Case(f"conv/{channels}x{size}x{kernels}/{wrt}", program, wrt, rival, back)


def product(size: int, wrt: str) -> Case:
    """A product of two square matrices."""

    def rival(arrays: Arrays, last: bool) -> Run:  # noqa: ARG001, FBT001
        a, b, d = (torch.from_numpy(arrays[name]) for name in ("a", "b", "dresult"))
        return (lambda: d @ b.T) if wrt == "a" else (lambda: a.T @ d)

    program = lp.workload(f"matmul/{size}x{size}x{size}")
    return Case(f"matmul/{size}/{wrt}", program, wrt, rival, torch.Tensor.numpy, layouts=False)


def pool(kind: str, size: int, channels: int, window: int, stride: int) -> Case:
    """Pooling with odd windows padded, as the built-in programs do it."""
    half = (window - 1) // 2

    def rival(arrays: Arrays, last: bool) -> Run:  # noqa: FBT001
        x, d = (image(arrays[name], last=last) for name in ("x", "dresult"))
        if kind == "average":
            args = [window, window], [stride, stride], [half, half], False, True, None
            return lambda: torch.ops.aten.avg_pool2d_backward(d, x, *args)
        args = [window, window], [stride, stride], [half, half], [1, 1], False
        _, places = torch.ops.aten.max_pool2d_with_indices(x, *args)
        return lambda: torch.ops.aten.max_pool2d_with_indices_backward(d, x, *args, places)

    sizes = f"{size}x{size}x{channels}x{window}x{stride}"
    program = lp.workload(f"pool/{kind}/{sizes}")
    return Case(f"pool/{kind}/{sizes}", program, "x", rival, from_image)


VGG16 = (
    (3, 224, 64),
    (64, 224, 64),
    (64, 112, 128),
    (128, 112, 128),
    (128, 56, 256),
    (256, 56, 256),
    (256, 28, 512),
    (512, 28, 512),
    (512, 14, 512),
)
"""The distinct layers of VGG-16: channels, side of the image, kernels."""

CASES = {
    case.name: case
    for case in (
        *(convolution(*layer, wrt) for layer in VGG16 for wrt in "xwb"),
        *(convolution(64, 56, 64, wrt) for wrt in "xwb"),
        *(convolution(256, 28, 256, wrt) for wrt in "xw"),
        *(product(size, wrt) for size in (512, 1024) for wrt in "ab"),
        pool("max", 112, 64, 3, 2),
        pool("average", 35, 192, 3, 1),
    )
}


def fastest(
    program: lp.Program, session: Session, folder: Path, given: argparse.Namespace
) -> Loaded:
    """The fastest candidate of a campaign, loaded."""
    campaign = lp.explore(
        program,
        given.samples,
        db=Path(tempfile.mkdtemp(dir=folder)) / "gradient.db",
        device=session.device,
        time_limit=given.time_limit,
    )
    row = min((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    candidate = lp.space(program, session.device).exactly(row.assignment)
    print(f"{program.name}: {len(campaign.rows)} candidates, {candidate.label}", flush=True)
    return session.load(compile_candidate(candidate.skeleton, candidate.point))


def ours(loaded: Loaded) -> Figures:
    """Nanoseconds of a run."""
    ((events, taken),) = loaded.timed(1, 0)
    return {"wall": taken, "events": sum(events)}


def compare(case: Case, session: Session, folder: Path, given: argparse.Namespace) -> str:
    """A row of the table."""
    gradient = lp.gradient(case.program, case.wrt)
    rng = np.random.default_rng(0)
    arrays = {
        p.name: rng.uniform(-1, 1, [int(n) for n in p.type.lengths()]).astype(np.float32)
        for p in gradient.params
    }
    loaded = fastest(gradient, session, folder, given)
    mine = run_poisoned(loaded, arrays)
    runs = {
        last: case.rival(arrays, last) for last in ((True, False) if case.layouts else (False,))
    }
    theirs = {last: case.back(run()) for last, run in runs.items()}
    error = max(float(np.abs(mine - t).max() / np.abs(t).max()) for t in theirs.values())
    turns = {f"torch {last}": partial(turn, host(run)) for last, run in runs.items()}
    turns["liftpy"] = partial(turn, partial(ours, loaded))
    samples, others = timed_alternately(turns, given.rounds, SPINNING)
    times = {name: statistics.median(found["wall"]) / 1e6 for name, found in samples.items()}
    rival = min(time for name, time in times.items() if name != "liftpy")
    peak = loaded.module.memory.peak / 2**20
    loaded.close()
    return (
        f"{case.name:24} {times['liftpy']:8.3f} ms {rival:8.3f} ms {rival / times['liftpy']:6.2f} "
        f"{error:8.1e} {peak:7.2f} MiB {others:5.0%}"
    )


def main() -> None:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--time-limit", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    chosen = [
        case for name, case in CASES.items() if any(fnmatch.fnmatch(name, p) for p in given.cases)
    ]
    if not chosen:
        known = ", ".join(CASES)
        parser.error(f"no case has such a name: {' '.join(given.cases)}; there are {known}")
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Session(find_device(given.device)) as session:
        for case in chosen:
            rows.append(compare(case, session, Path(folder), given))
            print(rows[-1], flush=True)
    names = ("gradient", "liftpy", "PyTorch", "ratio", "error", "peak")
    print("\n{:24} {:>11} {:>11} {:>6} {:>8} {:>11} others".format(*names))
    print("\n".join(rows))


if __name__ == "__main__":
    main()
