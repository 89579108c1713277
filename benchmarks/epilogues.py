"""What a kernel of its own for an epilogue costs: the same candidate, fused and stored, turn about.

python benchmarks/epilogues.py [DEVICE] [ROUNDS]
"""

from __future__ import annotations

import statistics

import numpy as np
from prefetch import events, numbers, over
from turns import turn_about

from liftpy.compile import compile_candidate, skeletons
from liftpy.opencl.run import Loaded, Session
from liftpy.workloads import workload

CASES = {
    "vgg16/7:relu": {"kappa": 32, "sigma": 14, "v": 16},
    "gemm/1024x1024x1024": {"kappa": 32, "sigma": 8, "v": 16},
    "gemm/1024x64x1024": {"kappa": 32, "sigma": 8, "v": 16},
    "gemm/256x256x256": {"kappa": 32, "sigma": 8, "v": 16},
}


def compare(name: str, session: Session, rounds: int) -> None:
    """Print the time of the fused form as a ratio to the stored one's, and their scratch memory."""
    program = workload(name)
    arrays = numbers(program)
    held: dict[str, Loaded] = {}
    results: dict[str, np.ndarray] = {}
    scratch: list[int] = []
    for form in ("fused", "stored"):
        words = {"stages": form, "pad": "fused", "level": "glb"}
        made = (s for s in skeletons(program, ("direct",)) if dict(s.choices) == words)
        module = compile_candidate(next(made), CASES[name])
        scratch.append(module.memory.scratch)
        held[form] = session.load(module)
        held[form].set_constants({n: arrays[n] for n in program.constants})
        inputs = {n: a for n, a in arrays.items() if n not in program.constants}
        results[form] = held[form].run(inputs)
    np.testing.assert_array_equal(results["fused"], results["stored"])
    samples, others = turn_about({form: events(loaded) for form, loaded in held.items()}, rounds)
    fused, stored = (samples[form]["events"] for form in ("fused", "stored"))
    median = statistics.median(a / b for a, b in zip(fused, stored, strict=True))
    least = min(fused) / min(stored)
    times = f"{min(fused) / 1e6:.2f} of {min(stored) / 1e6:.2f} ms"
    print(f"{name:20} {least:.3f} {median:.3f} {times}; scratch {scratch}; others {others:.0%}")
    for loaded in held.values():
        loaded.close()


if __name__ == "__main__":
    over(CASES, compare)
