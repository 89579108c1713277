"""The current trace of a user's function."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liftpy.ir.trace import Trace

#: The trace of the outermost function that is being traced; None if there is none.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)
