"""The tables of what was measured, and what was aimed at."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict


class Place(TypedDict):
    """Where a process measures; `vectors` is the processor's instruction set for vectors."""

    cpu: str
    vectors: NotRequired[str]
    cores: int
    system: str
    python: str
    commit: str
    date: str


class Machine(Place):
    """Where and with what a case was measured; `absent` says why a peer was left out."""

    device: str
    liftpy: str
    threads: int
    versions: dict[str, str]
    absent: dict[str, str]
    rounds: int


class Best(TypedDict):
    """The candidate that was timed; memory is in bytes."""

    skeleton: str
    assignment: dict[str, str | int]
    peak: int
    scratch: int
    error: float


class Known(TypedDict):
    """A peer, beside its times: `left_out` says why it has none."""

    computes: bool
    layout: NotRequired[str]
    error: NotRequired[float]
    left_out: NotRequired[str]


class Measured(TypedDict):
    """A case after its rounds.

    `restricted` has the options that restricted the space of its campaign. `ns` has the samples by
    contestant and figure.
    """

    case: str
    group: str
    flops: int
    outcomes: dict[str, int]
    restricted: NotRequired[dict[str, Any]]
    best: Best
    peers: dict[str, Known]
    others: float
    ns: dict[str, dict[str, list[float]]]


class Result(Measured):
    """A case as it is stored."""

    machine: Machine


GROUPS = {
    "vgg16": "VGG-16, channels last",
    "vgg16:nchw": "VGG-16, channels first",
    "alexnet": "AlexNet",
    "resnet50": "ResNet-50",
    "mobilenet": "MobileNet",
    "inceptionv3": "Inception-v3",
    "matmul": "Products of matrices",
    "stencil": "Stencils",
    "dot": "Scalar products",
    "programs": "Softmax, normalisation, attention, a perceptron, a block",
}


BUSY = 0.1
"""Share of the processors' time that others took in the rests, beyond which a case is marked."""


# --- figures of one case --------------------------------------------------------------------------


def median(result: Result, name: str, figure: str = "wall") -> float | None:
    """The time of a contestant in ns; None if it was not there."""
    samples = result["ns"].get(name, {}).get(figure)
    return statistics.median(samples) if samples else None


def rivals(result: Result) -> dict[str, float]:
    """The times of the peers that compute."""
    return {
        name: statistics.median(result["ns"][name]["wall"])
        for name, known in result["peers"].items()
        if known["computes"] and name in result["ns"]
    }


def of(result: Result, name: str) -> float | None:
    """A contestant's time divided by liftpy's, both on the host."""
    time, mine = median(result, name), median(result, "liftpy")
    return None if time is None or mine is None else time / mine


def against_best(result: Result) -> float | None:
    """The time of the fastest peer divided by liftpy's."""
    return min((t for n in rivals(result) if (t := of(result, n)) is not None), default=None)


def against_layout(result: Result) -> float | None:
    """The time of the fastest peer of the case's own layout divided by liftpy's; convolutions."""
    own = "nchw" if result["case"].endswith(":nchw") else "nhwc"
    same = [n for n in rivals(result) if result["peers"][n].get("layout") == own]
    return min((t for n in same if (t := of(result, n)) is not None), default=None)


def geomean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


# --- goals ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A number that was aimed at, and what was measured; None where nothing was."""

    text: str
    least: float
    value: float | None

    @property
    def verdict(self) -> str:
        """Held or not."""
        if self.value is None:
            return "not measured"
        return "held" if self.value >= self.least else "not held"


FULL = 9
"""Layers of VGG-16; its goals are of all of them."""


def goals(results: list[Result]) -> list[Goal]:
    """Every goal, with the worst ratio where it is asked of each case.

    Cases that are marked count for none: what was timed beside other work decides nothing.
    """
    results = [r for r in results if r["others"] <= BUSY]
    vgg = [r for r in results if r["group"] == "vgg16"]
    ratios = {r["case"]: t for r in vgg if (t := against_best(r)) is not None}
    whole = len(ratios) == FULL
    lean = min((1 - r["best"]["scratch"] / r["best"]["peak"] for r in vgg), default=None)
    slowest = min((t for n, t in ratios.items() if n != "vgg16/0"), default=None)
    others = [
        t
        for r in results
        if r["group"] in {"alexnet", "resnet50", "mobilenet", "inceptionv3"}
        and (t := against_best(r)) is not None
    ]
    products = {r["case"]: r for r in results if r["group"] == "matmul"}
    square = products.get("matmul/1024x1024x1024")
    stencils = [t for r in results if r["group"] == "stencil" and (t := of(r, "copy")) is not None]
    beyond = [r for r in vgg if r["case"] != "vgg16/0"]

    def worst(name: str) -> float | None:
        found = [t for r in beyond if (t := of(r, name)) is not None]
        return min(found) if len(found) == FULL - 1 else None

    return [
        Goal("VGG-16 but layer 0: each layer", 0.97, slowest if whole else None),
        Goal("VGG-16 layer 0", 0.90, ratios.get("vgg16/0")),
        Goal("VGG-16: geometric mean", 0.98, geomean(ratios.values()) if whole else None),
        Goal("VGG-16: what is given and made, of the peak", 0.98, lean if whole else None),
        Goal("other convolutions: geometric mean", 0.90, geomean(others) if others else None),
        Goal("matmul 1024", 0.95, against_best(square) if square else None),
        Goal("stencils: each, of a copy's speed", 0.80, min(stencils, default=None)),
        Goal("CLBlast's convgemm: each layer but 0", 10.0, worst("CLBlast")),
        Goal("im2col and OpenBLAS: each layer but 0", 2.0, worst("OpenBLAS")),
    ]


def missed(results: list[Result]) -> list[str]:
    """The goals that were measured and not held."""
    return [
        f"{g.text}: {g.value:.2f}, not {g.least:g}"
        for g in goals(results)
        if g.verdict == "not held"
    ]


# --- tables ---------------------------------------------------------------------------------------


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def ms(ns: float | None) -> str:
    """Milliseconds, three figures."""
    if ns is None:
        return ""
    return f"{ns / 1e6:.3g}" if ns < 1e9 else f"{ns / 1e6:.0f}"


def ratio(value: float | None) -> str:
    """A ratio."""
    return "" if value is None else f"{value:.2f}"


def order(case: str) -> list[int]:
    """By the numbers in the name."""
    return [int(n) for n in re.findall(r"\d+", case.partition("/")[2])]


def by_numbers(result: Result) -> list[int]:
    """By the numbers in the name of the case."""
    return order(result["case"])


def group_table(results: list[Result]) -> str:
    """The times of a group in ms, and the ratios."""
    peers = list(dict.fromkeys(n for r in results for n in r["ns"] if n != "liftpy"))
    more: dict[str, Callable[[Result], float | None]] = {}
    if any(against_layout(r) for r in results):
        more["best of its layout / liftpy"] = against_layout
    if "copy" in peers:
        more["copy / liftpy"] = lambda r: of(r, "copy")
    heads = ["case", "liftpy, events", "liftpy, host", *peers, "best peer / liftpy", *more]
    rows: list[list[str]] = []
    for r in sorted(results, key=by_numbers):
        name = r["case"] + (" (busy)" if r["others"] > BUSY else "")
        cells = [name, ms(median(r, "liftpy", "events")), ms(median(r, "liftpy"))]
        cells += [ms(median(r, n)) for n in peers]
        cells += [ratio(figure(r)) for figure in (against_best, *more.values())]
        rows.append(cells)
    found = [t for r in results if (t := against_best(r)) is not None]
    mean = f"\n\nGeometric mean of best peer / liftpy: {geomean(found):.2f}." if found else ""
    return table(heads, rows) + mean


def choice_table(results: list[Result]) -> str:
    """Which candidates these were."""
    rows: list[list[str]] = []
    for r in sorted(results, key=by_numbers):
        best = r["best"]
        sizes = ", ".join(f"{n}={v}" for n, v in best["assignment"].items() if isinstance(v, int))
        tried = ", ".join(f"{n} {kind}" for kind, n in r["outcomes"].items()) + restricted(r)
        peak = f"{best['peak'] / 1e6:.2f}"
        speed = f"{r['flops'] / (median(r, 'liftpy') or math.inf):.0f}"
        scratch = f"{best['scratch'] / 1e6:.2f}"
        rows.append([r["case"], tried, best["skeleton"], sizes, peak, scratch, speed])
    heads = ["case", "tried", "skeleton", "sizes", "peak MB", "scratch MB", "Gflop/s"]
    return table(heads, rows)


def restricted(r: Result) -> str:
    """What restricted the space of a case's campaign by options; nothing with the defaults."""
    options = r.get("restricted", {})
    families = " and ".join(options.get("families", ()))
    most = options.get("memory_limit")
    return (f", only {families}" if families else "") + (
        "" if most is None else f", peak at most {most / 1e6:.2f} MB"
    )


def with_vectors(machine: Machine) -> str:
    """A processor's name and, if it is known, its instruction set for vectors."""
    vectors = machine.get("vectors")
    return f"{machine['cpu']} ({vectors})" if vectors else machine["cpu"]


def machine_text(results: list[Result]) -> str:
    """Where it was measured, once for each machine and set of versions."""
    texts: dict[str, list[str]] = {}
    for r in results:
        m = r["machine"]
        versions = ", ".join(f"{n} {v}" for n, v in m["versions"].items())
        absent = "".join(f" {n} was left out: {why}." for n, why in m["absent"].items())
        text = (
            f"{with_vectors(m)}, {m['cores']} cores, {m['threads']} threads each; {m['device']}; "
            f"liftpy at {m['commit']}, {m['date'][:10]}; {versions}; medians of {m['rounds']} "
            f"rounds.{absent}"
        )
        texts.setdefault(text, []).append(r["case"])
    if not texts:
        return "Nothing is measured yet."
    if len(texts) == 1:
        return next(iter(texts))
    return "\n".join(f"- {text} ({len(names)} cases)" for text, names in texts.items())


def unmeasured(results: list[Result], cases: Mapping[str, str]) -> str:
    """The cases of a group that have no result; `cases` has the group of every case."""
    (group,) = {r["group"] for r in results}
    names = [name for name, its in cases.items() if its == group]
    left = [name for name in names if name not in {r["case"] for r in results}]
    short = [left[0], *(name.partition("/")[2] for name in left[1:])] if left else []
    return f"Not measured: {len(left)} of {len(names)} cases ({', '.join(short)})." if left else ""


def tables(results: list[Result], cases: Mapping[str, str]) -> str:
    """All that was measured, and what was not; `cases` has the group of every case."""
    verdicts = [
        [g.text, f"{g.least:g}", "" if g.value is None else f"{g.value:.2f}", g.verdict]
        for g in goals(results)
    ]
    busy = sum(r["others"] > BUSY for r in results)
    marked = (
        f"{busy} cases are marked (busy): other work took over {BUSY:.0%} of the processors. They "
        "count for no goal."
    )
    note = [marked] if busy else []
    parts = [
        machine_text(results),
        *note,
        table(["goal", "at least", "measured", "verdict"], verdicts),
    ]
    for group, title in GROUPS.items():
        members = [r for r in results if r["group"] == group]
        if members:
            parts += [f"### {title}", group_table(members), choice_table(members)]
            parts.append(unmeasured(members, cases))
    missing = {g: sum(its == g for its in cases.values()) for g in GROUPS}
    for r in results:
        missing[r["group"]] = 0
    parts += [f"Not measured: every case of {GROUPS[g]} ({n})." for g, n in missing.items() if n]
    return "\n\n".join(filter(None, parts))


BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def rendered(page: str, results: list[Result], cases: Mapping[str, str]) -> str:
    """The page with the tables between its markers; `cases` has the group of every case."""
    return between(page, BEGIN, END, tables(results, cases))


def between(page: str, begin: str, end: str, text: str) -> str:
    """The page with a text between two markers, in place of what was there."""
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (opened and closed):
        message = f"the page has no {begin} ... {end}"
        raise ValueError(message)
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"
