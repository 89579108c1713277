"""show: a program at a step of the compiler. The source and types need no compiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from liftpy.cli.arguments import load_program
from liftpy.cli.loading import load
from liftpy.cli.options import (
    JsonFlag,
    LimitsName,
    MemoryLimit,
    ProgramName,
    SetOption,
    SizeOption,
    StorageOption,
    WhereOption,
    one_of,
    settings_and_lists,
)
from liftpy.cli.screen import say, show_json
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.walk import children
from liftpy.language.printing.spelling import show_type
from liftpy.language.text.program import show as program_text


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("show")(show)


class ShownStage(StrEnum):
    """The steps of the compiler that `show` can print."""

    SOURCE = "source"
    TYPES = "types"
    LOWERED = "lowered"
    CONSTRAINTS = "constraints"
    MEMORY = "memory"
    VIEWS = "views"
    LOOPS = "loops"
    BOUNDS = "bounds"
    CODE = "code"


def show(  # noqa: PLR0913  one parameter per option
    program: ProgramName,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    stage: Annotated[
        ShownStage,
        typer.Option(
            "--stage",
            metavar="STAGE",
            parser=one_of(ShownStage, "stage"),
            help=f"One of: {', '.join(ShownStage)}.",
        ),
    ] = ShownStage.SOURCE,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    device: LimitsName = None,
    json: JsonFlag = False,
) -> None:
    """The program at a step of the compiler, for the candidate that --set names."""
    source = load_program(program, size, storage)
    given, listed = settings_and_lists(set_)

    def tell(data: dict[str, Any], lines: Iterable[str]) -> None:
        if json:
            show_json({"program": source.name, "stage": stage.value, **data})
        else:
            for line in lines:
                say(line)

    match stage:
        case ShownStage.SOURCE:
            text = program_text(source)
            tell({"text": text}, [text.rstrip()])
        case ShownStage.TYPES:
            typed = [*typed_parts(source)]
            tell({"types": [asdict(part) for part in typed]}, map(str, typed))
        case _:
            bounds = {"memory_limit": memory_limit, "where": where or (), "fixed": listed}
            later = load("language").show_stage
            later(source, stage.value, given, device, bounds, tell, json=json)


@dataclass(frozen=True)
class TypedPart:
    """A parameter or a primitive, the type of its value, and its nesting depth in functions."""

    what: str
    type: str
    depth: int = 0

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.what} : {self.type}"


def typed_parts(program: Program) -> Iterator[TypedPart]:
    """Yields each parameter, then each primitive in data-flow order, with the type of its value."""
    for p in program.params:
        const = "const " if p.name in program.constants else ""
        yield TypedPart(p.name, f"{const}{show_type(p.type)}")
    yield from _typed(program.body.body, 0)


def _typed(expr: Expr, depth: int) -> Iterator[TypedPart]:
    for child in children(expr):
        inside = isinstance(expr, FunCall) and child not in expr.args
        yield from _typed(child, depth + inside)
    if isinstance(expr, FunCall) and isinstance(expr.fun, Primitive):
        yield TypedPart(str(expr.fun), show_type(expr.type), depth)
