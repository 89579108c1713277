"""winograd: the transforms of a short filter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.table import Table

from liftpy.cli.screen import say, show, show_json
from liftpy.winograd.choosing import SCALED, By, PointsFound, RatedTriple, Scaling, choose
from liftpy.winograd.error import FORMS, above, best_known, bound_of, check_error, gamma
from liftpy.winograd.linear import Counts, Form, Sharing
from liftpy.winograd.matrices import Matrix
from liftpy.winograd.measured import CHANNELS
from liftpy.winograd.points import STANDARD
from liftpy.winograd.sharing import applied
from liftpy.winograd.triple import LARGEST, Triple, cook_toom

FLAT_MOST = 10
"""Products in a row up to which flat forms are counted: that of 10 takes seconds."""

USUAL, BEST = "usual", "best"
INTEGERS, POWERS = str(Scaling.INTEGERS), str(Scaling.POWERS)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("winograd")(show_winograd)


def error_limit(text: str) -> Fraction:
    """The parser of `--max-error`."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"'{text}' is not a number such as 1e-5")
    return Fraction(str(value))  # as it is written: 1e-5, not the nearest float


def show_winograd(  # noqa: PLR0913  one parameter for each option
    *,
    m: Annotated[int, typer.Option("--m", metavar="M", help="Results at a time.")] = 4,
    r: Annotated[int, typer.Option("--r", metavar="R", help="Taps of the filter, 2 to 7.")] = 3,
    points: Annotated[
        str,
        typer.Option(
            "--points",
            metavar="P,...",
            help="The m + r - 2 finite points, such as 0,1,-1,1/2,-2; 'usual': the first of the "
            "usual order; 'best': known points with the smallest error constant.",
        ),
    ] = USUAL,
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="S,...",
            help="Factors of the rows of B^T. For both B^T and A^T: 'integers' makes them "
            "integral, 'powers' takes powers of two.",
        ),
    ] = None,
    scale_output: Annotated[
        str | None,
        typer.Option("--scale-output", metavar="S,...", help="Factors of the columns of A^T."),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            metavar="C",
            help=f"Channels that are summed; by default 1, and {CHANNELS} for --choose.",
        ),
    ] = None,
    dimensions: Annotated[
        int,
        typer.Option(
            "--dims",
            metavar="D",
            min=1,
            max=2,
            help="Dimensions that --max-error and --choose are for.",
        ),
    ] = 2,
    choose_by: Annotated[
        By | None,
        typer.Option(
            "--choose",
            metavar="HOW",
            help="Search for points and scalings with the smallest error: 'bound', the a-priori "
            "bound; 'measured', the error of random data.",
        ),
    ] = None,
    max_error: Annotated[
        Fraction | None,
        typer.Option(
            "--max-error",
            metavar="E",
            parser=error_limit,
            help="Refuse a transform whose error bound in f32, relative to the largest possible "
            "result, is larger.",
        ),
    ] = None,
    largest: Annotated[
        int,
        typer.Option(
            "--largest",
            metavar="N",
            min=2,
            max=len(STANDARD) + 1,
            help="The most products m + r - 1 that are allowed.",
        ),
    ] = LARGEST,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """A Winograd transform of a filter, exactly: operations and error constants.

    F(m, r) computes m results of a filter of r taps as A^T ((G w) * (B^T d)).
    """
    if choose_by is not None:
        if (points, scale, scale_output) != (USUAL, None, None):
            message = (
                "it chooses points and scalings itself; leave out --points, --scale and "
                "--scale-output, or leave out --choose"
            )
            raise typer.BadParameter(message, param_hint="--choose")
        found = choose(
            m, r, choose_by, largest, CHANNELS if channels is None else channels, dimensions
        )
        if max_error is not None:
            check_error(found.best.triple, max_error, dimensions, found.best.channels)
        show_choice(found, choose_by, json=json)
        return
    channels = 1 if channels is None else channels
    triple = chosen(m, r, points, scale, scale_output, largest)
    if max_error is not None:
        check_error(triple, max_error, dimensions, channels)
    data = triple_json(triple, channels)
    if json:
        show_json(data)
        return
    last = ", ".join([*map(str, triple.points), "infinity"]) if triple.points else "none: direct"
    say(
        f"{triple}: {m} result{'' if m == 1 else 's'} of {r} taps from {triple.n} inputs; "
        f"points {last}"
    )
    for title, name in (("A^T", "at"), ("G", "g"), ("B^T", "bt")):
        say(f"\n{title}")
        show(table_of(data[name]))
    say("\nproducts")
    show(table_of(data["products"], "dimensions", "products", "direct", "fewer"))
    say("\nadditions + multiplications of the transforms, by what is shared")
    show(operations_table(data["operations"]))
    say(
        f"\nerror in f32, {channels} channel{'' if channels == 1 else 's'}: the bound is relative "
        "to the largest possible result"
    )
    show(table_of(data["error"], "dimensions", "gamma", "roundings", "bound"))


def show_choice(found: PointsFound, by: By, *, json: bool) -> None:
    """Prints what a search has found, beside the usual points."""
    smallest = "smallest bound" if by is By.BOUND else "smallest measured error"
    rows = [
        choice_json(what, choice)
        for what, choice in (
            ("usual", found.usual),
            (smallest, found.best),
            (f"{smallest} without more operations", found.light),
        )
    ]
    best = found.best
    if json:
        show_json(
            {
                "m": best.triple.m,
                "r": best.triple.r,
                "dimensions": best.dimensions,
                "channels": best.channels,
                "choices": rows,
            }
        )
        return
    say(
        f"{best.triple} in {best.dimensions} dimension{'s' if best.dimensions > 1 else ''} with "
        f"{best.channels} channel{'s' if best.channels > 1 else ''}: errors in f32, and operations "
        "of a tile"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("", "points", "scaling"):
        table.add_column(name, overflow="fold")
    for name in ("bound", "measured", "operations"):
        table.add_column(name, justify="right")
    for row in rows:
        errors = (f"{row['bound']:.1e}", f"{row['measured']:.1e}")
        shown = row["choice"], ", ".join(row["points"]), row["scaling"]
        table.add_row(*shown, *errors, str(row["operations"]))
    show(table)
    scaled = "" if best.scaling is Scaling.NONE else f" --scale {best.scaling}"
    many = "" if best.triple.n <= LARGEST else f" --largest {best.triple.n}"
    say(
        f"its matrices: liftpy winograd --m {best.triple.m} --r {best.triple.r} "
        f"--points {','.join(rows[1]['points']) or USUAL}{scaled}{many}"
    )


def choice_json(what: str, choice: RatedTriple) -> dict[str, Any]:
    """A choice as JSON data."""
    return {
        "choice": what,
        "points": [*map(str, choice.triple.points)],
        "scaling": str(choice.scaling),
        "bound": float(above(choice.bound.relative)),
        "measured": float(f"{choice.measured:.2g}"),
        "operations": choice.operations,
    }


def chosen(
    m: int, r: int, points: str, scale: str | None, scale_output: str | None, largest: int
) -> Triple:
    """The triple that the options name."""
    if points == BEST:
        best = best_known(m, r, largest).points
        given: Sequence[str | Fraction] | None = best or None
    else:
        given = None if points == USUAL else points.split(",")
    if scale in {INTEGERS, POWERS}:
        if scale_output is not None:
            raise typer.BadParameter(
                f"--scale {scale} scales the columns of A^T too", param_hint="--scale-output"
            )
        return SCALED[Scaling(scale)](cook_toom(m, r, given, largest=largest))
    inputs, outputs = (s.split(",") if s is not None else None for s in (scale, scale_output))
    return cook_toom(m, r, given, scale=inputs, scale_output=outputs, largest=largest)


def triple_json(triple: Triple, channels: int) -> dict[str, Any]:
    """A triple as JSON data; fractions are texts."""
    return {
        "m": triple.m,
        "r": triple.r,
        "n": triple.n,
        "points": [*map(str, triple.points), *(["infinity"] if triple.points else [])],
        "at": texts(triple.at),
        "g": texts(triple.g),
        "bt": texts(triple.bt),
        "products": [
            {
                "dimensions": d,
                "products": triple.n**d,
                "direct": (triple.m * triple.r) ** d,
                "fewer": round((triple.m * triple.r / triple.n) ** d, 4),
            }
            for d in FORMS
        ],
        "operations": [
            operations_json(name, a, form, sharing)
            for name, a in (("kernel", triple.g), ("input", triple.bt), ("output", triple.at))
            for form in Form
            if form is not Form.FLAT or triple.n <= FLAT_MOST
            for sharing in Sharing
        ],
        "error": [error_json(triple, d, channels) for d in FORMS],
    }


def texts(a: Matrix) -> list[list[str]]:
    """A matrix as texts."""
    return [[str(x) for x in row] for row in a]


def operations_json(name: str, a: Matrix, form: Form, sharing: Sharing) -> dict[str, Any]:
    """The operations of one transform."""
    counts: Counts = applied(a, form, sharing).counts
    return {
        "transform": name,
        "form": str(form),
        "sharing": str(sharing),
        "additions": counts.additions,
        "multiplications": counts.multiplications,
        "negations": counts.negations,
    }


def error_json(triple: Triple, dimensions: int, channels: int) -> dict[str, Any]:
    """The error constants of a triple."""
    bound = bound_of(triple, dimensions, channels)
    return {
        "dimensions": dimensions,
        "gamma": float(f"{float(gamma(triple, dimensions)):.4g}"),
        "roundings": bound.roundings,
        "bound": float(above(bound.relative, 3)),
    }


def table_of(rows: Sequence[Sequence[str] | dict[str, Any]], *names: str) -> Table:
    """A table of numbers: of a matrix without a heading, of records with their names."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(names))
    for name in names or ("",) * len(rows[0]):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(map(str, (row[n] for n in names) if isinstance(row, dict) else row)))
    return table


def operations_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The operations, with a column for each way of sharing."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("transform", "form"):
        table.add_column(name)
    for sharing in Sharing:
        table.add_column(str(sharing), justify="right")
    for start in range(0, len(rows), len(Sharing)):
        several = rows[start : start + len(Sharing)]
        cells = [f"{row['additions']} + {row['multiplications']}" for row in several]
        table.add_row(several[0]["transform"], several[0]["form"], *cells)
    return table
