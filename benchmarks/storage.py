"""A matrix times a vector, with weights in f32 and in narrower formats, timed alternately.

    python benchmarks/storage.py [--rows 4096] [--columns 4096] [--samples 40] [--rounds 15]
                                 [--types bf16,flyte16] [--packed]

The weights are an input of the type, or, with `--packed`, a constant of f32 that is packed in the
type in the prepare phase, in the layout that the candidate chooses; then a type may be a quantised
format such as `q8`, 8-bit integers with a scale for each row. `i8` is a constant matrix of integers
times a vector of u8, added in i32. For each type there is a campaign with the default search. Its
fastest candidate is timed alternately with those of the other types. `f32 / it` is the speedup
compared with weights in f32. `GB/s` is the bandwidth of reading the weights, which are most of the
data. `of a copy` is its ratio to the bandwidth (reads plus writes) of copying an array of the size
of the f32 weights, in the same rounds. `error` is the largest difference from the product in
float64 with the weights before they were stored, relative to the largest result. Times are medians
of device events.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from prefetch import events
from turns import timed_alternately

import liftpy as lp
from liftpy.ir.formats import GROUP, Format, Quantised
from liftpy.ir.types import F32, I8, SCALAR_BYTES, STORAGE, ScalarType
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.semantics.storage import types_of

TYPES = (F32, *(t for t, base in STORAGE.items() if base == F32))
COPY = "copy"


def layer(t: Format, rows: int, columns: int) -> lp.Program:
    """The product of a constant matrix of weights, which may be packed, with a vector."""
    program = lp.parse(f"""
        def layer_{t}(const w: [{rows}][{columns}]f32, x: [{columns}]f32) =
          w |> map(row => zip(row, x) |> map((v, y) => v * y) |> reduce(add, 0))
    """)
    return program if t == F32 else lp.with_storage(program, {"w": str(t)})


def product(t: ScalarType, rows: int, columns: int) -> lp.Program:
    """The product of a matrix of weights, stored as a type, with a vector."""
    weight = "v" if t == F32 else "f32(v)"
    return lp.parse(f"""
        def product_{t}(w: [{rows}][{columns}]{t}, x: [{columns}]f32) =
          w |> map(row => zip(row, x) |> map((v, y) => {weight} * y) |> reduce(add, 0))
    """)


def integers(rows: int, columns: int) -> lp.Program:
    """The product of a constant matrix of i8 with a vector of u8, added in i32."""
    return lp.parse(f"""
        def integers(const w: [{rows}][{columns}]i8, x: [{columns}]u8) =
          w |> map(row => zip(x, row) |> map((y, v) => i32(y) * i32(v)) |> reduce(add, 0))
    """)


@dataclass(frozen=True)
class Case:
    """A program, its constants and inputs, and what makes its result the product in floats."""

    program: lp.Program
    constants: dict[str, np.ndarray]
    inputs: dict[str, np.ndarray]
    numbers: Callable[[np.ndarray], np.ndarray] = np.asarray


def case(t: Format, weights: np.ndarray, x: np.ndarray, *, packed: bool) -> Case:
    """The product with weights in a format; with i8, x is quantised too, to u8 with a zero point.

    `numbers` subtracts the zero point times the sum of each row of weights.
    """
    if t == I8:
        w = np.rint(weights * 127).astype(np.int8)
        q = np.rint(x * 127 + 128).astype(np.uint8)
        moved = 128 * w.sum(axis=1, dtype=np.int64)
        return Case(integers(*w.shape), {"w": w}, {"x": q}, lambda y: (y - moved) / 127**2)
    if packed:
        return Case(layer(t, *weights.shape), {"w": weights}, {"x": x})
    if isinstance(t, Quantised):
        message = f"{t} needs --packed"
        raise SystemExit(message)
    stored = weights if t == F32 else lp.to_storage(weights, t)
    return Case(product(t, *weights.shape), {}, {"w": stored, "x": x})


def bytes_of(weights: np.ndarray, t: Format) -> int:
    """The bytes of the weights in a format; those of the scales of rows are negligible."""
    if isinstance(t, Quantised):
        scales = weights.size // GROUP if t.shared == "group" else 0
        return weights.size + scales * (4 if t.integer == I8 else 5)
    return weights.size * SCALAR_BYTES[t.name]


def copied(rows: int, columns: int) -> lp.Program:
    """A copy of as many bytes as the weights have in f32."""
    return lp.parse(f"def copied(x: [{rows * columns}]f32) = x |> map(y => y)")


def fastest(program: lp.Program, session: Session, folder: Path, samples: int) -> Loaded:
    """The fastest candidate of a campaign, loaded; it stores weights in the declared type."""
    db = folder / f"{program.name}.db"
    fixed = {name: str(*types) for name, types in program.storage}
    campaign = lp.explore(program, samples, db=db, device=session.device, fixed=fixed)
    row = min((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    candidate = lp.space(program, session.device).exactly(row.assignment)
    print(f"{program.name}: {len(campaign.rows)} candidates, {candidate.label}", flush=True)
    return session.load(compile_candidate(candidate.skeleton, candidate.point))


def main() -> None:
    """Prints a row for each type."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    parser.add_argument("--types", default=",".join(map(str, TYPES[1:])))
    parser.add_argument("--packed", action="store_true")
    given = parser.parse_args()
    types = (F32, *types_of(given.types))
    rng = np.random.default_rng(0)
    weights = rng.uniform(-1, 1, (given.rows, given.columns)).astype(np.float32)
    x = rng.uniform(-1, 1, given.columns).astype(np.float32)
    meant = weights.astype(np.float64) @ x
    errors: dict[str, float] = {}
    held: dict[str, Loaded] = {}
    device = find_device(given.device)
    with tempfile.TemporaryDirectory() as folder, Session(device) as session:
        for t in types:
            one = case(t, weights, x, packed=given.packed)
            loaded = fastest(one.program, session, Path(folder), given.samples)
            loaded.set_constants(one.constants)
            result = one.numbers(loaded.run(one.inputs))
            errors[str(t)] = float(np.abs(result - meant).max() / np.abs(meant).max())
            held[str(t)] = loaded
        copy = fastest(copied(given.rows, given.columns), session, Path(folder), given.samples)
        copy.set_constants({})
        copy.run({"x": weights.reshape(-1)})
        turns = {name: events(loaded) for name, loaded in {**held, COPY: copy}.items()}
        samples, others = timed_alternately(turns, given.rounds)
    times = {name: statistics.median(s["events"]) for name, s in samples.items()}
    moved = 2 * weights.nbytes / times[COPY]  # GB/s
    print(f"{device.name}, {device.platform}; others' share of the processors {others:.2f}")
    print("| type | ms | f32 / it | MiB of weights | GB/s | of a copy | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for t in types:
        time, size = times[str(t)], bytes_of(weights, t)
        print(
            f"| {t} | {time / 1e6:.2f} | {times['f32'] / time:.2f} | {size / 2**20:.0f} | "
            f"{size / time:.1f} | {size / time / moved:.2f} | {errors[str(t)]:.1e} |"
        )


if __name__ == "__main__":
    main()
