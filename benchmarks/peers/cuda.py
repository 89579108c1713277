"""PyTorch on a GPU with CUDA, in float32 without TF32, by the device's clock.

It is compared with OpenCL on the same GPU, so it runs in the benchmark's own process. On the CPU
(`WHERE`) it is timed by the host's clock, to try the rest of the script.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from cases import Case
from turns import Figures, Timed, host

from liftpy.constraints.device import Device
from peers.interface import Made, Peer
from peers.pytorch import PyTorch, PyTorchCopy

WHERE = ("cuda", "cpu", "none")
"""Where it runs; `none` leaves it out."""

RUNS = 20
"""Calls in a CUDA graph, between two events of the device."""

WARM = 5
"""Calls before that, in which cuDNN chooses its algorithm."""


def peers(on: str) -> list[Peer]:
    """PyTorch in both memory formats, and its copy."""
    if on == "none":
        return []
    return [PyTorch("contiguous", on), PyTorch("channels_last", on), PyTorchCopy(on)]


def missing(on: str, device: Device) -> str:
    """What is missing for a comparison with an OpenCL device; empty if nothing is."""
    if on == "none":
        return ""
    peer = PyTorch("contiguous")
    if reason := peer.available():
        return f"PyTorch cannot be imported: {reason}"
    if on == "cpu":
        return ""
    torch = peer.library()
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no GPU with CUDA"
    if not torch.backends.cudnn.is_available():
        return f"PyTorch {torch.__version__} has no cuDNN"
    name = torch.cuda.get_device_name()
    return "" if name == device.name else f"PyTorch's GPU is {name}, OpenCL's device {device.name}"


def versions(on: str) -> dict[str, str]:
    """The versions of the libraries."""
    if on == "none":
        return {}
    torch = PyTorch("contiguous").library()
    found = {"PyTorch": str(torch.__version__)}
    if on == "cuda":
        found |= {"CUDA": torch.version.cuda, "cuDNN": str(torch.backends.cudnn.version())}
    return found


def contestants(case: Case, on: str) -> tuple[dict[str, Timed], dict[str, Any]]:
    """PyTorch's ways to compute a case, checked, and its copy: runs to time, and what is known.

    What CUDA cannot replay in a graph has no run, and `left_out` in what is known of it.
    """
    found: dict[str, tuple[Any, Made]] = {}
    known: dict[str, Any] = {}
    for peer in peers(on):
        torch = peer.library()
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        made = peer.make(case, os.cpu_count() or 1)
        if made is None:
            continue
        made.run()
        found[peer.name] = torch, made
        known[peer.name] = {
            "layout": made.layout.upper(),
            "computes": peer.computes,
            "error": case.error(made.result()) if peer.computes else None,
            "kernels": kernels_of(torch, made.run) if on == "cuda" else {},
        }
    # Graphs are made after profiling: one that was replayed after it accessed memory illegally.
    timed: dict[str, Timed] = {}
    for name, (torch, made) in found.items():
        try:
            run = in_graph(torch, made.run) if on == "cuda" else by_host(made.run)
            run()
        except RuntimeError as why:  # the others are still worth timing
            known[name]["left_out"] = str(why)
            print(f"  {name} is left out of {case.name}: {why}", flush=True)
            continue
        timed[name] = run
    return timed, known


def in_graph(torch: Any, run: Callable[[], object]) -> Timed:
    """Calls in a CUDA graph, which are enqueued together, as a run to time."""
    for _ in range(WARM):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(RUNS):
            run()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(_kept: object = run) -> Figures:  # its tensors, which the graph reads
        start = time.perf_counter_ns()
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        taken = time.perf_counter_ns() - start
        device = first.elapsed_time(last) * 1e6  # from ms
        return {"wall": taken, "host": taken / RUNS, "events": device / RUNS}

    return timed


def by_host(run: Callable[[], object]) -> Timed:
    """A call timed by the host's clock, with the figures of one timed by the device's."""
    timed = host(run)

    def figures() -> Figures:
        taken = timed()["wall"]
        return {"wall": taken, "host": taken, "events": taken}

    return figures


def kernels_of(torch: Any, run: Callable[[], object]) -> dict[str, float]:
    """The kernels of a call, each with its microseconds."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    return {e.key: e.device_time_total for e in profile.key_averages() if e.device_time_total > 0}
