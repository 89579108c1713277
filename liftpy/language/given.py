"""Python values that a user gives to the package: functions, numbers, and values in messages."""

from __future__ import annotations

import inspect
from collections.abc import Sized
from typing import Any, cast

from liftpy.errors import plural
from liftpy.ir.expr import Expr
from liftpy.ir.types import Type

LONGEST_SHOWN = 60  # characters of a value in a message


def misfit_of(function: Any, count: int) -> str | None:
    """Why a Python function cannot be called with `count` arguments; None if it can."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError as error:
        return str(error)
    except ValueError:  # a builtin without a signature
        return None
    return None


def is_stage(function: object) -> bool:
    """Whether a function is a word that returns a pipeline step, such as `lp.join`."""
    return getattr(function, "gives_a_stage", False) is True


def stage_or(function: Any) -> Any:
    """`function` itself, or the pipeline step that it returns if it is a word that returns one."""
    return function() if is_stage(function) else function


def is_number(value: object) -> bool:
    """Whether a Python value can become a literal."""
    return isinstance(plain(value), bool | int | float)


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python number; anything else unchanged."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def shown(value: object) -> str:
    """A Python value as text for a message: short, and the same in every run."""
    if isinstance(value, Expr):
        return f"an expression of type {value.type}"
    if isinstance(value, Type):
        return f"the type {value}"
    if isinstance(value, tuple | list | dict) and any(isinstance(v, Expr | Type) for v in value):
        kind = type(value).__name__
        return f"a {kind} of {plural(len(cast('Sized', value)), 'element')}"
    if callable(value) and hasattr(value, "__name__"):
        kind = "type" if isinstance(value, type) else "function"
        return f"the {kind} {value.__name__}"
    text = repr(value)
    long = len(text) > LONGEST_SHOWN or "\n" in text or " at 0x" in text
    return f"a value of type {type(value).__name__}" if long else text
