"""What a terminal would obey is spelled."""

import io
from dataclasses import replace

import pytest
from rich.table import Table

from liftpy.cli import screen
from liftpy.cli.texts import printable
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.store import Store
from liftpy.explore.measure.outcome import Refused
from tests.explore.spaces import small_space
from tests.explore.test_store import IDENTITY, MEASURED, MODULE

BAD = "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\x08\r\u202e\x7f"


def test_texts_are_printed_as_they_can_be_seen():
    assert printable("größe\n\t×") == "größe\n\t×"
    spelled = r"\x1b]0;owned\x07\x1b[2J\x9b31m\x00\x08\r\u202e\x7f"
    assert printable(BAD) == spelled


def test_a_table_has_its_own_escape_sequences_only():
    table = Table()
    table.add_column(BAD)
    table.add_row(f"[red]{BAD}[/]")
    out = io.StringIO()
    screen.Screen(file=out, force_terminal=True, color_system="standard", width=200).print(table)
    assert "\x1b[31m" in out.getvalue()
    for bad in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e", "\x7f", "\r"):
        assert bad not in out.getvalue()


@pytest.fixture
def database(tmp_path):
    """A campaign whose program and outcomes have such texts."""
    path = tmp_path / "bad.db"
    first, second = small_space().sample(2, seed=0)
    with Store.open(path, replace(IDENTITY, program=BAD)) as store:
        store.begin(first)
        store.compiled(first, MODULE, digest(MODULE.source))
        store.end(first.key, MEASURED, BAD)
        store.begin(second)
        store.end(second.key, Refused(BAD))
    return path


@pytest.mark.parametrize(
    "options",
    [["pareto"], ["pareto", "--format", "csv"], ["candidates"], ["candidates", "--full"]],
    ids=" ".join,
)
def test_what_a_database_says_reaches_no_terminal_unseen(liftpy, database, options):
    said = liftpy(*options[:1], database, *options[1:])
    assert said.code == 0, said.err
    assert not {c for c in said.out + said.err if c in BAD and not c.isprintable()}
    assert (r"\x1b" in said.out) is ("csv" not in options)  # whose columns have none of it
