"""What tests have in common is made once: for commands and campaigns in one process.

A command derives its program anew, and a campaign starts two processes that load numpy and a
driver, derive the program once more and build each kernel. Where a test says nothing about that,
it is most of what the test costs. `derived_once` (tests/conftest.py) makes in its module

- the skeletons of a family, once for a program's text; the conditions of a skeleton, once for a
  device; the last spaces, once for a program's text, a device and what was asked. All follow from
  their arguments alone (tests/compile/test_families.py);

`in_one_process` that, and

- a kernel's binary, once for a source and a device, on disk for all workers of pytest-xdist.
- the workers of a campaign, without a process around each: the same objects answer the same
  messages, pickled as on their way to a process. Limits, losses and processes are tested in
  tests/explore, with real ones.
"""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from liftpy.constraints.collect import ALONE, Around, collect
from liftpy.constraints.device import Device
from liftpy.constraints.system import ConstraintSystem
from liftpy.explore.measure.bench import Bench
from liftpy.explore.measure.building import KernelBuilder
from liftpy.explore.measure.compiling import Compiler
from liftpy.explore.measure.measurer import BENCH, BUILDING, COMPILING
from liftpy.explore.measure.process import Process
from liftpy.explore.measure.reference import Reference
from liftpy.explore.measure.serving import Serving
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import show
from liftpy.opencl.session import Session
from liftpy.rewrite.bank import Prove
from liftpy.rewrite.composition import skeleton_named
from liftpy.rewrite.skeleton import Skeleton
from tests import plainly
from tests.binaries import building_once

MAKES: dict[str, Callable[..., Any]] = {
    COMPILING: lambda setup, _: Compiler(setup),
    BENCH: Bench,
    BUILDING: KernelBuilder,
}
"""What answers the requests of a worker, by the module that its process runs."""


@contextmanager
def deriving_once() -> Generator[None]:
    """Has derivations and conditions made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Space.__module__], "collect", known_system)
        patch.setattr(sys.modules[Compiler.__module__], "skeleton_named", known_skeleton)
        patch.setattr(Space, "whole", known_space)
        yield


@contextmanager
def in_one_process(folder: Path) -> Generator[None]:
    """Has binaries made once, which are in the folder, and no process for a worker.

    Nor is the device kept busy before each look at whether it is disturbed.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Reference.__module__], "WARM", 0.0)
        patch.setattr(Session, "_build", building_once(folder, plainly.PLAINLY[-1]))
        patch.setattr(sys.modules[Process.__module__], "Process", started)
        yield


# --- derivations and conditions -------------------------------------------------------------------

_DERIVED: dict[tuple[str, str], Skeleton | None] = {}


def known_skeleton(program: Program, key: str, prove: Prove) -> Skeleton | None:
    """The skeleton of a key; a program that has the same text has the same one."""
    known = show(program), key
    if known not in _DERIVED:
        _DERIVED[known] = skeleton_named(program, key, prove)
    return _DERIVED[known]


def known_system(
    skeleton: Skeleton,
    device: Device,
    *,
    memory_limit: int | None = None,
    around: Around = ALONE,
) -> ConstraintSystem:
    """The conditions of a skeleton, which is told by being the same object."""
    return _system(_Same(skeleton), device, memory_limit, around)


class _Same:
    """An object, equal to itself only."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.skeleton is self.skeleton

    def __hash__(self) -> int:
        return id(self.skeleton)


@cache
def _system(
    same: _Same, device: Device, memory_limit: int | None, around: Around
) -> ConstraintSystem:
    return collect(same.skeleton, device, memory_limit=memory_limit, around=around)


_SPACES: OrderedDict[tuple[Any, ...], Space] = OrderedDict()
MOST_SPACES = 12
_derive_space = Space.whole


def known_space(program: Program, device: Device, **asked: Any) -> Space:
    """The whole space of a program; a program that has the same text has the same one."""
    settings = {name: repr(v) for name, v in asked.items() if name != "made"}
    known = show(program), device, asked.get("made"), *sorted(settings.items())
    if known not in _SPACES:
        _SPACES[known] = _derive_space(program, device, **asked)
        if len(_SPACES) > MOST_SPACES:
            _SPACES.popitem(last=False)
    return replace(_SPACES[known], program=program)  # which has its own places in a text


# --- workers --------------------------------------------------------------------------------------


def started(command: Sequence[str], ceiling: int) -> Process | Here:
    """What answers a campaign: without a process, if the command is that of a campaign."""
    return Here(command[-1]) if command[-1] in MAKES else Process(command, ceiling)


class Here:
    """What a worker's process does, in this one: each message when its answer is waited for."""

    alive = True

    def __init__(self, module: str) -> None:
        self._serving = Serving(MAKES[module], self._say)
        self._told: deque[bytes] = deque()
        self._said: deque[bytes] = deque()

    def send(self, message: Any) -> None:
        """Takes a message: what the campaign is, then requests."""
        self._told.append(pickle.dumps(message))

    def receive(self, seconds: float) -> Any:
        """The next message; `seconds` bounds it where there is a process to be ended."""
        while not self._said:
            told = pickle.loads(self._told.popleft())  # noqa: S301  our own
            self._say(self._serving.reply(told))
        return pickle.loads(self._said.popleft())  # noqa: S301  our own

    def _say(self, message: Any) -> None:
        self._said.append(pickle.dumps(message))

    def renewed(self, ceiling: int) -> bool:
        """Another campaign may take it over."""
        return True

    def kill(self) -> str:
        """Gives the device memory back."""
        self._serving.close()
        return ""
