"""Seconds from the beginning of a campaign to its first time, and what they go to.

    python benchmarks/first_candidate.py [PATTERN ...]

PATTERNs choose among the programs (`attention`, `vgg16/*`); all without any. Each campaign runs in
a process of its own, as a command does, so imports count. A row says wall seconds, processor
seconds of all processes, the phases in order, and the first candidate. Exit code 1 if a campaign
took more than `BOUND` seconds, or measured nothing: to be run on an idle machine.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liftpy.explore.campaign.run import Progress  # imports of liftpy are measured

BOUND = 10.0
LIMIT = 120.0

TEXTS = {
    "attention": """
def attention(q: [8][512][64]f32, k: [8][512][64]f32, v: [8][512][64]f32) =
  zip(q, k, v) |> map((qh, kh, vh) => qh |> map(qr =>
    let scores = (kh |> map(kr => zip(qr, kr) |> map((a, b) => a * b) |> reduce(add, 0)
      |> (s => s * 0.125))) in
    let top = (scores |> reduce((a, b) => max(a, b), -1000000)) in
    let es = (scores |> map(s => exp(s - top))) in
    let total = (es |> reduce(add, 0)) in
    vh |> transpose |> map(col =>
      zip(es, col) |> map((a, b) => a * b) |> reduce(add, 0) |> (x => x / total))))
""",
    "perceptron": """
def perceptron(x: [64][784]f32, w1: [512][784]f32, w2: [512][512]f32, w3: [10][512]f32) =
  let h1 = (x |> map(r => w1 |> map(k =>
    zip(r, k) |> map((a, b) => a * b) |> reduce(add, 0) |> (s => max(s, 0))))) in
  let h2 = (h1 |> map(r => w2 |> map(k =>
    zip(r, k) |> map((a, b) => a * b) |> reduce(add, 0) |> (s => max(s, 0))))) in
  h2 |> map(r => w3 |> map(k => zip(r, k) |> map((a, b) => a * b) |> reduce(add, 0)))
""",
    "nearest": """
def nearest(queries: [64][8]f32, references: [100][8]f32) =
  queries |> map(q =>
    zip(references |> map(r => zip(q, r) |> map((a, b) => (a - b) * (a - b)) |> reduce(add, 0)),
        generate(100, i => i32(i)))
    |> reduce((best, one) => (select(one.0 < best.0, one.0, best.0),
      select(one.0 < best.0, one.1, best.1)), (1000000, -1)))
""",
    "softmax": """
def softmax(xs: [4096][1024]f32) = xs |> map(row =>
  let top = (row |> reduce((a, b) => max(a, b), -1000000)) in
  let es = (row |> map(x => exp(x - top))) in
  let total = (es |> reduce(add, 0)) in
  es |> map(e => e / total))
""",
}


class Begun(Exception):
    """The first candidate has its outcome."""


def one(name: str, began: float) -> None:
    """Runs a campaign until its first outcome; prints what it took as JSON."""
    phases: list[tuple[str, float]] = [("importing", began)]

    def phase(doing: str) -> None:
        phases.append((doing, time.time()))

    phase("importing")
    import liftpy as lp  # noqa: PLC0415  its time is measured

    phase("reading the program")
    program = lp.parse(TEXTS[name]) if name in TEXTS else lp.workload(name)
    found: dict[str, object] = {}

    def progress(now: Progress) -> None:
        if (candidate := now.candidate) is None:
            return
        if now.outcome is None:
            phase("compiling, building, measuring")
            return
        found.update(label=candidate.label, outcome=now.outcome.kind, why=now.outcome.reason)
        raise Begun

    with tempfile.TemporaryDirectory() as folder:
        try:
            path = Path(folder) / "a.db"
            lp.explore(program, 1, db=path, time_limit=LIMIT, progress=progress, phase=phase)
        except Begun:
            pass
        except lp.LiftError as error:
            found.update(label="", outcome="nothing", why=str(error))
    phase("")
    times = os.times()
    seconds: dict[str, float] = {}
    for (doing, start), (_, end) in itertools.pairwise(phases):
        seconds[doing] = seconds.get(doing, 0.0) + end - start
    spent = times.user + times.system + times.children_user + times.children_system
    print(json.dumps({**found, "wall": time.time() - began, "spent": spent, "phases": seconds}))


def main() -> int:
    """Prints a row for each program; 1 if one took too long."""
    import liftpy as lp  # noqa: PLC0415  a campaign's process does it by itself

    patterns = sys.argv[1:] or ["*"]
    names = [*TEXTS, *(workload.name for workload in lp.workloads())]
    chosen = [n for n in names if any(fnmatch.fnmatch(n, pattern) for pattern in patterns)]
    late = 0
    for name in chosen:
        command = [sys.executable, __file__, "--one", name, str(time.time())]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(said.stdout.splitlines()[-1])
        bad = row["wall"] > BOUND or row["outcome"] != "measured"
        late += bad
        parts = ", ".join(f"{doing} {s:.1f}" for doing, s in row["phases"].items() if s >= 0.05)
        print(
            f"{'LATE' if bad else 'ok':4} {name:28} {row['wall']:6.1f} s, {row['spent']:5.1f} s of "
            f"processors: {parts}; {row['label']} {row['outcome']}",
            flush=True,
        )
        if row["outcome"] != "measured":
            print(f"     {row['why']}")
    print(f"{late} of {len(chosen)} campaigns began later than {BOUND:g} s, or with nothing")
    return 1 if late else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], float(sys.argv[3]))
    else:
        sys.exit(main())
