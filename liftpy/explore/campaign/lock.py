"""One process at a time runs a campaign."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from liftpy.errors import StoreRefused


class Lock:
    """Makes this process the only one that runs the campaign of a file, as long as it lives.

    An exclusive transaction in a file beside the database: the operating system ends it with the
    process, however that dies, and readers of the database itself are not in its way. The file
    that a killed process leaves holds no lock; the next campaign takes it over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}-lock")
        self._held = self._take(path)

    def _take(self, path: Path) -> sqlite3.Connection:
        while True:
            lock: sqlite3.Connection | None = None
            try:
                before = _touched(self.path)
                lock = sqlite3.connect(self.path, timeout=0.5, isolation_level=None)
                lock.execute("PRAGMA journal_mode = MEMORY")  # nothing is written: no room needed
                lock.execute("BEGIN EXCLUSIVE")
                after = self.path.stat() if self.path.exists() else None
            except (sqlite3.DatabaseError, OSError) as error:
                if lock is not None:
                    lock.close()
                    if not self.path.exists():  # somebody removed it meanwhile
                        continue
                if not str(error).startswith("database is locked"):
                    raise StoreRefused(
                        f"{path} cannot be used: its lock {self.path} cannot be written "
                        f"({error}). Use --db to name a file in a writable folder"
                    ) from error
                raise StoreRefused(
                    f"another process is running the campaign {path} ({error}). Wait for it, stop "
                    "it, or name another file with --db"
                ) from error
            if after is not None and os.path.samestat(before, after):
                return lock
            lock.close()  # another file has the name by now: this lock keeps nobody out

    def release(self) -> None:
        """Lets others run the campaign.

        The file goes first: who waits for it sees then that it is another one. The other way round
        it could be taken in between, and removed from under the one who took it.
        """
        try:
            self.path.unlink(missing_ok=True)
        finally:
            self._held.close()


def _touched(path: Path) -> os.stat_result:
    """A file that exists from now on."""
    path.touch()
    return path.stat()
