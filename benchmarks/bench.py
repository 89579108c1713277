"""liftpy against its peers, turn about in one run.

    python benchmarks/bench.py [--cases 'vgg16/*'] [--samples 60] [--rounds 15] [--skip-search]

For each case: liftpy's campaign (kept in a database of the folder `--out`, so that it goes on, and
`--skip-search` takes what is there), then its best candidate and every peer in turn, each round in
another order. In a turn a peer runs once unmeasured, then until `TURN` seconds are full; the median
of the turn is one sample, the median of the rounds is its time. Every result was compared with the
program's meaning in float64 before. liftpy is timed twice at once: by device events, and on the
host from the call to the end of the last kernel. Peers have only the second, and ratios are of it.

Raw data go to `--out`, a JSON file a case; `docs/performance.md` gets the tables of all that are
there. `--strict` makes the exit status 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ours
from cases import Case, chosen
from peers import PEERS, Peer
from report import missed, rendered

import liftpy as lp
from liftpy.opencl.run import Session, find_device

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
TURN = 0.02
MOST_IN_A_TURN = 25
SLOW = 0.1
"""Seconds from which on a run is its own warm-up."""

REST = 0.005
"""Seconds between two turns, in which the threads of the one before fall asleep."""

Timed = Callable[[], dict[str, float]]


def pin(threads: int) -> None:
    """Binds this process to so many processors, and starts it again if that changed something.

    The libraries see how many processors there are when they are loaded.
    """
    allowed = os.sched_getaffinity(0)
    if len(allowed) > threads:
        os.sched_setaffinity(0, sorted(allowed)[:threads])
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606  itself again


def machine() -> dict[str, Any]:
    """Where and with what this was measured."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [x.partition(":")[2].strip() for x in info.splitlines() if x.startswith("model name")]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607  the one in the path
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def host(run: Callable[[], object]) -> Timed:
    """A peer's run, timed on the host."""

    def timed() -> dict[str, float]:
        start = time.perf_counter_ns()
        run()
        return {"wall": time.perf_counter_ns() - start}

    return timed


def turn(timed: Timed) -> dict[str, float]:
    """One sample of each figure: the median of a turn."""
    time.sleep(REST)
    first = timed()
    if first["wall"] > SLOW * 1e9:
        return first
    runs = [timed()]
    count = min(MOST_IN_A_TURN, int(TURN * 1e9 / max(runs[0]["wall"], 1)))
    runs += [timed() for _ in range(count - 1)]
    return {figure: statistics.median(r[figure] for r in runs) for figure in first}


def turn_about(contestants: dict[str, Timed], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Samples in nanoseconds by contestant and figure, after one round that is not counted."""
    order, samples = list(contestants), dict[str, dict[str, list[float]]]()
    shuffled = random.Random(0)
    for k in range(rounds + 1):
        shuffled.shuffle(order)
        for name in order:
            for figure, value in turn(contestants[name]).items():
                column = samples.setdefault(name, {}).setdefault(figure, [])
                if k:
                    column.append(value)
    return samples


def made(case: Case, peers: list[Peer], threads: int) -> tuple[dict[str, Timed], dict[str, Any]]:
    """The peers that compute a case, each checked; what is known of them."""
    contestants: dict[str, Timed] = {}
    known: dict[str, Any] = {}
    for peer in peers:
        ready = peer.make(case, threads)
        if ready is None:
            continue
        ready.run()
        known[peer.name] = {"layout": ready.layout, "computes": peer.computes}
        if peer.computes:
            try:
                known[peer.name]["error"] = case.error(ready.result())
            except ValueError as wrong:
                known[peer.name]["wrong"] = str(wrong)
                print(f"  {peer.name} is wrong and left out: {wrong}", flush=True)
                continue
        contestants[peer.name] = host(ready.run)
    return contestants, known


def measured(
    case: Case, session: Session, peers: list[Peer], options: argparse.Namespace
) -> dict[str, Any]:
    """Everything that is known of a case after its rounds."""
    if options.skip_search:
        campaign = ours.stored(case, options.out)
    else:
        campaign = ours.searched(
            case, session.device, options.out, options.samples, options.time_limit
        )
    best = ours.best(case, campaign, session)
    contestants, known = made(case, peers, options.threads)
    samples = turn_about({"liftpy": best.run, **contestants}, options.rounds)
    best.loaded.close()
    return {
        "case": case.name,
        "group": case.group,
        "flops": case.flops,
        "outcomes": campaign.counts,
        "best": best.to_json(),
        "peers": known,
        "ns": samples,
    }


def main() -> int:
    """Measures, writes the raw data, renders the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--samples", type=int, default=60, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=None, help="seconds of a campaign")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--skip-search", action="store_true", help="take what is stored")
    parser.add_argument("--search-only", action="store_true", help="campaigns, and no rounds")
    parser.add_argument(
        "--render-only", action="store_true", help="write the page of what is there"
    )
    parser.add_argument("--peers", nargs="*", default=None, help="names of peers; all if not given")
    parser.add_argument("--device", default=None)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--strict", action="store_true", help="exit status 1 for a missed goal")
    options = parser.parse_args()
    pin(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.render_only:
        measure_all(options)
    results = [json.loads(p.read_text("utf-8")) for p in sorted(options.out.glob("*.json"))]
    options.page.write_text(rendered(options.page.read_text("utf-8"), results), "utf-8")
    for line in missed(results):
        print(f"not held: {line}")
    return 1 if options.strict and missed(results) else 0


def measure_all(options: argparse.Namespace) -> None:
    """The chosen cases, one after another, each written as soon as it is measured."""
    device = find_device(options.device)
    asked = [p for p in PEERS if options.peers is None or p.name in options.peers]
    absent = {p.name: why for p in asked if (why := p.available()) is not None}
    present = [p for p in asked if p.name not in absent]
    where = machine() | {
        "device": f"{device.platform} {device.driver_version}",
        "liftpy": lp.__version__,
        "threads": options.threads,
        "versions": {p.name: p.version() for p in present if p.computes},
        "absent": absent,
        "rounds": options.rounds,
    }
    for name, why in absent.items():
        print(f"{name} is left out: {why}")
    with Session(device) as session:
        for case in chosen(options.cases):
            if options.search_only:
                found = ours.searched(
                    case, device, options.out, options.samples, options.time_limit
                )
                print(f"{case.name}: {found.counts}, {found.best().time_ns} ns", flush=True)
                continue
            if options.skip_search and not ours.has(case, options.out):
                print(f"{case.name}: no campaign in {options.out}", flush=True)
                continue
            result = measured(case, session, present, options) | {"machine": where}
            path = options.out / f"{ours.file_of(case)}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            times = {n: statistics.median(f["wall"]) / 1e6 for n, f in result["ns"].items()}
            print(case.name, ", ".join(f"{n} {t:.3f} ms" for n, t in times.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
