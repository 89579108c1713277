"""8-bit convolutions of ResNet-50 and MobileNet: ONNX's QLinearConv, and the same in f32.

    python benchmarks/quantised.py [--layers resnet50/4 'mobilenet/*' ...] [--samples 40]
        [--time-limit 20] [--rounds 9] [--skip-search] [--page docs/performance.md]

By default, the layers are every fourth of the distinct layers of ResNet-50, from the first, and
every third of MobileNet's, from the second (the first is like ResNet's first). Each is a model of
one node `QLinearConv`, with images and results in u8, weights in i8 with a scale for each kernel,
biases in i32, and odd zero points, all random with a seed. Every second scale of a kernel is a
power of two, so that some results lie halfway between two integers. A model of one node `Conv` has
the same numbers in f32, in the same order of axes (channels first). A campaign explores each, with
the default search. The three fastest candidates of each are timed again, to choose one; then the
two chosen ones and ONNX Runtime on both models are timed alternately.

The result of the 8-bit candidate must equal an oracle, whose sums are exact integers, in every
element; otherwise the exit status is 1. How ONNX Runtime's result differs is reported. Ratios to
ONNX Runtime compare host times, `f32 / u8` compares device events; each is a median. `bytes` are
those of the image, the weights and the result; `peak` is the memory of the candidate. The data of
a layer are written to a file in `--out` as soon as it is measured; the tables are made from all
files there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import ours
from bench import PAGE, machine, pin
from quantised_layers import (
    LAYERS,
    Array,
    Contestant,
    Quantised,
    by_onnx_runtime,
    imported,
    selected,
)
from quantised_report import (
    F32,
    MARKERS,
    ORT_F32,
    ORT_U8,
    U8,
    Candidate,
    Machine,
    Measured,
    Result,
    differences,
    median,
    speed,
    text,
    wrong,
)
from report import between
from turns import Figures, Timed, timed_alternately, turn

import liftpy as lp
from liftpy.errors import LiftError
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.report.wording import counts_text
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

Settings = dict[str, str | int]

OUT = Path(__file__).parent / "results" / "quantised"
TOLERANCE = 1e-4
"""The largest difference of an f32 result from float64, relative to the largest value."""

BUILDING = 4
"""Seconds that the driver's compiler may take for a candidate."""

FINALISTS = 3
"""Candidates of each campaign that are timed again."""

CHOOSING = 3
"""Rounds of that choice."""


@dataclass(frozen=True)
class Finalist:
    """A candidate, built, with the error of its result."""

    settings: Settings
    module: Module
    loaded: Loaded
    error: float

    def run(self) -> Figures:
        """Nanoseconds of a run."""
        return ours.run(self.loaded)

    def to_json(self) -> Candidate:
        """What a reader has to know to run it again."""
        memory = self.module.memory
        return {"assignment": self.settings, "peak": memory.peak, "error": self.error}


def fastest(campaign: lp.Campaign) -> list[Settings]:
    """The settings of the fastest candidates of a campaign."""
    timed = sorted((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    return [dict(row.assignment) for row in timed[:FINALISTS]]


def built(case: Contestant, session: Session, settings: Settings) -> Finalist:
    """A candidate with its result checked."""
    candidate = candidate_of(case.program, session.device, settings)
    module = compile_candidate(candidate.skeleton, candidate.assignment)
    loaded = session.load(module)
    return Finalist(settings, module, loaded, case.error(run_poisoned(loaded, case.arrays)))


def chosen(case: Contestant, session: Session, settings: list[Settings]) -> Finalist:
    """The fastest of the candidates with these settings."""
    found = [built(case, session, each) for each in settings]
    turns = {str(k): partial(turn, one.run) for k, one in enumerate(found)}
    samples, _ = timed_alternately(turns, CHOOSING)
    best = found[int(min(samples, key=lambda k: min(samples[k]["events"])))]  # others only delay
    for other in found:
        if other is not best:
            other.loaded.close()
    return best


def tensors(numbers: dict[str, Array], result: Array) -> int:
    """The bytes of the image, the weights and the result of a layer."""
    return numbers["x"].nbytes + numbers["w"].nbytes + result.size * numbers["x"].itemsize


def searched(case: Contestant, session: Session, options: argparse.Namespace) -> lp.Campaign:
    """The campaign of a program as asked for."""
    path = options.out / f"{ours.file_of(case.name)}.db"
    if options.skip_search:
        return lp.Campaign.read(path)
    return lp.explore(
        case.program,
        db=path,
        device=session.device,
        samples=options.samples,
        time_limit=options.time_limit,
        build_limit=BUILDING,
    )


def measured(layer: Quantised, session: Session, options: argparse.Namespace) -> Measured:
    """Everything that is known of a layer after its rounds."""
    cases = {name: imported(layer, quantised=name == U8) for name in (U8, F32)}
    campaigns = {name: searched(case, session, options) for name, case in cases.items()}
    best = {
        name: chosen(cases[name], session, fastest(campaign))
        for name, campaign in campaigns.items()
    }
    turns: dict[str, Timed] = {name: partial(turn, one.run) for name, one in best.items()}
    turns[ORT_U8], theirs = by_onnx_runtime(layer, options.threads, quantised=True)
    turns[ORT_F32], _ = by_onnx_runtime(layer, options.threads, quantised=False)
    samples, others = timed_alternately(turns, options.rounds)
    for one in best.values():
        one.loaded.close()
    apart = theirs[0].astype(int) - layer.oracle
    counts = Counter(apart[apart != 0].tolist())
    return {
        "layer": layer.name,
        "sizes": str(layer.layer),
        "flops": layer.layer.flops,
        "elements": layer.oracle.size,
        "bytes": {
            U8: tensors(layer.numbers, layer.oracle),
            F32: tensors(layer.floats, layer.oracle),
        },
        "liftpy": {name: one.to_json() for name, one in best.items()},
        "outcomes": {name: dict(campaign.counts) for name, campaign in campaigns.items()},
        "ties": int(layer.ties.sum()),
        "peer": {
            "differences": {str(d): n for d, n in sorted(counts.items())},
            "at ties": int(np.count_nonzero(apart[layer.ties])),
        },
        "others": others,
        "ns": samples,
    }


def main(arguments: list[str] | None = None) -> int:
    """Explores and measures layer by layer, then prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", nargs="*", default=None, help="patterns of names")
    parser.add_argument("--samples", type=int, default=40, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds of a campaign")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default=None)
    parser.add_argument("--skip-search", action="store_true", help="take what is stored")
    parser.add_argument("--render-only", action="store_true", help="only make the table")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", type=Path, default=None, help=f"such as {PAGE.name}")
    options = parser.parse_args(arguments)
    try:
        names = selected(options.layers)
    except ValueError as unknown:
        parser.error(str(unknown))
    if options.alone:
        return int(measure(names, options) > 0)
    given = sys.argv[1:] if arguments is None else arguments
    failed = 0 if options.render_only else in_processes(names, given)
    results = [json.loads(p.read_text("utf-8")) for p in sorted(options.out.glob("*.json"))]
    shown = text(results)
    print(f"\n{shown}")
    if options.page:
        page = options.page.read_text("utf-8")
        options.page.write_text(between(page, *MARKERS, shown), "utf-8")
    return int(failed > 0 or any(map(wrong, results)))


def in_processes(names: list[str], arguments: list[str]) -> int:
    """Measures each layer in a process, since a driver may crash; returns how many failed."""
    failed, start = 0, time.monotonic()
    for k, name in enumerate(names, 1):
        print(f"{k} of {len(names)}, {time.monotonic() - start:.0f} s: {name}", flush=True)
        command = [sys.executable, __file__, *arguments, "--layers", name, "--alone"]
        status = subprocess.run(command, check=False).returncode
        if status < 0:
            print(f"  {name} is left out: the process died with signal {-status}", flush=True)
        failed += status != 0
    return failed


def measure(names: list[str], options: argparse.Namespace) -> int:
    """Measures layers and writes each when it is measured; returns how many have no times."""
    import onnxruntime  # noqa: PLC0415  its version

    pin(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    device = find_device(options.device)
    place: Machine = {
        **machine(),
        "device": f"{device.platform} {device.driver_version}",
        "threads": options.threads,
        "versions": onnxruntime.__version__,
        "rounds": options.rounds,
        "samples": options.samples,
        "time_limit": options.time_limit,
    }
    failed = 0
    with Session(device) as session:
        for name in names:
            layer = Quantised(name, LAYERS[name])
            try:
                figures = measured(layer, session, options)
            except (LiftError, ValueError) as why:  # the others are still worth measuring
                print(f"  {name} is left out: {why}", flush=True)
                failed += 1
                continue
            result: Result = {**figures, "machine": place}
            path = options.out / f"{name.replace('/', '_')}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            error = result["liftpy"][F32]["error"]
            if wrong(result) or error > TOLERANCE:
                print(f"  WRONG: {wrong(result)} elements differ, f32 by {error:.1e}", flush=True)
                failed += 1
            for own in (U8, F32):
                words = " ".join(f"{n}={v}" for n, v in result["liftpy"][own]["assignment"].items())
                print(f"  {own}: {words}; {counts_text(result['outcomes'][own])}", flush=True)
            times = ", ".join(f"{n} {median(result, n) / 1e6:.3f} ms" for n in result["ns"])
            told = f"f32 / u8 {speed(result):.2f}, ONNX Runtime differs {differences(result)}"
            print(f"  {times}; {told}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
