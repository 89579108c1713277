"""Programs that store values in other types: the text with the conversions, and its meaning."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.types import SCALARS
from liftpy.language.text.program import parse, show
from liftpy.rewrite.forms import MOST_STORED, combinations, partitions
from liftpy.rewrite.narrowed import narrowed
from liftpy.semantics.evaluate import evaluate

CASES = {
    "a product": (
        """def p(const w: [3][5]f32, x: [5]f32) =
             w |> map(row => zip(row, x) |> map(mul) |> reduce(add, 0))""",
        {"w": "bf16"},
        "map(_ => mul(f32(_.0), _.1))",
    ),
    "a reduction of stored numbers": (
        "def p(x: [7]f32) = x |> reduce(add, 0)",
        {"x": "bf16"},
        "x_bf16 |> map(v => f32(v)) |> reduce(add, 0)",
    ),
    "layouts": (
        "def p(x: [7]f32) = x |> pad(1, 1, 0) |> slide(3, 1) |> map(s => s |> reduce(add, 0))",
        {"x": "flyte16"},
        "x_flyte16 |> pad(1, 1, 0) |> slide(3, 1)",
    ),
    "a border that the type does not have": (
        "def p(x: [7]f32) = x |> pad(1, 1, 0.1)",
        {"x": "flyte16"},
        "x_flyte16 |> map(v => f32(v)) |> pad(1, 1, 0.1)",
    ),
    "two types in one array": (
        "def p(x: [7]f32, y: [3]f32) = concat(x, y) |> map(v => v * v)",
        {"x": "flyte24"},
        "concat(x_flyte24 |> map(v => f32(v)), y)",
    ),
    "a named value": (
        """def p(x: [6][4]f32) = let y = x |> map(r => r |> reduce(add, 0)) in
             zip(y, y |> padClamp(0, 1) |> drop(1)) |> map((a, b) => a * b)""",
        {"y": "flyte24"},
        "map(r => flyte24(r |> reduce(add, 0)))",
    ),
    "a value that is only moved": (
        "def p(x: [3][4]f32) = x |> transpose",
        {"x": "binary16"},
        "x_binary16 |> transpose |> map(v => v |> map(v => f32(v)))",
    ),
    "a tuple": (
        "def p(x: [4]f32, y: [4]i32) = zip(x, y) |> map(q => (q.1, q.0))",
        {"x": "bf16"},
        "map(v => (v.0, f32(v.1)))",
    ),
    "names that are taken": (
        "def p(x: [4]f32, x_bf16: [4]f32) = zip(x, x_bf16) |> map((a, x_bf) => a - x_bf)",
        {"x": "bf16"},
        "let x_bf1",
    ),
}


def stored_in(types: dict[str, str]) -> dict:
    """Types by their names."""
    return {name: SCALARS[t] for name, t in types.items()}


@pytest.mark.parametrize("name", CASES)
def test_conversions_stand_where_numbers_are_computed_with(name: str) -> None:
    text, types, part = CASES[name]
    program = parse(text)
    made, _ = narrowed(program, stored_in(types))
    assert part in show(made, width=None)
    assert parse(show(made)) == made
    assert made.type == program.type
    assert made.params == program.params


@pytest.mark.parametrize("name", CASES)
def test_the_meaning_is_that_of_rounded_values(name: str) -> None:
    text, types, _ = CASES[name]
    program = parse(text)
    rng = np.random.default_rng(7)
    arrays = [
        np.arange(4, dtype=np.int32)
        if f"{p.type}".endswith("i32")
        else rng.uniform(-2, 2, tuple(map(int, p.type.shape))).astype(np.float32)
        for p in program.params
    ]
    stored = stored_in(types)
    rounded = [
        lp.from_storage(lp.to_storage(a, stored[p.name]), stored[p.name]) if p.name in stored else a
        for p, a in zip(program.params, arrays, strict=True)
    ]
    found = evaluate(narrowed(program, stored)[0], *arrays)
    if name == "a named value":
        y = arrays[0].sum(axis=1, dtype=np.float32)
        y = lp.from_storage(lp.to_storage(y, lp.flyte24), lp.flyte24)
        meant = y * np.append(y[1:], y[-1])
    else:
        meant = evaluate(program, *rounded)
    for one, other in zip(*map(np.atleast_1d, (found, meant)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


PRODUCT = """def p(const w: [24][40]f32, x: [16][40]f32) =
  let y = x |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0))) in
  y |> map(r => r |> reduce(maximum, -1000))"""


def test_the_default_space_is_unchanged_and_storage_is_a_choice() -> None:
    program = parse(PRODUCT)
    plain = partitions(program)
    assert not any(form.storage for form in plain)
    declared = lp.with_storage(program, {"w": "bf16, flyte8", "y": lp.flyte24})
    forms = partitions(declared)
    assert {dict(form.words)["w"] for form in forms} == {"f32", "bf16", "flyte8"}
    assert {dict(form.words)["y"] for form in forms} == {"fused", "stored", "flyte24"}
    as_before = [f for f in forms if not f.storage]
    assert [f.words[1:] for f in as_before] == [f.words for f in plain]
    (form,) = (f for f in forms if f.storage == (("w", "bf16"), ("y", "flyte24")))
    assert [stage.name for stage in form.stages] == ["w_bf16", "y", "result"]
    assert form.stages[0].prepared_copy
    assert parse(show(declared)) == declared


def test_many_values_are_not_stored_in_all_combinations() -> None:
    names = "abcdef"
    params = ", ".join(f"{n}: [4]f32" for n in names)
    program = parse(f"def p({params}) = zip({', '.join(names)}) |> map(t => t.0 + t.5)")
    declared = lp.with_storage(program, dict.fromkeys(names, "bf16"))
    found = [*combinations(declared)]
    assert len(found) == 7 < MOST_STORED
    assert found[-1] == dict.fromkeys(names, lp.bf16)
