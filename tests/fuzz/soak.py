"""Thousands of random programs of each kind on both runtimes; writes what came out.

    make soak

Every program's candidates have to be right and within the bound on their code; of a program with
names in each other or of several stages one at least has to be measured. The record is written as
it goes, so one that is ended early says how far it came.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

from liftpy.explore.campaign.environment import processor
from tests.fuzz.judge import OF_ANY, OPTIMIZER, survey

RECORD = Path(__file__).with_name("soak.json")
SOME = 50  # programs after which the record is written
KINDS = ("any", "lets", "indices", "lets", "stages")  # in turn; those of stages take longest
ALLOWED = {"right", "killed", OPTIMIZER}  # a driver's defects are none of liftpy's, but are counted


def cpu_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def machine() -> str:
    """The processor, and how many of its threads this process may use."""
    return f"{processor()}, {len(os.sched_getaffinity(0))} threads"


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
    programs = Counter[str]()
    outcomes = {kind: {d: Counter[str]() for d in given.devices} for kind in sorted({*KINDS})}
    for turn, first in enumerate(range(began, began + given.count, SOME)):
        kind, many = KINDS[turn % len(KINDS)], min(SOME, began + given.count - first)
        programs[kind] += many
        for device, counts in outcomes[kind].items():
            found = survey(first, many, device, kind)
            counts.update(found.outcomes)
            print(device, kind, first, dict(found.outcomes), *found.failures, sep="\n", flush=True)
        record = {
            "commit": tried,
            "machine": machine(),
            "first seed": began,
            "programs": programs,
            "forms": outcomes,
            "cpu seconds": round(cpu_seconds()),
        }
        text = json.dumps(record, indent=2, sort_keys=True)
        RECORD.write_text(text + "\n", encoding="utf-8")
    return int(any(map(has_failures, outcomes.items())))


def has_failures(item: tuple[str, dict[str, Counter[str]]]) -> bool:
    """Whether programs of a kind had outcomes that none may have."""
    kind, by_device = item
    allowed = ALLOWED | OF_ANY if kind == "any" else ALLOWED
    return any(set(counts) - allowed for counts in by_device.values())


if __name__ == "__main__":
    sys.exit(main())
