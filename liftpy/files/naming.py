"""File names for names of a program: valid on any system, and inside the intended folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 60
"""The most letters of a name that are kept; systems allow 255 bytes in all."""

RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)
"""Names that Windows reserves for devices, with any extension."""


def file_names(names: Iterable[str]) -> list[str]:
    """A file name for each name, in order; all differ, even if case is ignored.

    A name of ASCII letters, digits and `_` is kept if it is short and still free. Any other name is
    reduced to such characters and followed by a hash of the whole name. The results contain no
    separators, no dots and no characters that are special to a shell.

    >>> file_names(["x", "X", "a b", "../../victim", "con"])
    ['x', 'X-4b68ab38', 'a_b-c8687a08', 'victim-e2c35920', 'con-1143da2b']
    """
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        made = name if _is_plain(name) else _hashed(name, 0)
        tries = 0
        while made.casefold() in taken:
            made = _hashed(name, tries)
            tries += 1
        taken.add(made.casefold())
        found.append(made)
    return found


def _is_plain(name: str) -> bool:
    """Whether a name can be used unchanged as a file name on any system."""
    fits = re.fullmatch(r"[A-Za-z0-9_]+", name) is not None and len(name) <= LONGEST
    return fits and name.casefold() not in RESERVED


def _hashed(name: str, tries: int) -> str:
    """A name reduced to plain characters, with its hash; different for each try."""
    left = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:LONGEST]
    whole = f"{tries or ''}{name}".encode(errors="surrogatepass")
    return f"{left}-{hashlib.sha256(whole).hexdigest()[:8]}".lstrip("-")
