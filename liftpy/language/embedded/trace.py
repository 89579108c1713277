"""The record that is kept while a Python function is turned into an expression.

It maps each expression to the function that made it, so that a Python variable can be bound where
Python computed it (`sharing.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass, field

from liftpy.errors import LiftError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.interning import apart
from liftpy.ir.provided import TRACE
from liftpy.ir.walk import DEPTH
from liftpy.language.embedded.misuse import misuse
from liftpy.language.extent import limited
from liftpy.language.inference import Holes
from liftpy.source.caller import Spot, locate, raised_at

TRACED = 3 * DEPTH // 2
"""The most levels of a traced expression. Binding shared parts makes it less deep."""


@dataclass
class Trace:
    """The functions that are being traced, innermost last, and the calls they made.

    Functions are numbered. `creators` has each call made so far, by id, with the function that made
    it; a kept call keeps its id unique. `names` has the names of Python variables, by id.
    """

    scopes: list[int] = field(default_factory=lambda: [0])
    count: int = 0
    creators: dict[int, tuple[Expr, int]] = field(default_factory=dict[int, tuple[Expr, int]])
    names: dict[int, str] = field(default_factory=dict[int, str])
    holes: Holes[Spot | None] = field(default_factory=Holes[Spot | None])

    def record(self, call: FunCall) -> None:
        """Record which function made a call."""
        self.creators[id(call)] = limited(call), self.scopes[-1]


def current() -> Trace | None:
    """The trace of the outermost function that is being traced; None if there is none."""
    trace = TRACE.get()
    return trace if isinstance(trace, Trace) else None


@contextmanager
def traced() -> Generator[tuple[Trace, bool]]:
    """The current trace, or else a new one; and whether it is new.

    A refusal inside a new trace gets its place in the user's code.
    """
    trace = current()
    if trace is not None:
        yield trace, False
        return
    trace = Trace()
    token = TRACE.set(trace)
    try:
        with apart():
            yield trace, True
    except LiftError as error:
        locate(error, raised_at(error.__traceback__))
        raise
    except (TypeError, ValueError, KeyError, FrozenInstanceError) as error:
        if isinstance(error.__cause__, LiftError):  # the cause is more specific than NumPy's error
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
    """The refusal of a program that exceeds Python's recursion limit."""
    return TypeRefused(
        "the program is nested too deep\n"
        f"  Python's limit of {sys.getrecursionlimit()} nested calls is reached: by a function that"
        " calls itself without end, or by hundreds of nested operations\n"
        "  write lp.iterate(times, f), or a fold: xs >> lp.reduce(f, init)"
    )
