"""The family `dots`: sums of products of 8-bit integers in dot products, to the bit."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.profile import profile
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.units import families_for
from liftpy.explore.spaces import space_of
from liftpy.ir.types import INTEGER_DOTS
from liftpy.language.text.program import parse
from liftpy.opencl.session import BUILD_OPTIONS, NEWER, Session, options_of
from liftpy.pipeline import compile_program
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from tests.compile.test_integer_sums import drawn, extreme
from tests.compile.test_integer_sums import product as products
from tests.loops.interpreted import interpreted
from tests.oclgrind import check_all_under_oclgrind
from tests.subsample import subsample

SETTINGS = {"family": "dots", "level": "glb", "pad": "fused"}
PADDED = parse("""
    def padded(x: [5][7][12]u8, w: [8][3][3][12]i8, b: [8]i32) =
      x |> pad2d(1, 1, 1, 1, 3) |> slide2d(3, 1) |> map(map(window =>
        zip(w, b) |> map((kernel, bias) => zip(window |> join |> join, kernel |> join |> join)
          |> map((v, u) => i32(v) * i32(u)) |> reduce(add, bias))))
""")


def images():
    """Arrays for `PADDED` with its result."""
    x, w = drawn("u8", 5, 7, 12), drawn("i8", 8, 3, 3, 12)
    x[2], w[3:] = 255, -128
    b = np.arange(8, dtype=np.int32) * 1000 - 7
    around = np.pad(x.astype(np.int64), ((1, 1), (1, 1), (0, 0)), constant_values=3)
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (0, 1))
    return (x, w, b), np.einsum("yxcij,mijc->yxm", windows, w.astype(np.int64)) + b


@pytest.mark.parametrize("types", [*product(("u8", "i8"), repeat=2)], ids="-".join)
def test_sums_are_exact(runtime, types):
    """Vectors have one, two or four dot products; some values are of the largest magnitude."""
    program = products(*types, 6, 10, 48, "7")
    arrays = [(drawn(types[0], 6, 48), drawn(types[1], 10, 48)), extreme(*types, 6, 10, 48)]
    for v in subsample((4, 8, 16), runtime):
        sizes = {"kappa": 5, "sigma": 3, "v": v}
        with closing(lp.compile(program, {**SETTINGS, **sizes}, device=runtime)) as kernel:
            assert kernel.module.source.count(f"dot_{'_'.join(types)}(") == 1 + 5 * 3 * v // 4
            for a, b in arrays:
                wanted = a.astype(np.int64) @ b.astype(np.int64).T + 7
                np.testing.assert_array_equal(kernel(a, b), wanted)


LANES = {**SETTINGS, "lanes": "inner"}
SCALARS = "#undef LIFTPY_BYTE_DOTS\n"


def of_constants(program):
    """The program with its second parameter constant."""
    return replace(program, constants=frozenset({program.params[1].name}))


@pytest.mark.parametrize("types", [*product(("u8", "i8"), repeat=2)], ids="-".join)
def test_lanes_are_exact(runtime, types):
    """By the processor's instruction, by OpenCL's function for each lane, and by products of i32.

    Drivers that have neither the instruction nor the function run the last one each time.
    """
    program = of_constants(products(*types, 6, 32, 48, "7"))
    arrays = [(drawn(types[0], 6, 48), drawn(types[1], 32, 48)), extreme(*types, 6, 32, 48)]
    for v in subsample((4, 8, 16), runtime):
        chosen = candidate_of(program, runtime, {**LANES, "kappa": 16, "sigma": 3, "v": v})
        module = compile_program(chosen.skeleton.at(chosen.point)).module
        called = f"dots_{'_'.join(types)}_{v}("
        assert module.source.count(called) == 1 + 3 * 16 // v
        for head, standard in (("", ()), (SCALARS, (NEWER,)), (SCALARS, BUILD_OPTIONS[:1])):
            if standard == (NEWER,) and INTEGER_DOTS[0] not in runtime.extensions:
                continue
            options = (*(standard or BUILD_OPTIONS[:1]), *BUILD_OPTIONS[1:])
            with Session(runtime, options) as session:
                loaded = session.load(replace(module, source=head + module.source))
                for a, b in arrays:
                    loaded.set_constants({"b": b}, poison=True)
                    wanted = a.astype(np.int64) @ b.astype(np.int64).T + 7
                    np.testing.assert_array_equal(loaded.run({"a": a}, poison=True), wanted)


@pytest.mark.parametrize("text", ["i32(v) * i32(w)", "i32(w) * i32(v)"])
@pytest.mark.parametrize("length", [4, 8])
def test_lanes_are_those_of_either_factor(runtime, text, length):
    """Also of a sum of one dot product, which has no loop."""
    program = parse(f"""
        def p(a: [6][{length}]u8, const b: [32][{length}]i8) = a |> map(x => b |> map(y =>
          zip(x, y) |> map((v, w) => {text}) |> reduce(add, 7)))""")
    settings = {**LANES, "kappa": 16, "sigma": 3, "v": 8}
    a, b = drawn("u8", 6, length), drawn("i8", 32, length)
    with closing(lp.compile(program, settings, device=runtime)) as kernel:
        assert kernel.module.source.count("dots_u8_i8_8(") == 1 + 3 * 16 // 8
        wanted = a.astype(np.int64) @ b.astype(np.int64).T + 7
        np.testing.assert_array_equal(kernel(a, b), wanted)


def test_drawn_lanes_are_right(runtime):
    """Of a padded convolution, with blocks that divide its lengths or overlap."""
    arrays, wanted = images()
    program = of_constants(PADDED)
    space = space_of(program, runtime, families=["dots"], settings={"lanes": "inner"})
    drawn_ones = space.sample(6, seed=5)
    assert len(drawn_ones) == 6
    for candidate in drawn_ones:
        with closing(lp.compile(program, candidate.assignment, device=runtime)) as kernel:
            np.testing.assert_array_equal(kernel(*arrays), wanted, err_msg=candidate.label)


def test_a_padded_convolution_is_exact(runtime):
    arrays, wanted = images()
    for pad, kappa in (("fused", 4), ("copy", 2), ("windows", 8)):
        settings = {**SETTINGS, "pad": pad, "kappa": kappa, "sigma": 7, "v": 4}
        with closing(lp.compile(PADDED, settings, device=runtime)) as kernel:
            np.testing.assert_array_equal(kernel(*arrays), wanted)


def test_drawn_candidates_are_right_in_the_interpreter():
    arrays, wanted = images()
    given = dict(zip("xwb", arrays, strict=True))
    for program in (PADDED, of_constants(PADDED)):
        space = space_of(program, DEFAULT_DEVICE, families=["dots"])
        for candidate in space.sample(6, seed=3):
            made = compile_program(candidate.skeleton.at(candidate.point))
            for loops in (made.loops, made.optimized):
                np.testing.assert_array_equal(interpreted(made, loops, given), wanted)


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint():
    arrays, wanted = images()
    given = dict(zip("xwb", arrays, strict=True))
    apart = PADDED, {**SETTINGS, "kappa": 4, "sigma": 7, "v": 4}
    lanes = of_constants(PADDED), {**LANES, "kappa": 8, "sigma": 7, "v": 4}
    chosen = [candidate_of(program, DEFAULT_DEVICE, given) for program, given in (apart, lanes)]
    modules = [compile_program(c.skeleton.at(c.point)).module for c in chosen]
    for got, complaints in check_all_under_oclgrind([(module, given) for module in modules]):
        assert complaints == []
        np.testing.assert_array_equal(got, wanted)


def test_a_driver_compiles_opencl_c_3_if_its_device_has_the_instructions(device):
    """It compiles other modules as OpenCL C 1.2."""
    chosen = candidate_of(PADDED, DEFAULT_DEVICE, {**SETTINGS, "kappa": 4, "sigma": 7, "v": 4})
    dots = compile_program(chosen.skeleton.at(chosen.point)).module
    plain = replace(dots, source="kernel void f() {}")
    for names, newer in (((), False), (INTEGER_DOTS[:1], True), (INTEGER_DOTS[1:], False)):
        options = options_of(dots, replace(device, extensions=names), BUILD_OPTIONS)
        assert options == ((NEWER, *BUILD_OPTIONS[1:]) if newer else BUILD_OPTIONS)
        assert options_of(plain, replace(device, extensions=names), BUILD_OPTIONS) == BUILD_OPTIONS


@pytest.mark.parametrize("type_", ["u8", "i8"])
def test_the_function_of_arm_is_called_if_its_extension_is_defined(pocl, type_):
    """A macro replaces the function and negates the sum, which shows that it is called."""
    program = products(type_, type_, 2, 4, 8)
    chosen = candidate_of(program, pocl, {**SETTINGS, "kappa": 4, "sigma": 2, "v": 8})
    module = compile_program(chosen.skeleton.at(chosen.point)).module
    macros = """#define cl_arm_integer_dot_product_int8 1
#define arm_dot(x, y) (-(x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w))
"""
    a, b = drawn(type_, 2, 8), drawn(type_, 4, 8)
    with Session(pocl) as session:
        loaded = session.load(replace(module, source=macros + module.source))
        found = loaded.run(dict(zip(("a", "b"), (a, b), strict=True)))
    np.testing.assert_array_equal(found, -(a.astype(np.int64) @ b.astype(np.int64).T))


def test_the_family_is_in_the_spaces_of_gpus_that_have_such_instructions(device):
    for known in INTEGER_DOTS:
        gpu = replace(DEFAULT_DEVICE, extensions=(known,))
        assert "dots" in families_for(gpu)
        assert "dots" not in families_for(replace(gpu, type="CPU"))
    assert "dots" not in families_for(DEFAULT_DEVICE)
    assert "dots" in families_for(DEFAULT_DEVICE, ["dots"])
    assert "dots" in families_for(profile("mali-g610").device)


@pytest.mark.parametrize(
    "text",
    [
        "i32(v) * w",  # w is an i32
        "i32(v) * i32(w) + 1",
        "i32(v) + i32(w)",
    ],
)
def test_sums_of_other_terms_have_no_form(text):
    other = "i32" if text.endswith("* w") else "i8"
    program = parse(f"""
        def other(a: [4][8]u8, b: [6][8]{other}) =
          a |> map(x => b |> map(y => zip(x, y) |> map((v, w) => {text}) |> reduce(add, 0)))
    """)
    assert "products of 8-bit integers make the result" in skeletons_of(FAMILIES["dots"], program)


def test_a_reduction_by_another_operator_has_no_form():
    program = parse("""
        fun larger(x: i32, y: i32) = select(x < y, y, x) laws associative, neutral -2147483648
        def other(a: [4][8]u8, b: [6][8]i8) = a |> map(x => b |> map(y =>
          zip(x, y) |> map((v, w) => i32(v) * i32(w)) |> reduce(larger, 0)))
    """)
    assert "products of 8-bit integers make the result" in skeletons_of(FAMILIES["dots"], program)


def test_the_length_of_a_sum_is_a_multiple_of_four():
    for length, fits in ((6, False), (7, False), (12, True)):
        found = skeletons_of(FAMILIES["dots"], products("u8", "i8", 4, 6, length))
        assert isinstance(found, str) is not fits, length
