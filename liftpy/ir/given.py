"""Python values that a user gives to words of the language: functions and numbers."""

from __future__ import annotations

import inspect
from typing import Any


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
    """Whether a function is a word that returns a stage, such as `lp.join`."""
    return getattr(function, "gives_a_stage", False) is True


def stage_or(function: Any) -> Any:
    """`function` itself, or the stage that it returns if it is a word that returns a stage."""
    return function() if is_stage(function) else function


def is_number(value: object) -> bool:
    """Whether a Python value can become a literal."""
    return isinstance(plain(value), bool | int | float)


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python number; anything else unchanged."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value
