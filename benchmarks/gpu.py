"""VGG-16's convolutions and other programs on a GPU, timed alternately with PyTorch in float32.

    python benchmarks/gpu.py --device nvidia [--layers 7 24] [--samples 200] [--time-limit 45]
    python benchmarks/gpu.py --device nvidia --cases ['matmul/*' ...]

`--layers` selects convolutions of VGG-16, `--cases` programs by patterns of names: cases of
`bench.py` or of `ON_GPUS` (cases.py), and all of `ON_GPUS` if there is no pattern. Without both,
all nine layers are timed.

Each case starts with a campaign of liftpy with the default search, which is stored in `--out`; a
later run resumes it, and `--skip-search` uses it as it is. Then the fastest candidate and PyTorch's
function take turns, in a new random order in each round; with images, PyTorch's function runs in
both memory layouts. If a case streams an array, PyTorch's copy of that array is timed, too. If the
fastest candidate uses F(m, r) (Winograd's algorithm), the fastest one that does not is timed, too.
Convolutions have a bias, all compute in float32 without TF32, and all results are compared with the
program's meaning in float64.

Times are those of 20 runs that are enqueued together, divided by 20 (fewer runs if they would take
over 0.1 s). liftpy's device time is the sum of the events of its kernels; PyTorch's is that of a
CUDA graph between two CUDA events, in which its kernels follow each other without the host. Ratios
compare these two. liftpy's host time is that from the first launch to the end of the last kernel.

The raw data of a case are written to a JSON file in `--out`, and the tables of all files there
between markers of `--page`, one of the layers and one of the other cases. `--layers` without
numbers measures nothing and writes the tables. `--peer none` needs no GPU; `--peer cpu` compares
with PyTorch on the CPU, by the host's clock, to try the script. The exit status is 1 if a case has
no times, and 2 if something is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import ours
from cases import CASES, ON_GPUS, Case, chosen
from gpu_report import DIRECT, LAYERS, MINE, OTHERS, Result, rendered, us, word_of
from peers import cuda
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

LONGEST = 0.1
"""Seconds that the runs that are enqueued together take at most."""

CHOOSING = 5
"""Rounds in which the fastest candidate is chosen among the fastest of a campaign."""


def text_of(row: Row) -> str:
    """A candidate: its skeleton and its sizes."""
    sizes = (f"{n}={v}" for n, v in row.assignment.items() if isinstance(v, int))
    return " ".join([row.skeleton, *sizes])


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
    except LiftError as refusal:  # the other cases are still worth a search
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
    """Everything that is known of a case after its rounds."""
    campaign = ours.stored(case, options.out)
    campaign.best()  # refuses a campaign without times
    made = candidates(case, campaign, session)
    timed, known = cuda.contestants(case, options.peer)
    for name, one in made.items():
        fitting = int(LONGEST * 1e9 / (one.row.time_ns or 1))
        timed[name] = one.together(session, max(1, min(cuda.RUNS, fitting)))
    turns = {name: partial(turn, one) for name, one in timed.items()}
    samples, others = timed_alternately(turns, options.rounds)
    for one in made.values():
        one.loaded.close()
    return {
        "case": case.name,
        "flops": case.flops,
        "bytes": case.needed,
        "outcomes": campaign.counts,
        "limits": [call.limits for call in campaign.calls],
        "families": campaign.identity.settings.get("families"),
        "liftpy": {name: one.to_json() for name, one in made.items()},
        "peers": known,
        "others": others,
        "ns": samples,
    }


def selected(options: argparse.Namespace) -> list[Case]:
    """The cases of `--layers` and `--cases`; ValueError if a pattern fits no name."""
    every = CASES | ON_GPUS
    layers = options.layers
    if layers is None:
        layers = VGG16 if options.cases is None else ()
    found = [every[f"vgg16/{number}"] for number in layers]
    found += ON_GPUS.values() if options.cases == [] else ()
    for pattern in options.cases or ():
        fitting = chosen([pattern], every)
        if not fitting:
            known = ", ".join(ON_GPUS)
            message = f"no case has a name like {pattern}; there are {known}, and those of bench.py"
            raise ValueError(message)
        found += fitting
    return list(dict.fromkeys(found))


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default=None)
    parser.add_argument("--layers", type=int, nargs="*", default=None, choices=list(VGG16))
    parser.add_argument("--cases", nargs="*", default=None, help="patterns of names")
    parser.add_argument("--samples", type=int, default=200, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=None, help="seconds of a campaign")
    parser.add_argument("--families", nargs="*", default=None, choices=list(FAMILIES))
    search = parser.add_mutually_exclusive_group()
    search.add_argument("--skip-search", action="store_true", help="take what is stored")
    search.add_argument("--search-only", action="store_true", help="campaigns, and no rounds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer", choices=cuda.WHERE, default="cuda")
    parser.add_argument("--commit", default=None, help="of this code, if it is no checkout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=None)
    options = parser.parse_args(arguments)
    try:
        options.selected = selected(options)
    except ValueError as unknown:
        parser.error(str(unknown))
    return options


def rounds(cases: list[Case], device: Device, options: argparse.Namespace) -> int:
    """Times the cases and writes each when it is measured; returns how many have no times."""
    where = environment(device) | {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": cuda.versions(options.peer),
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
            path = options.out / f"{ours.file_of(case.name)}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            told = ", ".join(f"{name} {us(result, name):.1f} us" for name in result["ns"])
            print(f"{case.name}: {told}", flush=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Searches, measures, prints and writes the tables."""
    options = parsed(arguments)
    try:
        device = find_device(options.device)
    except LiftError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    if not options.search_only and (lacks := cuda.missing(options.peer, device)):
        print(f"nothing was run: {lacks}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.skip_search:
        found = [searched(case, device, options) for case in options.selected]
        if options.search_only:
            return int(not all(found))
    unmeasured = rounds(options.selected, device, options)
    results = [json.loads(p.read_text("utf-8")) for p in options.out.glob("*.json")]
    print(f"\n{LAYERS.text(results)}\n\n{OTHERS.text(results)}")
    if options.page:
        options.page.write_text(rendered(options.page.read_text("utf-8"), results), "utf-8")
    return int(unmeasured > 0)


if __name__ == "__main__":
    sys.exit(main())
