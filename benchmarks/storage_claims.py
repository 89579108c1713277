"""The claims C13 and C14 about storage types: round trips, bounds of errors, and memory.

    python benchmarks/storage_claims.py [--device D] [--numbers 1000000] [--no-kernels]

Nothing is timed. For each type there is a row:

- `values`: how many values were read and stored again: all values of a type with up to 16 bits,
  otherwise special and random ones. Reading and storing must give the same bits (a rounding type
  sets the quiet bit of a NaN).
- `kernels`: how many of these a kernel of the device read and stored with the same bits as NumPy.
- `bound` and `error`: the bound of the relative error of storing a number that does not underflow,
  and the largest error of the random numbers.
- `weights`: the bytes of the stored weights of a fully connected layer (constant, prepared in
  another type; `space(..., storage=...)`), as the allocator counts them, and the share that is
  saved of the base type.
"""

from __future__ import annotations

import argparse

import numpy as np

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import STORAGE, ScalarType
from liftpy.opencl.devices import find_device
from liftpy.pipeline import compile_candidate
from liftpy.semantics.rounding import least_normal, storing_error
from liftpy.semantics.storage import in_bytes

ROWS, COLUMNS = 24, 40
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 21.35, 3.4e38)


def numbers(t: ScalarType, count: int) -> np.ndarray:
    """Special and random numbers of all magnitudes in the base of a type."""
    base = RECORDS[STORAGE[t].name]
    rng = np.random.default_rng(0)
    words = rng.integers(0, (1 << base.bits) - 1, count, np.uint64, endpoint=True)
    found = words.astype(f"u{base.bytes}").view(base.numpy)
    return np.concatenate([np.array(SPECIAL, base.numpy), found])


def values(t: ScalarType, count: int) -> np.ndarray:
    """The bits of every value of a type with up to 16 bits, otherwise of stored numbers."""
    record = RECORDS[t.name]
    if record.bits <= 16:
        return in_bytes(np.arange(1 << record.bits, dtype=np.uint64), record)
    return lp.to_storage(numbers(t, count), t)


def returns(t: ScalarType, bits: np.ndarray) -> bool:
    """Whether reading and storing values gives the same bits, apart from the quiet bit of NaNs."""
    read = lp.from_storage(bits, t)
    again = lp.to_storage(read, t)
    nan = np.isnan(read)
    return bool(
        np.array_equal(again[~nan], bits[~nan]) and np.isnan(lp.from_storage(again[nan], t)).all()
    )


def error(t: ScalarType, count: int) -> float:
    """The largest error of storing random numbers, relative to them."""
    given = numbers(t, count)
    read = lp.from_storage(lp.to_storage(given, t), t)
    normal = np.isfinite(given) & np.isfinite(read) & (np.abs(given) > 4 * least_normal(t))
    meant, found = (x[normal].astype(np.float64) for x in (given, read))
    return float((np.abs(found - meant) / np.abs(meant)).max())


def in_kernels(t: ScalarType, bits: np.ndarray, device: str | None) -> int:
    """How many values kernels read as NumPy does and store again with the same bits."""
    base, count = STORAGE[t], len(bits)
    read = lp.parse(f"def read(x: [{count}]{t}) = x |> map(v => {base}(v))")
    store = lp.parse(f"def store(x: [{count}]{base}) = x |> map(v => {t}(v))")
    found = lp.compile(read, device=device)(bits)
    wanted = lp.from_storage(bits, t)
    again = lp.compile(store, device=device)(wanted)
    nan = np.isnan(wanted)
    as_read = (found == wanted) | (np.isnan(found) & nan)
    same = (again == lp.to_storage(wanted, t)) | (np.isnan(lp.from_storage(again, t)) & nan)
    return int((as_read & same).sum())


def stored_bytes(t: ScalarType) -> int:
    """The bytes of the prepared weights of a fully connected layer, by the allocator."""
    base = STORAGE[t]
    program = lp.parse(f"""
        def layer(const w: [{ROWS}][{COLUMNS}]{base}, x: [{COLUMNS}]{base}) =
          w |> map(row => zip(row, x) |> map((a, b) => a * b) |> reduce((s, v) => s + v, 0))""")
    space = lp.space(program, DEFAULT_DEVICE, storage={"w": t}, fixed={"w": str(t)})
    candidate = space.candidate({})
    module = compile_candidate(candidate.skeleton, candidate.point)
    (packed,) = (b for b in module.buffers if b.role == "packed")
    return packed.bytes


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default=None)
    parser.add_argument("--numbers", type=int, default=1_000_000)
    parser.add_argument("--no-kernels", action="store_true")
    given = parser.parse_args()
    if not given.no_kernels:
        device = find_device(given.device)
        print(f"{device.name}, {device.platform}")
    print("| type | values | round trips | kernels | bound | error | weights [bytes] | saved |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for t, base in STORAGE.items():
        bits = values(t, given.numbers)
        trips = "exact" if returns(t, bits) else "WRONG"
        kernels = "" if given.no_kernels else f"{in_kernels(t, bits, given.device):,}"
        size, whole = stored_bytes(t), ROWS * COLUMNS * RECORDS[base.name].bytes
        print(
            f"| {t} | {len(bits):,} | {trips} | {kernels} | {storing_error(t):.3g} | "
            f"{error(t, given.numbers):.3g} | {size} | {100 * (whole - size) / whole:g} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
