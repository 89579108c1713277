"""Variants of pooling on a CPU, beside what a publication found on an accelerator.

    python benchmarks/pooling_variants.py [--claims R1 R7 ...] [--samples 20] [--time-limit 20]
        [--rounds 11]

The claims R1 to R9 are those of C. S. Rohwedder (dissertation, Unicamp 2021) about pooling on
DaVinci, which `pooling_counts.py` models. Here, each variant is a part of the space of a program:
the candidates with certain settings. Images have 192 channels, channels last, in f32;
windows are 3 x 3, and nothing is padded.

| variant | candidates |
| --- | --- |
| `direct` | each result folds its window: `family` is `plain` or `tiled` |
| `im2col` | a copy of the windows in local or private memory: `planes`, `hold` is not `no` |
| `expansion` | a kernel stores all windows in the order of the passes: `planes`, `pad=windows` |
| `split` | the rows of windows, then the columns: `axes=apart`, rows stored or held |
| `gather` | gradient: each element sums its windows: `family` is `plain` or `tiled` |
| `col2im` | gradient: pass by pass: `planes`, `hold=no` |
| `vadd` | gradient: each element of each window is added at its place: `reduceByIndex` |

The mask is 1 at each maximum. A separate kernel computes it from the image and the maxima. Its
settings are the same for all variants: those of the fastest candidate of a campaign with the direct
maxima. So the variants differ only in how they compute the maxima: as they do without a mask. No
candidate reads a copy of the windows for the maxima and for the mask, as the source's do.

A campaign with the default search finds the fastest candidate of each variant, in at most
`--time-limit` seconds. `im2col` has a campaign for each memory, and `split` one for stored and one
for held rows, which share this time. Then all variants of an image and a stride, with and without
a mask, are timed alternately in one run; so are those of the gradient. Times are medians on the
host, in milliseconds. Every result must equal the reference exactly: maxima and masks are exact,
and the cotangents are small whole numbers, so the sums of the gradient are exact, too. `holds` says
whether the claim holds for all images and strides of its row.

The last two tables are those of docs/pooling.md. The other lines have the number of candidates that
each campaign measured, which is small if the time limit ended it early, the settings of the fastest
ones, and the share of the processors' time that went to other work.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import ours
from pooling_counts import CLAIMS
from turns import timed_alternately, turn

import liftpy as lp
from liftpy.errors import LiftError
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.explore.space.settings import spelled
from liftpy.opencl.devices import find_device
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.workloads.pool_gradients import every_one, from_mask, masked
from liftpy.workloads.pooling import Pooling, largest, pooled

Kind: TypeAlias = Literal["forward", "mask", "backward"]
Settings = dict[str, Any]
Array = np.ndarray[Any, Any]

KINDS: tuple[Kind, ...] = ("forward", "mask", "backward")
CHANNELS, WINDOW = 192, 3
SIDES, STRIDES = (29, 71), (1, 2, 3)
LARGEST = (71, 2)
"""The side and the stride of the largest image that the source times."""

DIRECT: Settings = {"family": ["plain", "tiled"]}
FORWARD: dict[str, list[Settings]] = {
    "direct": [DIRECT],
    "im2col": [
        {"family": "planes", "inside": 2, "hold": "private"},
        {"family": "planes", "inside": [1, 2], "hold": "local"},
    ],
    "expansion": [{"family": "planes", "pad": "windows"}],
    "split": [{"axes": "apart", "stage1": "stored"}, {"axes": "apart", "stage1": "held"}],
}
"""The settings of the campaigns of each forward variant."""

BACKWARD: dict[str, list[Settings]] = {
    "gather": [DIRECT],
    "col2im": [{"family": "planes", "hold": "no"}],
    "vadd": [{}],
}
COPIED = ("direct", "im2col", "expansion")
"""The variants that the source times at every stride."""


@dataclass(frozen=True, order=True)
class Case:
    """A program: what it computes, and its sizes."""

    kind: Kind
    side: int
    stride: int

    @property
    def layer(self) -> Pooling:
        """The sizes of the layer."""
        return Pooling(CHANNELS, self.side, self.side, (WINDOW, WINDOW), (self.stride, self.stride))

    @property
    def name(self) -> str:
        """Unique among the cases."""
        return f"{self.kind} {self.side} x {self.side}, stride {self.stride}"

    @property
    def run(self) -> tuple[bool, int, int]:
        """Cases for which this is equal are timed in one run."""
        return self.kind == "backward", self.side, self.stride

    @property
    def variants(self) -> dict[str, list[Settings]]:
        """The settings of the campaigns of each variant."""
        return BACKWARD if self.kind == "backward" else FORWARD

    def program(self, variant: str) -> lp.Program:
        """The program of a variant; all of a case compute the same."""
        if self.kind == "forward":
            return pooled(self.layer, "layer", largest)
        if self.kind == "mask":
            return pooled(self.layer, "masked", lambda of, x: masked(of, x, every_one))
        return scattered(self.layer) if variant == "vadd" else from_mask(self.layer, "added")

    def arrays(self) -> dict[str, Array]:
        """An array for each parameter."""
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (self.side, self.side, CHANNELS)).astype(np.float32)
        if self.kind != "backward":
            return {"x": x}
        d = rng.integers(-20, 21, (*self.layer.out, CHANNELS)).astype(np.float32)
        return {"mask": self.maxima(x)[1], "d": d}

    def places(self) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
        """The rows and columns of an image that the windows read at each place in a window."""
        rows, columns = (1 + (n - 1) * self.stride for n in self.layer.out)
        for i, j in np.ndindex(WINDOW, WINDOW):
            yield i, j, (slice(i, i + rows, self.stride), slice(j, j + columns, self.stride))

    def maxima(self, x: Array) -> tuple[Array, Array]:
        """The maxima of an image, and their mask."""
        planes = np.stack([x[at] for _, _, at in self.places()])
        best = planes.max(axis=0)
        mask = (planes == best).astype(np.float32)
        return best, mask.reshape(WINDOW, WINDOW, *best.shape)

    def reference(self, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        """The arrays of the result, by NumPy."""
        if self.kind != "backward":
            return self.maxima(arrays["x"])[: 1 + (self.kind == "mask")]
        image = np.zeros((self.side, self.side, CHANNELS), np.float32)
        for i, j, at in self.places():
            image[at] += arrays["mask"][i, j] * arrays["d"]
        return (image,)


FIRST, MASK, BACK = (Case(kind, *LARGEST) for kind in KINDS)

Times = Mapping[tuple[Case, str], float]
"""The median of a case's variant, in milliseconds; a variant that has no candidate has none."""


def scattered(layer: Pooling) -> lp.Program:
    """The gradient of `from_mask`: for each channel, all elements of windows added at places."""
    h, w = layer.height, layer.width
    rows, columns = layer.out
    return lp.parse(f"""
    def scattered(mask: [{WINDOW}][{WINDOW}][{rows}][{columns}][{CHANNELS}]f32,
                  d: [{rows}][{columns}][{CHANNELS}]f32) =
      let places = generate({h * w}, i => i) |> split({w}) |> slide2d({WINDOW}, {layer.stride[0]})
        |> permute(2, 3, 0, 1) |> join |> join |> join in
      mask |> join
        |> map(rows => zip(rows, d) |> map((ms, ds) => zip(ms, ds)
          |> map((m, c) => zip(m, c) |> map((a, b) => a * b))))
        |> join |> join |> transpose
        |> map(terms => zip(places, terms) |> reduceByIndex(add, 0 |> repeat({h * w})))
        |> transpose |> split({w})
    """)


def of_maxima(settings: Settings) -> Settings:
    """Translate settings of the maxima to the first stages of the program with a mask.

    A stored array of rows is a stage of its own; the last stage of the maxima is then the second.
    """
    apart = {name: settings[name] for name in ("axes", "stage1") if name in settings}
    others = {n: v for n, v in settings.items() if n not in {"axes", "stage1"}}
    if settings["family"] == "stages":
        del others["family"]
        named = {n.replace("result.", "stage2."): v for n, v in others.items()}
    else:
        named = {f"stage{1 + bool(apart)}.{n}": v for n, v in others.items()}
    return {"family": "stages"} | apart | named


class Contest:
    """Finds the fastest candidate of each variant, and times them."""

    def __init__(self, session: Session, folder: Path, given: argparse.Namespace) -> None:
        """`given` has the options of the command; databases are written to the folder."""
        self.session, self.folder, self.given = session, folder, given
        self.maxima: dict[str, Settings] = {}
        self.mask: Settings = {}

    def campaign(
        self, program: lp.Program, fixed: Settings, seconds: float
    ) -> tuple[float, Settings]:
        """The nanoseconds and the settings of the fastest candidate. LiftError if there is none."""
        campaign = lp.explore(
            program,
            self.given.samples,
            db=Path(tempfile.mkdtemp(dir=self.folder)) / "variant.db",
            device=self.session.device,
            fixed=fixed,
            time_limit=seconds,
        )
        found = [(row.time_ns, row.assignment) for row in campaign.rows if row.time_ns]
        if not found:
            raise LiftError(f"no candidate was measured in {seconds:.0f} s")
        print(f"{len(found)} candidates with {spelled(fixed)}", flush=True)
        return min(found, key=lambda pair: pair[0])

    def explored(self, case: Case, variant: str) -> Settings:
        """The settings of the fastest candidate of a variant, whose campaigns share the time limit.

        LiftError if no campaign finds one.
        """
        program, parts = case.program(variant), case.variants[variant]
        end = time.monotonic() + self.given.time_limit
        found: list[tuple[float, Settings]] = []
        why = LiftError()
        for k, part in enumerate(parts):
            seconds = (end - time.monotonic()) / (len(parts) - k)
            try:
                found.append(self.campaign(program, part, seconds))
            except LiftError as error:
                print(f"0 candidates with {spelled(part)}: {error}", flush=True)
                why = error
        if not found:
            raise why
        return min(found, key=lambda pair: pair[0])[1]

    def with_mask(self, case: Case, variant: str) -> Settings:
        """The settings of a variant's fastest maxima, and those of the mask.

        The first call chooses the settings of the mask. LiftError if no maxima are known.
        """
        if variant not in self.maxima:
            raise LiftError("the variant has no candidate without a mask")
        maxima = of_maxima(self.maxima[variant])
        if not self.mask:
            _, known = self.campaign(case.program(variant), maxima, self.given.time_limit)
            self.mask = {n: v for n, v in known.items() if n.startswith("result.")}
        return maxima | self.mask

    def fastest(self, case: Case, variant: str) -> Loaded:
        """The fastest candidate of a variant, loaded. LiftError if there is none."""
        if case.kind == "mask":
            settings = self.with_mask(case, variant)
        else:
            settings = self.explored(case, variant)
        if case == FIRST:
            self.maxima[variant] = settings
        space = lp.space(case.program(variant), self.session.device, fixed=settings)
        candidate = space.exactly(settings)
        print(f"{case.name}, {variant}: {candidate.label}", flush=True)
        return self.session.load(compile_candidate(candidate.skeleton, candidate.point))

    def times(self, cases: Sequence[Case]) -> dict[tuple[Case, str], float]:
        """The times of all variants of these cases, which are timed alternately."""
        loaded: dict[tuple[Case, str], Loaded] = {}
        for case in cases:
            arrays = case.arrays()
            wanted = case.reference(arrays)
            for variant in case.variants:
                try:
                    candidate = self.fastest(case, variant)
                except LiftError as error:
                    print(f"{case.name}: `{variant}` is not timed: {error}", flush=True)
                    continue
                result = run_poisoned(candidate, arrays)
                results = result if isinstance(result, tuple) else (result,)
                for got, right in zip(results, wanted, strict=True):
                    if not np.array_equal(got, right):
                        raise SystemExit(f"{case.name}: the result of `{variant}` is wrong")
                loaded[case, variant] = candidate
        turns = {
            f"{case.name}, {variant}": partial(turn, partial(ours.run, candidate))
            for (case, variant), candidate in loaded.items()
        }
        samples, others = timed_alternately(turns, self.given.rounds)
        print(f"other work in this run: {others:.0%}", flush=True)
        for candidate in loaded.values():
            candidate.close()
        return {
            key: statistics.median(samples[name]["wall"]) / 1e6
            for key, name in zip(loaded, turns, strict=True)
        }


Found = tuple[str, bool]
"""What was measured for a claim, and whether the claim holds."""


def ranked(times: Times, case: Case, variants: Sequence[str]) -> list[str]:
    """The variants from the fastest to the slowest. KeyError if one of them is not timed."""
    return sorted(variants, key=lambda variant: times[case, variant])


def gain(times: Times, case: Case, fast: str, slow: str) -> Found:
    """How many times as long the second variant takes as the first, which a claim calls faster."""
    ratio = times[case, slow] / times[case, fast]
    return f"{ratio:.2f}", ratio > 1


def gradients(times: Times) -> Found:
    """How many times as long scattered additions take as passes, and the times of all variants."""
    ratio, faster = gain(times, BACK, "col2im", "vadd")
    told = ", ".join(f"{v} {times[BACK, v]:.3f}" for v in ranked(times, BACK, [*BACKWARD]))
    return f"{ratio} ({told})", faster


def with_masks(times: Times) -> Found:
    """How many times as long two variants take with a mask."""
    ratios = {v: times[MASK, v] / times[FIRST, v] for v in ("direct", "im2col")}
    told = ", ".join(f"{v} {ratio:.1f} times as long" for v, ratio in ratios.items())
    return told, all(ratio > 1 for ratio in ratios.values())


def copies_first(times: Times, case: Case) -> Found:
    """The order of three variants; the claim is that both copies are faster than `direct`."""
    found = ranked(times, case, COPIED)
    return ", ".join(found), found == ["im2col", "expansion", "direct"]


def direct_first(times: Times, case: Case) -> Found:
    """The order of three variants; the claim is that `direct` is the fastest."""
    found = ranked(times, case, COPIED)
    return ", ".join(found), found[0] == "direct"


def split_last(times: Times, case: Case) -> Found:
    """The order of all variants; the claim is that `split` is slower than both copies."""
    found = ranked(times, case, [*FORWARD])
    return ", ".join(found), {"im2col", "expansion"} <= {*found[: found.index("split")]}


def fastest_of(times: Times, case: Case) -> Found:
    """The fastest variant of those that the source times at every stride, and whether it agrees."""
    fastest = ranked(times, case, COPIED)[0]
    return fastest, fastest == ("direct" if case.stride == 1 else "im2col")


@dataclass(frozen=True)
class Claim:
    """What is measured for a claim of the source, and how its row is made from the times."""

    cases: tuple[Case, ...]
    found: Callable[[Times], Found]


def each(strides: Sequence[int], one: Callable[[Times, Case], Found]) -> Claim:
    """A claim about each image at some strides; it holds if it does for all of them."""
    cases = tuple(Case("forward", side, stride) for side in SIDES for stride in strides)

    def found(times: Times) -> Found:
        made = {case: one(times, case) for case in cases}
        texts = {text for text, _ in made.values()}
        if len(texts) == 1:
            told = f"{texts.pop()} in each case"
        else:
            told = "; ".join(
                f"{c.side}, stride {c.stride}: {text}" for c, (text, _) in made.items()
            )
        return told, all(holds for _, holds in made.values())

    return Claim(cases, found)


MEASURED = {
    "R1": Claim((FIRST,), lambda times: gain(times, FIRST, "im2col", "direct")),
    "R2": Claim((FIRST, MASK), lambda times: gain(times, MASK, "im2col", "direct")),
    "R3": Claim((BACK,), gradients),
    "R4": Claim((FIRST, MASK), with_masks),
    "R5": each((2, 3), copies_first),
    "R6": each((2, 3), lambda times, case: gain(times, case, "im2col", "expansion")),
    "R7": each((1,), direct_first),
    "R8": each((2,), split_last),
    "R9": each(STRIDES, fastest_of),
}


def by_claim(names: Sequence[str], times: Times) -> Iterator[str]:
    """The claims of the source with what was measured, in Markdown."""
    yield "| claim | about | source | CPU | holds |"
    yield f"|{' --- |' * 5}"
    for name in names:
        about, said, _ = CLAIMS[name]
        try:
            found, holds = MEASURED[name].found(times)
            told = "yes" if holds else "no"
        except KeyError as missing:
            case, variant = missing.args[0]
            found, told = f"`{variant}` of {case.name} is not timed", "unknown"
        yield f"| {name} | {about} | {said} | {found} | {told} |"


def by_image(cases: Sequence[Case], times: Times) -> Iterator[str]:
    """The milliseconds of the forward variants, in Markdown."""
    yield f"| program | {' | '.join(FORWARD)} |"
    yield f"| --- |{' ---: |' * len(FORWARD)}"
    for case in cases:
        cells = (f"{times[case, v]:.3f}" if (case, v) in times else "" for v in FORWARD)
        yield f"| {case.name} | {' | '.join(cells)} |"


def main() -> None:
    """Prints the settings of the fastest candidates, then the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", nargs="+", choices=MEASURED, default=[*MEASURED])
    parser.add_argument("--samples", type=int, default=20, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds for a variant")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    cases = sorted({case for name in given.claims for case in MEASURED[name].cases})
    runs: dict[tuple[bool, int, int], list[Case]] = {}
    for case in cases:
        runs.setdefault(case.run, []).append(case)
    times: dict[tuple[Case, str], float] = {}
    with tempfile.TemporaryDirectory() as folder, Session(find_device(given.device)) as session:
        print(f"{session.device.name} ({session.device.platform})")
        contest = Contest(session, Path(folder), given)
        for together in runs.values():
            times |= contest.times(together)
    forward = [case for case in cases if case.kind != "backward"]
    if forward:
        print("", *by_image(forward, times), sep="\n")
    print("", *by_claim(given.claims, times), sep="\n")


if __name__ == "__main__":
    main()
