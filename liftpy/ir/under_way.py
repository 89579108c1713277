"""What is under way: the trace of a user's function, and whether that function itself asks.

While a function is traced, Python's `==` and `in` on an expression or a size mean something else in
the user's code than inside liftpy, where they compare how values are built.
"""

from __future__ import annotations

import ast
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

from liftpy.ir.caller import here, of_user

if TYPE_CHECKING:
    from liftpy.ir.trace import Trace

#: The trace of the outermost function under way; None where none is.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)


def compared_by_user() -> bool:
    """Whether the caller was called by the user's code, not by liftpy itself."""
    return of_user(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def looked_up_by_user() -> bool:
    """Whether a method that calls the caller was called for `x in values` in the user's code.

    A set or a dictionary looks up the hash first, so `==` is not asked.
    """
    if not of_user(sys._getframe(3)):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return False
    spot = here()
    node = None if spot is None else spot.syntax()
    return isinstance(node, ast.Compare) and any(
        isinstance(op, ast.In | ast.NotIn) for op in node.ops
    )


def needed_by_user() -> bool:
    """Whether a method that calls the caller was called for the user's code.

    Numpy and the standard library may stand between.
    """
    frame = sys._getframe(3)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not of_user(frame):
        if frame.f_globals.get("__name__", "").partition(".")[0] == "liftpy":
            return False
        frame = frame.f_back
    return frame is not None
