"""The processes of the benchmark's peers."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

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
