"""rules: the laws, and their recorded verdicts."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from liftpy.cli.catalogue import rules_page
from liftpy.cli.options import JsonFlag, one_of
from liftpy.cli.screen import say, show, show_json
from liftpy.language.text.program import show_expr
from liftpy.rewrite.proof_cache import is_proved, recorded
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("rules")(show_rules)


def rule_json(rule: Rule) -> dict[str, Any]:
    """A rule as JSON data, with its recorded verdict."""
    entry = recorded().get(rule.name, {})
    return {
        "name": rule.name,
        "family": rule.family,
        "law": law(rule),
        "where": [str(condition) for condition in rule.where],
        "assuming": [str(assumption) for assumption in rule.assuming],
        "verdict": "proved" if is_proved(rule) else "no valid proof",
        "seconds": entry.get("seconds"),
    }


def law(rule: Rule) -> str:
    """A rule as an equation."""
    return f"{show_expr(rule.left)} = {show_expr(rule.right)}"


def show_rules(
    *,
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="F",
            parser=one_of(dict.fromkeys(rule.family for rule in RULES.values()), "family"),
            help="Only the rules of a family.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The whole catalogue as a page: docs/rules.md.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Every rule: law, conditions, verdict of its recorded proof."""
    if markdown:
        say(rules_page())
        return
    rules = [rule for rule in RULES.values() if family in {None, rule.family}]
    if json:
        show_json([rule_json(rule) for rule in rules])
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("rule", "family", "law", "where", "verdict"):
        table.add_column(name, overflow="fold", ratio=3 if name == "law" else None)
    for data in map(rule_json, rules):
        conditions = "\n".join([*data["where"], *data["assuming"]])
        verdict = data["verdict"]
        colour = "green" if verdict == "proved" else "red"
        table.add_row(
            data["name"],
            data["family"],
            escape(data["law"]),
            conditions,
            f"[{colour}]{verdict}[/]",
        )
    show(table)
