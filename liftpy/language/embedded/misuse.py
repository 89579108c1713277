"""Python's own errors about words of the language, or about functions mistaken for words.

`xs >> map(f)` calls Python's `map`, and `1 + lp.join` adds to a Python function. Python raises an
error for both before liftpy is called. This module turns such errors into refusals that suggest
what to write. Other errors of the user's code are left as they are.
"""

from __future__ import annotations

import ast
import builtins
import functools
from dataclasses import FrozenInstanceError
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.program import Program
from liftpy.ir.size import Size
from liftpy.ir.types import Type
from liftpy.language.embedded.python_words import OVER_ARRAYS
from liftpy.language.given import shown
from liftpy.source.caller import Spot, of_user


def misuse(error: Exception) -> TypeRefused | None:
    """The refusal that replaces an error; None for an error of the user's own code."""
    if isinstance(error, FrozenInstanceError):
        return of_assignment(error)
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not of_user(traceback.tb_frame):
        return None
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], Expr | Size):
        what = f"a dictionary has no value for {shown(error.args[0])}"
        why = "its value is known only when the program runs"
        return TypeRefused(f"{what}\n  {why}\n  lp.select(x == 1, a, b) chooses by a value")
    spot = Spot(traceback.tb_frame.f_code, traceback.tb_lasti)
    node = spot.syntax()
    if node is None:
        return None
    said = of_call(node, traceback.tb_frame) or of_word(node, traceback.tb_frame)
    if said is None:
        return None
    what, suggestion = said
    return TypeRefused(f"{what}\n  {str(error).rstrip('.')}\n  {suggestion}")


def of_assignment(error: FrozenInstanceError) -> TypeRefused | None:
    """The refusal of `xs.name = y` and `del xs.name` on a value of liftpy; None for others."""
    frame = None
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name in {"__setattr__", "__delattr__"}:
            break
    if frame is None:
        return None
    given = frame.f_locals.get("self")
    if not isinstance(given, Expr | Size | Type | Lambda | UserFun | Program):
        return None
    done = "assigned" if frame.f_code.co_name == "__setattr__" else "deleted"
    what = f"`.{frame.f_locals.get('name')}` of {shown(given)} cannot be {done}"
    return TypeRefused(f"{what}\n  values of the language are immutable\n  use a Python variable")


def of_call(node: ast.expr, frame: FrameType) -> tuple[str, str] | None:
    """The refusal of a call of a Python or NumPy function, and the suggestion; None for others."""
    if not isinstance(node, ast.Call):
        return None
    called = value_of(node.func, frame)
    name = getattr(called, "__name__", "")
    if name in OVER_ARRAYS and called is getattr(builtins, name, None):
        return f"Python's `{name}` is not a word of the language", f"write {OVER_ARRAYS[name]}"
    if called is functools.reduce:
        return "Python's `reduce` is not a word of the language", "write xs >> lp.reduce(f, init)"
    if isinstance(called, Type):
        return f"{shown(called)} is not a function", f"write lp.convert(x, lp.{called})"
    count = getattr(called, "nin", None)
    if count is not None and type(called).__module__.partition(".")[0] == "numpy":
        arguments = ", ".join("xyz"[:count])
        return (
            f"NumPy's `{name}` is called with the wrong arguments",
            f"write np.{name}({arguments})",
        )
    return None


def of_word(node: ast.expr, frame: FrameType) -> tuple[str, str] | None:
    """The refusal of an operator on a word, such as `1 + lp.join`, and the suggestion."""
    for part in ast.iter_child_nodes(node):
        word = value_of(part, frame)
        if getattr(word, "is_word", False) is True and not isinstance(node, ast.Call):
            name = word.__name__
            stage = getattr(word, "gives_a_stage", False)
            example = f"xs >> lp.{name}(...)" if stage else f"lp.{name}(...)"
            return f"`lp.{name}` is a word, not an array or a number", f"write {example}"
    return None


def value_of(node: ast.AST, frame: FrameType) -> Any:
    """The value of a name, or of an attribute of a module, in a frame; None for other syntax."""
    if isinstance(node, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in scope:
                return scope[node.id]
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None
