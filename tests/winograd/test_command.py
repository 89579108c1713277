"""`liftpy winograd`: what it prints, as text and as JSON."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from liftpy.cli.application import application
from liftpy.winograd.linear import Form, Sharing
from liftpy.winograd.matrices import matrix
from liftpy.winograd.triple import Triple, cook_toom


def run(*words):
    result = CliRunner().invoke(application("winograd"), ["winograd", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    "words",
    [
        "--m 2 --r 3",
        "--m 4 --r 3 --points 0,1,-1,1/2,-2 --scale integers --channels 64",
        "--m 1 --r 3",
        "--m 4 --r 3 --points best",
        "--m 2 --r 3 --scale -1,1,1,-1 --scale-output 1,1,1,-1 --max-error 1e-5",
    ],
)
def test_a_transform_is_printed(words, golden):
    golden(run(*words.split()))


def test_the_page_shows_what_is_printed():
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = page.partition("$ liftpy winograd --m 2 --r 3\n")[2].partition("```")[0]
    printed = run("--m", "2", "--r", "3")
    assert shown.splitlines() == [line.rstrip() for line in printed.splitlines()]


def test_json_has_the_triple_exactly():
    data = json.loads(run("--m", "3", "--r", "4", "--json"))
    assert data["points"] == ["0", "1", "-1", "2", "-2", "infinity"]
    again = Triple(
        data["m"],
        data["r"],
        cook_toom(3, 4).points,
        *(matrix_of(data[x]) for x in ("at", "g", "bt")),
    )
    assert again == cook_toom(3, 4)
    assert [row["products"] for row in data["products"]] == [6, 36]
    assert [row["direct"] for row in data["products"]] == [12, 144]
    assert len(data["operations"]) == 3 * len(Form) * len(Sharing)
    assert [row["dimensions"] for row in data["error"]] == [1, 2]


def matrix_of(rows):
    return matrix([Fraction(x) for x in row] for row in rows)


def test_flat_forms_of_many_products_are_left_out():
    data = json.loads(run("--m", "9", "--largest", "11", "--json"))
    assert {row["form"] for row in data["operations"]} == {"vector", "separable"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--max-error nan", "is not a number such as 1e-5"),
        ("--max-error -1", "is not a number such as 1e-5"),
        ("--max-error much", "is not a number such as 1e-5"),
        ("--scale integers --scale-output 1,1,1,1,1,1", "scales the columns of A"),
        ("--dims 3", "less than or equal to 2"),
        ("--largest 99", "less than or equal to 22"),
        ("--choose bound --points 0,1,-1,2,-2", "leave out --points"),
    ],
)
def test_a_wrong_option_is_a_usage_error(words, message):
    result = CliRunner().invoke(application("winograd"), ["winograd", *words.split()])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
