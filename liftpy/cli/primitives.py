"""primitives: every word of the language, from the registry; `make docs` keeps it as a page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from liftpy.cli.arguments import JsonFlag
from liftpy.cli.screen import say, show_json
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
        typer.Argument(metavar="WORD", help="Words of the text form; all of them."),
    ] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Every primitive: law, conditions, how it is written. In Markdown."""
    for name in names or ():
        if name not in PRIMITIVES:
            known = ", ".join(PRIMITIVES)
            raise UnknownName(f"there is no primitive '{name}'; there are: {known}")
    if json:
        show_json([primitive_json(name) for name in names or PRIMITIVES])
        return
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
    """The entries of some primitives, in Markdown."""
    for data in map(primitive_json, names):
        yield from (f"## {data['name']}", "", data["summary"], "", "```", *data["law"], "```", "")
        yield from (f"- text: `{data['text']}`", f"- embedded: `{data['embedded']}`")
        said = "; ".join(map(marked, data["conditions"])) or f"none: {data['unconditional']}"
        yield f"- conditions: {said}"
        yield ""


def marked(clause: dict[str, Any]) -> str:
    """A condition, with its reason where it holds by definition."""
    reason = "" if clause["reason"] is None else f" (by definition: {clause['reason']})"
    return f"`{clause['condition']}`{reason}"


def primitive_json(name: str) -> dict[str, Any]:
    """What one primitive is, asks and is written like."""
    cls = PRIMITIVES[name]
    primitive, params = general(cls)
    clauses = [str(c) for c in primitive.requires(*(p.type for p in params))]
    return {
        "name": name,
        "summary": inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " "),
        "law": [line.removeprefix("  ").removeprefix("  ") for line in law(cls)[1:]],
        "text": usage(cls),
        "embedded": embedded(cls),
        "conditions": [
            {"condition": clause, "reason": cls.by_definition.get(clause)} for clause in clauses
        ],
        "unconditional": cls.unconditional,
    }


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
