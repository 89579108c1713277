"""Thousands of random programs of each kind on both runtimes; writes what came out.

    make soak
    python tests/fuzz/soak.py --kinds lets --count 3000

Every program's candidates have to be right and within the bound on their code; of a program with
names in each other or of several stages one at least has to be measured. The record is written as
it goes, so one that is ended early says how far it came. That of other kinds than the default ones
has their names.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.fuzz.judge import OF_ANY, OPTIMIZER, survey
from tests.fuzz.record import commit, record

SOME = 50  # programs after which the record is written
KINDS = ("any", "lets", "indices", "lets", "stages")  # in turn; those of stages take longest
ALLOWED = {"right", "killed", "large", OPTIMIZER}
"""What is no failure of liftpy: a driver's defects, and code that takes too long to build here."""


def main() -> int:
    """Tries as many programs as asked for; 1 if any is not right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel", "pocl"])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=sorted({*KINDS}))
    given = parser.parse_args()
    tried, began, kinds = commit(), given.start, given.kinds
    name = "soak" if kinds == KINDS else f"soak_{'_'.join(kinds)}"
    programs = Counter[str]()
    outcomes = {kind: {d: Counter[str]() for d in given.devices} for kind in sorted({*kinds})}
    for turn, first in enumerate(range(began, began + given.count, SOME)):
        kind, many = kinds[turn % len(kinds)], min(SOME, began + given.count - first)
        programs[kind] += many
        for device, counts in outcomes[kind].items():
            tally = survey(first, many, device, kind)
            counts.update(tally.outcomes)
            print(device, kind, first, dict(tally.outcomes), *tally.failures, sep="\n", flush=True)
        found = {"first seed": began, "programs": programs, "forms": outcomes}
        record(name, tried, found)
    return int(any(map(has_failures, outcomes.items())))


def has_failures(item: tuple[str, dict[str, Counter[str]]]) -> bool:
    """Whether programs of a kind had outcomes that none may have."""
    kind, by_device = item
    allowed = ALLOWED | OF_ANY if kind == "any" else ALLOWED
    return any(set(counts) - allowed for counts in by_device.values())


if __name__ == "__main__":
    sys.exit(main())
