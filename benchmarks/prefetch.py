"""Whether `prefetch` of OpenCL changes the time of good kernels: the same text with and without it.

In each innermost loop, what the next iterations will read is prefetched: the addresses of its loads
with the counter some steps on. `again` is the unchanged text a second time, and shows the noise.
`prefetch` is OpenCL's; `builtin` is what Clang makes the processor's instruction of.

    python benchmarks/prefetch.py [DEVICE] [ROUNDS]
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from turns import Figures, timed_alternately

import liftpy as lp
from liftpy.errors import LiftError
from liftpy.ir.program import Program
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeletons
from liftpy.workloads import workload

CASES: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "vgg16/7": ({"pad": "fused", "level": "glb"}, {"kappa": 32, "sigma": 14, "v": 16}),
    "vgg16/19": ({"pad": "fused", "level": "wrg"}, {"kappa": 32, "sigma": 7, "v": 16}),
    "matmul/1024x1024x1024": ({"pad": "fused", "level": "glb"}, {"kappa": 32, "sigma": 8, "v": 16}),
}

Case = TypeVar("Case")

STEPS = (1, 8)
"""How many iterations ahead is fetched."""

LOOP = re.compile(r"^( *)for \(int (\w+) = 0; .*\{$")
VECTOR = re.compile(r"vload(\d+)\(0, &(\w+)\[([^\]]*)\]\)")
SCALAR = re.compile(r"(?<![&\w])(?!acc)([a-z]\w*)\[([^\]]*)\]")

CALLS = {
    "prefetch": "prefetch(&{address}, {count});",
    "builtin": "__builtin_prefetch((const void*)(size_t)&{address});",
}


def loads(lines: list[str], counter: str, *, scalars: bool) -> Iterator[tuple[str, str]]:
    """The addresses that lines load and that move with a counter, and how many elements each."""
    for line in lines:
        for width, name, index in VECTOR.findall(line):
            if re.search(rf"\b{counter}\b", index):
                yield f"{name}[{index}]", width
        if scalars and "=" in line:
            for name, index in SCALAR.findall(VECTOR.sub("", line.split("=", 1)[1])):
                if re.search(rf"\b{counter}\b", index):
                    yield f"{name}[{index}]", "1"


def prefetching(source: str, call: str, steps: int, *, scalars: bool) -> str:
    """A kernel's text that prefetches in its innermost loops what comes `steps` iterations later.

    At the end of a loop that is past what is read there: a hint to fetch it does nothing.
    """
    lines, made = source.split("\n"), list[str]()
    for k, line in enumerate(lines):
        made.append(line)
        head = LOOP.match(line)
        if head is None:
            continue
        body: list[str] = []
        for inner in lines[k + 1 :]:
            if inner == f"{head[1]}}}":
                break
            body.append(inner)
        if any("for (" in inner for inner in body):
            continue
        later = f"({head[2]} + {steps})"
        for address, count in dict.fromkeys(loads(body, head[2], scalars=scalars)):
            moved = re.sub(rf"\b{head[2]}\b", later, address)
            made.append(f"{head[1]}  {CALLS[call].format(address=moved, count=count)}")
    return "\n".join(made)


def forms(module: Module) -> dict[str, Module]:
    """The module, itself again, and its texts with prefetches."""
    made = {"plain": module, "again": module}
    for call in CALLS:
        for steps in STEPS:
            for scalars in (False, True):
                text = prefetching(module.source, call, steps, scalars=scalars)
                what = "all loads" if scalars else "vectors"
                made[f"{call}, {what}, {steps} on"] = replace(module, source=text)
    return made


def numbers(program: Program) -> dict[str, np.ndarray]:
    """Random inputs."""
    rng = np.random.default_rng(0)
    shapes = {p.name: [*map(int, p.type.lengths())] for p in program.params}
    return {n: np.asarray(rng.standard_normal(s), np.float32) for n, s in shapes.items()}


def events(loaded: Loaded) -> Callable[[], Figures]:
    """A turn: the least of a few runs' device events."""
    return lambda: {"events": min(sum(run) for run in loaded.profile(3, 1))}


def compare(name: str, session: Session, rounds: int) -> None:
    """Print each form's time as a ratio to the plain one's: of the least, and the median."""
    program = workload(name)
    words, sizes = CASES[name]
    made = skeletons(program, ("direct",))
    found = (s for s in made if {n: w for n, w in s.choices if n != "stores"} == words)
    module = compile_candidate(next(found), sizes)
    arrays = numbers(program)
    held: dict[str, Loaded] = {}
    results: dict[str, np.ndarray] = {}
    for form, changed in forms(module).items():
        try:
            held[form] = session.load(changed)
        except LiftError as refused:
            print(f"{name:24} {form:28} not built: {str(refused).splitlines()[0]}")
            continue
        held[form].set_constants({n: arrays[n] for n in program.constants})
        inputs = {n: a for n, a in arrays.items() if n not in program.constants}
        results[form] = held[form].run(inputs)
        np.testing.assert_array_equal(results[form], results["plain"])
    samples, others = timed_alternately(
        {form: events(loaded) for form, loaded in held.items()}, rounds
    )
    plain = samples["plain"]["events"]
    for form in samples:
        ours = samples[form]["events"]
        least = min(ours) / min(plain)
        middle = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
        milliseconds = min(ours) / 1e6
        print(f"{name:24} {form:28} {least:.3f} {middle:.3f} {milliseconds:.2f} ms")
    print(f"{name:24} others had {others:.0%} of the processors", flush=True)
    for loaded in held.values():
        loaded.close()


def over(
    cases: Iterable[Case], compare: Callable[[Case, Session, int], None], options: list[str]
) -> None:
    """Compare each case on the device that the options name, or the first, in so many rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device", nargs="?", help="as for `liftpy explore`; the first")
    parser.add_argument("rounds", nargs="?", type=int, default=15)
    given = parser.parse_args(options)
    device = lp.find_device(given.device)
    print(device.name, device.platform)
    with Session(device) as session:
        for name in cases:
            compare(name, session, given.rounds)


if __name__ == "__main__":
    over(CASES, compare, sys.argv[1:])
