"""Atomic writing of files: all or none are written, and existing files stay until then."""

from __future__ import annotations

import secrets
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from liftpy.errors import LiftError
from liftpy.files.reading import spelled


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files into a folder, which is created if needed; names may contain folders.

    All files are first written to a temporary folder. LiftError if one cannot be written: the
    target is then unchanged. Existing entries of the same names are replaced.
    """
    try:
        target = folder.resolve()
        if target.exists() and not target.is_dir():
            raise LiftError(
                f"{folder} cannot be written: it is {spelled(target.stat())}, not a folder"
            )
        inside = target.is_dir()  # it may be on another file system than its parent
        (target if inside else target.parent).mkdir(parents=True, exist_ok=True)
        staged = _beside(target / "new" if inside else target)
        staged.mkdir()
        try:
            _check_room(staged, sum(map(len, files.values())))
            for name, content in files.items():
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                (staged / name).write_bytes(content)
            if inside:
                places = {part: target / part.name for part in staged.iterdir()}
                for place in places.values():
                    if place.is_dir():  # fail before anything is replaced
                        raise OSError(None, f"it has a folder named {place.name}")
                for part, place in places.items():
                    part.replace(place)
            else:
                staged.rename(target)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except (OSError, ValueError) as error:
        raise LiftError(f"{folder} cannot be written: {_why(error)}") from error


def write_file(path: Path, content: bytes) -> None:
    """Writes a file atomically; LiftError if it cannot be written, and the old file stays."""
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_bytes(content)  # a pipe or a terminal cannot be replaced
            return
        target = path.resolve()
        staged = _beside(target)
        try:
            _check_room(target.parent, len(content))
            staged.write_bytes(content)
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        missing = (
            "" if path.parent.is_dir() else f"; there is no folder {path.parent}: create it first"
        )
        raise LiftError(f"{path} cannot be written: {_why(error)}{missing}") from error


def _beside(target: Path) -> Path:
    """An unused name in the same folder."""
    return target.with_name(f".liftpy-{secrets.token_hex(6)}")


def _check_room(folder: Path, needed: int) -> None:
    """Raises OSError if the disk has less free space than is needed."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(None, f"{needed} bytes are needed, and the disk has {free} free")


def _why(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
