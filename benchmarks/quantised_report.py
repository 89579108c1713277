"""The table of 8-bit layers."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TypedDict

from report import BUSY, Place, geomean, table


class Machine(Place):
    """Where and with what a layer was measured; `versions` is that of ONNX Runtime."""

    device: str
    threads: int
    versions: str
    rounds: int
    samples: int
    time_limit: float


class Candidate(TypedDict):
    """The candidate that was timed; `peak` is in bytes."""

    assignment: dict[str, str | int]
    peak: int
    error: float


Differences = TypedDict("Differences", {"differences": dict[str, int], "at ties": int})
"""How the result of ONNX Runtime differs: elements by difference, and how many are ties."""


class Measured(TypedDict):
    """A layer after its rounds; `ns` has the samples by contestant and figure."""

    layer: str
    sizes: str
    flops: int
    elements: int
    bytes: dict[str, int]
    liftpy: dict[str, Candidate]
    outcomes: dict[str, dict[str, int]]
    ties: int
    peer: Differences
    others: float
    ns: dict[str, dict[str, list[float]]]


class Result(Measured):
    """A layer as it is stored."""

    machine: Machine


U8, F32, ORT_U8, ORT_F32 = "liftpy u8", "liftpy f32", "ONNX Runtime u8", "ONNX Runtime f32"

MARKERS = "<!-- quantised: begin -->", "<!-- quantised: end -->"
GOAL = 0.9
"""The least geometric mean of the speed with 8 bits over that in f32."""


def median(result: Result, name: str, figure: str = "wall") -> float:
    """The time of a contestant in ns."""
    return statistics.median(result["ns"][name][figure])


def speed(result: Result) -> float:
    """The device's time in f32 over that with 8 bits."""
    return median(result, F32, "events") / median(result, U8, "events")


def against(result: Result) -> float:
    """The time of ONNX Runtime's QLinearConv over liftpy's, on the host."""
    return median(result, ORT_U8) / median(result, U8)


def kib(count: int) -> str:
    """Bytes in KiB."""
    return f"{count / 1024:.0f}"


def differences(result: Result) -> str:
    """How ONNX Runtime's elements differ: each difference with the number of elements."""
    peer = result["peer"]
    if not peer["differences"]:
        return "0"
    found = ", ".join(f"{int(d):+d}: {n}" for d, n in peer["differences"].items())
    return f"{found} ({peer['at ties']} at ties)"


def wrong(result: Result) -> int:
    """The elements of liftpy's 8-bit result that differ from the oracle."""
    return int(result["liftpy"][U8]["error"])


COLUMNS: dict[str, Callable[[Result], str]] = {
    "layer": lambda r: r["layer"],
    "sizes": lambda r: r["sizes"].removeprefix("convolution "),
    **{
        f"{n} (ms)": (lambda r, n=n: f"{median(r, n) / 1e6:.3g}")
        for n in (U8, F32, ORT_U8, ORT_F32)
    },
    "f32 / u8": lambda r: f"{speed(r):.2f}",
    "ONNX Runtime u8 / liftpy u8": lambda r: f"{against(r):.2f}",
    "KiB u8": lambda r: kib(r["bytes"][U8]),
    "KiB f32": lambda r: kib(r["bytes"][F32]),
    "peak u8": lambda r: kib(r["liftpy"][U8]["peak"]),
    "peak f32": lambda r: kib(r["liftpy"][F32]["peak"]),
    "wrong": lambda r: str(wrong(r)),
    "ties": lambda r: str(r["ties"]),
    "ONNX Runtime differs": differences,
}


def order(result: Result) -> tuple[str, int]:
    """ResNet-50 first, then by the number of the layer."""
    network, _, number = result["layer"].partition("/")
    return ("" if network == "resnet50" else network), int(number)


def where(result: Result) -> str:
    """Where and with what a layer was measured."""
    m = result["machine"]
    vectors = f" with {name}" if (name := m.get("vectors")) else ""
    return (
        f"{m['threads']} cores of an {m['cpu']}{vectors}, {m['device']}, ONNX Runtime "
        f"{m['versions']}; at {m['commit']}, {m['date'][:10]}; {m['rounds']} rounds, campaigns of "
        f"{m['samples']} candidates in at most {m['time_limit']:.0f} s"
    )


def text(results: list[Result]) -> str:
    """The table of all measured layers, and the geometric means."""
    if not results:
        return "Nothing is measured yet."
    own = sorted(results, key=order)
    places: dict[str, list[str]] = {}
    for r in own:
        places.setdefault(where(r), []).append(r["layer"])
    parts = ["\n".join(f"- {place}: {', '.join(names)}." for place, names in places.items())]
    parts.append(table([*COLUMNS], [[cell(r) for cell in COLUMNS.values()] for r in own]))
    theirs = geomean(median(r, ORT_F32) / median(r, ORT_U8) for r in own)
    parts.append(
        f"Geometric means over {len(own)} layers: `f32 / u8` {geomean(map(speed, own)):.2f} (the "
        f"goal is {GOAL}), ONNX Runtime's QLinearConv over liftpy's "
        f"{geomean(map(against, own)):.2f}; ONNX Runtime's f32 over its u8 {theirs:.2f}."
    )
    if busy := [r["layer"] for r in own if r["others"] > BUSY]:
        parts.append(f"Other work took more than {BUSY:.0%} of the processors: {', '.join(busy)}.")
    return "\n\n".join(parts)
