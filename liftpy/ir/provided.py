"""What the embedded form and the facade provide to expressions: a trace, and evaluation.

The embedded form records the calls that are made while it traces a Python function. A program that
is called evaluates itself; `liftpy/__init__.py` knows the function that does, and sets it here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol


class Tracer(Protocol):
    """A record of the calls that are made while a Python function is traced."""

    def record(self, call: Any) -> None:
        """Record which function made a call."""
        ...


#: The record of the outermost function that is being traced; None if there is none.
TRACE: ContextVar[Tracer | None] = ContextVar("TRACE", default=None)


class Evaluation:
    """Evaluation of a program on NumPy arrays."""

    #: The result of a program for arrays.
    evaluate: Callable[..., Any]
