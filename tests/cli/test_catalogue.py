"""docs/rules.md is what the rules print."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from liftpy.cli.application import COMMANDS, application
from liftpy.cli.primitives import word_json, word_named
from liftpy.errors import UnknownName
from liftpy.language.text.call_elaborator import WORDS
from liftpy.rewrite.rule import hints_of
from liftpy.rewrite.rules import RULES
from tests.rewrite.fixtures import sections

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_of_rules_is_what_the_command_prints():
    """`make docs` writes it."""
    result = CliRunner().invoke(application("rules"), ["rules", "--markdown"])
    assert result.exit_code == 0
    assert result.stdout == PAGE.read_text(encoding="utf-8")


def test_every_rule_has_its_law_conditions_and_verdict_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("\n- proved (") == len(RULES)
    for rule in RULES.values():
        entry = page.split(f"### {rule.name}\n")[1].split("\n### ")[0]
        for words in (*rule.where, *rule.assuming, *rule.tunes):
            assert f"`{words}`" in entry


def test_hints_are_what_the_fixtures_give():
    for name, rule in RULES.items():
        assert tuple(sorted(sections(name)["before"].hints)) == hints_of(rule)


def test_the_table_of_commands_is_what_the_modules_register():
    """A command is found by it, without the modules of the others."""
    for name, (module, summary) in COMMANDS.items():
        registered = {c.name: c.callback for c in application(name).registered_commands}
        there = [known for known, (its, _) in COMMANDS.items() if its == module]
        assert [*registered] == there, module
        said = inspect.getdoc(registered[name]).partition("\n\n")[0]
        assert said.replace("\n", " ") == summary, "the help of all commands is that of each"


LIGHT = {
    ("--help",): "numpy liftpy.ir.nat liftpy.explore rich",
    ("--version",): "numpy liftpy.ir.nat liftpy.primitives rich",
    ("explore", "--help"): "pyopencl",
    ("devices", "--profiles"): "pyopencl",
    ("workloads",): "z3 pyopencl sqlite3 liftpy.pipeline liftpy.semantics",
    ("rules",): "z3 pyopencl sqlite3 liftpy.pipeline liftpy.semantics",
    ("winograd",): "z3 pyopencl lark sqlite3 liftpy.ir.nat liftpy.explore",
    ("primitives", "slide"): "z3 pyopencl sqlite3 liftpy.pipeline",
    (
        "show",
        "vgg16/7",
    ): "pyopencl sqlite3 liftpy.pipeline liftpy.rewrite liftpy.explore.space.space",
    ("pareto", "none.db"): "z3 pyopencl lark numpy liftpy.pipeline liftpy.primitives",
    ("candidates", "none.db"): "z3 pyopencl lark numpy liftpy.pipeline liftpy.primitives",
    ("report", "none.db"): "z3 pyopencl lark liftpy.pipeline liftpy.primitives",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", LIGHT, ids=" ".join)
def test_a_command_imports_no_more_than_it_needs(command, tmp_path):
    """What its answer does not need: solver, driver, parser, database, the compiler's rooms."""
    script = "import sys\nfrom liftpy.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert "liftpy.cli.main" in imported
    assert not set(LIGHT[command].split()) & imported


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("slide2d", "slide2d(window, step) = slide(window, step) |> map(map(slide"),
        ("permute", "permute(2, 0, 1) = map(transpose) |> transpose"),
        ("select", "select : (bool, a, a) -> a"),
        ("min", "- embedded: `smaller(x, y)`"),
        ("smaller", "- text: `min(x, y)`"),
        (">", "- text: `x < y`"),
        ("pad_clamp", "xs |> padClamp(left, right)"),
        ("pad2d", "pad2d(top, bottom, left, right, value) ="),
        ("add_int", "addInt : (i32, i32) -> i32"),
        ("i32", "- embedded: `convert(x, i32)`"),
    ],
)
def test_every_word_of_both_forms_is_found(word, said):
    result = CliRunner().invoke(application("primitives"), ["primitives", "--", word])
    assert result.exit_code == 0
    assert said in result.stdout
    as_data = CliRunner().invoke(application("primitives"), ["primitives", "--json", "--", word])
    assert json.loads(as_data.stdout)[0]["law"]


@pytest.mark.parametrize(
    ("word", "near"), [("slde", "slide"), ("Slide2D", "slide2d"), ("gather2d", "gather")]
)
def test_a_word_that_is_near_is_suggested(word, near):
    with pytest.raises(UnknownName, match=f"no word is named '{word}'; did you mean .*{near}"):
        word_named(word)


def test_every_word_has_an_entry():
    for word in WORDS:
        assert word_json(word)["text"]
