"""Ctrl-C, SIGTERM or SIGHUP at any time: one sentence, the usual exit code, no process left."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from liftpy.explore.campaign.store import Store
from liftpy.explore.space.candidate import program_text
from tests.cli.said import PROGRAM
from tests.processes import until

ROOT = Path(__file__).parents[2]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def interrupted(folder, at, number, *command):
    script = ROOT / "tests" / "cli" / "interrupted.py"
    return subprocess.run(
        [sys.executable, script, str(at), str(int(number)), *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=ENVIRONMENT,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("stopped")
    (found / "tiny.lift").write_text(program_text(PROGRAM))
    text = "import os, signal\nos.kill(os.getpid(), signal.{})\nwhile True:\n    pass\n"
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        (found / f"{name}.py").write_text(text.format(name))
    ignoring = "import ctypes, os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (found / "native.py").write_text(f"{ignoring}ctypes.CDLL(None).sleep(600)\n")
    return found


@pytest.mark.covering(2)
@pytest.mark.parametrize("at", [1, 30, 100, 200, 300])
@pytest.mark.parametrize("number", CODES)
def test_a_command_can_be_stopped_while_it_starts(folder, at, number):
    said = interrupted(folder, at, number, "show", "tiny.lift")
    assert said.returncode == CODES[number], said.stderr
    assert re.fullmatch(r"stopped[^\n]*\n", said.stderr)
    assert said.stdout == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", CODES)
def test_a_command_can_be_stopped_at_work(folder, number):
    said = interrupted(folder, 0, number, "show", f"{number.name}.py:x")
    assert said.returncode == CODES[number], said.stderr
    assert re.fullmatch(r"stopped[^\n]*\n", said.stderr)


def test_a_command_that_is_in_native_code_is_stopped_all_the_same(folder):
    """Python sees a signal when the call returns, here after ten minutes."""
    said = interrupted(folder, 0, 0, "show", "native.py:x")
    assert said.returncode == 130, said.stderr
    assert said.stderr == "stopped\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", CODES)
def test_a_campaign_that_is_stopped_leaves_its_file_and_nothing_else(folder, number):
    path = folder / f"{number.name}.db"
    words = ["explore", "tiny.lift", "--db", path.name, "-n", "100000", "--search", "random"]
    process = subprocess.Popen(
        [sys.executable, "-m", "liftpy", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
    )
    until(lambda: measured(path) or process.poll() is not None)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert workers
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == CODES[number], err
    assert out == ""
    lines = [line for line in err.splitlines() if "stopped" in line]
    assert len(lines) == 1
    assert "Traceback" not in err
    assert f"everything so far is in {path.name}" in lines[0]
    until(lambda: not any(map(alive, workers)))
    assert sorted(p.name for p in folder.glob(f"{number.name}.db*")) == [path.name]
    with Store.read(path) as store:
        assert not store.under_way()


def alive(process):
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def measured(path):
    with suppress(sqlite3.Error):
        if path.exists():
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
                return db.execute("SELECT * FROM outcome WHERE kind = 'measured'").fetchone()
    return None


def test_a_command_under_nohup_outlives_its_terminal(folder):
    """`nohup` starts it with SIGHUP ignored, and liftpy does not change that."""
    script = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    script += "from liftpy.cli.main import Stop; Stop().install(); "
    script += "os.kill(os.getpid(), signal.SIGHUP); print('alive')"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (said.returncode, said.stdout) == (0, "alive\n"), said.stderr


def test_the_second_sighup_of_a_closed_terminal_does_not_stop_the_cleaning(folder):
    """The system sends one to the processes of the terminal, and their shell another."""
    script = """
import os, signal, time
from liftpy.cli.main import Stop
stop = Stop()
stop.install()
stop.at_work = True
try:
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(60)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(0.1)
    print("cleaned", flush=True)
stop.leave()
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (said.returncode, said.stdout) == (129, "cleaned\n"), said.stderr
