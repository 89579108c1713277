"""Published claims about direct convolution (Genvolution), beside what liftpy computes.

    python benchmarks/direct_claims.py [--only im2col scratch space searches]
    python benchmarks/direct_claims.py --only layers products borders [--samples 60] [--cases ...]

Without a device:

im2col    The bytes of im2col's matrix. They have to equal the scratch of a candidate that stores
          all windows.
scratch   The largest scratch of the skeletons of `direct` that store no padding, in percent of
          im2col's matrix: at most 4.3. The last row is the fraction of the layers without scratch:
          at least a third.
space     The orders of a convolution's loops times the layouts of its arrays, and the points of the
          space of the first layer if no condition restricts its sizes: over 10^7.
searches  The best time after 50 trials, relative to the best time of all candidates: the mean over
          20 seeds, on the stored measurements of a small space (tests/explore/measured.json). The
          directed searches have to come nearer to 1 than random draws.

With a device, on a machine at rest (these are not part of the default):

layers    Campaigns of `direct` for each layer, timed alternately with oneDNN's convolution (through
          PyTorch) and with im2col and OpenBLAS. Prints both ratios, and on how many layers liftpy
          is faster than each.
products  The same for matrix products of the shapes of 1x1 convolutions, against OpenBLAS.
borders   The fastest candidate of each value of `pad`, timed alternately; `pad=tile` is a choice of
          the family `sliced`, the others are choices of `direct`.

Prints the claimed number and the number found; exits with 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import ours
from cases import CLAIMED, Case
from peers import PEERS
from peers.process import Remote
from turns import timed_alternately, turn

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.search import SEARCHES, Trial, named
from liftpy.explore.space.member import Drawing, everything
from liftpy.explore.space.space import Space
from liftpy.explore.space.survey import orders_and_layouts, unpruned
from liftpy.explore.spaces import whole_space
from liftpy.ir.program import Program
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.partition import direct
from liftpy.rewrite.strategies.families.sliced import TILE
from liftpy.workloads import Convolution, convolution

STORED = Path(__file__).parents[1] / "tests" / "explore" / "measured.json"
LAYERS = tuple(case for case in CLAIMED.values() if case.kind == "convolution")
PRODUCTS = tuple(case for case in CLAIMED.values() if case.kind == "matmul")

MOST_SCRATCH = 4.3
"""Percent of im2col's matrix."""
ORDERS_AND_LAYOUTS = 622_080
LEAST_POINTS = 10**7
TRIALS, SEEDS = 50, 20
DIRECTED = ("genetic", "narrowing")
AGAINST = {"convolution": ("PyTorch NHWC", "OpenBLAS"), "matmul": ("OpenBLAS",)}


@dataclass(frozen=True)
class Row:
    """A claimed number and the number found; `holds` says whether the claim does."""

    name: str
    claimed: float
    found: float
    holds: bool


# --- without a device -----------------------------------------------------------------------------


def blocks(program: Program, device: Device = DEFAULT_DEVICE) -> Space:
    """The space of the family `direct` for a program as one stage."""
    return whole_space(program, device, families=("direct",), made=direct)


def scratch_of(case: Case, pad: str) -> int:
    """The largest scratch in bytes of the skeletons of `direct` with a value of `pad`."""
    space = blocks(case.program).narrow({"pad": pad})
    drawn = (next(m.draws(Drawing(0))) for m in space.members if m.possible)
    return max(compile_candidate(*candidate).memory.scratch for candidate in drawn)


def im2col_bytes(case: Case) -> int:
    """The bytes of im2col's matrix: the window of each result."""
    layer = case.layer
    return 4 * layer.out[0] * layer.out[1] * layer.channels * layer.kernel[0] * layer.kernel[1]


def im2col(cases: Iterable[Case] = LAYERS) -> Iterator[Row]:
    """The matrix that `pad=windows` stores."""
    for case in cases:
        claimed, found = im2col_bytes(case), scratch_of(case, "windows")
        yield Row(case.name, claimed, found, found == claimed)


def scratch(cases: Iterable[Case] = LAYERS) -> Iterator[Row]:
    """The scratch of the direct form in percent of im2col's matrix, and the layers without any."""
    none = count = 0
    for case in cases:
        found = 100 * scratch_of(case, "fused") / im2col_bytes(case)
        none, count = none + (found == 0), count + 1
        yield Row(case.name, MOST_SCRATCH, found, found <= MOST_SCRATCH)
    yield Row("part of the layers without scratch", 1 / 3, none / count, 3 * none >= count)


def space() -> Iterator[Row]:
    """The sizes of the space of the first layer."""
    program = LAYERS[0].program
    orders = orders_and_layouts(program)
    yield Row("loop orders x layouts", ORDERS_AND_LAYOUTS, orders, orders == ORDERS_AND_LAYOUTS)
    whole = whole_space(program, DEFAULT_DEVICE, made=direct)
    for family in whole.families:
        part = whole.of_families([family])
        count = part.count()
        yield Row(
            f"{family}: points with and without conditions", count, unpruned(part), holds=True
        )
    points = unpruned(whole)
    yield Row("all points without conditions", LEAST_POINTS, points, points > LEAST_POINTS)


def searched(name: str, space: Space, times: dict[tuple[object, ...], int], seed: int) -> float:
    """The best time of a search's first `TRIALS` trials, relative to the best of all candidates."""
    trials: list[Trial] = []
    for candidate in itertools.islice(named(name)(space, seed, trials, everything), TRIALS):
        own = candidate.assignment
        time = times[tuple(own[n] for n in ("pad", "level", "kappa", "sigma", "v"))]
        trials.append(Trial(candidate, time, 1))
    return min(trial.time_ns or 0 for trial in trials) / min(times.values())


def searches(seeds: int = SEEDS, names: Iterable[str] = SEARCHES) -> Iterator[Row]:
    """What each search finds in `TRIALS` trials; `claimed` is what random draws find."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    times = {tuple(row[:-1]): row[-1] for row in stored["rows"]}
    device = replace(Device.from_json(stored["device"]), vector_width=16)
    layer = convolution(Convolution(16, 28, 28, 16, (3, 3), padding=(1, 1, 1, 1)), "layer")
    own = blocks(layer, device).asking(["kappa >= 4", "sigma >= 2"], {})

    def mean(name: str) -> float:
        return statistics.fmean(searched(name, own, times, seed) for seed in range(seeds))

    random = mean("random")
    for name in names:
        if name != "random":
            found = mean(name)
            yield Row(name, random, found, found < random or name not in DIRECTED)


# --- with a device --------------------------------------------------------------------------------


def alternately(case: Case, options: argparse.Namespace, stack: ExitStack) -> dict[str, float]:
    """Median milliseconds on the host: liftpy's fastest candidate of `direct`, and libraries."""
    session = stack.enter_context(Session(find_device(options.device)))
    campaign = ours.searched(
        case, session.device, options.out, samples=options.samples, families=["direct"]
    )
    best = ours.best(case, campaign, session)
    turns = {"liftpy": lambda: turn(best.run)}
    for peer in PEERS:
        if peer.name in AGAINST[case.kind] and peer.available() is None:
            remote = stack.enter_context(Remote(peer.name, options.threads))
            if remote.make(case.name) is not None:
                turns[peer.name] = remote.turn
    samples, _ = timed_alternately(turns, options.rounds)
    best.loaded.close()
    return {name: statistics.median(s["wall"]) / 1e6 for name, s in samples.items()}


def against(cases: Iterable[Case], options: argparse.Namespace) -> Iterator[Row]:
    """The time of each library relative to liftpy's for each case, and how often it is above 1."""
    faster: dict[str, list[bool]] = {}
    for case in cases:
        with ExitStack() as stack:
            times = alternately(case, options, stack)
        mine = times.pop("liftpy")
        for peer, theirs in times.items():
            faster.setdefault(peer, []).append(theirs > mine)
            yield Row(f"{case.name}, {peer}", 1.0, theirs / mine, holds=True)
    for peer, won in faster.items():
        yield Row(f"faster than {peer}", len(won), sum(won), any(won))


def borders(cases: Iterable[Case], options: argparse.Namespace) -> Iterator[Row]:
    """The time of the fastest candidate of each value of `pad`, relative to `pad=fused`."""
    with Session(find_device(options.device)) as session:
        for case in cases:
            words = (*blocks(case.program, session.device).choices["pad"], TILE)
            found: dict[str, ours.Ours] = {}
            for word in words:
                folder = options.out / word
                folder.mkdir(parents=True, exist_ok=True)
                family = "sliced" if word == TILE else "direct"
                limits = {"families": [family], "fixed": {"pad": word}}
                campaign = ours.searched(
                    case, session.device, folder, samples=options.samples, **limits
                )
                found[word] = ours.best(case, campaign, session)
            turns = {word: partial(turn, made.run) for word, made in found.items()}
            samples, _ = timed_alternately(turns, options.rounds)
            times = {word: statistics.median(s["events"]) for word, s in samples.items()}
            for made in found.values():
                made.loaded.close()
            for word in words:
                yield Row(f"{case.name}, pad={word}", 1.0, times[word] / times["fused"], holds=True)


COMPUTED: dict[str, Callable[[], Iterator[Row]]] = {
    "im2col": im2col,
    "scratch": scratch,
    "space": space,
    "searches": searches,
}
MEASURED: dict[str, tuple[tuple[Case, ...], Callable[..., Iterator[Row]]]] = {
    "layers": (LAYERS, against),
    "products": (PRODUCTS, against),
    "borders": (LAYERS[:1] + LAYERS[11:15], borders),
}


def main() -> int:
    """Prints the sections; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sections = [*COMPUTED, *MEASURED]
    parser.add_argument("--only", nargs="+", choices=sections, default=[*COMPUTED])
    parser.add_argument("--cases", nargs="*", help="names of layers or products (all)")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="where campaigns are kept")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        options.out = options.out or Path(folder)
        options.out.mkdir(parents=True, exist_ok=True)
        for name in options.only:
            print(f"\n{name:<48}{'claimed':>14}{'found':>14}")
            for row in rows_of(name, options):
                wrong += not row.holds
                held = "" if row.holds else "  does not hold"
                print(f"{row.name:<48}{row.claimed:>14.6g}{row.found:>14.6g}{held}", flush=True)
    return int(bool(wrong))


def rows_of(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of a section."""
    if name in COMPUTED:
        return COMPUTED[name]()
    cases, made = MEASURED[name]
    wanted = cases if options.cases is None else [CLAIMED[case] for case in options.cases]
    return made(wanted, options)


if __name__ == "__main__":
    sys.exit(main())
