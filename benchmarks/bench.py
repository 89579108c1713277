"""Compares liftpy with other libraries, which are timed alternately in one run.

    python benchmarks/bench.py [--cases 'vgg16/*'] [--samples 60] [--rounds 15] [--skip-search]

Each case starts with a campaign of liftpy. Its database is stored in the folder `--out`, so that a
later run resumes it; `--skip-search` uses the stored campaign as it is. Then the best candidate and
each library run in rounds, in a new random order each round. A turn runs the contestant for 20 ms
without timing, and then for at least 20 ms with timing. The median of a turn is one sample; the
median of all rounds is the reported time. Each library runs in its own process. Before that, every
result is compared with the program's meaning in float64. liftpy's time is measured in two ways: by
device events, and on the host, from before the first launch to the end of the last kernel. Other
libraries have only the host time, and ratios compare host times.

The raw data of a case are written to a JSON file in `--out`; the tables of `docs/performance.md`
are made from all files there. With `--strict`, the exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import ours
from cases import CASES, Case, chosen
from peers import PEERS, Peer
from peers.interface import LeftOut
from peers.process import PeerDied, Remote
from report import BUSY, Known, Machine, Measured, Place, Result, missed, rendered
from turns import Figures, timed_alternately, turn

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.errors import LiftError
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"


def pin(threads: int) -> None:
    """Binds this process to so many processors, and starts it again if that changed something.

    The libraries see how many processors there are when they are loaded.
    """
    allowed = os.sched_getaffinity(0)
    if len(allowed) > threads:
        os.sched_setaffinity(0, sorted(allowed)[:threads])
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606  itself again


VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
"""Instruction sets for vectors by the processor's flag, the widest first."""


def machine() -> Place:
    """Where and with what this was measured."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [x.partition(":")[2].strip() for x in info.splitlines() if x.startswith("model name")]
    flags = next((x.split() for x in info.splitlines() if x.startswith("flags")), [])
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607  the one in the path
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cpu": names[0] if names else platform.processor(),
        "vectors": next((name for flag, name in VECTORS.items() if flag in flags), ""),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def ready(
    case: Case, peers: dict[Peer, Remote]
) -> tuple[dict[str, Callable[[], Figures]], dict[str, Known]]:
    """The turns of the peers that compute a case, each checked; what is known of them."""
    turns: dict[str, Callable[[], Figures]] = {}
    known: dict[str, Known] = {}
    for peer, remote in peers.items():
        try:
            made = remote.make(case.name)
            if made is None:
                continue
            layout, result = made
            known[peer.name] = {"layout": layout, "computes": peer.computes}
            if peer.computes:
                known[peer.name]["error"] = case.error(result)
            turns[peer.name] = remote.turn
        except (PeerDied, LeftOut, ValueError) as why:
            known[peer.name] = {"computes": peer.computes, "left_out": str(why)}
            print(f"  {peer.name} is left out of {case.name}: {why}", flush=True)
    return turns, known


def searched(case: Case, device: Device, options: argparse.Namespace) -> lp.Campaign:
    """The campaign of a case as asked for."""
    return ours.searched(
        case,
        device,
        options.out,
        samples=options.samples,
        time_limit=options.time_limit,
        families=options.families,
        memory_limit=options.memory and int(options.memory * case.needed),
    )


def measured(
    case: Case, session: Session, peers: dict[Peer, Remote], options: argparse.Namespace
) -> Measured:
    """Everything that is known of a case after its rounds."""
    if options.skip_search:
        campaign = ours.stored(case, options.out)
    else:
        campaign = searched(case, session.device, options)
    best = ours.best(case, campaign, session)
    turns, known = ready(case, peers)
    samples, others = timed_alternately({"liftpy": lambda: turn(best.run), **turns}, options.rounds)
    best.loaded.close()
    return {
        "case": case.name,
        "group": case.group,
        "flops": case.flops,
        "outcomes": campaign.counts,
        "restricted": {
            name: value
            for name in ("families", "memory_limit")
            if (value := campaign.identity.settings.get(name)) is not None
        },
        "best": best.to_json(),
        "peers": known,
        "others": others,
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
    parser.add_argument(
        "--families", nargs="*", default=None, help="of the campaigns; all if not given"
    )
    parser.add_argument(
        "--memory", type=float, default=None, help="peak, in times what is given and made, at most"
    )
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
    if options.search_only:
        return 0
    found = [json.loads(p.read_text("utf-8")) for p in sorted(options.out.glob("*.json"))]
    results = [result for result in found if "case" in result]  # other scripts write there too
    groups = {name: case.group for name, case in CASES.items()}
    page = options.page.read_text("utf-8")
    options.page.write_text(rendered(page, results, groups), "utf-8")
    for line in missed(results):
        print(f"not held: {line}")
    return 1 if options.strict and missed(results) else 0


def measure_all(options: argparse.Namespace) -> None:
    """The chosen cases, one after another, each written as soon as it is measured."""
    device = find_device(options.device)
    asked = [p for p in PEERS if options.peers is None or p.name in options.peers]
    absent = {p.name: why for p in asked if (why := p.available()) is not None}
    present = [p for p in asked if p.name not in absent]
    where: Machine = {
        **machine(),
        "device": f"{device.platform} {device.driver_version}",
        "liftpy": lp.__version__,
        "threads": options.threads,
        "versions": {p.name: p.version() for p in present if p.computes},
        "absent": absent,
        "rounds": options.rounds,
    }
    for name, why in absent.items():
        print(f"{name} is left out: {why}")
    with ExitStack() as stack:
        session = stack.enter_context(Session(device))
        remotes = {p: stack.enter_context(Remote(p.name, options.threads)) for p in present}
        for case in chosen(options.cases):
            if options.search_only:
                found = searched(case, device, options)
                print(f"{case.name}: {found.counts}, {found.best().time_ns} ns", flush=True)
                continue
            if options.skip_search and not ours.has(case, options.out):
                print(f"{case.name}: no campaign in {options.out}", flush=True)
                continue
            try:
                figures = measured(case, session, remotes, options)
            except LiftError as refusal:  # the other cases are still worth measuring
                print(f"{case.name} is left out: {refusal}", flush=True)
                continue
            result: Result = {**figures, "machine": where}
            path = options.out / f"{ours.file_of(case.name)}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            times = {n: statistics.median(f["wall"]) / 1e6 for n, f in result["ns"].items()}
            if result["others"] > BUSY:
                print(f"  {case.name}: other work took {result['others']:.0%} of the processors")
            print(case.name, ", ".join(f"{n} {t:.3f} ms" for n, t in times.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
