"""Refusals of operators on values that have none: pipeline steps, user functions and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.function import UserFun
from liftpy.ir.program import Program
from liftpy.source.caller import refusal


class NoOperand:
    """A value without operators."""

    def noun(self) -> str:
        """The name of the value in a message."""
        raise NotImplementedError


def no_operator(value: NoOperand | UserFun | Program, sign: str) -> TypeRefused:
    """The refusal of an operator on a value that has none."""
    what = f"{sign} cannot be applied to {value.noun()}"
    why = "it is a function, not an array or a number"
    return refusal(what, why, "apply it first: (xs >> f) is its result")


def refusing(sign: str) -> Callable[..., Any]:
    """A method that refuses the operator `sign`."""

    def method(self: NoOperand | UserFun | Program, *_: Any) -> Any:
        raise no_operator(self, f"`{sign}`")

    return method


for signs, methods in {
    "+": ("add", "radd"),
    "-": ("sub", "rsub", "neg"),
    "*": ("mul", "rmul"),
    "/": ("truediv", "rtruediv"),
    "//": ("floordiv", "rfloordiv"),
    "%": ("mod", "rmod"),
    "**": ("pow", "rpow"),
    "@": ("matmul", "rmatmul"),
    "&": ("and", "rand"),
    "|": ("or", "ror"),
    "^": ("xor", "rxor"),
    "<<": ("lshift", "rlshift"),
    "<": ("lt", "gt"),
    "<=": ("le", "ge"),
    "abs": ("abs",),
    "~": ("invert",),
    "[]": ("getitem", "setitem"),
    "for": ("iter",),
    "in": ("contains",),
}.items():
    for method in methods:
        for cls in (NoOperand, UserFun, Program):
            setattr(cls, f"__{method}__", refusing(signs))
