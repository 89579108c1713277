"""The documentation as a site: it builds, and every link leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT

pytest.importorskip("mkdocs", reason="mkdocs builds the site: make setup")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    assert "not included in the" not in built.stderr, "a page is missing in `nav` of mkdocs.yml"
    assert "skeleton" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")
    design = (tmp_path / "design.html").read_text(encoding="utf-8")
    family = design.partition("<code>cooperative</code>: ")[2].partition("</li>")[0]
    assert "<ul>" in family, "a list inside a list is one in the site too"
    for page in tmp_path.glob("*.html"):
        loaded = re.findall(
            r'<(?:link|script|img)\b[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text("utf-8")
        )
        assert not loaded, page.name


def test_the_terms_of_the_glossary_are_in_order_and_short():
    _, *parts = (DOCS / "glossary.md").read_text(encoding="utf-8").split("\n### ")
    terms = [part.partition("\n")[0] for part in parts]
    assert terms == sorted(terms, key=str.casefold)
    for part in parts:
        assert len(part.strip().splitlines()) <= 3, part


def test_the_other_pages_lead_to_the_glossary():
    for name in (
        "tutorial",
        "extending",
        "gallery",
        "commands",
        "embedded",
        "design",
        "strategies",
    ):
        assert "glossary.md" in (DOCS / f"{name}.md").read_text(encoding="utf-8"), name
