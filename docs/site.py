"""What MkDocs needs to know of this repository: pages that lie outside of the folder `docs`.

They are pages of the site too, and links to them lead there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

PAGES = {
    "start.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "tests.md": "tests/README.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages of the site, and the files of the repository that they are."""

LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the pages from outside."""
    for name, path in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """The text of a page with its links as they are in the site."""
    del config, files
    name = page.file.src_uri
    folder = posixpath.dirname(PAGES.get(name, f"docs/{name}"))
    text = LINK.sub(lambda link: in_site(posixpath.join(folder, link[1])), markdown)
    return "\n".join(indented(text.split("\n")))


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines with twice the indentation, which Python-Markdown needs for a list inside a list.

    >>> list(indented(["- a", "  - b", "```", "  code", "```"]))
    ['- a', '    - b', '```', '  code', '```']
    """
    is_code = False
    for line in lines:
        text = line.lstrip(" ")
        fence = text.startswith("```")
        is_code ^= fence
        yield line if is_code or fence else " " * (len(line) - len(text)) + line


def in_site(path: str) -> str:
    """A file of the repository as the site has it."""
    path = posixpath.normpath(path)
    of_file = {file: name for name, file in PAGES.items()}
    return of_file.get(path, path.removeprefix("docs/"))
