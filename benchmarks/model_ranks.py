"""How the model orders the candidates of a family: modelled and measured times on this machine.

    python benchmarks/model_ranks.py [PROGRAM ...] [--samples 200] [--families direct ...]
        [--device Intel] [--seed 0] [--limit SECONDS] [--out DIR] [--page FILE]

For each program and each family that makes it in one stage, `--samples` candidates, or all, are
drawn uniformly and without repetition. Each is compiled and run: its time is the least of three
runs, by device events. It is modelled with the hardware of the device. A row has Spearman's rank
correlation of the two times, and the geometric mean of measured over modelled times. `lost` are
candidates that the driver refused, or that failed. With `--limit`, a family ends after so many
seconds, with the candidates that it has by then. Each family is measured in a process of its own,
since a driver may crash, and its row is written to a file in `--out`; the table is made from all
files there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from bench import machine
from modelled_gpu import ranks
from report import between

from liftpy.constraints.device import Device
from liftpy.errors import LiftError
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.time import modelled
from liftpy.workloads import workload

PROGRAMS = (
    "matmul/256x256x256",
    "convolution/strided/28x28x16x32x3x1",
    "convolution/depthwise/28x28x32x3x1",
    "stencil/jacobi5/512x512",
    "softmax_small.lift",
)
RUNS = 3
FEWEST = 3
"""The fewest candidates of which a correlation is given."""
HERE = Path(__file__).parent
OUT = HERE / "results" / "ranks"
MARKERS = "<!-- ranks: begin -->", "<!-- ranks: end -->"


class Row(TypedDict):
    """A family of a program on a device; `pairs` are measured and modelled milliseconds."""

    device: str
    program: str
    family: str
    points: int
    lost: int
    pairs: list[tuple[float, float]]


def program_of(name: str) -> Program:
    """A workload, or a program of this folder."""
    if name.endswith(".lift"):
        return parse((HERE / "programs" / name).read_text(encoding="utf-8"))
    return workload(name)


def measured(name: str, family: str, path: Path, given: argparse.Namespace) -> None:
    """Write the row of a family, again after each candidate; nothing if it does not apply."""
    program, device = program_of(name), find_device(given.device)
    skeletons = skeletons_of(FAMILIES[family], program)
    space = None if isinstance(skeletons, str) else Space.of(program, device, skeletons)
    if space is None or not (count := space.count()):
        return
    row: Row = {
        "device": device.platform,
        "program": name,
        "family": family,
        "points": count,
        "lost": 0,
        "pairs": [],
    }
    arrays, hardware, began = inputs(program), hardware_of(device), time.monotonic()
    for candidate in space.sample(min(given.samples, count), given.seed):
        if given.limit is not None and time.monotonic() - began > given.limit:
            break
        row["lost"] += 1  # also if the driver ends this process
        path.write_text(json.dumps(row), encoding="utf-8")
        try:
            module = compile_candidate(candidate.skeleton, candidate.point)
            with Session(device) as session, session.load(module) as loaded:
                constants = {b.name for b in module.buffers if b.role == "constant"}
                loaded.set_constants({n: a for n, a in arrays.items() if n in constants})
                loaded.run({n: a for n, a in arrays.items() if n not in constants})
                least = min(sum(kernels) for kernels, _ in loaded.timed(RUNS, 1))
        except LiftError:
            continue
        found = modelled(candidate.skeleton.at(candidate.point), device, hardware)
        row["pairs"].append((least / 1e6, found.milliseconds))
        row["lost"] -= 1
    path.write_text(json.dumps(row), encoding="utf-8")


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The table in Markdown."""
    yield "| device | program | family | points | measured | lost | rank correlation | ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        if len(row["pairs"]) < FEWEST:
            continue
        took, said = zip(*row["pairs"], strict=True)
        alike = len({*took}) == 1 or len({*said}) == 1
        rank = "" if alike else f"{statistics.correlation(ranks(took), ranks(said)):.2f}"
        ratio = statistics.geometric_mean(a / b for a, b in row["pairs"])
        head = f"{row['device']} | {row['program']} | {row['family']} | {row['points']:,}"
        yield f"| {head} | {len(took)} | {row['lost']} | {rank} | {ratio:.2f} |"


def main() -> None:
    """Measures family by family, then prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--families", nargs="*", default=None, choices=FAMILIES)
    parser.add_argument("--device", default="Intel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=None, metavar="SECONDS")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", type=Path, default=None)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device: Device = find_device(given.device)
    apart = multiprocessing.get_context("spawn")
    for name in given.programs:
        for family in given.families or families_for(device):
            named = f"{device.platform} {name} {family}".replace("/", "_").replace(" ", "-")
            path = given.out / f"{named}.json"
            process = apart.Process(target=measured, args=(name, family, path, given))
            process.start()
            process.join()
            if path.exists():
                row: Row = json.loads(path.read_text(encoding="utf-8"))
                print([*table([row])][-1], flush=True)
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(given.out.glob("*"))]
    place = machine()
    where = f"{place['cores']} cores of an {place['cpu']} ({place.get('vectors', 'no vectors')})"
    at = f"at {place['commit']}, {place['date'][:10]}; seed {given.seed}"
    text = "\n".join((f"- {where}; {at}", "", *table(rows)))
    print(text)
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(between(page, *MARKERS, text), encoding="utf-8")


if __name__ == "__main__":
    main()
