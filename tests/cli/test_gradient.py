"""`liftpy gradient`: the gradient of a program as text, as a file, and as JSON."""

import json
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.language.text.program import parse, show

PAIR = "def pair(xs: [3]f32, a: f32, n: i32) =\n  (xs |> map(x => x * a), a * a)\n"


@pytest.fixture
def pair(liftpy):
    """A program of several parameters and results, in a file."""
    Path("pair.lift").write_text(PAIR)
    return "pair.lift"


def test_a_gradient_is_a_program_in_text_form(liftpy):
    said = liftpy("gradient", "dot/7")
    assert said.code == 0, said.err
    assert said.out == "def dot_7_gradient(xs: [7]f32, ys: [7]f32) =\n  (ys, xs)\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {}),
        (["--wrt", "a"], {"wrt": ["a"]}),
        (["--wrt", "a", "--wrt", "xs"], {"wrt": ["a", "xs"]}),
        (["--of", "1"], {"of": 1}),
        (["--value"], {"value": True}),
        (["--of", "0", "--wrt", "xs", "--value"], {"of": 0, "wrt": "xs", "value": True}),
    ],
)
def test_options_are_those_of_the_function(liftpy, pair, options, expected):
    said = liftpy("gradient", pair, *options)
    assert said.code == 0, said.err
    assert said.out == show(lp.gradient(parse(PAIR), **expected))


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_a_gradient_is_written_to_a_file_that_is_a_program(liftpy, pair, option):
    said = liftpy("gradient", pair, option, "back.lift")
    assert (said.code, said.out) == (0, "")
    made = lp.gradient(parse(PAIR))
    assert Path("back.lift").read_text() == show(made)
    assert liftpy("show", "back.lift").out == show(made)


def test_json_names_the_program_and_its_parameters(liftpy, pair):
    said = liftpy("gradient", pair, "--of", "0", "--json")
    made = lp.gradient(parse(PAIR), of=0)
    assert json.loads(said.out) == {
        "program": "pair_gradient",
        "parameters": ["xs", "a", "n", "dresult"],
        "text": show(made),
    }


def test_a_file_and_json_are_written_together(liftpy, pair):
    said = liftpy("gradient", pair, "-o", "back.lift", "--json")
    assert Path("back.lift").read_text() == json.loads(said.out)["text"]


def test_a_gradient_of_a_written_gradient_is_the_second(liftpy):
    Path("cube.lift").write_text("def cube(x: f64) = x * x * x\n")
    liftpy("gradient", "cube.lift", "-o", "first.lift")
    liftpy("gradient", "first.lift", "-o", "second.lift")
    assert lp.evaluate(parse(Path("second.lift").read_text()), 2.0) == 12


def test_what_has_no_gradient_is_refused(liftpy, pair):
    said = liftpy("gradient", pair, "--wrt", "n")
    assert said.code == 1
    assert said.err == (
        "error: there is no gradient with respect to n\n"
        "  its type i32 does not consist of floating-point numbers\n"
        "  name xs or a\n"
    )
