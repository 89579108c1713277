"""What a command takes before it answers, where it needs no device: processor time, and modules.

    python benchmarks/startup.py [--runs 9] [--limit 1.0]

Each command runs in a process of its own, in an empty folder, once to write bytecode and then so
many times; `cpu` is the median of the processor seconds of those (user and system), `wall` that of
the clock. `modules` counts what is imported, and `heavy` names the large libraries among it. Exit
status 1 if a median of processor time is over the limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "z3", "pyopencl", "lark", "rich", "matplotlib", "jinja2", "distributed")
COMMANDS = (
    "--version",
    "--help",
    "explore --help",
    "workloads",
    "primitives",
    "primitives slide",
    "rules",
    "show vgg16/7",
    "show vgg16/7 --stage types",
    "devices --profiles",
    "pareto none.db",
    "candidates none.db",
    "report none.db",
)
WITH_MODULES = """
import sys
from liftpy.cli import main
try:
    main()
finally:
    print(len(sys.modules), *sys.modules, file=sys.stderr)
"""


def run(words: list[str], folder: str) -> tuple[float, float, str]:
    """Processor seconds, seconds of the clock, and what was said on stderr."""
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, done.stderr


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--runs", type=int, default=9)
    asked.add_argument("--limit", type=float, default=1.0, metavar="SECONDS")
    options = asked.parse_args()
    over = False
    print("| command | cpu s | wall s | modules | heavy |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            words = command.split()
            _, _, said = run(["-c", WITH_MODULES, *words], folder)
            count, *modules = said.splitlines()[-1].split()
            heavy = [name for name in HEAVY if name in modules]
            times = [run(["-m", "liftpy", *words], folder)[:2] for _ in range(options.runs)]
            cpu, wall = (statistics.median(each) for each in zip(*times, strict=True))
            over |= cpu > options.limit
            print(f"| `{command}` | {cpu:.2f} | {wall:.2f} | {count} | {' '.join(heavy)} |")
    sys.exit(over)


if __name__ == "__main__":
    main()
