"""Refusals of operators on values that have none: stages, user functions and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liftpy.source.caller import refusal


class NoOperand:
    """A value without operators: a stage, a user function or a program."""

    def noun(self) -> str:
        """The name of the value in a message."""
        raise NotImplementedError

    def operator(self, sign: str) -> Any:
        """The refusal of an operator."""
        what = f"{sign} cannot be applied to {self.noun()}"
        why = "it is a function, not an array or a number"
        raise refusal(what, why, "apply it first: (xs >> f) is its result")


def operator_of(sign: str) -> Callable[..., Any]:
    """A method that refuses the operator `sign`."""
    return lambda self, *_: self.operator(f"`{sign}`")


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
        setattr(NoOperand, f"__{method}__", operator_of(signs))
