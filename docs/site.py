"""What MkDocs needs to know of this repository: pages that lie outside of the folder `docs`.

They are pages of the site too, and links to them lead there.
"""

from __future__ import annotations

import posixpath
import re
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
    return LINK.sub(lambda link: in_site(posixpath.join(folder, link[1])), markdown)


def in_site(path: str) -> str:
    """A file of the repository as the site has it."""
    path = posixpath.normpath(path)
    of_file = {file: name for name, file in PAGES.items()}
    return of_file.get(path, path.removeprefix("docs/"))
