"""The processes that this one has started, and what becomes of them.

A process may end between two looks at it, and an ended one stays in the system's list, a zombie
without a command line, until its starter has waited for it: neither is there any more.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

SECONDS = 120
"""What is waited for at most. It is long: only a test that fails takes it, or a busy machine."""


def runs(process: psutil.Process) -> bool:
    """Whether a process is there and has not ended."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def started(word: str) -> list[psutil.Process]:
    """What this process has started that runs and has this in its command line."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # of which ZombieProcess is a kind
            if word in " ".join(child.cmdline()):
                found.append(child)
    return found


MARK = "LIFTPY_TESTS_OF"
"""What is started has this in its environment: the process that runs the tests."""

os.environ[MARK] = str(os.getpid())


def of_these_tests() -> list[psutil.Process]:
    """What the tests of this process have started that runs, also if its starter is gone.

    A process whose program has just been loaded has no environment for a moment.
    """
    me = psutil.Process()
    found = {child.pid: child for child in me.children(recursive=True)}
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.pid != me.pid and process.environ().get(MARK) == str(me.pid):
                found[process.pid] = process
    return [process for process in found.values() if runs(process)]


def until(true: Callable[[], object], otherwise: Callable[[], str] = lambda: "") -> None:
    """Waits until something is so; what to say when it never is."""
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.02)
