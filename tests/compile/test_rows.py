"""Rows that are folded and mapped in vectors, and inputs stored in columns for lanes to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from tests.batch import results
from tests.compile.test_programs import all_right
from tests.draws import draws, tried
from tests.rewrite.test_rules_fire import inputs
from tests.subsample import first

SOFTMAX = """
  let most = (row |> reduce(maximum, -inf)),
      powers = (row |> map(x => exp((x - most) * 0.125))),
      sum = (powers |> reduce(add, 0))
  in powers |> map(p => p / sum)"""

PROGRAMS = {
    "softmax": f"def p(x: [7][24]f32) = x |> map(row => {SOFTMAX})",
    "softmax of heads": f"def p(x: [3][5][16]f32) = x |> map(map(row => {SOFTMAX}))",
    "a row of the least length": f"def p(x: [5][1]f32) = x |> map(row => {SOFTMAX})",
    "normalised": """
        def p(x: [7][24]f32, const scale: [24]f32, const shift: [24]f32) =
          x |> map(row =>
            let mean = (row |> reduce(add, 0)) / 24,
                variance = (row |> map(x => (x - mean) * (x - mean)) |> reduce(add, 0)) / 24,
                factor = 1 / sqrt(variance + 0.001)
            in zip(row, scale, shift) |> map((x, s, b) => (x - mean) * factor * s + b))""",
    "a prime length": f"def p(x: [3][13]f32) = x |> map(row => {SOFTMAX})",
}

OTHERS = {
    "a step that is no operator with laws": """
        def p(x: [7][24]f32) = x |> map(row =>
          let s = (row |> reduce((a, x) => a * 0.5 + x, 0)) in row |> map(x => x - s))""",
    "no fold": "def p(x: [7][24]f32) = x |> map(row => row |> map(x => x * 2))",
    "no map after the fold": "def p(x: [7][24]f32) = x |> map(reduce(add, 0))",
}

TIMES = "qs |> map(a => ks |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"
ALIKE = {
    "rows of two inputs": f"def p(qs: [7][8]f32, ks: [12][8]f32) = {TIMES}",
    "rows of heads": f"""
        def p(q: [3][7][8]f32, k: [3][12][8]f32) = zip(q, k) |> map((qs, ks) => {TIMES})""",
    "rows that all heads read": f"""
        def p(q: [3][7][8]f32, ks: [12][8]f32) = q |> map(qs => {TIMES})""",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_in_vectors_are_right(runtime: Device, name: str, kept: Path) -> None:
    program = parse(PROGRAMS[name])
    drawn = draws(program, first(), 4, kept, ("rows",))
    assert drawn
    named = ((d.label, d.module) for d in tried(drawn, program, runtime))
    all_right(program, named, runtime)


def test_folds_and_elements_are_in_vectors() -> None:
    """No array of a row is held: what a `let` names is computed where it is read."""
    made = skeletons(parse(PROGRAMS["softmax"]), ("rows",))[0]
    module = compile_candidate(made, {"strip": 8, "v": 4, "turns": 1})
    assert len(module.launches) == 1
    assert module.source.count("vload4") >= 3
    assert "vstore4" in module.source
    assert module.memory.scratch == module.memory.local == 0


def test_a_row_is_divided_by_one_reciprocal() -> None:
    made = skeletons(parse(PROGRAMS["softmax"]), ("rows",))
    for skeleton in made:
        source = compile_candidate(skeleton, {"strip": 8, "v": 4, "turns": 1}).source
        assert source.count(" / ") == 1, skeleton.key
        assert "1.0f / " in source


def test_rows_in_turn_are_right_and_fetched_ahead(runtime: Device) -> None:
    """Of 12 rows 4 are made in turn; at the end the next one is behind the array."""
    program = parse(PROGRAMS["softmax"].replace("[7]", "[12]"))
    sizes = {"strip": 8, "v": 8, "turns": 4}
    made = skeletons(program, ("rows",))
    modules = [(s.key, compile_candidate(s, sizes)) for s in made]
    for key, module in modules:
        assert module.source.count(" fetch_float(&x[") == 1, key
    all_right(program, modules, runtime)


def test_only_what_is_one_number_for_all_elements_is_inverted() -> None:
    text = """
        def p(x: [7][24]f32, y: [24]f32) = x |> map(row =>
          let s = (row |> reduce(add, 0)) in
          zip(row, y) |> map((x, y) => x / y + (x / s) / (s * 2) + s / x + x / s))"""
    (made, *_) = skeletons(parse(text), ("rows",))
    source = compile_candidate(made, {"strip": 8, "v": 4, "turns": 1}).source
    assert source.count("1.0f / ") == 2
    assert source.count(" / ") == 4


@pytest.mark.parametrize("name", OTHERS)
def test_other_rows_are_left_to_other_families(name: str) -> None:
    reason = skeletons_of(FAMILIES["rows"], parse(OTHERS[name]))
    assert isinstance(reason, str)
    assert reason.startswith("rows: ")


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", ALIKE)
def test_rows_that_lanes_read_may_be_stored_in_columns(runtime: Device, name: str) -> None:
    """A kernel more, whose result the lanes of blocks read as neighbours; right both ways."""
    program = parse(ALIKE[name])
    found = [s for s in skeletons(program, ("direct",)) if "pack" not in dict(s.choices)]
    made = {dict(s.choices).get("rows"): s for s in found}
    assert made.keys() == {None, "columns"}
    sizes = {"kappa": 4, "sigma": 7, "v": 4}
    modules = {str(k): compile_candidate(s, sizes) for k, s in made.items()}
    assert [len(m.launches) for m in modules.values()] in ([1, 2], [2, 1])
    assert "vload4" in modules["columns"].source
    all_right(program, modules.items(), runtime)


OF_EACH = "x |> map(a => w |> transpose |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"


def test_constants_are_packed_instead() -> None:
    text = "def p(qs: [7][8]f32, const ks: [12][8]f32) = " + TIMES
    made = skeletons(parse(text), ("direct",))
    assert made
    assert not any("rows" in dict(s.choices) for s in made)


def test_constants_of_each_element_are_packed(runtime: Device) -> None:
    """One matrix of weights for each element of a map, read in a zip, in either order."""
    for text in (
        "def p(xs: [3][7][8]f32, const ws: [3][8][12]f32) = zip(xs, ws) |> map((x, w) => {})",
        "def p(xs: [3][7][8]f32, const ws: [3][8][12]f32) = zip(ws, xs) |> map((w, x) => {})",
    ):
        program = parse(text.format(OF_EACH))
        made = [s for s in skeletons(program, ("direct",)) if "pack" not in dict(s.choices)]
        assert made
        modules = {s.key: compile_candidate(s, {"kappa": 4, "sigma": 7, "v": 4}) for s in made}
        assert all([m.phase for m in o.launches] == ["prepare", "run"] for o in modules.values())
        all_right(program, modules.items(), runtime)


# --- one pass ------------------------------------------------------------------------------------

RESCALED = {
    **{name: text for name, text in PROGRAMS.items() if name != "normalised"},
    "a sum of multiples": """
        def p(x: [5][22]f32) = x |> map(row =>
          let most = (row |> reduce(maximum, -inf)) in
          let sum = (row |> map(x => x * exp(x - most)) |> reduce(add, 0))
          in row |> map(x => x * exp(x - most) / sum))""",
    "the least of a row": """
        def p(x: [5][22]f32) = x |> map(row =>
          let least = (row |> reduce(minimum, inf)) in
          let sum = (row |> map(x => exp((least - x) / 4)) |> reduce(add, 0))
          in row |> map(x => (x - least) / sum))""",
}
TWICE = {
    "squares": PROGRAMS["normalised"],
    "a factor below 0": PROGRAMS["softmax"].replace("0.125", "(-0.125)"),
    "a factor of which the sign is not known": PROGRAMS["softmax"]
    .replace("f32)", "f32, c: f32)")
    .replace("0.125", "c"),
}


def one_pass(text: str) -> list[Skeleton]:
    made = skeletons(parse(text), ("rows",))
    return [s for s in made if dict(s.choices).get("passes") == "one"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", RESCALED)
def test_two_folds_are_made_in_one_pass(runtime: Device, name: str) -> None:
    program = parse(RESCALED[name])
    made = one_pass(RESCALED[name])
    assert {dict(s.choices)["level"] for s in made} == {"glb", "wrg"}
    *_, length = map(int, program.params[0].type.lengths())
    sizes = [{"strip": s, "v": v, "turns": 1} for s in (1, length) for v in (1, 2, 8) if s % v == 0]
    modules = [(f"{s.key} {at}", compile_candidate(s, at)) for s in made for at in sizes]
    all_right(program, modules, runtime)


@pytest.mark.parametrize("name", TWICE)
def test_what_is_not_rescaled_takes_two_passes(name: str) -> None:
    assert skeletons(parse(TWICE[name]), ("rows",))
    assert not one_pass(TWICE[name])


def test_a_row_is_read_once_for_both_folds() -> None:
    (made, *_) = one_pass(PROGRAMS["softmax"])
    module = compile_candidate(made, {"strip": 8, "v": 8, "turns": 1})
    assert module.source.count("vload8") == 2  # and once where the row is made
    assert module.memory.scratch == 0


def test_elements_of_minus_infinity_add_nothing(runtime: Device) -> None:
    """A mask: some columns begin with it, and some have nothing else."""
    program = parse(PROGRAMS["softmax"])
    (rows,) = inputs(program)
    rows[1, :5] = rows[2, ::8] = rows[3, 1:] = -np.inf
    expected = np.exp((rows - rows.max(axis=1, keepdims=True)).astype(np.float64) * 0.125)
    expected /= expected.sum(axis=1, keepdims=True)
    made = one_pass(PROGRAMS["softmax"])
    modules = [
        compile_candidate(s, {"strip": strip, "v": 1, "turns": 1}) for s in made for strip in (1, 8)
    ]
    for found in results(runtime, modules, [rows]):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
