"""README.md does what it says, and so does the table of commands."""

from __future__ import annotations

import re
import subprocess

import pytest

from liftpy.cli.application import COMMANDS
from tests.docs.pages import DOCS, ROOT, Shape, run_page

PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_tour_runs_as_it_stands(device, in_one_process, tmp_path, monkeypatch):
    """With the default device, in this process; times and the best candidate may differ."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert run_page(PAGE, tmp_path, checker=Shape()) > 15
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_outputs_of_one_shape_differ_in_numbers_and_settings_only():
    written = "4 candidates, best: {'level': 'glb', 'v': 8} 1.5 us"
    assert Shape().check_output(written, "12 candidates, best: {'level': 'wrg', 'v': 16} 17 us", 0)
    assert not Shape().check_output(written, "4 candidates, best: {'level': 'glb'} 1.5 us", 0)
    assert not Shape().check_output(written, written.replace("us", "ms"), 0)


def test_it_fits_on_two_screens():
    assert len(TEXT.splitlines()) <= 110


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?<![\w ])make (\w+)", TEXT))))
def test_a_target_of_make_exists(target):
    done = subprocess.run(
        ["make", "--dry-run", target],  # noqa: S607  the reader's make
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_table_of_commands_has_them_all():
    table = (DOCS / "commands.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `liftpy (\w+)", table, re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)
