"""Runs commands in this process."""

import sys
from pathlib import Path

import pytest

from liftpy.cli import main
from liftpy.explore.space.candidate import program_text
from tests.cli.said import PROGRAM, Said


@pytest.fixture(scope="module", autouse=True)
def _shared(in_one_process):
    """What commands have in common is made once."""


@pytest.fixture
def liftpy(capsys, monkeypatch, tmp_path):
    """Runs a command in an empty folder that has `tiny.lift`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    Path("tiny.lift").write_text(program_text(PROGRAM))

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Said(int(exit_.value.code or 0), captured.out, captured.err)

    return run
