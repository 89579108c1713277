"""The syntax and the law of a primitive, taken from its class, for messages and documentation."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import cache

from liftpy.ir.primitive import Primitive
from liftpy.language.printing import show as printing


@cache
def law(cls: type[Primitive]) -> tuple[str, ...]:
    """The law of a primitive: the indented lines of its docstring, or of its base's."""
    for owner in cls.__mro__:
        lines = inspect.cleandoc(owner.__doc__ or "").splitlines()
        found = [f"  {line}" for line in lines if " : " in line or line.startswith("  ")]
        if found and owner is not Primitive:
            return ("its law:", *found)
    return ()


def usage(cls: type[Primitive]) -> str:
    """The syntax of a primitive in the text form."""
    names = arguments(cls)
    if printing.is_called(cls):
        arrays = ("xs, ys, ...",) if printing.operands(cls) is None else ()
        return f"{cls.name}({', '.join((*names, *arrays))})"
    return f"xs |> {cls.name}({', '.join(names)})" if names else f"xs |> {cls.name}"


@cache
def arguments(cls: type[Primitive]) -> tuple[str, ...]:
    """The arguments in a primitive's parentheses: fields, function, operands.

    The last operand of a pipeline step is not among them.
    """
    names = [f.name for f in printing.statics(cls)]
    names += [f.name for f in fields(cls) if f.name == "f"]
    operands = list(inspect.signature(cls.type_of).parameters)[1:]
    if not printing.is_called(cls):
        operands.pop()
    return (*names, *(operands if printing.operands(cls) is not None else ()))
