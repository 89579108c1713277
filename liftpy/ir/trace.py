"""What is remembered while a Python function is turned into an expression.

The expressions that the function makes are noted with the function that was under way, so that a
Python variable is later bound where Python computed it (`liftpy.primitives.sharing`).
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from liftpy.errors import LiftError, TypeRefused
from liftpy.ir.caller import Spot, locate, raised_at
from liftpy.ir.holes import Holes
from liftpy.ir.misuse import misuse
from liftpy.ir.under_way import TRACE

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


@contextmanager
def traced() -> Generator[tuple[Trace, bool]]:
    """A trace: that of the functions under way, or a new one; and whether it is new.

    Refusals in it get their place in the user's code.
    """
    trace = TRACE.get()
    if trace is not None:
        yield trace, False
        return
    trace = Trace()
    token = TRACE.set(trace)
    try:
        yield trace, True
    except LiftError as error:
        locate(error, raised_at(error.__traceback__))
        raise
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error.__cause__, LiftError):  # numpy says less than what it was refused with
            locate(error.__cause__, raised_at(error.__traceback__))
            raise error.__cause__ from None
        refused = misuse(error)
        if refused is None:
            raise
        locate(refused, raised_at(error.__traceback__))
        raise refused from error
    except RecursionError as error:
        refused = too_deep()
        locate(refused, raised_at(error.__traceback__))
        raise refused from error
    finally:
        TRACE.reset(token)


def too_deep() -> TypeRefused:
    """The refusal of a program that Python's stack is too small for."""
    return TypeRefused(
        "the program is nested too deep\n"
        f"  Python's limit of {sys.getrecursionlimit()} nested calls is reached: by a function that"
        " calls itself without end, or by hundreds of nested operations\n"
        "  write lp.iterate(times, f), or a fold: xs >> lp.reduce(f, init)"
    )
