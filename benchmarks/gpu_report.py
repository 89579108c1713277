"""The tables of `gpu.py`: the layers of VGG-16, and other cases."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from report import between, geomean, order, ratio, table

from liftpy.explore.report.wording import counts_text
from liftpy.workloads import VGG16

Result = dict[str, Any]
"""A case as it is stored."""

GOAL = 0.7
"""The goal for the geometric mean of cuDNN's time divided by liftpy's."""

MINE, DIRECT, COPY = "liftpy", "liftpy, direct", "copy"


# --- words of a candidate -------------------------------------------------------------------------


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


# --- figures of a case ----------------------------------------------------------------------------


def us(result: Result, name: str, figure: str = "events") -> float:
    """The median time of a contestant in microseconds."""
    return statistics.median(result["ns"][name][figure]) / 1e3


def fastest(result: Result) -> str | None:
    """The layout in which PyTorch is fastest; None if it has no times."""
    computing = [n for n, known in result["peers"].items() if known.get("computes", True)]
    timed = (name for name in computing if name in result["ns"])
    return min(timed, key=lambda name: us(result, name), default=None)


def against(result: Result, name: str = MINE) -> float | None:
    """PyTorch's device time in its faster layout, divided by that of a candidate."""
    peer = fastest(result)
    return None if peer is None else us(result, peer) / us(result, name)


def direct(result: Result) -> str:
    """The name of the fastest candidate without F(m, r), which may be the fastest of all."""
    return DIRECT if DIRECT in result["ns"] else MINE


def peer_us(result: Result) -> str:
    """PyTorch's time, and the layout in which it is fastest."""
    peer = fastest(result)
    if peer is None:
        return ""
    layout = result["peers"][peer]["layout"]
    return f"{us(result, peer):.1f}" + (f" ({layout})" if layout else "")


def peer_error(result: Result) -> str:
    """The error of PyTorch in the layout in which it is fastest."""
    peer = fastest(result)
    return "" if peer is None else f"{result['peers'][peer]['error']:.1e}"


def per_us(result: Result, figure: str, unit: float) -> str:
    """A figure of a case per microsecond of liftpy's, in a unit."""
    return f"{result[figure] / us(result, MINE) / unit:.3g}"


def copy_ratio(result: Result) -> str:
    """The time of PyTorch's copy, divided by liftpy's."""
    return ratio(us(result, COPY) / us(result, MINE) if COPY in result["ns"] else None)


# --- the tables -----------------------------------------------------------------------------------


def is_layer(result: Result) -> bool:
    """Whether a case is a layer of VGG-16 with channels last."""
    network, _, number = result["case"].partition("/")
    return network == "vgg16" and number.isdigit()


def by_name(result: Result) -> tuple[str, list[int], str]:
    """By the first word of the name, then by its numbers, then by its other words."""
    return result["case"].partition("/")[0], order(result["case"]), result["case"]


def where_text(result: Result) -> str:
    """Where and with what a case was measured."""
    m = result["machine"]
    commit = m["commit"][:8] if m["commit"] else "an unknown commit"
    libraries = "".join(f"{name} {version}; " for name, version in m["versions"].items())
    return (
        f"{m['device']}, {m['runtime']} {m['driver']}; {libraries}liftpy at {commit}, {m['date']}; "
        f"medians of {m['rounds']} rounds"
    )


def means(results: list[Result]) -> str:
    """The geometric means of the ratios of layers; empty without a peer."""
    compared = [r for r in results if fastest(r)]
    if not compared:
        return ""
    every, without = (
        geomean([against(r, name(r)) or 0 for r in compared]) for name in (lambda _: MINE, direct)
    )
    return (
        f"Geometric mean of cuDNN / liftpy over {len(compared)} of {len(VGG16)} layers: "
        f"{every:.2f} (the goal is {GOAL}); without F(m, r): {without:.2f}."
    )


@dataclass(frozen=True)
class Section:
    """A table of the page: its markers, the cases that are its rows, and a line below them."""

    name: str
    has: Callable[[Result], bool]
    columns: dict[str, Column]
    summary: Callable[[list[Result]], str] = lambda _: ""

    @property
    def markers(self) -> tuple[str, str]:
        """The lines of the page around it."""
        return f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"

    def text(self, results: list[Result]) -> str:
        """All of its cases that were measured."""
        own = sorted(filter(self.has, results), key=by_name)
        if not own:
            return "Nothing is measured yet."
        places: dict[str, list[str]] = {}
        for r in own:
            places.setdefault(where_text(r), []).append(r["case"])
        measured_at = "\n".join(f"- {text}: {', '.join(names)}." for text, names in places.items())
        rows = [[cell(r) for cell in self.columns.values()] for r in own]
        return "\n\n".join(
            filter(None, [measured_at, table([*self.columns], rows), self.summary(own)])
        )


Column = Callable[[Result], str]
"""A cell of a case's row."""

TIMES: dict[str, Column] = {
    "liftpy us": lambda r: f"{us(r, MINE):.1f}",
    "host us": lambda r: f"{us(r, MINE, 'host'):.1f}",
}
CHECKED: dict[str, Column] = {
    "TFLOP/s": lambda r: per_us(r, "flops", 1e6),
    "error": lambda r: f"{r['liftpy'][MINE]['error']:.1e}",
}
TRIED: dict[str, Column] = {
    "family": lambda r: family_of(r["liftpy"][MINE]["assignment"]),
    "tried": lambda r: counts_text(r["outcomes"]),
}

LAYERS = Section(
    "gpu",
    is_layer,
    {
        "layer": lambda r: r["case"],
        **TIMES,
        "cuDNN us": peer_us,
        "cuDNN / liftpy": lambda r: ratio(against(r)),
        "without F(m, r)": lambda r: ratio(against(r, direct(r))),
        **CHECKED,
        "cuDNN's error": peer_error,
        **TRIED,
    },
    means,
)

OTHERS = Section(
    "gpu cases",
    lambda r: not is_layer(r),
    {
        "case": lambda r: r["case"],
        **TIMES,
        "PyTorch us": peer_us,
        "PyTorch / liftpy": lambda r: ratio(against(r)),
        "copy / liftpy": copy_ratio,
        "GB/s": lambda r: per_us(r, "bytes", 1e3),
        **CHECKED,
        "PyTorch's error": peer_error,
        **TRIED,
    },
)


def rendered(page: str, results: list[Result]) -> str:
    """The page with the tables between their markers."""
    for section in (LAYERS, OTHERS):
        page = between(page, *section.markers, section.text(results))
    return page
