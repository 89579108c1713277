"""Every command and option that a page names exists, also in blocks that no test runs."""

from __future__ import annotations

import re
import shlex
from functools import cache

import pytest
import typer

from liftpy.cli.application import COMMANDS, application
from tests.benchmarks.scripts import FOLDER
from tests.docs.pages import DOCS, ROOT

PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LONG = re.compile(r"--[a-z][a-z-]*|-[a-zA-Z]")


def commands_on(text: str, program: str) -> list[list[str]]:
    """The words of each call of a program, in lines of code and in inline code."""
    text = re.sub(r"\\\n\s*", " ", text)
    inline = re.findall(rf"(?<!`)`({program}[^`]*)`(?!`)", text)
    lines = re.findall(rf"^(?:\$ )?({program}.*)$", text, re.MULTILINE)
    return [words(re.split(r" [|>#&]|\s{3,}", " ".join(one.split()))[0]) for one in inline + lines]


def words(command: str) -> list[str]:
    """The words of a command; quotes may be cut where a page abbreviates."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@cache
def options_of(command: str) -> frozenset[str]:
    """All options of a command of liftpy, with those of liftpy itself."""
    group = typer.main.get_command(application(command))
    known = {"--help", "-h", "--version"}
    for parameter in group.commands[command].params:  # type: ignore[attr-defined]
        known |= {*parameter.opts, *parameter.secondary_opts}
    return frozenset(known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_commands_and_options_that_exist(page):
    for _, command, *rest in commands_on(page.read_text("utf-8"), "liftpy "):
        named = {word for word in rest if LONG.fullmatch(word)}
        known = options_of(command) if command in COMMANDS else {"--help"}  # or a sentence
        assert named <= known, f"liftpy {command} {' '.join(rest)}"


def test_an_option_that_is_not_there_is_found():
    assert "--samples" in options_of("explore")
    assert "--sampels" not in options_of("explore")
    text = (
        "```\n$ liftpy explore a.lift --samples 3 \\\n    -d pocl  # why\n```\nand `liftpy rules`"
    )
    found = commands_on(text, "liftpy ")
    assert found == [
        ["liftpy", "rules"],
        ["liftpy", "explore", "a.lift", "--samples", "3", "-d", "pocl"],
    ]


def scripts_on(page):
    """The scripts of benchmarks/ that a page runs, with the options that it gives them."""
    for found in commands_on(page.read_text("utf-8"), r"python benchmarks/"):
        yield found[1].removeprefix("benchmarks/"), [w for w in found[2:] if LONG.fullmatch(w)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_runs_scripts_with_options_that_exist(page):
    for name, options in scripts_on(page):
        text = (FOLDER / name).read_text("utf-8")
        for option in options:
            assert f'"{option}"' in text, f"{page.name}: {name} has no {option}"
