"""primitives: every word of the language, from the registry; `make docs` keeps it as a page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from liftpy.cli.screen import say
from liftpy.errors import UnknownName
from liftpy.ir.expr import Primitive
from liftpy.ir.show import is_called
from liftpy.primitives import LAYOUTS, PRIMITIVES, lang
from liftpy.primitives.compositions import COMPOSITIONS, permuted
from liftpy.primitives.text import law, usage
from liftpy.primitives.words import snake
from liftpy.semantics.contract import general

HEAD = """\
# Primitives

Written by `make docs` from the registry (`liftpy primitives`). Lengths stand behind an array here,
as in `[a]n`; in programs they stand before its elements: `[n]f32`. A condition is named by the
fields of its primitive; what is marked holds by definition, the others a proof needs.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("primitives")(show_primitives)


def show_primitives(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD ...]", help="Words of the text form; all of them."),
    ] = None,
) -> None:
    """Every primitive: law, conditions, how it is written. In Markdown."""
    for name in names or ():
        if name not in PRIMITIVES:
            known = ", ".join(PRIMITIVES)
            raise UnknownName(f"there is no primitive '{name}'; there are: {known}")
    lines = entries(names) if names else page()
    say("\n".join(lines).rstrip())


def page() -> Iterator[str]:
    """The whole reference."""
    yield HEAD
    moving = {p.name for p in LAYOUTS}
    yield from ("# Computing", "", *entries([n for n in PRIMITIVES if n not in moving]))
    yield from ("# Layout", "", *entries([n for n in PRIMITIVES if n in moving]))
    yield from ("# Abbreviations", "")
    for name, known in COMPOSITIONS.items():
        head = "" if known.value else "xs |> "
        yield f"- `{head}{name}({', '.join(known.params)})` is `{known.text}`"
    yield f"- `xs |> permute(2, 0, 1)`, of any dimensions, is here `{permuted((2, 0, 1))}`"


def entries(names: Sequence[str]) -> Iterator[str]:
    """The entries of some primitives."""
    for name in names:
        yield from entry(PRIMITIVES[name])


def entry(cls: type[Primitive]) -> Iterator[str]:
    """What one primitive is, asks and is written like."""
    summary = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    yield from (f"## {cls.name}", "", summary, "", "```")
    yield from (line.removeprefix("  ").removeprefix("  ") for line in law(cls)[1:])
    yield from ("```", "", f"- text: `{usage(cls)}`", f"- embedded: `{embedded(cls)}`")
    yield f"- conditions: {'; '.join(conditions(cls))}"
    yield ""


def embedded(cls: type[Primitive]) -> str:
    """How a primitive is written in Python."""
    word = getattr(lang, snake(cls.name))
    parameters = inspect.signature(word).parameters.values()
    shown = [
        f"{'*' if p.kind is inspect.Parameter.VAR_POSITIONAL else ''}{p.name}"
        + ("" if p.default is inspect.Parameter.empty else f"={p.default}")
        for p in parameters
    ]
    if shown == ["x"]:
        return f"xs >> {word.__name__}"
    called = f"{word.__name__}({', '.join(shown)})"
    return called if is_called(cls) else f"xs >> {called}"


def conditions(cls: type[Primitive]) -> Iterator[str]:
    """What a primitive requires of its general instance, or why it requires nothing."""
    primitive, params = general(cls)
    clauses = [str(c) for c in primitive.requires(*(p.type for p in params))]
    for clause in clauses:
        reason = cls.by_definition.get(clause)
        yield f"`{clause}`" if reason is None else f"`{clause}` (by definition: {reason})"
    if not clauses:
        yield f"none: {cls.unconditional}"
