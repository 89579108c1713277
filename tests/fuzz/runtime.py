"""Every built-in program in every family that applies, on one runtime, compared with NumPy.

    RUSTICL_ENABLE=llvmpipe python -m tests.fuzz.runtime --device rusticl --each 2

A program of small sizes is drawn from `--each` times per family. A line tells what came out of each
program. A driver that crashes ends this process: go on with the names that are left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.errors import KernelRefused, LiftError
from liftpy.ir.program import Program
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from tests.batch import OneBuild, together
from tests.draws import Draw, draws
from tests.workloads.test_workloads import SIZED, agrees, case


def outcome(session: Session, draw: Draw, module: Any, given: list[Any], expected: Any) -> str:
    """`right`, `limited` by what the driver says of the built kernel, or what is wrong."""
    try:
        with session.load(module) as loaded:
            arrays = by_buffer(module, tuple(given))
            constants = {b.name for b in module.buffers if b.role == "constant"} & arrays.keys()
            loaded.set_constants({n: arrays[n] for n in constants}, poison=True)
            inputs = {n: a for n, a in arrays.items() if n not in constants}
            agrees(loaded.run(inputs, poison=True), expected, draw.label)
    except KernelRefused:
        return "limited"
    except (AssertionError, LiftError) as failure:
        return f"{draw.label} {dict(draw.sizes)}: {type(failure).__name__}: {str(failure)[:600]}"
    return "right"


def outcomes(
    program: Program, device: Device, drawn: list[Draw], given: list[Any], expected: Any
) -> list[str]:
    """What comes out of each draw; most kernels of a program are built together."""
    modules = together([draw.module for draw in drawn])
    with OneBuild(device) as session:
        return [
            outcome(session, draw, module, given, expected)
            for draw, module in zip(drawn, modules, strict=True)
        ]


def main() -> int:
    """Tries the named programs, or all; 1 if one is not right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=SIZED)
    parser.add_argument("--device", default="rusticl")
    parser.add_argument("--each", type=int, default=1)
    given = parser.parse_args()
    device, total = find_device(given.device), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names:
            begun = time.perf_counter()
            program, arrays, expected = case(name)
            drawn = draws(program, device, given.each, Path(folder))
            ordered = [arrays[p.name] for p in program.params]
            found = outcomes(program, device, drawn, ordered, expected)
            said = Counter(f if f in {"right", "limited"} else "not right" for f in found)
            total += said
            print(f"{name}: {dict(said)} in {time.perf_counter() - begun:.1f} s")
            print(*(f"  {f}" for f in found if f not in {"right", "limited"}), sep="\n", end="")
            sys.stdout.flush()
    print(f"all: {dict(total)}")
    return int(total["not right"] > 0)


if __name__ == "__main__":
    sys.exit(main())
