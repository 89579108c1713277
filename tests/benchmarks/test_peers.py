"""The processes of the benchmark's peers."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.benchmarks.scripts import script
from tests.processes import runs, until

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

STOPS = """
import multiprocessing, os, signal, sys, time
from peers.process import end_with

def peer(starter):
    end_with(starter)
    os.kill(os.getpid(), signal.SIGSTOP)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=peer, args=(os.getpid(),))
    process.start()
    print(process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
def test_a_stopped_peer_ends_with_a_benchmark_that_is_killed(tmp_path):
    script = tmp_path / "benchmark.py"
    script.write_text(STOPS)
    line = [sys.executable, str(script)]
    env = {"PYTHONPATH": f"{BENCHMARKS}:{BENCHMARKS.parent}"}
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=env, text=True) as benchmark:
        peer = psutil.Process(int(benchmark.stdout.readline()))
        try:
            until(lambda: peer.status() == psutil.STATUS_STOPPED or benchmark.poll() is not None)
            assert benchmark.poll() is None
        finally:
            benchmark.send_signal(signal.SIGKILL)
    try:
        until(lambda: not runs(peer), lambda: "the peer is there still")
    finally:
        if runs(peer):
            peer.kill()


@pytest.mark.parametrize(
    ("name", "group", "kind", "formats"),
    [
        ("matmul/5x7x3", "matmul", "matmul", 1),
        ("batched/2x5x7x3", "matmul", "batched", 1),
        ("dot/13", "dot", "dot", 1),
        ("pool/max/6x9x5x3x2", "pooling", "max_pool", 2),
        ("convolution/strided/9x7x4x6x3x2", "claimed layers", "convolution", 2),
        ("stencil/jacobi5/5x7", "stencil", "jacobi5", 0),
    ],
)
def test_pytorch_computes_what_the_program_means(name, group, kind, formats):
    """Also what only the benchmark of GPUs times, here on the CPU; a stencil is only copied."""
    pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")
    case = script("cases").Case(name, group, kind)
    timed, known = script("gpu").cuda.contestants(case, "cpu")
    errors = [peer["error"] for peer in known.values() if peer["computes"]]
    assert len(errors) == formats
    assert all(error < 1e-6 for error in errors)
    assert ("copy" in timed) == (kind == "jacobi5")
    assert all(run()["events"] > 0 for run in timed.values())
