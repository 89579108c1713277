"""pareto, candidates, report: the results of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from liftpy.cli.loading import load
from liftpy.cli.options import Database, EnergyCostsOption, JsonFlag, MaxError, one_of, refuse
from liftpy.cli.screen import console, note, say, show, show_json
from liftpy.explore.campaign.campaign import AXES, Campaign, nothing_within
from liftpy.explore.campaign.rows import ENERGY, Row
from liftpy.explore.report import tables as report
from liftpy.explore.report import wording


class Format(StrEnum):
    """The output formats of a front."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("pareto")(pareto)
    app.command("candidates")(candidates)
    app.command("report")(report_page)


Axis = Annotated[
    str,
    typer.Option(
        "--axis",
        metavar="FIGURE",
        parser=one_of(AXES, "figure"),
        help=f"The figure against time: {', '.join(AXES)}.",
    ),
]


Also = Annotated[
    str | None,
    typer.Option(
        "--also",
        metavar="FIGURE",
        parser=one_of(AXES, "figure"),
        help="A third figure, such as error: the front of all three.",
    ),
]


def pareto(  # noqa: PLR0913  one parameter per option
    file: Database,
    *,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="F",
            parser=one_of(Format, "format"),
            help=f"One of: {', '.join(Format)}.",
        ),
    ] = Format.TABLE,
    axis: Axis = AXES[0],
    memory_limit: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Only candidates with at most this peak.")
    ] = None,
    max_error: MaxError = None,
    also: Also = None,
    energy_costs: EnergyCostsOption = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.png", help="Plot the front and all others."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """The front of time versus memory, error or an energy proxy, or of three figures."""
    found = with_figures(Campaign.read(file), axis, also, energy_costs)
    within = found.within(memory_limit, max_error)
    rows = within.pareto(axis, also=also)
    if plot is not None:
        report.plot(within, axis, plot, also)
        note(f"plot written to {plot}")
    if json or format_ is Format.JSON:
        show_json(report.front_json(within, rows, axis, also))
    elif format_ is Format.CSV:
        say(report.front_csv(found, rows).rstrip())
    elif rows:
        say(title(found))
        say(f"{wording.candidates_text(len(found.rows))}: {wording.outcomes_text(found)}")
        show_fronts(found, rows, axis=axis, also=also)
        say(wording.rule_text(found, axis, also))
    if not rows:
        raise nothing_within(found, memory_limit, max_error)


def candidates(
    file: Database,
    *,
    full: Annotated[bool, typer.Option("--full", help="Print reasons in full.")] = False,
    json: JsonFlag = False,
) -> None:
    """Every candidate with its outcome and reason."""
    found = Campaign.read(file)
    if json:
        show_json(report.candidates_json(found))
        return
    show(report.candidates_table(found, full=full))
    say(f"{wording.candidates_text(len(found.rows))}: {wording.outcomes_text(found)}")


def report_page(
    file: Database,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = Path("report.html"),
    axis: Axis = AXES[0],
    also: Also = None,
    energy_costs: EnergyCostsOption = None,
) -> None:
    """A campaign as one HTML page: front, outcomes, progress, parameters, how to reproduce it."""
    report.page(with_figures(Campaign.read(file), axis, also, energy_costs), axis, output, also)
    say(f"written to {output}")


def with_figures(
    found: Campaign, axis: str, also: str | None, energy_costs: str | None
) -> Campaign:
    """The campaign with the energy proxy of its candidates, if that is one of the figures."""
    if ENERGY not in {axis, also}:
        refuse({"--energy-costs": energy_costs}, "it needs --axis energy or --also energy")
        return found
    with_proxies: Callable[[Campaign, str | None], Campaign] = load("energy").with_proxies
    return with_proxies(found, energy_costs)


def show_fronts(
    found: Campaign,
    rows: list[Row],
    heading: str | None = None,
    axis: str = "peak",
    also: str | None = None,
) -> None:
    """Prints the front of a campaign; with several devices, one front for each device."""
    if len(found.devices) == 1:
        show(report.front_table(rows, console().width, heading, axis, also))
        return
    for device in found.devices:
        mine = [row for row in rows if row.device == device.fingerprint]
        name = device.label
        heading_here = f"{heading} on {name}" if heading else name
        show(report.front_table(mine, console().width, heading_here, axis, also))


def title(found: Campaign) -> str:
    """The program of a campaign, with the numbers given for its sizes, and the device."""
    given = found.identity.settings.get("sizes") or {}
    numbers = ", ".join(f"{name} = {value}" for name, value in given.items())
    return (
        f"{found.identity.program}{f' with {numbers}' if numbers else ''} on "
        f"{' and '.join(device.label for device in found.devices)}"
    )
