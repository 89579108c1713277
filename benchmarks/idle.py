"""What leaving out idle passes gains: kernels of padded sums with it and without, turn about.

python benchmarks/idle.py [DEVICE] [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
from unittest.mock import patch

import numpy as np
from choices import Both, blocks, has
from prefetch import events, numbers, over
from turns import turn_about

from liftpy.compile import compile_candidate, skeletons
from liftpy.opencl import generate
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
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
    program = workload(both.program)
    arrays = numbers(program)
    words = both.words | {"stores": "cached"}
    wanted = Both(both.program, words, both.sizes)
    skeleton = next(s for s in skeletons(program, ("direct",)) if has(wanted, dict(s.choices)))
    modules = {"without": compile_candidate(skeleton, both.sizes)}
    with patch.object(generate, "skipping", lambda block: block):
        modules["with"] = compile_candidate(skeleton, both.sizes)
    held: dict[str, Loaded] = {}
    results: dict[str, np.ndarray] = {}
    for form, module in modules.items():
        held[form] = session.load(module)
        held[form].set_constants({n: arrays[n] for n in program.constants})
        given = {n: a for n, a in arrays.items() if n not in program.constants}
        results[form] = held[form].run(given)
    np.testing.assert_array_equal(results["without"], results["with"])
    samples, others = turn_about({form: events(loaded) for form, loaded in held.items()}, rounds)
    ours, theirs = samples["without"]["events"], samples["with"]["events"]
    median = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    ratios = f"{min(ours) / min(theirs):.3f} {median:.3f}"
    times = f"{min(ours) / 1e6:.2f} of {min(theirs) / 1e6:.2f} ms"
    sizes = " ".join(f"{n}={v}" for n, v in both.sizes.items())
    length = len(modules["without"].source) / len(modules["with"].source)
    print(f"{both.program:12} {sizes:24} {ratios} {times}; code {length:.2f}; others {others:.0%}")
    for loaded in held.values():
        loaded.close()


if __name__ == "__main__":
    over(CASES, compare, sys.argv[1:])
