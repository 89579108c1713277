"""Runs small random convolutions in forms by F(m, r) under Oclgrind, which reports races.

    PYTHONPATH=. python tests/fuzz/watched.py --count 50

The cases are those of correlations.py, with fewer points, channels and kernels.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from tests.fuzz.correlations import Case, Form, drawn
from tests.oclgrind import check_all_under_oclgrind

TOGETHER = 10  # cases in one process of Oclgrind
TARGET = "profile:desktop-gpu"  # it has local memory, so tiles may be held there


def under_oclgrind(seeds: Sequence[int]) -> tuple[Counter[str], float]:
    """The outcomes of one form of each small case under Oclgrind, and the largest error.

    A case with a race, a stray access or an uninitialised read is wrong.
    """
    device = find_device(TARGET)
    tried: list[tuple[Case, Form, Module]] = []
    outcomes, largest = Counter[str](), 0.0
    for seed in seeds:
        case = Case.drawn(seed).small
        form = random.Random(seed).choice(sorted(case.forms))
        candidate = next(drawn(case.program, device, case.choices(form), seed), None)
        if candidate is None:
            outcomes["no candidate"] += 1
            print(case, form, "has no candidate", flush=True)
            continue
        tried.append((case, form, compile_candidate(candidate.skeleton, candidate.point)))
    names = ([p.name for p in case.program.params] for case, _, _ in tried)
    jobs = [
        (module, dict(zip(own, case.arrays, strict=True)))
        for own, (case, _, module) in zip(names, tried, strict=True)
    ]
    for start in range(0, len(jobs), TOGETHER):
        several = slice(start, start + TOGETHER)
        checked = check_all_under_oclgrind(jobs[several])
        for (case, form, _), (got, complaints) in zip(tried[several], checked, strict=True):
            error = float(np.abs(got - case.expected).max()) / case.allowed(form[0])
            right = not complaints and error <= 1
            outcomes["right" if right else "wrong"] += 1
            largest = max(largest, error)
            if not right:
                print(case, form, error, complaints[:3], flush=True)
        print(several.stop, dict(outcomes), f"largest error {largest:.2g} of the bound", flush=True)
    return outcomes, largest


def main() -> int:
    """Tries the cases; returns 1 if one has no candidate, is reported or exceeds its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args()
    outcomes, largest = under_oclgrind(range(given.start, given.start + given.count))
    print(dict(outcomes), f"largest error {largest:.2g} of the bound")
    return int(outcomes["right"] < given.count)


if __name__ == "__main__":
    sys.exit(main())
