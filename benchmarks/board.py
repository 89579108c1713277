"""What a candidate costs over ssh to a board, beside one on an attached device: seconds.

    python benchmarks/board.py [PROGRAM] [--samples 64] [--batch 16] [--turns 3] [--device pocl]

The board is this machine, by a real ssh server on loopback with a key and a port of its own
(Debian's `openssh-server`). Campaigns of the same candidates (`--search random`) run on both, turn
about, into new files, after one on each that is not counted. A candidate's time is that from the
end of the first batch to the end of the last one: deriving, connecting and sending data come
before. On one machine the candidates of the next batch are compiled while the board measures, and
both disturb each other, which two machines do not. Exit status 1 if, in the median of the turns, a
candidate takes over 20 % longer over ssh, or if the campaigns differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from report import table

import liftpy as lp
from liftpy.boards.live import BATCH, Board
from liftpy.explore.exploring import explore
from liftpy.ir.program import Program
from tests.boards import loopback

MOST = 1.2


def main() -> int:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="vgg16/7")
    parser.add_argument("--samples", type=int, default=4 * BATCH)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--device", default="pocl")
    options = parser.parse_args()
    program = lp.workload(options.program)
    if options.samples <= options.batch:
        parser.error("--samples must be more than one batch")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with loopback.server(folder) as port:
            tools = loopback.client(folder, port)
            os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
            board = Board(f"ssh:127.0.0.1:{port}", options.batch, note=tell)
            seconds: dict[str, list[float]] = {"local": [], "ssh": []}
            drawn: set[tuple[str, ...]] = set()
            for turn in range(options.turns + 1):
                for where, on in (("local", None), ("ssh", board)):
                    db = folder / f"{where}-{turn}.db"
                    took, ids = campaign(program, db, options, on)
                    drawn.add(ids)
                    print(f"turn {turn}, {where}: {took:.3f} s a candidate", flush=True)
                    if turn:
                        seconds[where].append(took)
    ratios = [b / a for a, b in zip(seconds["local"], seconds["ssh"], strict=True)]
    middle = statistics.median(ratios)
    rows = [
        [where, f"{statistics.median(each):.3f}", f"{min(each):.3f}", f"{max(each):.3f}"]
        for where, each in seconds.items()
    ]
    print(table(["", "s a candidate", "least", "most"], rows))
    print(f"\nratio {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f}), at most {MOST}")
    return int(middle > MOST or len(drawn) != 1)


def campaign(
    program: Program, db: Path, options: argparse.Namespace, board: Board | None
) -> tuple[float, tuple[str, ...]]:
    """The seconds of a candidate after the first batch, and the candidates."""
    ends: list[float] = []
    done = explore(
        program,
        options.samples,
        0,
        db,
        device=options.device,
        board=board,
        search="random",
        tolerance=1e-4,  # of both: a board does not compare with bounds
        again=False,
        progress=lambda _: ends.append(time.monotonic()),
    )
    counted = ends[options.batch - 1 : options.samples]
    ids = tuple(row.id for row in done.rows)
    return (counted[-1] - counted[0]) / (len(counted) - 1), ids


def tell(text: str) -> None:
    """Print a remark of the link: a lost one explains an odd time."""
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
