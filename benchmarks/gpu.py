"""The convolution layers of VGG-16 on a GPU, timed alternately with cuDNN in float32.

    python benchmarks/gpu.py --device nvidia [--layers 7 24] [--samples 200] [--time-limit 45]

Each layer starts with a campaign of liftpy with the default search, which is stored in `--out`; a
later run resumes it, and `--skip-search` uses it as it is. Then the fastest candidate and PyTorch's
convolution by cuDNN, with images in both memory layouts, take turns, in a new random order in each
round. If the fastest candidate uses F(m, r) (Winograd's algorithm), the fastest one that does not
is timed, too. All have a bias, all compute in float32 without TF32, and all results are compared
with the program's meaning in float64.

Times are those of 20 runs that are enqueued together, divided by 20 (fewer runs if they would take
over 0.1 s). liftpy's device time is the sum of the events of its kernels; cuDNN's is that of a CUDA
graph between two CUDA events, in which its kernels follow each other without the host. Ratios
compare these two. liftpy's host time is that from the first launch to the end of the last kernel.

The raw data of a layer are written to a JSON file in `--out`, and the table of all files there
between two markers of `--page`. `--peer none` needs no GPU; `--peer cpu` compares with PyTorch on
the CPU, by the host's clock, to try the script. The exit status is 1 if a layer has no times, and 2
if something is missing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ours
from cases import CASES, Case
from peers import cudnn
from report import Result, between, geomean, order, ratio, table
from turns import timed_alternately, turn

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.errors import LiftError
from liftpy.explore.campaign.environment import environment
from liftpy.explore.campaign.rows import Row
from liftpy.explore.report.wording import counts_text, in_time
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.workloads import VGG16

RESULTS = Path(__file__).parent / "results" / "gpu"
BEGIN, END = "<!-- gpu: begin -->", "<!-- gpu: end -->"

LONGEST = 0.1
"""Seconds that the runs that are enqueued together take at most."""

CHOOSING = 5
"""Rounds in which the fastest candidate is chosen among the fastest of a campaign."""

GOAL = 0.7
"""The goal for the geometric mean of cuDNN's time divided by liftpy's."""

MINE, DIRECT = "liftpy", "liftpy, direct"


def text_of(row: Row) -> str:
    """A candidate: its skeleton and its sizes."""
    sizes = (f"{n}={v}" for n, v in row.assignment.items() if isinstance(v, int))
    return " ".join([row.skeleton, *sizes])


def word_of(settings: dict[str, Any], last: str) -> list[str]:
    """The values of a setting in all stages, each once.

    >>> word_of({"family": "stages", "inputs.family": "small", "result.family": "small"}, "family")
    ['stages', 'small']
    """
    return list(dict.fromkeys(v for n, v in settings.items() if n.rpartition(".")[2] == last))


def family_of(settings: dict[str, Any]) -> str:
    """The family of a candidate; of one with several stages, its F(m, r) and their families."""
    families = [name for name in word_of(settings, "family") if name != "stages"]
    return " ".join([*(f"F({m})" for m in word_of(settings, "winograd")), ", ".join(families)])


def searched(case: Case, device: Device, options: argparse.Namespace) -> bool:
    """Runs or resumes the campaign of a case and prints its outcome; returns if it has times."""
    start = time.monotonic()
    try:
        campaign = ours.searched(
            case,
            device,
            options.out,
            samples=options.samples,
            time_limit=options.time_limit,
            families=options.families,
        )
    except LiftError as refusal:  # the other layers are still worth a search
        print(f"{case.name}: {refusal}", flush=True)
        return False
    best, seconds = campaign.best(), time.monotonic() - start
    found = f"{counts_text(campaign.counts)}, best {in_time(best.time_ns)}, {text_of(best)}"
    print(f"{case.name}: {found} ({seconds:.0f} s)", flush=True)
    return True


def candidates(case: Case, campaign: lp.Campaign, session: Session) -> dict[str, ours.Ours]:
    """The fastest candidate of a campaign, and the fastest without F(m, r) if that is another."""
    best = partial(ours.best, case, session=session, rounds=CHOOSING, figure="events")
    found = {MINE: best(campaign)}
    direct = tuple(r for r in campaign.rows if not word_of(r.assignment, "winograd"))
    if found[MINE].row not in direct and any(r.time_ns is not None for r in direct):
        found[DIRECT] = best(replace(campaign, rows=direct))
    return found


def measured(case: Case, session: Session, options: argparse.Namespace) -> Result:
    """Everything that is known of a layer after its rounds."""
    campaign = ours.stored(case, options.out)
    campaign.best()  # refuses a campaign without times
    made = candidates(case, campaign, session)
    timed, known = cudnn.contestants(case, options.peer)
    for name, one in made.items():
        fitting = int(LONGEST * 1e9 / (one.row.time_ns or 1))
        timed[name] = one.together(session, max(1, min(cudnn.RUNS, fitting)))
    turns = {name: partial(turn, one) for name, one in timed.items()}
    samples, others = timed_alternately(turns, options.rounds)
    for one in made.values():
        one.loaded.close()
    return {
        "case": case.name,
        "flops": case.flops,
        "outcomes": campaign.counts,
        "limits": [call.limits for call in campaign.calls],
        "families": campaign.identity.settings.get("families"),
        "liftpy": {name: one.to_json() for name, one in made.items()},
        "peers": known,
        "others": others,
        "ns": samples,
    }


def us(result: Result, name: str, figure: str = "events") -> float:
    """The median time of a contestant in microseconds."""
    return statistics.median(result["ns"][name][figure]) / 1e3


def fastest(result: Result) -> str | None:
    """The layout in which the peer is fastest; None without a peer."""
    return min(result["peers"], key=lambda name: us(result, name), default=None)


def against(result: Result, name: str = MINE) -> float | None:
    """The peer's device time in its faster layout, divided by that of a candidate."""
    peer = fastest(result)
    return None if peer is None else us(result, peer) / us(result, name)


def direct(result: Result) -> str:
    """The name of the fastest candidate without F(m, r), which may be the fastest of all."""
    return DIRECT if DIRECT in result["ns"] else MINE


def cells(result: Result) -> list[str]:
    """The row of a layer."""
    peer, best = fastest(result), result["liftpy"][MINE]
    known = result["peers"].get(peer, {})
    return [
        result["case"],
        f"{us(result, MINE):.1f}",
        f"{us(result, MINE, 'host'):.1f}",
        "" if peer is None else f"{us(result, peer):.1f} ({known['layout']})",
        ratio(against(result)),
        ratio(against(result, direct(result))),
        f"{result['flops'] / us(result, MINE) / 1e6:.3g}",
        f"{best['error']:.1e}",
        "" if peer is None else f"{known['error']:.1e}",
        family_of(best["assignment"]),
        counts_text(result["outcomes"]),
    ]


HEADS = ["layer", "liftpy us", "host us", "cuDNN us", "cuDNN / liftpy", "without F(m, r)"]
HEADS += ["TFLOP/s", "error", "cuDNN's error", "family", "tried"]


def means(results: list[Result]) -> str:
    """The geometric means of the ratios; empty without a peer."""
    compared = [r for r in results if r["peers"]]
    if not compared:
        return ""
    every, without = (
        geomean([against(r, name(r)) or 0 for r in compared]) for name in (lambda _: MINE, direct)
    )
    return (
        f"Geometric mean of cuDNN / liftpy over {len(compared)} of {len(VGG16)} layers: "
        f"{every:.2f} (the goal is {GOAL}); without F(m, r): {without:.2f}."
    )


def where_text(result: Result) -> str:
    """Where and with what a layer was measured."""
    m = result["machine"]
    commit = m["commit"][:8] if m["commit"] else "an unknown commit"
    libraries = "".join(f"{name} {version}; " for name, version in m["versions"].items())
    return (
        f"{m['device']}, {m['runtime']} {m['driver']}; {libraries}liftpy at {commit}, {m['date']}; "
        f"medians of {m['rounds']} rounds"
    )


def tables(results: list[Result]) -> str:
    """All that was measured."""
    if not results:
        return "Nothing is measured yet."
    results = sorted(results, key=order)
    places = {}
    for r in results:
        places.setdefault(where_text(r), []).append(r["case"])
    measured_at = "\n".join(f"- {text}: {', '.join(names)}." for text, names in places.items())
    parts = [measured_at, table(HEADS, map(cells, results)), means(results)]
    return "\n\n".join(filter(None, parts))


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default=None)
    parser.add_argument("--layers", type=int, nargs="*", default=list(VGG16), choices=list(VGG16))
    parser.add_argument("--samples", type=int, default=200, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=None, help="seconds of a campaign")
    parser.add_argument("--families", nargs="*", default=None, choices=list(FAMILIES))
    search = parser.add_mutually_exclusive_group()
    search.add_argument("--skip-search", action="store_true", help="take what is stored")
    search.add_argument("--search-only", action="store_true", help="campaigns, and no rounds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer", choices=cudnn.WHERE, default="cuda")
    parser.add_argument("--commit", default=None, help="of this code, if it is no checkout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=None)
    return parser.parse_args(arguments)


def rounds(cases: list[Case], device: Device, options: argparse.Namespace) -> int:
    """Times the layers and writes each when it is measured; returns how many have no times."""
    where = environment(device) | {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": cudnn.versions(options.peer),
        "rounds": options.rounds,
    }
    where["commit"] = options.commit or where["commit"]
    failed = 0
    with Session(device) as session:
        for case in cases:
            try:
                result = measured(case, session, options) | {"machine": where}
            except (LiftError, ValueError) as why:  # the others are still worth measuring
                print(f"{case.name} is left out: {why}", flush=True)
                failed += 1
                continue
            path = options.out / f"{ours.file_of(case)}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            told = ", ".join(f"{name} {us(result, name):.1f} us" for name in result["ns"])
            print(f"{case.name}: {told}", flush=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Searches, measures, prints and writes the table."""
    options = parsed(arguments)
    try:
        device = find_device(options.device)
    except LiftError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    if not options.search_only and (lacks := cudnn.missing(options.peer, device)):
        print(f"nothing was run: {lacks}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    cases = [CASES[f"vgg16/{number}"] for number in options.layers]
    if not options.skip_search:
        found = [searched(case, device, options) for case in cases]
        if options.search_only:
            return int(not all(found))
    unmeasured = rounds(cases, device, options)
    results = [json.loads(p.read_text("utf-8")) for p in options.out.glob("*.json")]
    print(f"\n{tables(results)}")
    if options.page:
        page = options.page.read_text("utf-8")
        options.page.write_text(between(page, BEGIN, END, tables(results)), "utf-8")
    return int(unmeasured > 0)


if __name__ == "__main__":
    sys.exit(main())
