"""A long campaign: candidates a minute, memory of its processes over time, size of the file.

    python benchmarks/campaign.py [PROGRAM] [--samples 1000] [--device D] [--search random] [--db F]

Every tenth of the campaign a row: resident memory (MiB) of the campaign's process and of its
workers together, after a candidate; the most that a worker ever held, within a candidate (Linux
only); the most that a candidate allocates on the device, which on a processor is the worker's
memory; and how many workers were started. With `--db` the file is kept. Exit status 1 if the
campaign's process, or its workers, hold over the last half more than `GROWTH` times what they held
over the first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.run import Progress
from liftpy.explore.exploring import explore
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.search import SEARCHES
from liftpy.opencl.devices import find_device
from liftpy.workloads import workload

GROWTH = 1.5
ROWS = 10
MEBI = 1 << 20


class Watch:
    """Notes after each candidate what the processes hold, and prints some of it."""

    def __init__(self, samples: int) -> None:
        self.start = time.perf_counter()
        self.every = max(1, samples // ROWS)
        self.own: list[float] = []
        self.workers: list[float] = []
        self.most = 0.0
        self.allocated = 0.0
        self.pids: set[int] = set()

    def __call__(self, now: Progress) -> None:
        """Takes in one candidate."""
        if now.outcome is None:
            return
        this = psutil.Process()
        below = this.children(recursive=True)
        self.pids |= {child.pid for child in below}
        self.own.append(this.memory_info().rss / MEBI)
        self.workers.append(sum(child.memory_info().rss for child in below) / MEBI)
        self.most = max(self.most, *map(highest, below), 0.0)
        if isinstance(now.outcome, Measured):
            self.allocated = max(self.allocated, now.outcome.memory.allocated / MEBI)
        if now.done % self.every == 0:
            seconds = time.perf_counter() - self.start
            print(
                f"| {now.done} | {seconds:.0f} | {self.own[-1]:.0f} | {self.workers[-1]:.0f} "
                f"| {self.most:.0f} | {self.allocated:.0f} | {len(self.pids)} |",
                flush=True,
            )

    def grows(self) -> dict[str, float]:
        """How much more is held in the last half than in the first, as a factor."""
        half = len(self.own) // 2
        return {
            name: statistics.median(held[half:]) / statistics.median(held[:half])
            for name, held in (("campaign", self.own), ("workers", self.workers))
        }


def highest(process: psutil.Process) -> float:
    """The most MiB that a process ever held at a time; 0 where the system does not say."""
    status = Path(f"/proc/{process.pid}/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> int:
    """Print a Markdown table, then a line each for time, outcomes, file and growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="vgg16/7")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--device", default=None)
    parser.add_argument("--search", choices=sorted(SEARCHES), default="random")
    parser.add_argument("--db", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = options.db or Path(folder) / "campaign.db"
        print("| candidates | s | campaign | workers | most in one | device | started |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
        watch = Watch(options.samples)
        found = explore(
            workload(options.program),
            options.samples,
            0,
            db,
            find_device(options.device),
            search=options.search,
            progress=watch,
        )
        return tell(found, watch, db.stat().st_size)


def tell(found: Campaign, watch: Watch, size: int) -> int:
    """Print what came out; 1 if memory grew."""
    seconds, count = time.perf_counter() - watch.start, len(found.rows)
    print(f"\n{count} candidates in {seconds:.0f} s: {60 * count / seconds:.1f} a minute")
    print(", ".join(f"{n} {kind}" for kind, n in found.counts.items()))
    print(f"file: {size / MEBI:.1f} MiB, {size / count / 1024:.1f} KiB a candidate")
    grown = watch.grows()
    print(", ".join(f"{name} grew by a factor of {by:.2f}" for name, by in grown.items()))
    return 1 if max(grown.values()) > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
