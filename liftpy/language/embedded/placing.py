"""Refusals of operations, with the place in the user's code and a suggestion in its syntax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.operators import OPERATORS
from liftpy.ir.types import ArrayType
from liftpy.source.caller import here, locate

#: The operators of integers, as refusals name them.
INTEGERS_ONLY = tuple(
    f"`{op}`" for op, record in OPERATORS.items() if record.operands == "integers"
)


def advised(message: str, args: tuple[Any, ...]) -> str:
    """A refusal of one line, with a suggestion in Python's syntax if there is one."""
    what, _, why = message.partition(": ")
    own = why.startswith(("`f32(x)`", "`i32(x)`"))  # as the text form writes a conversion
    arrays = [a for a in args if isinstance(a, Expr) and isinstance(a.type, ArrayType)]
    if len(arrays) > 1:
        suggestion = "`lp.zip(xs, ys) >> lp.map(f)` applies a function of scalars to their elements"
    elif arrays:
        suggestion = "`xs >> lp.map(f)` applies a function of scalars to each element"
    elif own or "of the same type" in what or "not a whole" in why:
        whole = any(part in what for part in INTEGERS_ONLY)
        suggestion = f"lp.convert(x, lp.{'i32' if whole else 'f32'}) converts"
    else:
        return message
    return "\n".join([what, *([f"  {why}"] if why and not own else []), f"  {suggestion}"])


def at_place(make: Callable[..., Any], *args: Any) -> Any:
    """The result of `make`; a refusal gets its place in the user's code and a suggestion."""
    try:
        return make(*args)
    except TypeRefused as error:
        if "\n" not in str(error):
            error.args = (advised(str(error), args),)
        locate(error, here())
        raise
