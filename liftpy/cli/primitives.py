"""primitives: every word of the language, from the registry; `make docs` keeps it as a page."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from liftpy.cli.options import JsonFlag
from liftpy.cli.screen import say, show_json
from liftpy.errors import UnknownName
from liftpy.ir.expr import Primitive
from liftpy.ir.scalars import ANY_SCALAR, FLOAT_OPERATORS, LOGICAL, OPERATORS
from liftpy.ir.show import is_called
from liftpy.ir.types import SCALARS
from liftpy.primitives import LAYOUTS, PRIMITIVES, lang
from liftpy.primitives.compositions import COMPOSITIONS, permuted
from liftpy.primitives.lang import PRELUDE
from liftpy.primitives.prelude import OPERATIONS
from liftpy.primitives.text import law, usage
from liftpy.primitives.words import snake
from liftpy.semantics.general import general

HEAD = """\
# Primitives

Written by `make docs` from the registry (`liftpy primitives`). Here a length is written after the
array, as in `[a]n`; in programs it is written before the element type: `[n]f32`. Conditions use the
fields of the primitive. Those marked hold by definition; proofs need the others.
"""


#: How operators are written in Python where that is another way than in the text form.
EMBEDDED = {
    "min": "smaller(x, y)",
    "max": "larger(x, y)",
    "abs": "absolute(x)",
    "pow": "power(x, y)",
    "==": "equal(x, y)",
    "!=": "unequal(x, y)",
    "not": "~x",
    "and": "x & y",
    "or": "x | y",
    **{name: f"convert(x, {name})" for name in SCALARS},
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("primitives")(show_primitives)


def show_primitives(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="Words of the text form; by default all."),
    ] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Every primitive: law, conditions, how it is written. In Markdown.

    WORD may be an abbreviation, an operator or a function as well, in either form: slide2d, select.
    """
    found = [word_named(name) for name in names or ()]
    if json:
        show_json([word_json(name) for name in found or PRIMITIVES])
        return
    lines = entries(found) if found else page()
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
    for data in map(word_json, names):
        yield from (f"## {data['name']}", "", data["summary"], "", "```", *data["law"], "```", "")
        yield from (f"- text: `{data['text']}`", f"- embedded: `{data['embedded']}`")
        if "conditions" not in data:
            yield ""
            continue
        said = "; ".join(map(marked, data["conditions"])) or f"none: {data['unconditional']}"
        yield f"- conditions: {said}"
        yield ""


def marked(clause: dict[str, Any]) -> str:
    """A condition, with its reason where it holds by definition."""
    reason = "" if clause["reason"] is None else f" (by definition: {clause['reason']})"
    return f"`{clause['condition']}`{reason}"


def word_named(given: str) -> str:
    """The word of the text form that is meant, written as in either form.

    UnknownName, with words that are near it, if there is none.
    """
    words = [*PRIMITIVES, *COMPOSITIONS, "permute", *OPERATORS, *PRELUDE]
    embedded_words = {snake(name): name for name in words} | {
        how.partition("(")[0]: op for op, how in EMBEDDED.items() if op not in SCALARS
    }
    embedded_words |= {"convert": "f32", ">": "<", ">=": "<="}
    if given in words:
        return given
    if given in embedded_words:
        return embedded_words[given]
    small = {alias.casefold(): name for alias, name in embedded_words.items()}
    small |= {name.casefold(): name for name in words}
    near = difflib.get_close_matches(given.casefold(), small, n=3)
    near += [word for word in small if len(given) > 2 and given.casefold() in word][:3]
    hint = f"; did you mean {' or '.join(dict.fromkeys(small[w] for w in near))}?" if near else "."
    raise UnknownName(
        f"no word is named '{given}'{hint} `liftpy primitives` lists primitives and abbreviations; "
        f"operators are {' '.join(OPERATORS)}, functions {' '.join(OPERATIONS)}"
    )


def word_json(name: str) -> dict[str, Any]:
    """What a word is and how it is written: a primitive, or what is short for others, or scalar."""
    if name in PRIMITIVES:
        return primitive_json(name)
    if name in OPERATORS:
        return operator_json(name)
    if name in PRELUDE:
        fun = PRELUDE[name]
        types = ", ".join(str(p.type) for p in fun.params)
        laws = ", ".join(map(str, fun.laws))
        return {
            "name": name,
            "summary": f"A function that needs no definition{f'; it is {laws}' if laws else ''}.",
            "law": [f"{name} : ({types}) -> {fun.body.type}"],
            "text": f"reduce({name}, ...)",
            "embedded": f"reduce({snake(name)}, ...)",
        }
    if name == "permute":
        params, meant, value = ("axis", "..."), str(permuted((2, 0, 1))), False
        law = f"permute(2, 0, 1) = {meant}"
    else:
        known = COMPOSITIONS[name]
        params, value = known.params, known.value
        law = f"{name}({', '.join(params)}) = {known.text}"
    called = f"({', '.join(params)})"
    head = ("", "") if value else ("xs |> ", "xs >> ")
    return {
        "name": name,
        "summary": "An abbreviation.",
        "law": [law],
        "text": f"{head[0]}{name}{called}",
        "embedded": f"{head[1]}{snake(name)}{called}",
    }


def operator_json(name: str) -> dict[str, Any]:
    """An operator on scalars: what it takes, what it gives, and how it is written."""
    arity, truth = OPERATORS[name]
    letters = ("condition", "then", "otherwise") if name == "select" else ("x", "y")[:arity]
    infix = (arity == 2 and not name[0].isalpha()) or name in ("and", "or")
    text = f" {name} ".join(letters) if infix else f"{name}({', '.join(letters)})"
    if name in ("neg", "not"):
        text = "-x" if name == "neg" else "not x"
    of = "floats" if name in FLOAT_OPERATORS else "bools" if name in LOGICAL else "numbers"
    if name in ANY_SCALAR:
        of = "numbers or bools"
    takes = "bool, a, a" if name == "select" else ", ".join("a" * arity)
    gives = name if name in SCALARS else "bool" if truth else "a"
    return {
        "name": name,
        "summary": f"An operator on {of}; those of type `a` have one type.",
        "law": [f"{name} : ({takes}) -> {gives}"],
        "text": text,
        "embedded": EMBEDDED.get(name, text),
    }


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
