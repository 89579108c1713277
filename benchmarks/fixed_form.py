"""Searched forms by F(m, r) compared with a fixed one, which has the same kernels on every layer.

    python benchmarks/fixed_form.py [--cases vgg16/2 ...] [--samples 40] [--rounds 9]

The fixed form is that of a library with one hand-written algorithm: F(4x4, 3x3) in three kernels,
products in blocks of at most 8 tiles by 32 kernels. For each layer, a campaign with the default
search over the forms `WORDS` in two dimensions finds another candidate. The results of both are
compared with float64, and both are timed alternately. Times are medians of device events. Exits
with 1 unless the searched form is faster on most layers, and its m differs between layers.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ours
from cases import CASES, Case
from forms import CHOOSING, FINALISTS
from turns import timed_alternately, turn

from liftpy.constraints.device import Device
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.settings import Settings
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

LAYERS = [f"vgg16/{k}" for k in (0, 2, 5, 7, 10, 12, 17, 19, 24)]
WORDS = ("2x2", "4x4", "6x6")
FIXED: Settings = {
    "winograd": "4x4",
    "inputs": "stored",
    "filters": "stored",
    "products": "stored",
    "products.family": "direct",
    "products.kappa": 32,
}
M, MOST_TILES = 4, 8


def fixed(device: Device, height: int, width: int) -> Settings:
    """The settings of the fixed form, for results of some height and width.

    Vectors are as wide as the device's, up to 16; the tiles of a block divide all tiles.
    """
    tiles = math.ceil(height / M) * math.ceil(width / M)
    block = max(k for k in range(1, MOST_TILES + 1) if tiles % k == 0)
    return {**FIXED, "products.v": min(16, device.vector_width), "products.sigma": block}


def measured(
    case: Case, session: Session, folder: Path, samples: int, rounds: int
) -> tuple[str, float, float]:
    """The tiles of the searched form, its time, and that of the fixed form, in nanoseconds."""
    allowed: dict[str, Any] = {"fixed": {"winograd": WORDS}}
    campaign = ours.searched(case, session.device, folder, samples=samples, **allowed)
    best = ours.best(case, campaign, session, FINALISTS, CHOOSING)
    settings = fixed(session.device, case.layer.height, case.layer.width)  # padded: as many results
    other = candidate_of(case.program, session.device, settings)
    loaded = session.load(compile_candidate(other.skeleton, other.point))
    error = case.error(run_poisoned(loaded, case.arrays))
    print(f"{case.name}: errors {best.error:.1e}, fixed {error:.1e}", file=sys.stderr, flush=True)
    turns = {"searched": partial(turn, best.run), "fixed": partial(turn, partial(ours.run, loaded))}
    runs, _ = timed_alternately(turns, rounds)
    best.loaded.close()
    loaded.close()
    searched, by_hand = (statistics.median(runs[name]["events"]) for name in turns)
    return str(best.row.assignment["winograd"]), searched, by_hand


def holds(found: Sequence[tuple[str, float, float]]) -> bool:
    """Whether the searched form is faster on most layers, and its m differs between them."""
    wins = sum(searched < by_hand for _, searched, by_hand in found)
    return 2 * wins > len(found) and len({word for word, *_ in found}) > 1


def main() -> int:
    """Explores, measures and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", default=LAYERS)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--db", type=Path, default=None, help="where the campaigns are kept")
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    found: list[tuple[str, float, float]] = []
    print("| layer | fixed: 4x4 | searched | time | fixed / searched |")
    print("| --- | ---: | --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder, Session(find_device(options.device)) as session:
        for name in options.cases:
            kept = options.db or Path(folder)
            kept.mkdir(parents=True, exist_ok=True)
            row = measured(CASES[name], session, kept, options.samples, options.rounds)
            found.append(row)
            word, searched, by_hand = row
            cells = f"{by_hand / 1e6:.2f} | {word} | {searched / 1e6:.2f}"
            print(f"| {name} | {cells} | {by_hand / searched:.2f} |", flush=True)
    wins = sum(searched < by_hand for _, searched, by_hand in found)
    words = ", ".join(sorted({word for word, *_ in found}))
    print(f"the searched form is faster on {wins} of {len(found)} layers; tiles: {words}")
    return int(not holds(found))


if __name__ == "__main__":
    sys.exit(main())
