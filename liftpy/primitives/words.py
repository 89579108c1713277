"""The embedded word of a layout primitive, made from its class: fields, then the array.

    take(3)           a section that builds `Take(nat(3))`
    concat(xs, ys)    where no array is the main one, they are arguments

What wants sugar beyond that has a function of its own in `liftpy.primitives.lang`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr, Primitive, call
from liftpy.ir.nat import INDEX, Nat, nat, var
from liftpy.ir.show import is_called, statics
from liftpy.primitives import LAYOUTS


class Section:
    """A function from an expression to an expression: a primitive waiting for its array."""

    def __init__(self, build: Callable[[Expr], Expr]) -> None:
        self.build = build

    def __call__(self, xs: Expr) -> Expr:
        return self.build(xs)

    def __rshift__(self, after: Callable[[Expr], Expr]) -> Section:
        return Section(lambda xs: after(self.build(xs)))


def snake(name: str) -> str:
    """A word of the text form as one of Python: `padClamp` is `pad_clamp`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def index_function(f: Nat | Callable[[Nat], Nat]) -> Nat:
    """A term over `var("i")`, or a Python function of the index."""
    return nat(f(var(INDEX)) if callable(f) else f)


#: How a field of a primitive is made from what a user gives, by the field's type.
CASTS: Mapping[str, Callable[[Any], Any]] = {
    "Nat": nat,
    "IndexFunction": index_function,
    "float": float,
    "int": int,
}


def word(cls: type[Primitive]) -> Callable[..., Any]:
    """The embedded word of a layout."""
    own = statics(cls)
    parameters = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in own
    ]
    if is_called(cls):
        arrays = list(inspect.signature(cls.type_of).parameters.values())[1:]
        parameters += [inspect.Parameter(p.name, p.kind) for p in arrays]
    signature = inspect.Signature(parameters)
    name = snake(cls.name)

    def build(*args: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            message = f"{name}{signature}: {error}"
            raise TypeRefused(message) from error
        bound.apply_defaults()
        values = {f.name: CASTS[str(f.type)](bound.arguments[f.name]) for f in own}
        primitive = cls(**values)
        if is_called(cls):
            return call(primitive, *bound.args[len(own) :])
        return Section(lambda xs: call(primitive, xs))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = inspect.cleandoc(cls.__doc__ or "")
    build.__signature__ = signature
    return build


#: Every layout's word that its class says all of.
WORDS: Mapping[str, Callable[..., Any]] = {snake(p.name): word(p) for p in LAYOUTS}
