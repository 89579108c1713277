"""Exact sums of small integers in f32, of operands that are stored in f32 (`operands=f32`)."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.program import Program
from liftpy.rewrite.forms import in_f32
from liftpy.rewrite.strategies.widened import operands_widened
from liftpy.rewrite.strategy import Failure
from tests.candidates import compiled, launches, result

RNG = np.random.default_rng(8)
TIMES = "|> map(t => i32(t.0) * i32(t.1)) |> reduce(addInt, {})"


def product(length: int, const: str = "") -> Program:
    """A product of a matrix of u8 and the transpose of one of i8; each sum starts from a bias."""
    return lp.parse(f"""
        def product_{length}{const}(a: [6][{length}]u8, {const} b: [32][{length}]i8, d: [32]i32) =
          a |> map(row => zip(b, d) |> map((c, e) => zip(row, c) {TIMES.format("e")}))
    """)


CONVOLUTION = lp.parse(f"""
    def convolution(x: [37][7][9]u8, const w: [16][37][3][3]i8, const s: [16]f32) =
      x |> transpose |> map(transpose) |> pad(1, 1, 211) |> map(pad(1, 1, 211))
        |> slide(3, 1) |> map(map(slide(3, 1)) |> transpose)
        |> map(row => row |> map(window =>
          zip(w |> map(k => k |> transpose |> map(transpose)), s) |> map((k, f) => u8(round(
            f32(zip(window |> join |> join, k |> join |> join) {TIMES.format("0")}) * f)))))
        |> map(transpose) |> transpose
""")


def convolved(x: np.ndarray, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Channels first; the padding is 211; rounded and saturated."""
    padded = np.pad(x.astype(np.int64), ((0, 0), (1, 1), (1, 1)), constant_values=211)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    sums = np.einsum("cyxij,kcij->kyx", windows, w.astype(np.int64)).astype("f")
    return np.clip(np.rint(sums * s[:, None, None]), 0, 255).astype(np.uint8)


def drawn(program: Program) -> dict[str, np.ndarray]:
    """Integers of the whole range of each type, extreme ones among them; small factors."""
    made: dict[str, np.ndarray] = {}
    for p in program.params:
        shape = [int(n) for n in p.type.lengths()]
        element = str(p.type).rpartition("]")[2]
        if element == "f32":
            made[p.name] = RNG.uniform(1e-5, 1e-3, shape).astype("f")
            continue
        dtype = {"u8": np.uint8, "i8": np.int8, "i32": np.int32}[element]
        info = np.iinfo(np.int16 if element == "i32" else dtype)
        array = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
        array.flat[::3] = info.max if element == "u8" else info.min
        made[p.name] = array
    return made


BLOCKS = {"result.family": "direct", "result.kappa": 16, "result.sigma": 3, "result.v": 8}
WHOLE, STRIPS, CONSTANT = product(509), product(600), product(61, "const")
THREE = lp.parse(f"""
    def three(right: [6][70]u8, e: [32]f32, d: [32]i32, left: [32][70]i8) =
      right |> map(row => zip(d, e, left) |> map((z, f, c) =>
        f32(zip(row, c) {TIMES.format("z")}) * f))
""")
"""A zip of three arrays, and parameters with the names that operands would have."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("program", "left"),
    [
        (WHOLE, "stored"),
        (WHOLE, "fused"),
        (STRIPS, "stored"),
        (STRIPS, "fused"),
        (CONSTANT, "stored"),
        (CONSTANT, "fused"),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_products_are_exact(runtime, program, left):
    """Whole sums, and sums of 600 products in strips of 300."""
    settings = {"operands": "f32", "left": left, **BLOCKS}
    arrays = drawn(program)
    a, b, d = arrays.values()
    wanted = a.astype(np.int64) @ b.astype(np.int64).T + d
    np.testing.assert_array_equal(result(runtime, compiled(program, settings), arrays), wanted)


@pytest.mark.parametrize("word", ["stored", "fused"])
def test_an_operand_may_be_in_a_zip_of_three(runtime, word):
    """The stages that convert are known by what they do, not by their names."""
    forms = [form for form in in_f32(THREE) if ("stage1", word) in form.words]
    assert [[s.converts for s in form.stages].count(True) for form in forms] == [
        1 + (word == "stored")
    ]
    arrays = drawn(THREE)
    sums = arrays["right"].astype(np.int64) @ arrays["left"].astype(np.int64).T + arrays["d"]
    module = compiled(THREE, {"operands": "f32", "stage1": word, **BLOCKS})
    wanted = sums.astype("f") * arrays["e"]
    np.testing.assert_array_equal(result(runtime, module, arrays), wanted)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("left", ["stored", "fused"])
def test_a_padded_convolution_is_exact(runtime, left):
    """Its image is converted with its padding, and its channels become innermost."""
    settings = {"operands": "f32", "left": left, "result.pad": "fused", **BLOCKS}
    arrays = drawn(CONVOLUTION)
    got = result(runtime, compiled(CONVOLUTION, settings), arrays)
    np.testing.assert_array_equal(got, convolved(**arrays))


def test_an_epilogue_of_rows_is_computed_in_vectors():
    """The zip that the epilogue reads has the kernels too, which lanes cannot hold."""
    settings = {"operands": "f32", "left": "stored", **BLOCKS}
    assert "saturated_uchar8" in compiled(CONVOLUTION, settings).source


def test_constants_are_converted_before_the_runs():
    """And in one form only, since that time does not count."""
    space = lp.space(CONVOLUTION, fixed={"operands": "f32", "left": "fused"})
    assert len({c.assignment["right.map"] for c in space.sample(40, seed=1)}) == 1
    settings = {"operands": "f32", "left": "fused", "result.pad": "fused", **BLOCKS}
    assert launches(compiled(CONVOLUTION, settings)) == 1


OTHERS = {
    "no sum": "def p(x: [8]u8) = x |> map(e => i32(e) + 1)",
    "two sums": """
        def p(x: [8][9]u8, y: [9]i8) = x |> map(r =>
          (zip(r, y) |> map(t => i32(t.0) * i32(t.1)) |> reduce(addInt, 0))
          + (r |> map(e => i32(e)) |> reduce(addInt, 0)))
    """,
    "a sum of one operand": "def p(x: [8][9]u8) = x |> map(r => r |> map(e => i32(e)) "
    "|> reduce(addInt, 0))",
    "an operand that is computed": """
        def p(x: [8][9]u8, y: [5][9]i8) = x |> map(r => y |> map(s =>
          zip(r |> map(e => u8(e / 2u8)), s) |> map(t => i32(t.0) * i32(t.1)) |> reduce(addInt, 0)))
    """,
    "sums in f32": """
        def p(x: [8][9]f32, y: [9]f32) = x |> map(r =>
          zip(r, y) |> map(t => t.0 * t.1) |> reduce(add, 0))
    """,
    "large integers": """
        def p(x: [8][9]i32, y: [9]i32) = x |> map(r =>
          zip(r, y) |> map(t => t.0 * t.1) |> reduce(addInt, 0))
    """,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_have_no_such_form(name):
    program = lp.parse(OTHERS[name])
    found = operands_widened(program.body.body)
    assert isinstance(found, Failure)
    assert in_f32(program) == ()
