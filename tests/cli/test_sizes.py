"""Sizes on the command line: every command that takes a program takes numbers for its sizes."""

import json
from pathlib import Path

import numpy as np
import pytest

TEXT = """size n: 1..64

def dot(xs: [n]f32, ys: [n]f32) =
  zip(xs, ys) |> split(4) |> map(map((x, y) => x * y) |> reduce(add, 0))
"""
EIGHT = ["--size", "n=8"]


@pytest.fixture(autouse=True)
def _program(liftpy):  # in the folder that `liftpy` runs in
    Path("dot.lift").write_text(TEXT)


@pytest.mark.parametrize(
    "command",
    [
        ["show", "dot.lift"],
        ["show", "dot.lift", "--stage", "code"],
        ["derive", "dot.lift"],
        ["space", "dot.lift"],
        ["explain", "dot.lift"],
        ["compile", "dot.lift"],
        ["run", "dot.lift"],
        ["explore", "dot.lift", "-n", "1"],
    ],
    ids=" ".join,
)
def test_every_command_takes_sizes(liftpy, command):
    said = liftpy(*command, *EIGHT)
    assert said.code == 0, said.err
    if command != ["show", "dot.lift"]:
        open_ = liftpy(*command)
        assert open_.code == 1
        assert "dot has open sizes, which need numbers here: n: 1..64" in open_.err
        assert "--size n=..." in open_.err


def test_show_puts_numbers_in(liftpy):
    assert liftpy("show", "dot.lift").out == TEXT.replace("\n\n", "\n")
    assert "def dot(xs: [8]f32, ys: [8]f32)" in liftpy("show", "dot.lift", *EIGHT).out
    assert "xs : [8]f32" in liftpy("show", "dot.lift", "--stage", "types", *EIGHT).out


def test_kernels_are_those_of_the_numbers(liftpy):
    manifests = [
        liftpy("compile", "dot.lift", "--size", f"n={n}", "--json").json["manifest"]
        for n in (8, 12)
    ]
    assert [m["buffers"][0]["shape"] for m in manifests] == [[8], [12]]


def test_constraints_have_their_outcomes(liftpy, golden):
    golden(liftpy("show", "dot.lift", "--stage", "constraints").out)
    closed = liftpy("show", "dot.lift", "--stage", "constraints", *EIGHT)
    assert "4 divides 8: proved, required by `split(4)` at line 4, column 18" in closed.out
    assert "plain(pad=fused, map=glb0):" in closed.out


def test_a_condition_that_never_holds_is_listed_with_its_witness(liftpy):
    Path("mine.py").write_text(
        "import liftpy as lp\n"
        "n = lp.size('n', 1, 10)\n"
        "@lp.program\n"
        "def odd(xs: lp.array(lp.f32, 3, 2 * n + 1)):\n"
        "    return xs >> lp.map(lambda row: row >> lp.split(2))\n"
    )
    assert (
        "2 divides 2*n + 1: refuted (n = 1: 2 does not divide 3), "
        "required by split(2) in map(row => ...)"
    ) in liftpy("show", "mine.py:odd", "--stage", "constraints").out.splitlines()


def test_a_run_reads_sizes_off_its_arrays(liftpy):
    np.save("xs.npy", np.arange(12, dtype=np.float32))
    np.save("ys.npy", np.ones(12, np.float32))
    arrays = ["--input", "xs=xs.npy", "--input", "ys=ys.npy"]
    said = liftpy("run", "dot.lift", *arrays, "--output", "out.npy")
    assert said.code == 0, said.err
    assert np.load("out.npy").tolist() == [6, 22, 38]
    said = liftpy("run", "dot.lift", *arrays, *EIGHT)
    assert said.code == 1
    assert "an array of shape (12,)" in said.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--size", "n"], "'n' is not NAME=NUMBER"),
        (["--size", "n=four"], "'n=four' is not NAME=NUMBER"),
        (["--size", "n=4", "--size", "n=8"], "n is given twice: 4 and 8"),
    ],
)
def test_a_size_without_a_number_is_a_usage_error(liftpy, given, message):
    said = liftpy("show", "dot.lift", *given)
    assert said.code == 2
    assert message in said.err


def test_a_store_tells_two_sizes_of_a_program_apart(liftpy):
    first = liftpy("explore", "dot.lift", "-n", "1", *EIGHT)
    assert first.code == 0, first.err
    assert first.out.startswith("dot with n = 8 on ")
    assert liftpy("pareto", "liftpy.db").out.startswith("dot with n = 8 on ")
    other = liftpy("explore", "dot.lift", "-n", "1", "--size", "n=12")
    assert other.code == 1
    assert "sizes: it has n = 8, this has n = 12" in other.err
    Path("eight.lift").write_text(liftpy("show", "dot.lift", *EIGHT).out)
    assert liftpy("explore", "eight.lift", "-n", "1").code == 0, "it is the same program"
    wrong = liftpy("run", "dot.lift", "--db", "liftpy.db", "--size", "n=12")
    assert wrong.code == 1
    assert "is a campaign of dot" in wrong.err
    assert liftpy("run", "dot.lift", "--db", "liftpy.db", *EIGHT).code == 0


# --- what else commands say -----------------------------------------------------------------------


def test_explain_gives_clashes_as_data(liftpy):
    said = liftpy("explain", "matmul/8x8x8", "--set", "kappa=3", "--set", "level=glb", "--json")
    assert said.code == 1
    (clash,) = json.loads(said.out)["clashes"]
    direct = "direct(pad=fused, level=glb"
    assert clash["skeletons"] == [f"{direct})", f"{direct}, pack=outer)"]
    assert clash["given"] == {"kappa": 3}
    assert clash["nearest"] == {"kappa": [1, 2, 4]}
    (condition,) = clash["conditions"]
    assert condition["condition"] == "kappa divides 8"
    assert condition["broken"] == "3 does not divide 8"
    assert "split(kappa) in mapGlb(1, chunk => ...)" in condition["asked_by"]


def test_one_candidate_is_singular_and_an_exhausted_space_is_named(liftpy):
    Path("sum.lift").write_text("def sum(xs: [8]f32) = xs |> reduce((a, x) => a * 2 + x, 0)")
    said = liftpy("explore", "sum.lift", "-n", "5", "--family", "plain")
    assert "\n1 candidate, the whole space: 1 measured" in said.out
    for command in ("candidates", "pareto"):  # a busy machine adds how many were disturbed
        assert "\n1 candidate: 1 measured" in liftpy(command, "liftpy.db").out


def test_help_is_wrapped_and_not_cut(liftpy, monkeypatch):
    for width in ("40", "80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        said = liftpy("--help").out.partition("Commands:")[2]
        assert "..." not in said
        assert "the exact number of valid points." in " ".join(said.split())
