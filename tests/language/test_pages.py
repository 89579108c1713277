"""The pages of the embedded form and of gradients run as they are written."""

from pathlib import Path

import pytest

from tests.language.test_words import run

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "examples"), [("embedded.md", 29), ("gradients.md", 9)])
def test_a_page_of_the_embedded_form_runs(page, examples):
    # The file of a refusal is the user's: here it is the page itself.
    text = (DOCS / page).read_text(encoding="utf-8")
    assert run(text.replace("```", "").replace("program.py:", "...:"), page) >= examples
