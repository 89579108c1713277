"""The lock that lets only one process at a time run a campaign."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from liftpy.errors import StoreRefused


class Lock:
    """Makes this process the only one that runs the campaign of a file, until it releases the lock.

    The lock is an exclusive transaction in a file next to the database. The operating system ends
    it with the process, however the process dies, and it does not block readers of the database. A
    lock file that a killed process leaves behind holds no lock; the next campaign reuses it.
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
                lock.execute("PRAGMA journal_mode = MEMORY")  # works on a full disk
                lock.execute("BEGIN EXCLUSIVE")
                after = self.path.stat() if self.path.exists() else None
            except (sqlite3.DatabaseError, OSError) as error:
                if lock is not None:
                    lock.close()
                    if not self.path.exists():  # another process has removed it
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
            lock.close()  # another file has this name: the lock on the old one excludes no process

    def release(self) -> None:
        """Lets other processes run the campaign.

        The file is removed before the lock is released, so that a waiting process sees that the
        file has been replaced. In the other order, a process could take the lock in between, and
        its file would be removed.
        """
        try:
            self.path.unlink(missing_ok=True)
        finally:
            self._held.close()


def _touched(path: Path) -> os.stat_result:
    """The status of a file, which is created if it does not exist."""
    path.touch()
    return path.stat()
