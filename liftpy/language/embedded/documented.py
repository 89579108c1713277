"""The words of the embedded form: how they check their arguments, and what `help` shows.

The docstring of a word consists of its own first paragraph, the law of its primitive, its syntax in
the text form, and the rest of its own docstring, which ends with an example.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import ArrayType, ScalarType
from liftpy.language.embedded.placing import at_place
from liftpy.language.given import is_number, plain, shown
from liftpy.language.printing.usage import law, usage

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Kind:
    """A kind of argument: how messages call it, why it is needed, and a test for its values."""

    wanted: str
    why: str
    fits: Callable[[Any], bool]


def is_size(value: Any) -> bool:
    """Whether a value is a size: a whole number, or an expression over `lp.size`."""
    return isinstance(value, Nat) or is_whole(value)


def is_whole(value: Any) -> bool:
    """Whether a value is a Python or NumPy integer."""
    return isinstance(plain(value), int)


#: What words take, by the annotations of their parameters. Other annotations are not checked.
KINDS: Mapping[str, Kind] = {
    "NatLike": Kind("a size", "a size is a whole number, or made of lp.size('n')", is_size),
    "tuple[NatLike, NatLike]": Kind(
        "two sizes",
        "one for each dimension, such as (3, 3)",
        lambda v: isinstance(v, tuple | list) and len(v) == 2 and all(map(is_size, v)),
    ),
    "Callee": Kind(
        "a function",
        "a function is one of Python, a pipeline step such as lp.join(), or made by lp.fun",
        lambda v: (callable(v) and not isinstance(v, Expr)) or isinstance(v, Lambda),
    ),
    "Index": Kind(
        "a function of an index",
        "such as lambda i: 2 * i, or a term over lp.var('i')",
        lambda v: is_size(v) or (callable(v) and not isinstance(v, Expr)),
    ),
    "int": Kind("a whole number", "it is fixed when the program is written", is_whole),
    "int | None": Kind(
        "a whole number or None", "None is no bound", lambda v: v is None or is_whole(v)
    ),
    "str": Kind("a string", "it is a name", lambda v: isinstance(v, str)),
    "float": Kind("a number", "it is fixed when the program is written", is_number),
    "ScalarType": Kind(
        "a scalar type", "such as lp.i32 or lp.f32", lambda v: isinstance(v, ScalarType)
    ),
}
REFUSED = (
    "Raises `TypeRefused` if the types or sizes do not fit; `liftpy primitives {name}` lists the "
    "conditions."
)


def document(text: str, cls: type[Primitive] | None) -> str:
    """A word's docstring, extended by the law and the syntax of its primitive."""
    text = inspect.cleandoc(text)
    if cls is None:
        return text
    summary, _, rest = text.partition("\n\n")
    lines = [line.removeprefix("  ") for line in law(cls)[1:]]
    said = [
        summary,
        "\n".join(lines),
        f"In the text form: `{usage(cls)}`. The law writes array types as `[element]length`.",
        REFUSED.format(name=cls.name),
        rest,
    ]
    return "\n\n".join(part for part in said if part)


def word(
    cls: type[Primitive] | None = None, called: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function a word, which checks its arguments and places refusals at the call.

    A word with the return type `Section` gives a pipeline step. `called` is its name in the
    package, if it differs from the function's name.
    """

    def made(f: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(f)
        stage = signature.return_annotation == "Section"

        @functools.wraps(f)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            def build(*_: Any) -> R:
                check(called or f.__name__, signature, stage, args, named)
                try:
                    made = f(*args, **named)
                except TypeRefused as error:
                    if cls is None and not stage and not error.located:
                        entitle(error, called or f.__name__, args, named)
                    raise
                if cls is None and stage:
                    made.__dict__["title"] = title(f.__name__, args, named)
                return made

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
    """Refuse arguments that a word cannot take, and suggest how to call it."""
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        if stage and any(isinstance(a, Expr) for a in args):
            raise written(name, signature) from error
        what = f"`lp.{name}` is called with the wrong arguments"
        suggestion = f"write lp.{name}{call_of(signature)}"
        raise TypeRefused(f"{what}\n  {error}\n  {suggestion}") from error
    for parameter, given in bound.arguments.items():
        declared = signature.parameters[parameter]
        kind = KINDS.get(str(declared.annotation))
        if kind is None:
            continue
        for value in given if declared.kind is declared.VAR_POSITIONAL else (given,):
            if kind.fits(value):
                continue
            is_array = isinstance(value, Expr) and isinstance(value.type, ArrayType)
            if stage and is_array and kind.wanted != "a number":
                raise written(name, signature)
            what = f"`{parameter}` of lp.{name} must be {kind.wanted}, got {shown(value)}"
            suggestion = f"write lp.{name}{call_of(signature)}"
            raise TypeRefused(f"{what}\n  {kind.why}\n  {suggestion}")


def entitle(error: TypeRefused, name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Name the word that the user wrote in the refusal of an operator or word that defines it.

    A scalar word replaces the name of its operator. A word defined by others mentions the refused
    one.
    """
    what, *why = str(error).split("\n")
    operator = re.match(r"`[^`]+`(?= (takes|needs) )", what)
    if operator is not None:
        what = f"`lp.{name}`{what[operator.end() :]}"
    elif re.match(r"\w+\(.*\) cannot be ", what):
        why = [f"  it is made of other words: {what}", *why]
        what = f"{title(name, args, named)} cannot be made"
    error.args = ("\n".join([what, *why]),)


def title(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """A call of a word as text; functions are shown as `...`."""
    values = [*args, *named.values()]
    texts = ["..." if callable(v) and not isinstance(v, Nat) else str(v) for v in values]
    return f"{name}({', '.join(texts)})"


def call_of(signature: inspect.Signature) -> str:
    """The parameters of a word as text, with default values."""
    shown = [
        str(p.replace(annotation=p.empty, default=p.empty))
        + ("" if p.default is p.empty else f"={p.default}")
        for p in signature.parameters.values()
    ]
    return f"({', '.join(shown)})"


def written(name: str, signature: inspect.Signature) -> TypeRefused:
    """The refusal of an array that is passed as an argument of a pipeline step."""
    why = "a pipeline step is applied to its array with `>>`"
    suggestion = f"write xs >> lp.{name}{call_of(signature)}"
    return TypeRefused(
        f"`lp.{name}` does not take an array in its parentheses\n  {why}\n  {suggestion}"
    )
