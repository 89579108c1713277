"""docs/strategies.md does what it says, on a device, and names every strategy."""

import doctest
from pathlib import Path

import liftpy.rewrite.strategy as strategies

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_every_block_of_the_page_does_what_it_says(runtime):
    failed, tried = doctest.testfile(
        str(PAGE), module_relative=False, globs={"device": runtime}, optionflags=FLAGS
    )
    assert tried > 20
    assert failed == 0


def test_the_page_names_every_strategy():
    page = PAGE.read_text(encoding="utf-8")
    plumbing = {"once", "deep", "check_type", "exactness", "derived", "step_json", "step_text"}
    words = {name for name in strategies.__all__ if name[0].islower()} - plumbing
    missing = [name for name in sorted(words) if f"`{name}" not in page]
    assert not missing
