"""The gain of removing idle passes: padded sums with and without it, timed alternately.

python benchmarks/idle.py [DEVICE] [ROUNDS]
"""

from __future__ import annotations

import sys
from importlib import import_module
from unittest.mock import patch

from choices import Both, blocks, turns_of
from prefetch import over

from liftpy.opencl.session import Session
from liftpy.pipeline import PASSES
from liftpy.workloads import workload

CASES = (
    blocks("vgg16/0", 32, 8),
    blocks("vgg16/2", 32, 7, "wrg"),
    blocks("vgg16/7", 32, 7),
    blocks("vgg16/12", 32, 8, "wrg"),
    blocks("vgg16/19", 32, 7, "wrg"),
    blocks("vgg16/24", 32, 7, "wrg"),
    blocks("vgg16/24", 32, 14, "wrg"),
    blocks("resnet50/22", 32, 7, "wrg"),
    blocks("alexnet/3", 32, 9, "wrg"),
)


def compare(both: Both, session: Session, rounds: int) -> None:
    """Print the time without idle passes as a ratio to the time with them."""
    modules = {"without": both.module("stores", "cached")}
    others = {name: change for name, change in PASSES.items() if name != "silent stores"}
    with patch.object(import_module("liftpy.pipeline"), "PASSES", others):
        modules["with"] = both.module("stores", "cached")
    length = len(modules["without"].source) / len(modules["with"].source)
    times = turns_of(workload(both.program), modules, session, rounds)
    print(f"{both.program:12} {both.numbers:24} {times}; code {length:.2f}", flush=True)


if __name__ == "__main__":
    over(CASES, compare, sys.argv[1:])
