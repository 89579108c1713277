"""Random programs under Oclgrind: races, stray accesses, and values that nothing has written.

    PYTHONPATH=. python tests/fuzz/races.py [--count 1000] [--start 0]

Writes `races.json` as it goes; exit status 1 if Oclgrind complains about a program.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.devices import find_device
from tests.fuzz import judge
from tests.fuzz.generator import inputs, make
from tests.fuzz.record import commit, record
from tests.oclgrind import CHECKS, check_under_oclgrind, oclgrind_complaints, run_under_oclgrind

SOME = 10  # programs in one process


def complaints(start: int, count: int) -> Iterator[str]:
    """What Oclgrind says of a range of seeds, with the form of the program in front."""
    for seed in complained_of(start, count):
        program = make(seed)
        values = tuple(inputs(program).values())
        for form in judge.forms(program, seed, find_device()):
            _, alone = check_under_oclgrind(form.module, by_buffer(form.module, values))
            yield from (f"seed {seed}: {form.how}: {line}" for line in alone)


def complained_of(start: int, count: int) -> list[int]:
    """The seeds of whose programs Oclgrind complains when it runs them one after the other.

    Among many buffers it now and then takes a written value for an unwritten one, so they have to
    be run again by themselves. Where it has stopped to count, the range is halved.
    """
    options = ["--json", "--device", "oclgrind", "--start", str(start), "--count", str(count)]
    child = run_under_oclgrind([sys.executable, judge.__file__, *options])
    assert child.returncode == 0, child.stderr[-3000:]
    tally = judge.read(child.stdout)
    assert tally.outcomes["wrong"] == tally.outcomes["crashed"] == 0, tally.failures
    assert {*tally.outcomes} <= {"right", *judge.OF_ANY}, tally.failures
    assert tally.outcomes["right"] > count // 2 - 1, tally.outcomes
    said = oclgrind_complaints(child.stderr)
    if len(said) < int(CHECKS["OCLGRIND_MAX_ERRORS"]):  # a kernel's name begins with its seed
        return sorted({int(s) for line in said for s in re.findall(r"\(s(\d+)_", line)})
    if count == 1:
        return [start]
    half = count // 2
    return [*complained_of(start, half), *complained_of(start + half, count - half)]


def main() -> int:
    """Runs as many programs as asked for; 1 if Oclgrind complains."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args()
    tried, found, end = commit(), list[str](), given.start + given.count
    for start in range(given.start, end, SOME):
        many = min(SOME, end - start)
        found += complaints(start, many)
        done = start + many - given.start
        print(f"{done} programs, {len(found)} complaints", *found, sep="\n", flush=True)
        record("races", tried, {"first seed": given.start, "programs": done, "complaints": found})
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
