"""Random convolutions in every transformed form, compared with float64 within the derived bound.

    PYTHONPATH=. .venv/bin/python tests/fuzz/correlations.py --devices intel pocl --jobs 2

Sides are from 1 to 17, so that most tiles are partial and some are larger than the array. If a
driver crashes the worker process, another candidate of each form of the case is tried.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from liftpy.compile import Kernel
from liftpy.constraints.device import Device
from liftpy.errors import LiftError
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.rules.correlation import FLAT, SIZES, triple
from liftpy.rewrite.stages import FUSED, HELD, STORED, WINOGRAD
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.rewrite.strategies.transformed import NAMED, fewest
from liftpy.winograd import linear
from liftpy.winograd.error import Transforms, bound, bound_of
from tests.staged import of_partition

TAPS = (2, 3, 3, 4, 5, 7)
LAYOUTS = ("nhwc", "nchw")
MOST = 17  # the largest side
ROUNDING = 2.0**-24
DRAWS = 3  # candidates of a form that are tried before a crash of the driver is the outcome
SMALL = 7, 3  # the largest side, and number of channels and of kernels, of a small case
ATTEMPTS = 40  # at all candidates of a partition; some skeletons that are drawn have no points

EPILOGUES = ("", "", "relu", "shift", "residual", "inside")
"""What is done to the results.

Nothing, a ReLU, a ReLU of differences with a number for each kernel (`shift`) or with an array
(`residual`), or a ReLU of such differences in the function that is mapped over the kernels.
"""

SPELLINGS = ("flat", "flat", "kernel first", "nested")
"""How sums of products are written: over joined arrays, the kernel's first, or as nested sums."""

Form: TypeAlias = tuple[str, str]
"""The word of the tiles of a form, and whether transformed tiles are stored or held."""


@dataclass(frozen=True)
class Case:
    """A convolution in one or two dimensions, with a window of `taps` for each of the `sides`.

    It is padded so that with the stride 1 the result has as many points, less one where a window
    has an even length; a case that is not `padded` has sides as long as its windows, or longer.
    The layout is `nhwc` (channels innermost) or `nchw`. Each of the `groups` has so many `channels`
    and `kernels`. With a `batch`, there are as many images. An epilogue that follows the
    convolution needs one group and no batch.
    """

    sides: tuple[int, ...]
    channels: int
    kernels: int
    taps: tuple[int, ...]
    seed: int
    layout: str = "nhwc"
    epilogue: str = ""
    spelling: str = "flat"
    groups: int = 1
    batch: int | None = None
    stride: int = 1
    padded: bool = True

    @staticmethod
    def strided(seed: int) -> Case:
        """A case of a seed, of windows that are more than one element apart and overlap."""
        rng = random.Random(seed)
        stride = rng.choice((2, 2, 3, 4))
        r = rng.choice([t for t in (3, 5, 7, 11) if 1 < -(-t // stride) < 6])  # of 6 is no rule
        taps = rng.choice(((r, r), (r, r), (r, r), (r,), (r, 1), (stride + 1, r)))
        padded = rng.choice((True, False))
        sides = tuple(rng.randint(1 if padded else t, MOST) for t in taps)
        counts, layout = (rng.randint(1, 9), rng.randint(1, 9)), rng.choice(LAYOUTS)
        said = rng.choice(EPILOGUES), rng.choice(SPELLINGS)
        maps = rng.choice((1, 1, 2, 3)), rng.choice((None, None, 1, 2))
        groups, batch = maps if said[0] in {"", "inside"} else (1, None)
        return Case(sides, *counts, taps, seed, layout, *said, groups, batch, stride, padded)

    @staticmethod
    def drawn(seed: int) -> Case:
        """A case of a seed, with the stride 1."""
        rng = random.Random(seed)
        r = rng.choice(TAPS)
        taps = rng.choice(((r, r), (r, r), (r, r), (r, 1), (1, r), (rng.choice(TAPS), r), (r,)))
        sides = tuple(rng.randint(1 + (t % 2 == 0), MOST) for t in taps)
        counts, layout = (rng.randint(1, 9), rng.randint(1, 9)), rng.choice(LAYOUTS)
        groups, batch = rng.choice((1, 1, 1, 2, 3)), rng.choice((None, None, None, 1, 2, 3))
        spelling = rng.choice(SPELLINGS)
        outside_maps = groups == 1 and batch is None
        epilogue = rng.choice(EPILOGUES if outside_maps else ("", "inside"))
        return Case(sides, *counts, taps, seed, layout, epilogue, spelling, groups, batch)

    @property
    def small(self) -> Case:
        """The same with fewer points, channels and kernels."""
        side, most = SMALL
        sides = tuple(min(n, side) for n in self.sides)
        few = {"channels": min(self.channels, most), "kernels": min(self.kernels, most)}
        return replace(self, sides=sides, batch=self.batch and min(self.batch, 2), **few)

    @property
    def program(self) -> Program:
        """The convolution, in the language."""
        return parse(self.text("x", "w", "b"))

    @property
    def around(self) -> tuple[int, ...]:
        """The padding before and after, in each dimension."""
        return tuple((t - 1) // 2 * self.padded for t in self.taps)

    @property
    def results(self) -> tuple[int, ...]:
        """The number of results in each dimension."""
        each = zip(self.sides, self.taps, self.around, strict=True)
        return tuple((n + 2 * p - t) // self.stride + 1 for n, t, p in each)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of taps in each dimension of the convolution of blocks with the stride 1."""
        return tuple(-(-t // self.stride) for t in self.taps)

    def shape(self, *lengths: int) -> tuple[int, ...]:
        """The lengths of an array whose channels come last here."""
        return lengths if self.layout == "nhwc" else (lengths[-1], *lengths[:-1])

    def text(self, x: str, w: str, b: str) -> str:
        """The text of the convolution with these parameters."""
        image, weights = (
            "".join(f"[{n}]" for n in self.shape(*lengths))
            for lengths in ((*self.sides, self.groups * self.channels), (*self.taps, self.channels))
        )
        each = self.in_groups("image", w, b) if self.batch else self.in_groups(x, w, b)
        after, given = self.after(f"{x} |> map(image => {each})" if self.batch else each)
        images = f"[{self.batch}]" if self.batch else ""
        return f"""
        def p({x}: {images}{image}f32, const {w}: [{self.groups * self.kernels}]{weights}f32,
              const {b}: [{self.groups * self.kernels}]f32{given}) = {after}
        """

    def in_groups(self, x: str, w: str, b: str) -> str:
        """The text of the convolution of one image: a map over groups of channels and kernels."""
        if self.groups == 1:
            return self.dense(x, w, b)
        split, joined = f" |> split({self.channels})", " |> join"
        if self.layout == "nhwc":  # the groups become the outermost dimension
            split, joined = f" |> map(split({self.channels})) |> transpose", " |> map(join)"
            if len(self.taps) == 2:
                split = f" |> map(map(split({self.channels})) |> transpose) |> transpose"
                joined = " |> map(transpose) |> map(map(join))"
            joined = f" |> transpose{joined}"
        parts = f"zip({x}{split}, {w} |> split({self.kernels}), {b} |> split({self.kernels}))"
        each = self.dense("channels", "kernels", "biases")
        return f"{parts} |> map((channels, kernels, biases) => {each}){joined}"

    def dense(self, x: str, w: str, b: str) -> str:
        """The text of the convolution of all channels of an image with each kernel."""
        last = first = ""
        if self.layout == "nchw":
            inner = " |> map(transpose)" if len(self.taps) == 2 else ""
            last, first = f" |> transpose{inner}", f"{inner} |> transpose"
        each = f"zip({w}{last and f' |> map(k => k{last})'}, {b}) |> map(k => {self.sums})"
        pads = [f"pad({p}, {p}, 0)" for p in self.around]
        slides = [f"slide({r}, {self.stride})" for r in self.taps]
        if len(self.taps) == 1:
            windows = f"{pads[0]} |> {slides[0]} |> map(part => {each})"
        else:
            windows = (
                f"{pads[0]} |> map({pads[1]}) |> {slides[0]} "
                f"|> map(map({slides[1]}) |> transpose) |> map(row => row |> map(part => {each}))"
            )
        return f"{x}{last} |> {windows}{first}"

    @property
    def sums(self) -> str:
        """The text of the sum of the products of `part` with `k.0`, and what is done to it."""
        start = "k.1" if self.epilogue != "inside" else "0"
        if self.spelling == "nested":
            text = "zip(d, e) |> map((d, e) => d * e) |> reduce(add, 0)"
            for _ in self.taps[1:]:
                text = f"zip(e, d) |> map((e, d) => {text}) |> reduce(add, 0)"
            text = f"zip(part, k.0) |> map((d, e) => {text}) |> reduce(add, {start})"
        else:
            flat = " |> join" * len(self.taps)
            arrays = [f"part{flat}", f"k.0{flat}"]
            both = ", ".join(arrays[:: -1 if self.spelling == "kernel first" else 1])
            text = f"zip({both}) |> map(mul) |> reduce(add, {start})"
        return text if self.epilogue != "inside" else f"max(({text}) - k.1, 0)"

    def after(self, sums: str) -> tuple[str, str]:
        """The text of what follows a convolution, and that of the parameters that it needs."""
        depth = len(self.taps) + 1
        match self.epilogue, self.layout:
            case "relu", _:
                text = "map(" * depth + "v => max(v, 0)" + ")" * depth
                return f"{sums} |> {text}", ""
            case "shift", "nhwc":
                text = "map(" * (depth - 1) + "v => zip(v, s) |> map((v, c) => max(v - c, 0))"
                return f"{sums} |> {text}{')' * (depth - 1)}", f", s: [{self.kernels}]f32"
            case "shift", _:
                text = "map(" * (depth - 1) + "v => max(v - c, 0)" + ")" * (depth - 1)
                return f"zip({sums}, s) |> map((v, c) => v |> {text})", f", s: [{self.kernels}]f32"
            case "residual", _:
                text = "max(v - r, 0)"
                for _ in range(depth):
                    text = f"zip(v, r) |> map((v, r) => {text})"
                lengths = "".join(f"[{n}]" for n in self.result)
                return text.replace("zip(v, r)", f"zip({sums}, r)", 1), f", r: {lengths}f32"
            case _:
                return sums, ""

    @property
    def result(self) -> tuple[int, ...]:
        """The lengths of the result of one image and one group."""
        return self.shape(*self.results, self.kernels)

    @property
    def arrays(self) -> list[np.ndarray]:
        """Images, weights, bias, and what follows reads: of both signs, so that sums cancel."""
        rng = np.random.default_rng(self.seed)
        image = self.shape(*self.sides, self.groups * self.channels)
        images = (self.batch, *image) if self.batch else image
        kernels = self.groups * self.kernels
        weights = kernels, *self.shape(*self.taps, self.channels)
        more = {"shift": [(self.kernels,)], "residual": [self.result]}.get(self.epilogue, [])
        shapes = (images, weights, (kernels,), *more)
        return [rng.uniform(-1, 1, s).astype(np.float32) for s in shapes]

    @property
    def expected(self) -> np.ndarray:
        """The result in float64."""
        x, w, b, *more = (a.astype(np.float64) for a in self.arrays)
        if self.layout == "nchw":
            w = np.moveaxis(w, 1, -1)
        found = [self.convolved(image, w, b, more) for image in (x if self.batch else [x])]
        return np.stack(found) if self.batch else found[0]

    def convolved(
        self, x: np.ndarray, w: np.ndarray, b: np.ndarray, more: list[np.ndarray]
    ) -> np.ndarray:
        """The convolution of one image with kernels whose channels are last."""
        if self.layout == "nchw":
            x = np.moveaxis(x, 0, -1)
        padded = np.pad(x, (*((p, p) for p in self.around), (0, 0)))
        axes = tuple(range(len(self.taps)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.taps, axis=axes)
        windows = windows[(slice(None, None, self.stride),) * len(axes)]
        letters = "ab"[: len(axes)]
        parts = zip(
            np.split(windows, self.groups, axis=len(axes)), np.split(w, self.groups), strict=True
        )
        sums = [np.einsum(f"...c{letters},k{letters}c->...k", *part) for part in parts]
        found = np.concatenate(sums, axis=-1)
        found += -b if self.epilogue == "inside" else b
        if self.epilogue == "shift":
            found -= more[0]
        found = found if self.layout == "nhwc" else np.moveaxis(found, -1, 0)
        if self.epilogue == "residual":
            found -= more[0]
        return np.maximum(found, 0) if self.epilogue else found

    @property
    def words(self) -> dict[str, tuple[int, int]]:
        """For each form of the case, the number of dimensions that it transforms, and its m."""
        *rows, r = self.blocks
        found = {("1x{m}" if rows else "{m}", r): 1}
        if rows == [r]:
            found["{m}x{m}", r] = 2
        if rows and r == 1:
            found["{m}x1", rows[0]] = 1
        words = {
            word.format(m=m): (dimensions, m)
            for (word, taps), dimensions in found.items()
            for m, known in SIZES
            if known == taps
        }
        words |= {
            f"{word}+overlap": found
            for word, found in words.items()
            if word in {f"{m}" for m, _ in SIZES} | {f"{m}x{m}" for m, _ in SIZES if rows == [r]}
            and min(self.results) >= found[1]
            and any(n % found[1] for n in self.results)
        }
        if rows == [r]:
            down, right = (fewest(n, r) for n in self.results)
            # each factor of the bound grows with m
            words.setdefault(f"{down}x{right}", (2, max(down, right)))
            words |= {f"{m}x{m}+flat": (2, m) for m, known in FLAT if known == r}
            if self.groups == 1 and self.batch is None:
                words |= {f"{m}x{m}+direct": (2, m) for m in self.hybrids}
        return words

    @property
    def hybrids(self) -> list[int]:
        """The m for which a hybrid takes fewer products than padded tiles of any m; at most one."""
        r = self.blocks[-1]

        def products(m: int) -> int:
            whole = [n // m for n in self.results]
            direct = math.prod(self.results) - math.prod(k * m for k in whole)
            return math.prod(k * (m + r - 1) for k in whole) + direct * r**2

        padded = [
            math.prod(-(-n // m) * (m + r - 1) for n, m in zip(self.results, ms, strict=True))
            for ms in itertools.product(*([m for m, known in SIZES if known == r] for _ in "yx"))
        ]
        best = min((m for m, known in SIZES if known == r), key=lambda m: (products(m), m))
        fits = products(best) < min(padded) and best <= min(self.results)
        return [best] if fits else []

    @property
    def forms(self) -> set[Form]:
        """The tiles of each form, and whether these and the products are stored or held.

        Transformed rows that several windows read are held only with all of a group.
        """
        found = {(word, STORED) for word in self.words}
        whole = self.groups > 1
        return found | {(word, HELD) for word in self.words if whole or not word.startswith("1x")}

    def allowed(self, word: str) -> float:
        """The largest error: the bound of F(m, r) for data up to 1, and the bias's rounding."""
        dimensions, m = self.words[word]
        r = self.blocks[0] if word.endswith("x1") else self.blocks[-1]
        sums = math.prod(self.blocks) * self.channels * self.stride ** len(self.taps)
        if word.endswith("+flat"):
            found = bound(Transforms.of(triple(m, r), linear.Form.FLAT), sums // r**2)
        else:
            found = bound_of(triple(m, r), dimensions, sums // r**dimensions)
        # of a hybrid, this also bounds the error of the results that are computed directly
        return float(found.absolute) + 2 * ROUNDING * (1 + sums + bool(self.epilogue))

    @property
    def fused(self) -> dict[str, tuple[str, ...]]:
        """The settings that fuse what follows into the last step."""
        return {"stage1": (FUSED,)} if self.epilogue in {"relu", "shift", "residual"} else {}

    def choices(self, form: Form) -> dict[str, tuple[str, ...]]:
        """The settings of a form; a hybrid has no choice of what is fused."""
        word, kept = form
        fused = {} if word.endswith("+direct") else self.fused
        return {WINOGRAD: (word,), NAMED[0]: (kept,), **fused}


def errors(
    case: Case, device: Device, forms: Iterable[Form], seeds: int = 1, skipped: int = 0
) -> dict[Form, list[float]]:
    """For each form, the errors of drawn candidates, relative to the largest allowed one.

    The first `skipped` candidates that are drawn are left out.
    """
    found: dict[Form, list[float]] = {}
    program = case.program
    for word, kept in sorted(forms):
        candidates = drawn(program, device, case.choices((word, kept)), case.seed)
        for candidate in itertools.islice(candidates, skipped, skipped + seeds):
            with contextlib.closing(Kernel(candidate, device)) as kernel:
                apart = np.abs(kernel(*case.arrays) - case.expected).max()
            found.setdefault((word, kept), []).append(float(apart) / case.allowed(word))
    return found


def drawn(
    program: Program, device: Device, chosen: Mapping[str, tuple[str, ...]], seed: int
) -> Iterator[Candidate]:
    """Candidates of the partition with these words, without the rest of the space."""
    rng = random.Random(seed)
    given = chosen.get(WINOGRAD)
    made = partitions(program, words=None if given is None else frozenset(given))
    words = ((partition, dict(partition.words)) for partition in made)
    fitting = [p for p, own in words if all(own.get(name) in chosen[name] for name in chosen)]
    for _ in range(ATTEMPTS if fitting else 0):
        partition = rng.choice(fitting)
        names = [rng.sample([*FAMILIES], len(FAMILIES)) for _ in partition.stages]
        found = of_partition(program, partition, device, names, rng)
        if found is not None:
            yield found


def tried(case: Case, device: str, forms: Iterable[Form], skipped: int) -> dict[Form, list[float]]:
    """`errors` on a device with a name; a process runs it."""
    return errors(case, find_device(device), forms, skipped=skipped)


class Apart:
    """Runs cases in a worker process, and starts a new one if the driver crashes it."""

    def __init__(self) -> None:
        self.process = self.started()

    @staticmethod
    def started() -> ProcessPoolExecutor:
        """A pool of one process."""
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def __call__(self, case: Case, device: str, forms: set[Form]) -> dict[Form, list[float]] | None:
        """The errors of a case's forms; None if the worker process crashed at each draw."""
        for skipped in range(DRAWS):
            try:
                return self.process.submit(tried, case, device, forms, skipped).result()
            except BrokenProcessPool:
                self.process = self.started()
                print(device, case, f"crashed its process at draw {skipped}", flush=True)
        return None


def outcomes_of(seeds: Iterable[int], given: argparse.Namespace) -> tuple[Counter[str], float]:
    """How often each outcome occurred for the cases of these seeds, and the largest error.

    A refusal or a crash counts once for all forms of a case on a device.
    """
    outcomes, largest, apart = Counter[str](), 0.0, Apart()
    for seed in seeds:
        case = Case.strided(seed) if given.strided else Case.drawn(seed)
        for name in given.devices:
            forms = case.forms if given.all else {random.Random(seed).choice(sorted(case.forms))}
            try:
                found = apart(case, name, forms)
            except LiftError as refused:
                print(name, case, forms, refused, flush=True)
                outcomes["refused"] += 1
                continue
            if found is None:
                outcomes["crashed"] += 1
                continue
            missing = forms - found.keys()
            wrong = [form for form, each in found.items() if not max(each) <= 1]
            outcomes.update("wrong" if form in wrong else "right" for form in found)
            outcomes.update("no candidate" for _ in missing)
            largest = max(largest, *(e for each in found.values() for e in each), 0.0)
            if wrong or missing:
                print(name, case, found, flush=True)
        if seed % 50 == 0:
            print(seed, dict(outcomes), f"largest error {largest:.2g} of the bound", flush=True)
    return outcomes, largest


def main() -> int:
    """Tries the cases; returns 1 if one is refused, lacks a form or exceeds its error bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel"])
    parser.add_argument("--all", action="store_true", help="every form of a case, not one of them")
    parser.add_argument("--strided", action="store_true", help="strides of 2, 3 and 4")
    parser.add_argument("--jobs", type=int, default=1, help="how many cases at a time")
    given = parser.parse_args()
    seeds = range(given.start, given.start + given.count)
    shares = [seeds[k :: given.jobs] for k in range(given.jobs)]
    with ThreadPoolExecutor(given.jobs) as threads:
        found = [*threads.map(lambda share: outcomes_of(share, given), shares)]
    outcomes = sum((counted for counted, _ in found), Counter[str]())
    print(dict(outcomes), f"largest error {max(e for _, e in found):.2g} of the bound")
    return int(not outcomes["right"] or bool(outcomes.keys() - {"right", "crashed"}))


if __name__ == "__main__":
    sys.exit(main())
