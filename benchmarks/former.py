"""Compares stored candidates as compiled by the commit that measured them and by the present one.

    python benchmarks/former.py [--cases 'vgg16/*' ...] [--commit COMMIT] [--rounds 9]

A file in benchmarks/results has the fastest candidate of a program, which docs/performance.md
shows, and the commit that was measured. Each candidate is compiled by that commit, in a worktree
of its own, and by the present one. If the texts and the launches of the kernels are equal, they are
not timed. The others are timed alternately: a sample is the summed event time of a run's kernels,
and the script prints medians. `speed` is the former time over the present one, `others` the share
of the processors' time that other work took in the rests. A candidate that the present space does
not contain is refused, with the reason. A choice that did not exist when a result was stored is
left open, or has its value in `SINCE`.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from turns import Figures, timed_alternately

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PROGRAMS = Path(__file__).parent / "programs"
REPEATS = 7
"""Profiled runs for each sample."""

SINCE = {"stores": "cached", "tail": "none", "lanes": "inner"}
"""Choices that were added, with the values that older kernels have."""

Answer = dict[str, Any]
Server = Callable[[Answer], Answer]


def serve() -> None:
    """Answers requests, one JSON value in a line, with the liftpy that is on the path."""
    import numpy as np  # noqa: PLC0415  the other process imports no liftpy

    import liftpy as lp  # noqa: PLC0415

    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a driver may write to the standard output
    kernel, arrays = None, []
    for line in sys.stdin:
        request: Answer = json.loads(line)
        if "case" in request:
            name = str(request["case"])
            if kernel is not None:
                kernel.close()
            try:
                path = PROGRAMS / f"{name.removeprefix('programs/')}.lift"
                program = lp.parse(path.read_text("utf-8")) if path.exists() else lp.workload(name)
                kernel = compiled(lp, program, request["settings"])
            except lp.LiftError as refusal:
                kernel, answer = None, {"refused": str(refusal)}
            else:
                rng = np.random.default_rng(0)
                shapes = [[int(n) for n in p.type.lengths()] for p in program.params]
                arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
                runs = [[n.global_size, n.local_size, n.phase] for n in kernel.module.launches]
                answer = {"kernels": [kernel.sources, runs]}
        else:
            assert kernel is not None
            times = kernel.profile(*arrays, repeats=REPEATS, warmup=1)
            answer = {"wall": sum(times.values())}
        print(json.dumps(answer), file=out, flush=True)


def compiled(lp: Any, program: Any, settings: Answer) -> Any:
    """The kernels of a candidate; of several, of the one with the values of `SINCE`."""
    known = [name for name in SINCE if name not in settings]
    some = itertools.chain.from_iterable(
        itertools.combinations(known, n) for n in range(len(known) + 1)
    )
    refusals: list[Exception] = []
    for names in some:
        try:
            return lp.compile(program, {**settings, **{name: SINCE[name] for name in names}})
        except lp.LiftError as refusal:
            refusals.append(refusal)
    raise refusals[0]


@contextmanager
def server(tree: Path) -> Generator[Server]:
    """What a process with the liftpy of a tree answers to requests."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def answer(request: Answer) -> Answer:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print(json.dumps(request), file=process.stdin, flush=True)
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"refused": f"the process of {tree.name} has ended"}

    try:
        yield answer
    finally:
        process.kill()
        process.wait()


@contextmanager
def worktree(commit: str) -> Generator[Path]:
    """The files of a commit in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / commit
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compared(case: str, settings: Answer, servers: dict[str, Server], rounds: int) -> str:
    """The line to print for a candidate; `servers` are the former one and the present one."""
    request: Answer = {"case": case, "settings": settings}
    made = {name: ask(request) for name, ask in servers.items()}
    for name, answer in made.items():
        if "refused" in answer:
            return f"{name}: refused: {answer['refused'].splitlines()[0]}"
    former, present = (answer["kernels"] for answer in made.values())
    if former == present:
        return "the same kernels"

    def turn_of(ask: Server) -> Callable[[], Figures]:
        def turn() -> Figures:
            answer = ask({})
            if "refused" in answer:
                raise ChildProcessError(answer["refused"])
            return answer

        return turn

    samples, others = timed_alternately({n: turn_of(s) for n, s in servers.items()}, rounds)
    before, now = (statistics.median(samples[name]["wall"]) / 1e6 for name in servers)
    return f"{before:.3f} ms, now {now:.3f} ms, speed {before / now:.2f}, others {others:.0%}"


def main() -> None:
    """Prints a line for each stored candidate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=["*"], help="patterns of names (all)")
    parser.add_argument("--commit", help="the former commit (that of each result)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    by_commit: dict[str, list[Answer]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        result: Answer = json.loads(path.read_text("utf-8"))
        if "case" in result and any(fnmatch.fnmatch(result["case"], p) for p in given.cases):
            commit = given.commit or result["machine"]["commit"]
            by_commit.setdefault(commit, []).append(result)
    for commit, results in by_commit.items():
        with ExitStack() as opened:
            tree = opened.enter_context(worktree(commit))
            servers = {
                commit: opened.enter_context(server(tree)),
                "now": opened.enter_context(server(ROOT)),
            }
            for result in results:
                settings = result["best"]["assignment"]
                found = compared(result["case"], settings, servers, given.rounds)
                print(f"{commit} {result['case']:32} {found}", flush=True)


if __name__ == "__main__":
    main()
