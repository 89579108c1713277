"""docs/rules.md is what the rules print."""

from pathlib import Path

from typer.testing import CliRunner

from liftpy.cli.catalogue import rules_page
from liftpy.cli.main import GROUPS, application
from liftpy.rewrite.rule import hints_of
from liftpy.rewrite.rules import RULES
from tests.rewrite.fixtures import sections

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_of_rules_is_up_to_date():
    """`make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == rules_page() + "\n"


def test_the_command_prints_the_page():
    result = CliRunner().invoke(application(), ["rules", "--markdown"])
    assert result.exit_code == 0
    assert result.stdout == rules_page() + "\n"


def test_every_rule_has_its_law_conditions_and_verdict_on_the_page():
    page = rules_page()
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
    for group, commands in GROUPS.items():
        registered = [command.name for command in application(commands[0]).registered_commands]
        assert tuple(registered) == commands, group
