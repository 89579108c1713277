"""The words of the embedded form: what each checks before it is used, and what `help` says.

A word's docstring is its first paragraph, the law of its primitive, how the text form writes it,
and the rest of what is written there, an example last.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr, Primitive
from liftpy.ir.operand import at_place, is_number
from liftpy.primitives.usage import law, usage

P = ParamSpec("P")
R = TypeVar("R")

#: What a number may not stand for: parameters by the names of their types.
SIZES = frozenset({"NatLike"})
FUNCTIONS = frozenset({"Callee"})
REFUSED = (
    "Types and sizes that do not fit are refused (`TypeRefused`); `liftpy primitives {name}` lists "
    "its conditions."
)


def document(text: str, cls: type[Primitive] | None) -> str:
    """A word's docstring, with what its primitive's class says."""
    text = inspect.cleandoc(text)
    if cls is None:
        return text
    summary, _, rest = text.partition("\n\n")
    lines = [line.removeprefix("  ") for line in law(cls)[1:]]
    said = [
        summary,
        "\n".join(lines),
        f"In the text form: `{usage(cls)}`. Arrays are written `[element]length` in laws.",
        REFUSED.format(name=cls.name),
        rest,
    ]
    return "\n\n".join(part for part in said if part)


def word(cls: type[Primitive] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A word: its mistakes are refused where it is written; one with `Section` gives a stage."""

    def made(f: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(f)
        stage = signature.return_annotation == "Section"

        @functools.wraps(f)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            def build(*_: Any) -> R:
                check(f.__name__, signature, stage, args, named)
                return f(*args, **named)

            return at_place(build, *(() if stage or cls is not None else args))

        checked.__doc__ = document(f.__doc__ or "", cls)
        checked.__dict__.update(gives_a_stage=stage, is_word=True)
        return checked

    return made


def check(
    name: str,
    signature: inspect.Signature,
    stage: bool,  # noqa: FBT001
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    """Refuse arguments that a word cannot take, with how it is written."""
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        if stage and any(isinstance(a, Expr) for a in args):
            raise written(name, signature) from error
        what = f"`lp.{name}` is called with the wrong arguments"
        remedy = f"write lp.{name}{call_of(signature)}"
        raise TypeRefused(f"{what}\n  {error}\n  {remedy}") from error
    for parameter in bound.arguments:
        kind = str(signature.parameters[parameter].annotation)
        value = bound.arguments[parameter]
        if kind in SIZES | FUNCTIONS and isinstance(value, Expr):
            if stage:
                raise written(name, signature)
            what = f"`{parameter}` of lp.{name} cannot be an expression"
            why = "it is a size: a number or a variable" if kind in SIZES else "it is a function"
            raise TypeRefused(f"{what}\n  {why}\n  write lp.{name}{call_of(signature)}")
        if kind == "float" and not is_number(value):
            what = f"`{parameter}` of lp.{name} must be a number, got {type(value).__name__}"
            raise TypeRefused(
                f"{what}\n  it is fixed when the program is written\n  write a number such as 0.0"
            )


def call_of(signature: inspect.Signature) -> str:
    """How a word is called: its parameters, those that may be left out with what they are then."""
    shown = [
        str(p.replace(annotation=p.empty, default=p.empty))
        + ("" if p.default is p.empty else f"={p.default}")
        for p in signature.parameters.values()
    ]
    return f"({', '.join(shown)})"


def written(name: str, signature: inspect.Signature) -> TypeRefused:
    """The refusal of an array among the arguments of a stage."""
    why = "a stage is applied to its array with `>>`"
    remedy = f"write xs >> lp.{name}{call_of(signature)}"
    return TypeRefused(
        f"`lp.{name}` does not take an array in its parentheses\n  {why}\n  {remedy}"
    )
