"""Campaigns killed at random moments and resumed, against one that was never stopped.

    python benchmarks/kill.py [--moments 50] [--search random] [--samples 12] [--seed 0] [--record]

Each moment is a campaign of its own on a tiny convolution. The campaign's process, its workers, or
both are killed (SIGKILL). Then the file is whole (`PRAGMA integrity_check`), what was measured is
still there after the campaign was resumed, and every candidate is measured. With `--search random`
the resumed campaign has the same candidates, kernels, memory figures and errors as the one that was
not stopped, and with the same times the same front; the times of other searches steer them. Exit
status 1 at the first moment of which this is not so. `--record` writes the number of moments.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.explore.killing import Command, content, front_with_times_of, moment, rng_of
from tests.fuzz.record import commit, record


def main() -> int:
    """Print a line a moment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--search", default="random")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="writes tests/fuzz/kills.json")
    options = parser.parse_args()
    tried = commit()
    rng = rng_of(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = Command(folder, options.samples, options.device, options.search)
        start = time.monotonic()
        whole = command.finish(folder / "whole.db")
        seconds = time.monotonic() - start
        print(f"{len(whole.rows)} candidates in {seconds:.1f} s without a stop", flush=True)
        front = [row.id for row in whole.pareto()]
        for number in range(1, options.moments + 1):
            db = folder / f"{number}.db"
            line, resumed = moment(command, db, rng)
            if options.search == "random":
                if content(db) != content(folder / "whole.db"):
                    print(f"{number:3}  {line}: other candidates")
                    return 1
                if front_with_times_of(whole, resumed) != front:
                    print(f"{number:3}  {line}: another front")
                    return 1
            verdict = "the same" if options.search == "random" else "nothing lost"
            print(f"{number:3}  {line}: whole, resumed, {verdict}", flush=True)
            db.unlink()
            if options.record:
                record("kills", tried, {"moments": number, "search": options.search})
    print(f"{options.moments} moments, none lost anything")
    return 0


if __name__ == "__main__":
    sys.exit(main())
