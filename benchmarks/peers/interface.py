"""What a peer is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from cases import Case


@dataclass(frozen=True)
class Made:
    """A peer that stands ready to compute one case, all its memory and constants prepared.

    `run` computes once and returns when the result is there. `result` is what the last run
    computed, as the program of the case has it. `layout` is that of the images it reads and writes.
    """

    run: Callable[[], object]
    result: Callable[[], np.ndarray]
    layout: str = ""


class LeftOut(Exception):
    """A peer that could compute a case lacks something for it; says what."""


class Peer:
    """A library that computes what liftpy computes; `module` is what Python imports of it.

    What only moves data to show what memory gives has `computes` False.
    """

    name: str
    module: ClassVar[str]
    computes: ClassVar[bool] = True

    def library(self) -> Any:
        """The library."""
        return importlib.import_module(self.module)

    def available(self) -> str | None:
        """None, or the reason why it cannot run here."""
        try:
            self.library()
        except (ImportError, OSError) as error:
            return str(error)
        return None

    def version(self) -> str:
        """The version of the library."""
        return str(self.library().__version__)

    def make(self, case: Case, threads: int) -> Made | None:
        """It, ready for a case; None if it has nothing for that kind of work."""
        raise NotImplementedError
