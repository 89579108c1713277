"""The place of a part of a program, for messages: in the program's text, or in an outline of it."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.walk import Path, at, top_down


def asker(program: Program, path: Path) -> str:
    """The primitive at a path of a program's body, with its place."""
    return "".join(named(program, path))


def named(program: Program, path: Path) -> tuple[str, str]:
    """The primitive at a path, as the program's text writes it, and its place."""
    part = at(program.body.body, path)
    name = ""
    if isinstance(part, FunCall):
        fun = part.fun
        name = elided(fun) if isinstance(fun, Primitive) else getattr(fun, "name", "let")
    place = None if program.spans is None else program.spans.call(path)
    if program.spans is None or place is None:
        return name, surroundings(program.body.body, path)
    line, column = program.spans.source.position(place)
    snippet = program.spans.source.snippet(place)
    word = re.compile(rf"\b{re.escape(name.partition('(')[0])}\b")
    who = f"`{snippet}`" if word.search(snippet) else f"{name} in `{snippet}`"
    return who, f" at line {line}, column {column}"


@contextmanager
def refusals_placed(program: Program) -> Generator[None]:
    """Add the place in a program to refusals of its calls, if no rule has replaced the call."""
    try:
        yield
    except TypeRefused as refused:
        calls = (path for path, part in top_down(program.body.body) if part is refused.part)
        path = next(calls, None)
        if path is None:
            raise
        raise placed(program, path, str(refused)) from refused


def placed(program: Program, path: Path, message: str) -> TypeRefused:
    """A refusal with the line of the call at a path, or with the call around it."""
    what, *why = message.splitlines()
    spans = program.spans
    if spans is not None and (place := spans.call(path)) is not None:
        return spans.source.refusal(TypeRefused, what, place, *map(str.strip, why))
    around = surroundings(program.body.body, path)
    where = f"\n  it is{around}" if around else ""
    return TypeRefused(message + where)


def surroundings(body: Expr, path: Path) -> str:
    """The innermost call whose function contains a part: ` in map(row => ...)`."""
    for depth in range(len(path) - 1, -1, -1):
        around = at(body, path[:depth])
        if not isinstance(around, FunCall) or path[depth] < len(around.args):
            continue
        if isinstance(around.fun, Primitive):
            return f" in {elided(around.fun)}"
    return ""


def elided(primitive: Primitive) -> str:
    """A primitive with its numbers and with its function elided: `mapGlb(0, row => ...)`."""
    shown = [str(getattr(primitive, f.name)) for f in fields(primitive) if f.name != "f" and f.init]
    if primitive.function is not None:
        names = ", ".join(p.name for p in primitive.function.params)
        head = names if len(primitive.function.params) == 1 else f"({names})"
        shown.append("..." if head == "_" else f"{head} => ...")
    return f"{primitive.name}({', '.join(shown)})" if shown else primitive.name
