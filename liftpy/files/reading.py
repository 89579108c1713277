"""Reading of untrusted files: each must be a regular file within a size limit."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from liftpy.errors import LiftError

MIB = 1 << 20

MOST_DOTS = 50
"""The most dots in a line of TOML; a key with many more parts takes minutes to read."""


@contextmanager
def opened(
    path: Path, most: int, kind: type[LiftError] = LiftError, what: str = ""
) -> Generator[BinaryIO]:
    """Opens a file of at most `most` bytes for reading; messages call it `what`.

    Raises `kind` if it is not a regular file, is larger or cannot be read. It never waits for a
    pipe or a device, which might not answer or might not end.
    """
    what = what or str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # a NUL in a name is a ValueError
        raise kind(f"{what} cannot be read: {_why(error)}") from error
    try:
        check(what, os.fstat(descriptor), most, kind)
    except LiftError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise kind(f"{what} cannot be read: {_why(error)}") from error


def check(what: Path | str, found: os.stat_result, most: int, kind: type[LiftError]) -> None:
    """Raises `kind` for anything but a regular file of at most `most` bytes."""
    if not stat.S_ISREG(found.st_mode):
        raise kind(f"{what} cannot be read: it is {spelled(found)}, not a file")
    if found.st_size > most:
        raise kind(
            f"{what} cannot be read: it has {found.st_size} bytes, and at most {most} "
            f"({most / MIB:g} MiB) are read. Is it the right file?"
        )


def spelled(found: os.stat_result) -> str:
    """The kind of a file system entry, for messages."""
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(found.st_mode), "something else")


def read_text(path: Path, most: int, kind: type[LiftError] = LiftError, what: str = "") -> str:
    """The text of a UTF-8 file of at most `most` bytes. Raises `kind` if it cannot be read."""
    what = what or str(path)
    with opened(path, most, kind, what) as file:
        data = file.read(most + 1)  # the file may have grown
    if len(data) > most:
        raise kind(f"{what} cannot be read: it continues past {most} bytes ({most / MIB:g} MiB)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise kind(f"{what} cannot be read: it is not UTF-8 text ({error.reason})") from error


def toml(text: str, what: str, kind: type[LiftError] = LiftError) -> dict[str, Any]:
    """The data of a TOML text; raises TOMLDecodeError if it has none.

    Raises `kind` for a line with more than `MOST_DOTS` dots: the time that `tomllib` takes for a
    key grows with the square of the number of its parts.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if (dots := line.count(".")) > MOST_DOTS:
            why = f"line {number} has {dots} dots, more than {MOST_DOTS}"
            raise kind(f"{what} cannot be read: {why}; shorten this line")
    return tomllib.loads(text)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
