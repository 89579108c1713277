"""The page of the embedded form runs as it is written."""

from pathlib import Path

from tests.primitives.test_words import run

PAGE = Path(__file__).parents[2] / "docs" / "embedded.md"


def test_the_page_of_the_embedded_form_runs():
    # The file of a refusal is the user's: here it is the page itself.
    text = PAGE.read_text(encoding="utf-8").replace("```", "").replace("program.py:", "...:")
    assert run(text, "embedded.md") >= 29
