"""The functions of the package that are not words: their arguments are checked against their types.

    @entry("lp.workload")
    def workload(name: str) -> Program: ...

A call that does not fit is refused where the user wrote it; the message names the expected type.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from liftpy.errors import ArgumentRefused, TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.language.given import plain, shown
from liftpy.source.caller import here, locate, refusal

P = ParamSpec("P")
R = TypeVar("R")

FEW = 5  # parameters that a message lists

#: The description of a parameter's type in a message.
WANTED: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "True or False",
    type(None): "None",
    Path: "a path",
    Mapping: "a dictionary",
    Sequence: "a list",
    Callable: "a function",
    Program: "a program",
}


def entry(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that checks a function's arguments; `name` is the function's public name."""

    def made(f: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(f)
        hints = functools.cache(lambda: typing.get_type_hints(f))

        @functools.wraps(f)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **named)
            except TypeError as error:
                raise wrong_call(name, signature, named, error) from error
            for parameter, given in bound.arguments.items():
                declared = signature.parameters[parameter]
                hint = hints().get(parameter, Any)
                values = given if declared.kind is declared.VAR_POSITIONAL else (given,)
                for value in values:
                    if not fits(value, hint):
                        raise misfit(name, parameter, value, hint)
            try:
                return f(*args, **named)
            except ArgumentRefused as error:
                locate(error, here())
                raise

        return checked

    return made


def wrong_call(
    name: str, signature: inspect.Signature, named: Mapping[str, Any], error: TypeError
) -> TypeRefused:
    """The refusal of a call with too many, too few or unknown arguments."""
    known = [p for p in signature.parameters if p not in {"self", "cls"}]
    unknown = next((n for n in named if n not in known), "")
    near = difflib.get_close_matches(unknown, known, 1)
    if near:
        suggestion = f"did you mean {near[0]}?"
    elif len(known) <= FEW:
        empty = inspect.Parameter.empty
        declared = [signature.parameters[p].replace(annotation=empty) for p in known]
        suggestion = f"write {name}({', '.join(map(str, declared))})"
    else:
        suggestion = f"help({name}) lists its parameters"
    return refusal(f"`{name}` is called with the wrong arguments", str(error), suggestion)


def misfit(name: str, parameter: str, value: Any, hint: Any) -> TypeRefused:
    """The refusal of an argument of a wrong type."""
    if Program in (hint, *get_args(hint)):
        return no_program(value)
    wanted = " or ".join(dict.fromkeys(map(described, get_args(hint) if union(hint) else (hint,))))
    what = f"`{parameter}` of {name} must be {wanted}"
    return refusal(what, f"got {shown(value)}", f"help({name}) lists its parameters")


def no_program(value: object) -> TypeRefused:
    """The refusal of a value that is not a program, with a way to make one."""
    what, suggestion = shown(value), "write @lp.program over a def"
    if isinstance(value, str):
        what, suggestion = (
            "a string",
            "lp.parse(text) reads a program, lp.workload(name) is a built-in",
        )
    elif callable(value) and not isinstance(value, Expr):
        name = getattr(value, "__name__", "")
        what = f"the Python function {name}".rstrip()
        suggestion = f"write @lp.program over def {name}" if name.isidentifier() else suggestion
    return refusal(f"a program is needed here, not {what}", suggestion)


def union(hint: Any) -> bool:
    """Whether a type is a union."""
    return get_origin(hint) in {Union, types.UnionType}


def described(hint: Any) -> str:
    """A type as text for a message."""
    kind = get_origin(hint) or hint
    if kind is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return WANTED.get(kind, f"a {getattr(kind, '__name__', kind)}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; checks the elements of sequences, but not protocols."""
    if union(hint):
        return any(fits(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is Literal:
        return value in get_args(hint)
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if kind is int:
        return isinstance(plain(value), int) and not isinstance(plain(value), bool)
    if kind is float:
        return isinstance(plain(value), int | float)
    if typing.is_typeddict(kind):
        return True
    if not isinstance(value, kind):
        return False
    if kind is Sequence and not isinstance(value, str) and get_args(hint):
        return all(fits(one, get_args(hint)[0]) for one in value)
    return True
