"""The current trace of a user's function, and whether an operation comes from that function.

During a trace, Python's `==` and `in` on an expression or a size differ in meaning: in the user's
code they belong to the program; inside liftpy they compare the structure of values.
"""

from __future__ import annotations

import ast
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

from liftpy.ir.caller import here, of_user

if TYPE_CHECKING:
    from liftpy.ir.trace import Trace

#: The trace of the outermost function that is being traced; None if there is none.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)


def compared_by_user() -> bool:
    """Whether the user's code called the caller, rather than liftpy itself."""
    return of_user(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def looked_up_by_user() -> bool:
    """Whether the method that calls the caller runs for `x in values` in the user's code.

    A set or a dictionary looks up the hash first and may not call `==`.
    """
    if not of_user(sys._getframe(3)):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return False
    spot = here()
    node = None if spot is None else spot.syntax()
    return isinstance(node, ast.Compare) and any(
        isinstance(op, ast.In | ast.NotIn) for op in node.ops
    )


def needed_by_user() -> bool:
    """Whether the method that calls the caller runs for the user's code.

    NumPy and the standard library may be between them on the stack.
    """
    frame = sys._getframe(3)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not of_user(frame):
        if frame.f_globals.get("__name__", "").partition(".")[0] == "liftpy":
            return False
        frame = frame.f_back
    return frame is not None
