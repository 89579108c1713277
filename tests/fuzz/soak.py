"""Thousands of random programs with names in each other, on both runtimes; writes what came out.

    make soak

Every program's candidates have to be right and within the bound on their code, and one at least has
to be measured. The record is written as it goes, so one that is ended early says how far it came.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.judge import OPTIMIZER, survey

RECORD = Path(__file__).with_name("soak.json")
SOME = 100  # programs after which the record is written
ALLOWED = {"right", "killed", OPTIMIZER}  # a driver's defects are none of liftpy's, but are counted


def cpu_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def commit() -> str:
    """The commit that was tried; `+` where the files differ from it."""
    told = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Tries as many programs as asked for; 1 if any is not right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel", "pocl"])
    given = parser.parse_args()
    tried, began = commit(), given.start
    outcomes: dict[str, Counter[str]] = {device: Counter() for device in given.devices}
    for first in range(began, began + given.count, SOME):
        many = min(SOME, began + given.count - first)
        for device, counts in outcomes.items():
            found = survey(first, many, device, "lets")
            counts.update(found.outcomes)
            print(device, first, dict(found.outcomes), *found.failures, sep="\n", flush=True)
        record = {
            "commit": tried,
            "programs": first + many - began,
            "first seed": began,
            "forms": {device: dict(sorted(counts.items())) for device, counts in outcomes.items()},
            "cpu seconds": round(cpu_seconds()),
        }
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return int(any(set(counts) - ALLOWED for counts in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
