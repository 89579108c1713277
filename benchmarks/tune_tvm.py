"""Tunes TVM for cases: `bench.py` compiles its code by the traces that this stores.

    python benchmarks/tune_tvm.py --cases vgg16/7 'matmul/1024*' --trials 256

Needs `apache-tvm`, `xgboost` and `cloudpickle`. The tuner is TVM's own, MetaSchedule, with its own
search and model of costs; it builds two programs at a time and runs one. The trace of the fastest
goes to `results/tvm/`, with its time and what it took to find; a slower one than the stored is not
kept. Trials are timed, so the machine should be at rest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

from bench import machine, pin
from cases import Case, chosen
from peers.tvm import RECORDS, TVM, part, record_of

BATCH = 64
"""Trials between two looks at the model."""

REPEATS, REPEAT_MS = 3, 20
"""Times of a program, of which the median counts, and how much each fills with runs."""


def tuned(case: Case, trials: int, threads: int, seed: int) -> dict[str, Any] | None:
    """The fastest program of so many trials; None if TVM has no program of the case."""
    peer, meta_schedule = TVM(), part("s_tir.meta_schedule")
    program = peer.program(case)
    if program is None:
        return None
    start = time.monotonic()
    timing = meta_schedule.runner.EvaluatorConfig(number=1, repeat=REPEATS, min_repeat_ms=REPEAT_MS)
    with tempfile.TemporaryDirectory() as folder:
        database = meta_schedule.tune_tir(
            program,
            peer.target(threads),
            folder,
            trials,
            num_trials_per_iter=BATCH,
            builder=meta_schedule.builder.LocalBuilder(max_workers=threads),
            runner=meta_schedule.runner.LocalRunner(evaluator_config=timing),
            num_tuning_cores=threads,
            seed=seed,
        )
        return fastest(database) | {"seconds": round(time.monotonic() - start)}


def fastest(database: Any) -> dict[str, Any]:
    """The fastest record of a database of one program."""
    timed = [r for r in database.get_all_tuning_records() if r.run_secs]
    ms = [statistics.median(float(s) for s in r.run_secs) * 1e3 for r in timed]
    best = min(range(len(timed)), key=ms.__getitem__)
    return {"trials": len(timed), "ms": ms[best], "trace": timed[best].trace.as_json()}


def store(case: Case, found: dict[str, Any]) -> str:
    """Keeps what was found if nothing faster is there; a line that says so."""
    path = record_of(case)
    line = f"{case.name}: {found['ms']:.3f} ms, {found['trials']} trials, {found['seconds']} s"
    if path.exists() and (before := json.loads(path.read_text("utf-8"))["ms"]) <= found["ms"]:
        return f"{line}; kept is one of {before:.3f} ms"
    RECORDS.mkdir(parents=True, exist_ok=True)
    known = {"case": case.name, "tvm": TVM().version(), "machine": machine()}
    text = json.dumps(known | found, default=lambda n: n.value)  # TVM has numbers of its own
    path.write_text(text + "\n", encoding="utf-8")
    return line


def main() -> int:
    """Tunes one case after another."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", required=True, help="patterns of names")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pin(options.threads)
    os.environ["TVM_NUM_THREADS"] = str(options.threads)
    if (why := TVM().available()) is not None:
        print(f"TVM is not there: {why}")
        return 1
    for case in chosen(options.cases):
        found = tuned(case, options.trials, options.threads, options.seed)
        print(f"{case.name}: no program" if found is None else store(case, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
