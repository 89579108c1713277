"""docs/tutorial.md does what it says, from top to bottom."""

from __future__ import annotations

import runpy

import pytest

from tests.docs.pages import DOCS, ROOT, files, run_page

PAGE = DOCS / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_runs_as_it_stands(device, in_one_process, tmp_path, monkeypatch):
    """With the default device, as its reader has it; commands run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert run_page(PAGE, tmp_path) > 40
    assert (tmp_path / "front.png").stat().st_size > 10_000
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_convolution_is_the_one_of_the_examples():
    """The gallery's front, which the page shows, is of examples/convolution.py."""
    example = (ROOT / "examples" / "convolution.py").read_text(encoding="utf-8")
    program = files(PAGE)["conv.py"].partition("@lp.program")[2]
    assert program.strip()
    assert program.strip() in example
    assert "H, W, C, M, K = 28, 28, 32, 32, 3" in example


def test_the_picture_of_the_derivation_is_up_to_date():
    """`make docs` writes it."""
    drawn = runpy.run_path(str(DOCS / "pictures.py"))["drawn"]()
    assert drawn == (DOCS / "derivation.svg").read_text(encoding="utf-8")
