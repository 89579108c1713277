"""What the program `board` prints on a board, line by line while it runs."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from typing import IO

from liftpy.boards.results import MOST
from liftpy.boards.transports import kill, plain
from liftpy.files.reading import MIB

LONGEST = 2 * MIB
"""The longest line in bytes: a driver's log has at most one MiB (liftpy/boards/schema.py)."""


class Output:
    """The output of a command; a thread reads it, so that waiting for a line has a limit."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._heard = 0
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        """Queues complete lines, then None."""
        pipe, total = self._process.stdout, 0
        while pipe is not None and total <= MOST:
            line = pipe.readline(LONGEST)
            total += len(line)
            if not line.endswith(b"\n"):  # the end, a line that was cut off, or one too long
                break
            self._lines.put(line)
        self._lines.put(None)

    def line(self, seconds: float) -> str | None:
        """The next line without its end; None at the end. queue.Empty if none arrives in time."""
        found = self._lines.get(timeout=seconds)
        return None if found is None else found.decode(errors="replace").rstrip("\r\n")

    def has_said_more(self) -> bool:
        """Whether the error output has grown since the last call, as it does while a run waits."""
        size = os.fstat(self._errors.fileno()).st_size
        more, self._heard = size > self._heard, size
        return more

    def said(self) -> str:
        """What the command printed on its error output."""
        self._errors.seek(0)
        return plain(self._errors.read(MIB))

    def close(self) -> None:
        """Ends the command."""
        kill(self._process)
        self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
