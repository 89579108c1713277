"""Names of a program as names of files: in the folder they are meant for, on any system."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 60
"""Letters of a name that are kept; systems allow 255 bytes for all of it."""

RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)
"""Names that Windows gives to devices, whatever follows their first dot."""


def file_names(names: Iterable[str]) -> list[str]:
    """A file name for each name, in their order; all differ, also where case does not count.

    A name of letters, digits and `_` of ASCII stays as it is, if it is short and no other one has
    it. Of any other what is left is followed by a hash of the whole. There is no separator in
    what comes out, no dot and nothing that a shell reads.

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
    """Whether a name is a file name as it stands, on any system."""
    fits = re.fullmatch(r"[A-Za-z0-9_]+", name) is not None and len(name) <= LONGEST
    return fits and name.casefold() not in RESERVED


def _hashed(name: str, tries: int) -> str:
    """What is left of a name, and the hash of it; another one for each try."""
    left = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:LONGEST]
    whole = f"{tries or ''}{name}".encode(errors="surrogatepass")
    return f"{left}-{hashlib.sha256(whole).hexdigest()[:8]}".lstrip("-")
