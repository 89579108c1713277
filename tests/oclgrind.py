"""Runs programs under Oclgrind, which simulates a device and reports races and bad accesses.

    output, complaints = check_under_oclgrind(module, {"x": x, "w": w})
    assert complaints == []

Each check is a process of its own: Oclgrind is chosen by the environment of the process.
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session

ROOT = Path(__file__).parents[1]

CHECKS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",  # so Oclgrind spells it; the other spelling does nothing
    "OCLGRIND_CHECK_API": "1",
    # Optimised code may hold `freeze`, which Oclgrind does not know.
    "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
    "OCLGRIND_NUM_THREADS": "1",  # reports of two threads would run into each other
    "OCLGRIND_MAX_ERRORS": "100",
}

# A report is a line at the margin and indented lines after it, of which the first names the kernel
# or the OpenCL function.
REPORT = re.compile(
    r"^(?P<headline>\S.*)\n\t(?P<of>Kernel|Function):\s*(?P<name>\S+)(?P<rest>(?:\n\t.*)*)",
    re.MULTILINE,
)
PLACE = re.compile(r"^\tAt (line \d+) .*\n\t\s*(.*)$", re.MULTILINE)
# pyopencl asks devices for what OpenCL 1.2 does not know; Oclgrind reports the question.
QUERY = re.compile(r"clGet\w+Info")
NEXT = "=== the next module\n"  # between the reports of two modules


def run_under_oclgrind(argv: list[str], **options: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in which OpenCL has one device, Oclgrind's, with all its checks on.

    The reports are in `stderr`. liftpy is found by a Python command from any folder.
    """
    command = shutil.which("oclgrind")
    assert command is not None, "install the Debian package oclgrind; mark the test `oclgrind`"
    library = Path(command).resolve().parents[1] / "lib" / "oclgrind" / "liboclgrind-rt-icd.so"
    assert library.is_file(), f"{command} is there, its ICD library {library} is not"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as vendors:
        (Path(vendors) / "oclgrind.icd").write_text(f"{library}\n", encoding="utf-8")
        environment = (
            os.environ | CHECKS | options | {"OCL_ICD_VENDORS": vendors, "PYTHONPATH": path}
        )
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=False, timeout=900
        )


def oclgrind_complaints(text: str) -> list[str]:
    """Each report in Oclgrind's output, as one line: what, in which kernel, at which source line.

    Races, accesses out of bounds, uninitialised reads, divergent barriers, wrong API calls.
    """
    complaints = [
        f"{found['headline']} ({found['name']}{_place(found['rest'])})"
        for found in REPORT.finditer(text)
        if found["of"] == "Kernel" or not QUERY.fullmatch(found["name"])
    ]
    return complaints + [line for line in text.splitlines() if "FATAL ERROR" in line]


Job = tuple[Module, Mapping[str, np.ndarray]]


def check_under_oclgrind(module: Module, arrays: Mapping[str, np.ndarray]) -> tuple[Any, list[str]]:
    """The result of a module on these arrays (inputs and constants), and Oclgrind's complaints.

    Nothing is poisoned, so a read of what no kernel and no upload wrote is a complaint. Does not
    see two uses of one allocation apart: the second one's stale values count as initialised.
    """
    (checked,) = check_all_under_oclgrind([(module, arrays)])
    return checked


def check_all_under_oclgrind(jobs: Sequence[Job]) -> list[tuple[Any, list[str]]]:
    """As `check_under_oclgrind`, for many modules in one process.

    If one of them has images, uninitialised values are not reported: Oclgrind (21.10) reports each
    value that is read from an image.
    """
    images = any(launch.images for module, _ in jobs for launch in module.launches)
    options = {"OCLGRIND_UNINITIALIZED": "0"} if images else {}
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "jobs", Path(folder) / "answers"
        given.write_bytes(pickle.dumps([(module, dict(arrays)) for module, arrays in jobs]))
        child = run_under_oclgrind([sys.executable, __file__, str(given), str(answer)], **options)
        assert child.returncode == 0, child.stdout + child.stderr
        outputs = pickle.loads(answer.read_bytes())  # noqa: S301 - written by the child
        _, *reports = child.stderr.split(NEXT)
        complaints = map(oclgrind_complaints, reports)
        return list(zip(outputs, complaints, strict=True))


COUNTED = re.compile(r"^ +(\d+) - (.*?)(?: \((\d+) bytes\))?$", re.MULTILINE)
VECTOR = re.compile(r"call _Z\d+v(load|store)(\d+)\w*?PU3AS(1|3)K?(\w)")
MANGLED = {"c": 1, "h": 1, "s": 2, "t": 2, "i": 4, "j": 4, "f": 4, "l": 8, "m": 8, "d": 8}
"""The bytes of a scalar type by its letter in a function's mangled name."""
SPACES = {"1": "global", "3": "local"}
Executed = Counter[tuple[str, bool, int | str]]


def executed_under_oclgrind(jobs: Sequence[Job]) -> list[list[Executed]]:
    """The loads and stores that each launch of each module executes.

    They are counted by the space of the memory, whether they store, and the width of the vector.
    In local memory, where aligned vectors are accessed without a call, all widths count as 1, and
    their bytes are counted, too.
    """
    return [[_executed(text) for text in launches] for launches in counted_under_oclgrind(jobs)]


def counted_under_oclgrind(jobs: Sequence[Job]) -> list[list[str]]:
    """Oclgrind's counts of instructions of each launch of each module, as text."""
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "jobs", Path(folder) / "answers"
        given.write_bytes(pickle.dumps([(module, dict(arrays)) for module, arrays in jobs]))
        argv = [sys.executable, __file__, str(given), str(answer)]
        child = run_under_oclgrind(argv, OCLGRIND_INST_COUNTS="1")
        assert child.returncode == 0, child.stdout + child.stderr
    _, *launches = child.stdout.split("Instructions executed for kernel ")
    counts = iter(launches)
    found = [[next(counts) for _ in module.launches] for module, _ in jobs]
    assert next(counts, None) is None
    return found


def _executed(text: str) -> Executed:
    found: Executed = Counter()
    for number, what, size in COUNTED.findall(text):
        match what.split():
            case ["load" | "store" as action, "global" | "local" as space]:
                found[space, action == "store", 1] += int(number)
                if space == "local":
                    found[space, action == "store", "bytes"] += int(size)
        if vector := VECTOR.match(what):
            space, stores, width = SPACES[vector[3]], vector[1] == "store", int(vector[2])
            found[space, stores, width if space == "global" else 1] += int(number)
            if space == "local":
                found[space, stores, "bytes"] += int(number) * width * MANGLED[vector[4]]
    return found


def _place(rest: str) -> str:
    place = PLACE.search(rest)
    return f", {place[1]}: {place[2]}" if place else ""


def kept_to_the_end(made: type[cl.Buffer]) -> type[cl.Buffer]:
    """A class of buffers that are not freed."""
    every: list[cl.Buffer] = []

    class Kept(made):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            every.append(self)

        def release(self) -> None:
            """Nothing."""

    return Kept


def main(given: str, answer: str) -> None:
    """In the child: runs the pickled jobs on Oclgrind's device.

    Nothing is freed to the end: Oclgrind takes a buffer in a freed one's place for it, so that what
    lies beyond the freed one's end would never count as initialised.
    """
    outputs, loaded = [], []
    cl.Buffer = kept_to_the_end(cl.Buffer)
    with Session(find_device("oclgrind")) as session:
        for module, arrays in pickle.loads(Path(given).read_bytes()):  # noqa: S301
            sys.stderr.write(NEXT)
            sys.stderr.flush()
            constants = {b.name for b in module.buffers if b.role == "constant"}
            loaded.append(session.load(module))
            loaded[-1].set_constants({n: a for n, a in arrays.items() if n in constants})
            inputs = {n: a for n, a in arrays.items() if n not in constants}
            outputs.append(loaded[-1].run(inputs))
    Path(answer).write_bytes(pickle.dumps(outputs))


if __name__ == "__main__":
    main(*sys.argv[1:])
