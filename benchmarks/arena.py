"""Places blocks of memory as liftpy's plans do, on the public instances of minimalloc.

    git clone https://github.com/google/minimalloc
    python benchmarks/arena.py minimalloc/benchmarks/challenging

Each file NAME.CAPACITY.csv has a block per line: id, lower, upper (steps, the last excluded) and
size. For each, the table has the lower bound (the largest sum of bytes in use), the arena of the
greedy placement, and that of the solver within its limit, in parts of the capacity.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

from liftpy.networks.arena import Block, conflict, place
from liftpy.networks.planning import solver


def blocks_of(path: Path) -> list[Block]:
    with path.open(newline="") as file:
        return [
            Block(row["id"], int(row["size"]), int(row["lower"]), int(row["upper"]) - 1)
            for row in csv.DictReader(file)
        ]


def main(folder: Path, effort: float) -> None:
    print(f"{'':4}{'blocks':>8}{'bound':>10}{'greedy':>10}{'solver':>10}{'seconds':>10}  proved")
    for path in sorted(folder.glob("*.csv")):
        capacity = int(path.name.split(".")[1])
        blocks = blocks_of(path)
        start = time.monotonic()
        greedy = place(blocks)
        found = place(blocks, 1, lambda b, bound, hint: solver().smallest(b, bound, hint, effort))
        seconds = time.monotonic() - start
        wrong = conflict(blocks, found.offsets, found.bytes)
        assert wrong is None, wrong
        parts = "".join(f"{n / capacity:10.3f}" for n in (found.bound, greedy.bytes, found.bytes))
        name = path.name.split(".")[0]
        print(f"{name:4}{len(blocks):8}{parts}{seconds:10.1f}  {'yes' if found.proved else 'no'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
