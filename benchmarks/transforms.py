"""The input transform of F(m, r) in two forms, timed alternately: separable, and flat.

    python benchmarks/transforms.py [--tiles 196] [--channels 256] [--rounds 15] [--device D]

Separable: the matrix is applied to the columns of a tile, then to its rows, as in the forms of a
space. Flat: one equation for each point of a tile, with shared sums. For each m and r of the rules,
the operations of both are counted; where the flat form has fewer, both are compiled as a kernel
over all tiles and channels, for each mapping of its maps, and the fastest of each form is timed.
Their results are compared with each other. Times are medians of device events.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator

import numpy as np
from prefetch import events
from turns import timed_alternately

from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.rules.correlation import SIZES, of_columns, transformed, triple
from liftpy.rewrite.rules.notation import array, fmap, join, transpose
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.winograd.linear import Counts, Form
from liftpy.winograd.sharing import applied

TOLERANCE = 1e-5


def operations(m: int, r: int, form: Form) -> int:
    """The additions, multiplications and changes of sign of an input transform."""
    counts: Counts = applied(triple(m, r).bt, form).counts
    return counts.additions + counts.multiplications + counts.negations


def program(m: int, r: int, form: Form, tiles: int, channels: int) -> Program:
    """The input transform of all tiles: an array of tiles by channels for each point."""
    bt = triple(m, r).bt
    xs = array("xs", F32, tiles, len(bt), len(bt), channels)

    def of_tile(tile: Expr) -> Expr:
        if form is Form.SEPARABLE:
            return of_columns((bt, bt), tile)
        flat = transformed(applied(bt, form))
        return transpose(fmap(flat, transpose(join(tile)), "d"))

    return Program(f"{form.value}_{m}_{r}", Lambda((xs,), transpose(fmap(of_tile, xs, "tile"))))


def kernels(made: Program, session: Session) -> Iterator[Loaded]:
    """The transform with each mapping of its maps, loaded."""
    found = skeletons_of(FAMILIES["small"], made)
    if isinstance(found, str):
        raise SystemExit(f"{made.name}: {found}")
    for skeleton in found:
        module = compile_candidate(skeleton, {p.name: p.low for p in skeleton.parameters})
        yield session.load(module)


def fastest(made: Program, xs: np.ndarray, session: Session) -> Loaded:
    """The kernel with the least time of a few runs."""
    loaded = [*kernels(made, session)]
    for each in loaded:
        each.set_constants({})
        each.run({"xs": xs})
    return min(loaded, key=lambda each: min(sum(run) for run in each.profile(5, 1)))


def main() -> None:
    """Prints the counts, and the times where flat has fewer operations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tiles", type=int, default=196)
    parser.add_argument("--channels", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    device = find_device(given.device)
    shape = given.tiles, given.channels
    print(device.name, device.platform, f"{given.tiles} tiles, {given.channels} channels")
    with Session(device) as session:
        for m, r in SIZES:
            counts = {form: operations(m, r, form) for form in (Form.SEPARABLE, Form.FLAT)}
            said = ", ".join(f"{form.value} {count}" for form, count in counts.items())
            print(f"F({m}x{m}, {r}x{r}): operations {said}", flush=True)
            if counts[Form.FLAT] >= counts[Form.SEPARABLE]:
                continue
            n = m + r - 1
            drawn = np.random.default_rng(0).uniform(-1, 1, (shape[0], n, n, shape[1]))
            xs = drawn.astype(np.float32)
            held = {f.value: fastest(program(m, r, f, *shape), xs, session) for f in counts}
            one, two = (loaded.run({"xs": xs}) for loaded in held.values())
            np.testing.assert_allclose(one, two, atol=TOLERANCE * np.abs(one).max())
            turns = {name: events(loaded) for name, loaded in held.items()}
            samples, others = timed_alternately(turns, given.rounds)
            times = {name: statistics.median(s["events"]) for name, s in samples.items()}
            ratio = times["flat"] / times["separable"]
            print({name: f"{ns / 1e6:.3f} ms" for name, ns in times.items()}, end=" ")
            print(f"flat / separable {ratio:.2f}; others' share of the processors {others:.2f}")


if __name__ == "__main__":
    main()
