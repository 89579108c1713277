"""What is remembered while a Python function is turned into an expression.

The expressions that the function makes are noted with the function that was under way, so that a
Python variable is later bound where Python computed it (`liftpy.primitives.sharing`).
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from liftpy.ir.caller import Spot, of_user
from liftpy.ir.holes import Holes

if TYPE_CHECKING:
    from liftpy.ir.expr import Expr


@dataclass
class Trace:
    """The functions under way, innermost last, and what they made.

    A function is its number; `born` has each call made so far, kept so that its identity stays its
    own, with the function that made it. `names` are those of Python variables, by identity.
    """

    scopes: list[int] = field(default_factory=lambda: [0])
    count: int = 0
    born: dict[int, tuple[Expr, int]] = field(default_factory=dict[int, "tuple[Expr, int]"])
    names: dict[int, str] = field(default_factory=dict[int, str])
    holes: Holes[Spot | None] = field(default_factory=Holes["Spot | None"])

    def bear(self, expr: Expr) -> None:
        """Note a call."""
        self.born[id(expr)] = expr, self.scopes[-1]


#: The trace of the outermost function under way; None where none is.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)


def compared_by_user() -> bool:
    """Whether a function being traced compares expressions with `==`, not liftpy itself."""
    return of_user(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
