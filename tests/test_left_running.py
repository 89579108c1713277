"""The guard of all modules of tests: a process that outlives its module is a failure, and named."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from tests import processes

ROOT = Path(__file__).parents[1]

# A process that has just been started has no environment that names its starter yet.
ENDLESS = """
import time
from pathlib import Path
Path(__file__).with_suffix(".begun").touch()
time.sleep(600)
"""
BEGUN = """
import subprocess, sys, time
from pathlib import Path

def begun(script):
    child = subprocess.Popen([sys.executable, Path(__file__).with_name(script)])
    while not Path(__file__).with_name(script).with_suffix(".begun").exists():
        time.sleep(0.01)
    return child
"""
STARTER = BEGUN + 'begun("of_a_starter.py")'
SHORT = """
from pathlib import Path
Path(__file__).with_suffix(".begun").touch()
"""
MODULE = """
from begun import begun
from tests import processes

processes.SECONDS = 0.1

def test_it():
    child = begun({script!r})
    assert {script!r} == "child.py" or child.wait() == 0
"""
FILES = {
    "pytest.ini": "[pytest]\n",
    "begun.py": BEGUN,
    "short.py": SHORT,
    "child.py": ENDLESS,
    "of_a_starter.py": ENDLESS,
    "starter.py": STARTER + SHORT,
    "test_a.py": MODULE.format(script="short.py"),
    "test_b.py": MODULE.format(script="child.py"),
    "test_c.py": MODULE.format(script="starter.py"),
}


def test_what_outlives_its_module_fails_it(tmp_path):
    for name, code in FILES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    said = tmp_path / "said"
    try:
        with said.open("w") as out:  # a pipe would stay open in what is left
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "tests.conftest"],
                cwd=tmp_path,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=out,
                stderr=out,
                check=False,
                timeout=processes.SECONDS,
            )
    finally:
        child, orphan = (ended(str(tmp_path / f"{name}.py")) for name in ("child", "of_a_starter"))
    text = said.read_text(encoding="utf-8")
    assert run.returncode == 1, text
    assert "3 passed, 2 errors" in text
    named = re.findall(r"^E +AssertionError: left running: (.*)$", text, re.MULTILINE)
    found = [{int(pid) for pid in re.findall(r"'pid': (\d+)", line)} for line in named]
    assert found == [child, child | orphan], text
    assert len(child) == len(orphan) == 1


def ended(script):
    """The processes that ran a script, which are ended."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if script in process.cmdline():
                found.add(process.pid)
                process.kill()
    return found
