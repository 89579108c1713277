"""docs/gallery.md shows what is recorded, with commands that run."""

from __future__ import annotations

import pytest

from liftpy.cli.arguments import load_program
from tests.benchmarks.scripts import script
from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "gallery.md"


gallery = script("gallery")


def test_the_page_is_that_of_the_recorded_results():
    """`python benchmarks/gallery.py --page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == gallery.page()


@pytest.mark.parametrize("example", gallery.EXAMPLES, ids=lambda e: e.name)
def test_an_example_is_recorded_and_its_program_is_there(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert load_program(example.program, example.options[1::2])
    assert gallery.file_of(example).exists()
    assert (gallery.PICTURES / f"{example.name}.svg").exists()


def test_the_tutorial_shows_rows_of_the_gallery():
    lines = (DOCS / "tutorial.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if "`family=" in line]
    assert rows
    assert set(rows) <= set(PAGE.read_text(encoding="utf-8").splitlines())
