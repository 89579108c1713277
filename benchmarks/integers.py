"""Sums of products of 8-bit integers, in i32 and in f32, timed alternately.

    python benchmarks/integers.py [--samples 40] [--rounds 15] [--cases whole strips ...]

For each program and each word of the choice `sums` there is a campaign with the default search in
the family `direct`, one of operands that are stored in f32 (`operands=f32`), and one in the family
`dots`. The fastest candidates of the four are timed alternately, and so is that of the same program
in f32 numbers. `i32 / f32 sums` is the speedup of sums in f32, `i32 / stored` that of operands
stored in f32. Results are compared with NumPy's in int64, which must be equal. Times are medians of
device events; `of pairs` is the median of the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefetch import events
from turns import timed_alternately

import liftpy as lp
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

FORMS = ("i32", "f32")
STORED = "stored"
DOTS = "dots"
NUMBERS = "f32 numbers"
WHOLE = ("(v, u) => i32(v) * i32(u)", "u8", "i8", "i32")
PLAIN = ("(v, u) => v * u", "f32", "f32", "f32")


@dataclass(frozen=True)
class Case:
    """A program of two arrays, its operations, shapes and result in int64."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    operations: int
    exact: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

    def program(self, kind: tuple[str, str, str, str]) -> lp.Program:
        """The program on integers, or on f32."""
        f, t, u, result = kind
        return lp.parse(self.text.format(f=f, t=t, u=u, r=result))


def product(rows: int, inner: int, columns: int) -> Case:
    """A product of matrices; the second one is constant, and given by columns."""
    text = f"""
        def product(x: [{rows}][{inner}]{{t}}, const w: [{columns}][{inner}]{{u}}) =
          x |> map(row => w |> map(column =>
            zip(row, column) |> map({{f}}) |> reduce(add, 0{{r}})))"""
    shapes = (rows, inner), (columns, inner)
    count = 2 * rows * inner * columns
    return Case(f"product {rows}x{inner}x{columns}", text, shapes, count, lambda x, w: x @ w.T)


def convolution(side: int, channels: int, kernels: int) -> Case:
    """A convolution with 3 x 3 kernels, channels last."""
    text = f"""
        def convolution(x: [{side}][{side}][{channels}]{{t}},
                        const w: [{kernels}][3][3][{channels}]{{u}}) =
          x |> slide2d(3, 1) |> map(map(window => w |> map(kernel =>
            zip(window |> join |> join, kernel |> join |> join)
              |> map({{f}}) |> reduce(add, 0{{r}}))))"""
    shapes = (side, side, channels), (kernels, 3, 3, channels)
    count = 2 * (side - 2) ** 2 * kernels * 9 * channels

    def exact(x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1))
        return np.einsum("yxcij,mijc->yxm", windows, w, optimize=True)

    return Case(f"convolution {side}x{side}x{channels} by {kernels}", text, shapes, count, exact)


CASES = {
    "whole": product(512, 512, 512),
    "strips": product(512, 2048, 512),
    "convolution": convolution(30, 64, 64),
    "channels": convolution(30, 256, 256),
}
"""A sum that is exact in f32, one in strips, and two of which f32 sums the channels."""


def fastest(program: lp.Program, session: Session, db: Path, samples: int, form: str) -> Loaded:
    """The fastest candidate of a campaign in the family of a form, loaded."""
    families = ["dots" if form == DOTS else "direct"]
    fixed = {"sums": [form]} if form in FORMS else {}
    if form == STORED:
        families, fixed = ["direct", "plain"], {"operands": ["f32"], "left": ["stored"]}
    campaign = lp.explore(
        program, samples, db=db, families=families, device=session.device, fixed=fixed
    )
    row = min((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    candidate = lp.space(program, session.device, families=families).exactly(row.assignment)
    print(f"  {len(campaign.rows)} candidates, {candidate.label}", flush=True)
    return session.load(compile_candidate(candidate.skeleton, candidate.point))


def main() -> None:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    parser.add_argument("--cases", nargs="*", default=[*CASES], choices=[*CASES])
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    device = find_device(given.device)
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Session(device) as session:
        for key in given.cases:
            case = CASES[key]
            print(case.name, flush=True)
            x = rng.integers(0, 256, case.shapes[0]).astype(np.uint8)
            w = rng.integers(-128, 128, case.shapes[1]).astype(np.int8)
            exact = case.exact(x.astype(np.int64), w.astype(np.int64))
            held: dict[str, Loaded] = {}
            for form in (*FORMS, STORED, DOTS, NUMBERS):
                program = case.program(PLAIN if form == NUMBERS else WHOLE)
                db = Path(folder) / f"{key}-{form.replace(' ', '-')}.db"
                held[form] = fastest(program, session, db, given.samples, form)
                arrays = [a.astype(np.float32) for a in (x, w)] if form == NUMBERS else [x, w]
                held[form].set_constants({"w": arrays[1]})
                result = held[form].run({"x": arrays[0]})
                if form != NUMBERS:
                    np.testing.assert_array_equal(result, exact)
            turns = {form: events(loaded) for form, loaded in held.items()}
            samples, others = timed_alternately(turns, given.rounds)
            times = {form: samples[form]["events"] for form in held}
            whole, floats = times["i32"], times["f32"]
            pairs = statistics.median(a / b for a, b in zip(whole, floats, strict=True))
            speeds = [case.operations / statistics.median(times[form]) for form in held]
            row = (
                f"| {case.name} | {' | '.join(f'{s:.0f}' for s in speeds)} | "
                f"{speeds[1] / speeds[0]:.2f} | {pairs:.2f} | {speeds[2] / speeds[0]:.2f} | "
                f"{others:.2f} |"
            )
            print(row, flush=True)
            rows.append(row)
            for loaded in held.values():
                loaded.close()
    print(
        f"{device.name}, {device.platform}; Gop/s of sums in i32, in f32, of operands stored in "
        "f32, in dots, of f32 numbers"
    )
    head = "i32 | f32 | stored | dots | f32 numbers | i32 / f32 sums | of pairs | i32 / stored"
    print(f"| program | {head} | others |")
    print("| --- |" + " ---: |" * 9)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
