"""The examples of docs/extending.md work, each in a copy of the package."""

from __future__ import annotations

import shutil

import pytest

from tests.docs.pages import DOCS, ROOT, blocks, run_page, sections

PAGE = DOCS / "extending.md"
EXAMPLES = [name for name, _ in sections(PAGE.read_text(encoding="utf-8"))]
COPIED = ("liftpy", "tests")
LEFT = shutil.ignore_patterns("golden")


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_the_page_says(device, tmp_path, name):
    for folder in COPIED:  # with `__pycache__`, or all modules would be compiled again
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=LEFT)
    for file in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    assert run_page(PAGE, tmp_path, tmp_path, name)


def test_the_table_has_the_files_of_each_example():
    """Those that are changed, or the folders of those that are new."""
    text = PAGE.read_text(encoding="utf-8")
    rows = {row.split("](")[0]: row for row in text.splitlines() if row.startswith("| [")}
    assert len(rows) == len(EXAMPLES)
    for name, row in zip(EXAMPLES, rows.values(), strict=True):
        assert name.removeprefix("A ") in row
        for _, language, block in blocks(PAGE, name):
            first = block.partition("\n")[0]
            if language == "diff" or first.startswith("# liftpy/"):
                folder, _, file = first.split(maxsplit=1)[1].rpartition("/")
                assert folder in row, (first, row)
                assert file in row or language != "diff" or "a file of" in row, (first, row)
