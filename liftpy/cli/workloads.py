"""workloads: the built-in programs."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.markup import escape
from rich.table import Table

from liftpy.cli.options import JsonFlag
from liftpy.cli.screen import say, show, show_json
from liftpy.workloads import workloads


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("workloads")(show_workloads)


def show_workloads(*, json: JsonFlag = False) -> None:
    """Built-in programs, with sizes and flop counts."""
    if json:
        show_json([asdict(w) for w in workloads()])
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("computes")
    table.add_column("Mflop", justify="right")
    for w in workloads():
        table.add_row(w.name, escape(w.summary), f"{w.flops / 1e6:,.1f}")
    show(table)
    forms = dict.fromkeys(w.form for w in workloads())
    say("Forms for other sizes: " + ", ".join(forms))
