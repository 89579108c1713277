"""Commands of a page, run together in one process.

    python -m tests.docs.commands       reads commands from stdin, writes results to stdout, in JSON

Starting liftpy and its OpenCL driver takes longer than most commands. Commands of other programs
run in processes of their own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from liftpy.cli import main


class Ran(NamedTuple):
    """The status of a command and what it wrote."""

    status: int
    out: str
    err: str


def ran(command: str) -> Ran:
    """Runs a command in the current folder."""
    program, *words = shlex.split(command)
    if program == "liftpy":
        return liftpy(words)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [program, *words],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def liftpy(words: Sequence[str]) -> Ran:
    """Runs a command of liftpy in this process, without the width that pytest-xdist sets."""
    out, err, hook = io.StringIO(), io.StringIO(), sys.excepthook
    status = 0
    with (
        mock.patch.dict(os.environ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.environ.pop("COLUMNS", None)
        try:
            main(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            sys.excepthook = hook
    return Ran(status, out.getvalue(), err.getvalue())


def in_a_process(lines: Sequence[str], folder: Path, package: Path) -> list[Ran]:
    """Runs commands in a folder, one after another, with the liftpy of the folder `package`."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(lines),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Ran(*each) for each in json.loads(done.stdout)]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    with contextlib.ExitStack() as stack:
        if any(line.startswith("liftpy explore") for line in asked):
            from tests.shared import in_one_process  # which imports all that campaigns need

            kept = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(in_one_process(Path(kept)))
        said = [ran(line) for line in asked]
    json.dump(said, sys.stdout)
