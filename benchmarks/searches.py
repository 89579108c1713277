"""The searches against each other, on a space of which every candidate was measured.

    python benchmarks/searches.py [--db FILE.db] [--seeds 20] [--samples 100]

Measures all candidates of a small space once (a convolution, register blocks), or reads them
from FILE, and goes on there if it was stopped. Then each search runs on what is stored, without
a device, from several seeds. Says the median number of trials until the best time is within 5 %
of the best of all (a seed that does not come there counts one more than it tried; `>` where the
median does not come there), how many seeds did, and the mean hypervolume after 25, 50 and all
trials (liftpy/explore/campaign/hypervolume.py).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import liftpy as lp
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.offline import OfflineSearch, search_offline
from liftpy.explore.search import SEARCHES
from liftpy.explore.spaces import space_of
from liftpy.workloads import Convolution, convolution

PROGRAM = convolution(Convolution(16, 28, 28, 16, (3, 3), padding=(1, 1, 1, 1)), "layer")
WHERE = ["kappa >= 4", "sigma >= 2"]
AFTER = (25, 50)


def space(device: str | None) -> lp.Space:
    """The space that is measured whole."""
    return space_of(PROGRAM, device, families=["direct"], where=WHERE)


def measured(file: Path, device: str | None) -> Campaign:
    """Every candidate of the space, measured."""
    return lp.explore(
        PROGRAM,
        samples=space(device).count(),
        db=file,
        device=device,
        families=["direct"],
        where=WHERE,
        search="exhaustive",
    )


def row(name: str, runs: list[OfflineSearch], samples: int) -> str:
    """A row of the table."""
    reached = [run.reached(0.05) for run in runs]
    middle = statistics.median(samples + 1 if n is None else n for n in reached)
    trials = f"> {samples}" if middle > samples else f"{middle:g}"
    came = sum(n is not None for n in reached)
    volumes = [
        statistics.fmean(run.volumes[min(n, len(run.volumes)) - 1] for run in runs)
        for n in (*AFTER, samples)
    ]
    figures = " | ".join(f"{v:.3f}" for v in volumes)
    return f"| {name} | {trials} | {came} of {len(runs)} | {figures} |"


def main() -> int:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", type=Path, help="where the measurements are kept")
    parser.add_argument("--device", help="as for `liftpy explore`; the first")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stored = measured(options.db or Path(folder) / "all.db", options.device)
    whole = space(options.device)
    times = sorted(r.time_ns for r in stored.rows if r.time_ns is not None)
    near = sum(t <= 1.05 * times[0] for t in times)
    print(
        f"{len(stored.rows)} candidates, {len(times)} measured, best {times[0] / 1e6:.3f} ms, "
        f"median {statistics.median(times) / 1e6:.3f} ms, {near} within 5 % of the best, "
        f"{len(stored.pareto())} on the front\n"
    )
    after = " | ".join(f"after {n}" for n in (*AFTER, options.samples))
    print(f"| search | trials to within 5 % | seeds that came there | {after} |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in SEARCHES:
        runs = [
            search_offline(stored, whole, name, seed, options.samples)
            for seed in range(options.seeds)
        ]
        print(row(name, runs, options.samples), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
