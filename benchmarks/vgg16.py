"""The nine convolution layers of VGG-16: drawn candidates checked in full, best against PyTorch.

    python benchmarks/vgg16.py [--layers 7 24] [--samples 30] [--families direct] [--search local]
                               [--record]

For each layer and family, `samples` candidates of a search (seed 0) are compiled, run in poisoned
buffers and compared with float64 at every output; the figures of memory are compared with what was
allocated. The best candidate is then timed again, alternately with PyTorch's convolution (oneDNN,
channels last, as many threads as cores), medians of 15. Exit status 1 if any candidate was refused,
failed to build or was wrong, or if the best of layer 7 has less than half of PyTorch's speed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from liftpy.errors import BuildFailed, DeviceRefused
from liftpy.explore.search import SEARCHES, Search, Trial, named
from liftpy.explore.space.member import everything
from liftpy.explore.spaces import space_of
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.workloads import VGG16, Convolution, workload
from tests.fuzz.record import commit, record

TOLERANCE = 1e-5  # of the largest output
SLOW = 0.5  # seconds after which one timed run is enough
DEMANDED = {7: 0.5}  # of PyTorch's speed, where this much is demanded


def reference(layer: Convolution, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The layer in float64 by a matrix product of patches, independent of liftpy."""
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    out = np.empty((*layer.out, layer.kernels))
    weights = w.astype(np.float64).reshape(layer.kernels, -1).T
    for row in range(layer.out[0]):
        patches = np.lib.stride_tricks.sliding_window_view(padded[row : row + 3], 3, axis=1)
        flat = patches.transpose(1, 0, 3, 2).reshape(layer.out[1], -1)
        out[row] = flat @ weights + b
    return out


def peer(arrays: dict[str, np.ndarray]) -> Any:
    """PyTorch's convolution on the same data, as a function to time; None without PyTorch."""
    try:
        import torch  # noqa: PLC0415  the benchmark runs without its peer
    except ImportError:
        return None
    torch.set_num_threads(os.cpu_count() or 1)
    nchw = torch.from_numpy(arrays["x"].transpose(2, 0, 1)[None].copy()).to(
        memory_format=torch.channels_last
    )
    weights = torch.from_numpy(arrays["w"].transpose(0, 3, 1, 2).copy()).to(
        memory_format=torch.channels_last
    )
    bias = torch.from_numpy(arrays["b"])

    def run() -> None:
        with torch.no_grad():
            torch.nn.functional.conv2d(nchw, weights, bias, padding=1)

    return run


def load(session: Session, module: Any, arrays: dict[str, np.ndarray]) -> Loaded:
    """The candidate with its weights prepared."""
    loaded = session.load(module)
    loaded.set_constants({n: arrays[n] for n in ("w", "b")})
    return loaded


def judge(loaded: Loaded, module: Any, x: np.ndarray, expected: np.ndarray) -> tuple[str, float]:
    """The outcome of a candidate and its error relative to the largest output."""
    got = loaded.run({"x": x}, poison=True)
    error = float(np.abs(got - expected).max() / np.abs(expected).max())
    if not error <= TOLERANCE:
        return "wrong", error
    return ("measured" if loaded.allocated_bytes == module.memory.allocated else "memory"), error


def measure_layer(
    index: int, families: list[str], samples: int, search: Search, session: Session
) -> dict[str, Any]:
    """All candidates of a layer, then the best against PyTorch."""
    layer, program = VGG16[index], workload(f"vgg16/{index}")
    rng = np.random.default_rng(index)
    shapes = {
        "x": (layer.height, layer.width, layer.channels),
        "w": (layer.kernels, 3, 3, layer.channels),
    }
    arrays = {n: rng.standard_normal(s, dtype=np.float32) for n, s in shapes.items()}
    arrays["b"] = rng.standard_normal(layer.kernels, dtype=np.float32)
    expected = reference(layer, **arrays)
    rows: list[dict[str, Any]] = []
    made: dict[int, Module] = {}
    whole = space_of(program, session.device)
    for family in (name for name in families if name in whole.families):
        space = whole.choosing({"family": family})
        trials: list[Trial] = []
        for candidate in itertools.islice(search(space, 0, trials, everything), samples):
            row: dict[str, Any] = {"family": family, "skeleton": candidate.skeleton.key}
            row["assignment"] = candidate.assignment
            start = time.perf_counter()
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            row |= {"generate_s": time.perf_counter() - start, "memory": module.memory.peak}
            try:
                with load(session, module, arrays) as loaded:
                    start = time.perf_counter()
                    row["outcome"], row["error"] = judge(loaded, module, arrays["x"], expected)
                    once = time.perf_counter() - start
                    times = loaded.profile(1 if once > SLOW else 5, 0 if once > SLOW else 1)
                    row["time_ms"] = statistics.median(sum(t) for t in times) / 1e6
            except BuildFailed as error:
                row |= {"outcome": "build failed", "reason": str(error)[:500]}
            except DeviceRefused as error:
                row |= {"outcome": "refused", "reason": str(error)[:500]}
            rows.append(row)
            made[len(rows) - 1] = module
            nanoseconds = int(row["time_ms"] * 1e6) if "time_ms" in row else None
            trials.append(Trial(candidate, nanoseconds, module.memory.peak))
    best = min((r for r in rows if r["outcome"] == "measured"), key=lambda r: r["time_ms"])
    with load(session, made[rows.index(best)], arrays) as loaded:
        loaded.run({"x": arrays["x"]})
        ours, theirs = timed_alternately(loaded, peer(arrays))
    return {"layer": index, "rows": rows, "best": best, "ours_ms": ours, "pytorch_ms": theirs}


def timed_alternately(loaded: Loaded, other: Any, rounds: int = 15) -> tuple[float, float | None]:
    """Medians in ms of the candidate's events and of the peer's wall time, measured in turns."""
    ours: list[float] = []
    theirs: list[float] = []
    for k in range(rounds + 2):
        mine = sum(loaded.profile(1, 0)[0]) / 1e6
        if other is not None:
            start = time.perf_counter()
            other()
            if k > 1:
                theirs.append((time.perf_counter() - start) * 1e3)
        if k > 1:
            ours.append(mine)
    return statistics.median(ours), statistics.median(theirs) if theirs else None


def main() -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, nargs="*", default=list(VGG16), choices=list(VGG16))
    parser.add_argument(
        "--samples", type=int, default=30, help="candidates per family (default 30)"
    )
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--search", default="random", choices=list(SEARCHES))
    parser.add_argument("--device", default=None)
    parser.add_argument("--json", type=Path, default=None, help="raw data goes here")
    parser.add_argument("--record", action="store_true", help="writes tests/fuzz/candidates.json")
    options = parser.parse_args()
    tried = commit()
    device = find_device(options.device)
    print(
        f"{device.name}, {device.platform} {device.driver_version}, {os.cpu_count()} cores\n",
        flush=True,
    )
    print("| layer | outcomes | best ms | peak MB | PyTorch ms | ratio | best candidate |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    results: list[dict[str, Any]] = []
    bad = 0
    with Session(device) as session:
        for index in options.layers:
            result = measure_layer(
                index, options.families, options.samples, named(options.search), session
            )
            results.append(result)
            outcomes = Counter(r["outcome"] for r in result["rows"])
            bad += sum(n for kind, n in outcomes.items() if kind != "measured")
            best, peer_ms = result["best"], result["pytorch_ms"]
            sizes = ", ".join(f"{n}={v}" for n, v in best["assignment"].items())
            ratio = "" if peer_ms is None else f"{peer_ms / result['ours_ms']:.2f}"
            enough = DEMANDED.get(index, 0.0)
            bad += peer_ms is not None and peer_ms / result["ours_ms"] < enough
            shown = "" if peer_ms is None else f"{peer_ms:.2f}"
            counts = ", ".join(f"{n} {kind}" for kind, n in outcomes.items())
            cells = [
                index,
                counts,
                f"{result['ours_ms']:.2f}",
                f"{best['memory'] / 1e6:.2f}",
                shown,
                ratio,
            ]
            print("|", " | ".join(map(str, cells)), f"| {best['skeleton']} {sizes} |", flush=True)
            if options.json:
                options.json.write_text(
                    json.dumps({"device": device.to_json(), "layers": results}, indent=1)
                )
            if options.record:
                layers = {r["layer"]: Counter(row["outcome"] for row in r["rows"]) for r in results}
                found = {"candidates of a family": options.samples, "layers": layers}
                record("candidates", tried, found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
