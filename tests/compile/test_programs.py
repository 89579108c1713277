"""Programs of many kinds, in every form that applies: compiled, run and right, or refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from liftpy.compile import compile_to_kernel
from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.units import families_for
from liftpy.explore.spaces import whole_space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.skeleton import FAMILY
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import matmul
from tests.batch import results
from tests.compile.test_families import generic
from tests.compile.test_tuples import right_in_every_family
from tests.draws import Draw, draws, of_each_skeleton, tried
from tests.lowered import lowered
from tests.spaces import some_of
from tests.staged import by_definition
from tests.subsample import first

pytestmark = pytest.mark.usefixtures("derived_once")

PRODUCT = "xss |> map(row => kss |> map(column => zip(row, column) |> {}))"
LARGER = "fun larger(x: f32, y: f32) = max(x, y) laws associative, commutative, neutral -inf\n"
CONVOLUTION = """
    |> pad2d(1, 1, 1, 1, 0) |> slide2d(2, 1) |> map2d(window => zip(w, b) |> map((kernel, bias) =>
       zip(window |> join |> join, kernel |> join |> join) |> map((p, q) => p * q)
       |> reduce(add, {})))
"""


def product(step: str, t: str = "f32", constants: str = "const ") -> str:
    """A program with the shape of a matrix product: `direct` applies to it."""
    return f"def p(xss: [6][5]{t}, {constants}kss: [8][5]{t}) = {PRODUCT.format(step)}"


def convolution(x: str, image: str, init: str, images: str = "") -> str:
    """A 2D convolution of `x`, or one for each of several."""
    head = f"def p({x}: {images}[4][6][3]f32, const w: [4][2][2][3]f32, const b: [4]f32) = "
    one = f"{image} {CONVOLUTION.format(init)}"
    return head + (f"{x} |> map({image} => {one})" if images else one)


PROGRAMS = {
    "select by the row": product("reduce((s, t) => s + select(t.0 < 0, 0, t.0 * t.1), 0)"),
    "select by the column": product("reduce((s, t) => s + select(t.1 < 0, 0, t.0 * t.1), 0)"),
    "select by both": product("reduce((s, t) => s + select(t.0 < t.1, t.0, t.0 * t.1), 0)"),
    "select of the sum": product("reduce((s, t) => select(s < t.0, s + t.1, s - t.1), 0)"),
    "select of equals": product("reduce((s, t) => s + select(t.0 == 0, t.0, t.1), 0)"),
    "select without lanes": product("reduce((s, t) => s + select(t.0 < 0, 0, t.0), 0)"),
    "rows padded inside what is folded": """
        def p(xss: [7][5]f32) = xss |> map(row => row |> pad(0, 2, 1)) |> reduce((most, row) =>
          maximum(most, row |> reduce((s, x) => s - x, 0)), -30)""",
    "a vector": """
        def p(xss: [7][5]f32, y: [5]f32) = xss |> map(row =>
          zip(row, y) |> reduce((s, t) => s + select(t.0 < 0, 0, t.0 * t.1), 0))""",
    "i32": product("map((x, y) => x * y) |> reduce(addInt, 0)", "i32"),
    "i32 abs": product("reduce((s, t) => s + abs(t.0 - t.1), 0i32)", "i32"),
    "i32 min": product("reduce((s, t) => s + min(t.0, t.1), 0i32)", "i32"),
    "i32 max": product("reduce((s, t) => max(s, t.0 * t.1), -100i32)", "i32"),
    "i32 max of a number": product(
        "reduce((s, t) => s + max(t.0, 0i32) * min(-2i32, t.1), 0i32)", "i32"
    ),
    "i32 select": product("reduce((s, t) => s + select(t.0 < 0i32, -t.0, t.0 * t.1), 0i32)", "i32"),
    "i32 select by lanes": product(
        "reduce((s, t) => s + select(t.1 < 0i32, t.0, t.1), 0i32)", "i32"
    ),
    "i32 map": "def p(xs: [11]i32) = xs |> map(x => max(abs(x), -x * 3) - min(x, 2))",
    "f64": product("map((x, y) => x * y) |> reduce((s, x) => s + x, 0)", "f64"),
    "f64 abs": product("reduce((s, t) => s + max(abs(t.0), sqrt(abs(t.1))), 0f64)", "f64"),
    "f64 select": product("reduce((s, t) => s + select(t.0 < 0f64, 0f64, t.0 * t.1), 0f64)", "f64"),
    "f64 select by lanes": product(
        "reduce((s, t) => s + select(t.1 < 0f64, 0f64, t.0), 0f64)", "f64"
    ),
    "bool": "def p(xs: [11]f32) = xs |> map(x => x < 0)",
    "bool of a sum": "def p(xss: [7][5]f32) = xss |> map(row => (row |> reduce(add, 0)) < 0)",
    "bool of sums": """
        def p(xss: [6][5]f32, kss: [8][5]f32) = xss |> map(row => kss |> map(column =>
          (zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)) < 0))""",
    "no constants": product("map((x, y) => x * y) |> reduce(add, 0)", constants=""),
    "an init of bound names": convolution("x", "x", "let x = bias * 2 in x + bias"),
    "an init of two names": convolution(
        "x", "x", "let p = bias * 2 in let bias = p - 1 in p * bias"
    ),
    "an init of the window": convolution("x", "x", "window |> join |> join |> reduce(add, bias)"),
    "1D convolution": """
        def p(xs: [10]f32, const ks: [4][3]f32, const bs: [4]f32) =
          xs |> pad(1, 1, 0) |> slide(3, 1) |> map(w => zip(ks, bs) |> map((k, b) =>
            zip(w, k) |> map((x, y) => x * y) |> reduce(add, b)))""",
    "1D convolution with channels": """
        def p(xs: [10][2]f32, const ks: [4][3][2]f32) =
          xs |> pad(1, 1, 0) |> slide(3, 1) |> map(w => ks |> map(k =>
            zip(w |> join, k |> join) |> map((x, y) => x * y) |> reduce(add, 0)))""",
    "batched convolution": convolution("xs", "x", "bias", "[2]"),
    "max-pooling": f"""{LARGER}
        def p(x: [5][7]f32) = x |> pad2d(1, 1, 1, 1, -inf) |> slide2d(3, 2)
          |> map2d(w => w |> join |> reduce(larger, -inf))""",
    "max-pooling with channels": f"""{LARGER}
        def p(x: [3][5][7]f32) = x |> map(c => c |> pad2d(1, 1, 1, 1, -inf) |> slide2d(3, 2)
          |> map2d(w => w |> join |> reduce(larger, -inf)))""",
    "a fold beside a border": """
        def p(xs: [7][5]f32) = xs |> map(reduce(add, 0)) |> pad(2, 3, 9) |> map(x => x + 1)""",
    "a border at the end": "def p(xs: [7][5]f32) = xs |> map(reduce(add, 0)) |> pad(2, 3, 9)",
    "a fold to an array": """
        def p(xs: [7][5]f32, y: [5]f32) =
          xs |> reduce((a, row) => zip(a, row) |> map((p, q) => q - p), y)""",
    "a fold to an array that maps read": """
        def p(xs: [7][5]f32, y: [5]f32) =
          xs |> reduce((a, row) => zip(a, row) |> map((p, q) => q - p), y) |> map(x => 2 * x)""",
    "folds to arrays inside of maps": """
        def p(xs: [3][7][5]f32, y: [5]f32) = xs |> map(rows =>
          rows |> reduce((a, row) => zip(a, row) |> map((p, q) => q - p), y) |> map(x => 2 * x))""",
    "a zip of computed matrices": """
        def p(xs: [7][5]f32) = zip(xs |> map(map(x => x * 2)), xs |> map(map(x => x - 1)))
          |> map((a, b) => zip(a, b) |> map((x, y) => x * y))""",
    "a guarded value": "def p(xs: [9]f32) = xs |> pad(2, 2, inf) |> map(x => min(x, 100))",
}


def inputs(program: Program) -> list[np.ndarray]:
    """Numbers of both signs for every parameter."""
    rng = np.random.default_rng(5)
    arrays = []
    for p in program.params:
        shape, scalar = tuple(int(s) for s in p.type.shape), str(p.type).rpartition("]")[-1]
        if scalar == "i32":
            arrays.append(rng.integers(-9, 9, shape, dtype=np.int32))
        else:
            arrays.append(rng.standard_normal(shape).astype({"f32": "f4", "f64": "f8"}[scalar]))
    return arrays


def agree(got: np.ndarray, expected: np.ndarray, what: object) -> None:
    """Whole numbers and truth values are equal, others near, by the type of the result."""
    assert got.shape == expected.shape, what
    if got.dtype.kind != "f":
        assert got.dtype == expected.dtype, what
        np.testing.assert_array_equal(got, expected, err_msg=str(what))
        return
    tolerance = {4: 1e-5, 8: 1e-13}[got.dtype.itemsize] * np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance, err_msg=str(what))


def right(candidates: Sequence[Candidate], device: Device) -> None:
    """Each candidate's result is that of its program, the same for all."""
    modules = [compile_candidate(c.skeleton, c.assignment) for c in candidates]
    all_right(candidates[0].program, zip(candidates, modules, strict=True), device)


def all_right(program: Program, named: Iterable[tuple[object, Module]], device: Device) -> None:
    """Each module's result is that of the program."""
    arrays = inputs(program)
    expected = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    names, modules = zip(*named, strict=True)
    for name, got in zip(names, results(device, modules, arrays), strict=True):
        agree(got, expected, name)


def every_form_is_right(program: Program, device: Device, kept: Path) -> set[str]:
    """One candidate of each skeleton, with vectors of four lanes where it has any.

    Returns the families of those that compute directly.
    """
    return are_right(of_each_skeleton(program, first(), kept, (("v", 4),)), program, device)


def every_family_is_right(program: Program, device: Device, kept: Path) -> set[str]:
    """One candidate of each family that makes the program, and one of each that makes a stage.

    Returns the same as `every_form_is_right`.
    """
    families = families_for(first())
    return are_right(draws(program, first(), 1, kept, families), program, device)


def are_right(forms: list[Draw], program: Program, device: Device) -> set[str]:
    """Runs those forms that are tried on a device; returns the families of all."""
    all_right(program, ((d.label, d.module) for d in tried(forms, program, device)), device)
    return {form.skeleton.partition("(")[0] for form in forms}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_is_right_in_every_family(runtime: Device, name: str, kept: Path) -> None:
    assert "plain" in every_family_is_right(parse(PROGRAMS[name]), runtime, kept)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_form_of_a_program_is_right(runtime: Device, name: str, kept: Path) -> None:
    assert "plain" in every_form_is_right(parse(PROGRAMS[name]), runtime, kept)


@pytest.mark.parametrize("name", [n for n, text in PROGRAMS.items() if "kss" in text])
def test_a_product_of_any_type_has_blocks(name: str) -> None:
    """`direct` applies to every program of that shape, and where a sum is compared after it."""
    assert some_of(parse(PROGRAMS[name]), "direct", 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", ["1D convolution", "batched convolution", "max-pooling", "max-pooling with channels"]
)
def test_a_space_is_found(name: str) -> None:
    """A family that does not apply leaves a program to the others; nothing is raised."""
    space = whole_space(parse(PROGRAMS[name]), generic(), made=by_definition)
    assert space.possible
    assert "plain" in space.families
    assert space.explain({FAMILY: "plain"}).valid


def test_a_let_is_computed_once() -> None:
    """At host level too: what a name stands for is not put in its places."""
    text = "def p(xs: [9]f32) = let s = xs |> reduceSeq(add, 0) in s * s + s"
    assert compile_program(lowered(text)).module.source.count("for (") == 1


def test_a_fold_beside_a_border_reads_inside() -> None:
    """The fold is stored before the border is chosen, so its index stays in the array."""
    text = "def p(xs: [7][5]f32) = xs |> mapSeq(reduceSeq(add, 0)) |> pad(2, 2, 0)"
    source = compile_program(lowered(f"{text} |> mapGlb(0, x => x)")).module.source
    assert "min(" in source
    assert "max(" in source


# --- names ----------------------------------------------------------------------------------------

NAMES = [  # of an input, of weights, of biases
    ("i0", "v0", "acc0"),
    ("gid0", "lid0", "wid0"),
    ("old1_p0", "p0", "l0"),
    ("acc0_1", "output", "t"),
    ("float4", "vload4", "vstore2"),
    ("kernel", "get_global_id", "int"),
    ("NAN", "INFINITY", "CLK_LOCAL_MEM_FENCE"),
    ("main", "lanes", "k0_output"),
    ("dot", "fmax", "long"),
    ("`erf`", "`atan2`", "rint"),
    ("floor_div", "floor_mod", "uchar"),
    ("`x-y`", "`size`", "`1`"),
    ("é", "_x", "`fun`"),
    ("__global", "double2", "M_PI"),
    ("`true`", "asm", "signed"),
]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
@pytest.mark.parametrize("family", ["plain", "direct"])
def test_a_parameter_may_have_any_name(
    runtime: Device, names: tuple[str, str, str], family: str
) -> None:
    """No parameter is confused with a variable, function, type or word of OpenCL C."""
    xs, ks, bs = names
    program = parse(f"""
        def p({xs}: [8]f32, const {ks}: [4][3]f32, const {bs}: [4]f32) =
          {xs} |> pad(1, 1, -inf) |> slide(3, 1) |> map(w => zip({ks}, {bs}) |> map((k, b) =>
            zip(w, k) |> reduce((s, q) => s + max(q.0, q.1), b)))""")
    settings = {"v": 2} if family == "direct" else {}
    right([candidate_of(program, runtime, {FAMILY: family} | settings)], runtime)


@pytest.mark.parametrize("family", ["plain", "direct"])
def test_two_names_may_become_one_in_c(runtime: Device, family: str) -> None:
    """Names that differ only in what C has no letters for are two buffers."""
    program = parse("""
        def `a-b`(`x-y`: [6][5]f32, const `x+y`: [4][5]f32, const x_y: [4]f32) =
          `x-y` |> map(a => zip(`x+y`, x_y) |> map((b, c) =>
            zip(a, b) |> map((p, q) => p * q) |> reduce(add, c)))""")
    right([candidate_of(program, runtime, {FAMILY: family})], runtime)


@pytest.mark.parametrize("name", ["floor_div", "floor_mod", "xs"])
def test_helpers_for_indices_have_names_of_their_own(runtime: Device, name: str) -> None:
    """An index that may be negative is divided by a helper, whatever parameters are called."""
    got, (xs,) = run_lowered(
        f"def p({name}: [7]f32) = {name} |> reorder(i => (i - 3) % 7, i => (i + 3) % 7)"
        " |> mapGlb(0, x => x + 1)",
        runtime,
    )
    np.testing.assert_array_equal(got, np.roll(xs, 3) + 1)


# --- code -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["glb", "wrg"])
def test_a_block_stays_in_vector_registers(runtime: Device, level: str) -> None:
    """Accumulators are declared as vectors and never put together from scalars."""
    settings = {"v": 4, "kappa": 8, "sigma": 2, "level": level}
    program = matmul(6, 5, 8)
    chosen = candidate_of(program, runtime, {FAMILY: "direct", **settings})
    kernel = compile_to_kernel(program, chosen.assignment, device=runtime)
    kernel.close()
    assert "float4 acc" in kernel.sources
    assert "(float4)(acc" not in kernel.sources


WIDE = """
def wide(xs: [600000][1024][16]f32) = xs |> mapGlb(1, rows => rows |> mapGlb(0, row =>
  row |> asVector(4) |> mapSeq(v => v |> mapVec(x => x * 2)) |> asScalar))
"""
PADDED = """
def wide(xs: [600000][1024][12]f32) = xs |> mapGlb(1, rows => rows |> mapGlb(0, row =>
  row |> pad(2, 2, 0) |> asVector(4) |> mapSeq(v => v |> mapVec(x => x * 2)) |> asScalar))
"""


@pytest.mark.parametrize("text", [WIDE, PADDED])
def test_wide_arrays_have_wide_indices(text: str) -> None:
    """Where an index may pass 2^31 it is computed in 64 bits, in vector accesses too."""
    source = compile_program(lowered(text)).module.source
    accesses = re.findall(r"&?\b(?:xs|output)\[((?:[^][]|\[[^]]*\])*)\]", source)
    assert accesses
    assert all("(long)" in index for index in accesses), source
    assert len(re.findall(r"vstore4", source)) > 0
    if text == WIDE:
        assert len(re.findall(r"vload4", source)) > 0


def test_narrow_arrays_have_narrow_indices() -> None:
    source = compile_program(lowered(WIDE.replace("600000", "6"))).module.source
    assert "(long)" not in source


# --- lowered by hand ------------------------------------------------------------------------------


def run_lowered(text: str, device: Device) -> tuple[np.ndarray, list[np.ndarray]]:
    """The result of a lowered program in poisoned buffers, and its inputs."""
    program = lowered(text)
    module = compile_program(program).module
    arrays = inputs(program)
    with Session(device) as session, session.load(module) as loaded:
        loaded.set_constants({})
        given = dict(zip(module.parameters, arrays, strict=True))
        return loaded.run(given, poison=True), arrays


LOWERED = {
    "an outer accumulator in an inner fold": """
        def p(xss: [3][4]f32) =
          xss |> reduceSeq((a, row) => row |> reduceSeq((b, x) => a, 0), 5)""",
    "an outer accumulator beside an inner one": """
        def p(xss: [3][4]f32) =
          xss |> reduceSeq((a, row) => row |> reduceSeq((b, x) => b * x + a, 0), 5)""",
    "an outer accumulator as the inner start": """
        def p(xss: [3][4]f32) =
          xss |> reduceSeq((a, row) => row |> reduceSeq((b, x) => b * x - a, a), 5)""",
    "a buffer inside a function of t": """
        def p(xs: [3][4]f32, ys: [4]f32) = xs |> mapGlb(1, t =>
          zip(t, ys |> mapGlb(0, y => y * 2) |> toGlobal) |> mapGlb(0, (a, b) => a * b))""",
    "two buffers inside functions of t and t1": """
        def p(xs: [3][4]f32, ys: [4]f32) = xs |> mapGlb(1, t =>
          zip(t, ys |> mapGlb(0, y => y * 2) |> toGlobal, ys |> mapGlb(0, y => y + 3) |> toGlobal)
          |> mapGlb(0, t1 => t1.0 * t1.1 - t1.2))""",
    "a buffer inside a let": """
        def p(xs: [4]f32, ys: [4]f32) =
          let t = ys |> mapGlb(0, y => y * 2) |> toGlobal in
            zip(xs, t) |> mapGlb(0, (a, b) => a - b)""",
    "two permutations of guarded lanes": """
        def p(xs: [12]f32) = xs |> pad(2, 2, 7) |> split(4) |> mapGlb(0, c =>
          zip(c, c |> split(2) |> transpose |> join) |> asVector(4)
          |> mapSeq(v => v |> mapVec((a, b) => a - 2 * b)) |> asScalar) |> join""",
    "two permutations of eight guarded lanes": """
        def p(xs: [20]f32) = xs |> pad(3, 1, 7) |> split(8) |> mapGlb(0, c =>
          zip(c |> split(4) |> transpose |> join, c |> split(2) |> transpose |> join)
          |> asVector(8) |> mapSeq(v => v |> mapVec((a, b) => a - 2 * b)) |> asScalar) |> join""",
    "a transposed result": """
        def p(xss: [3][4]f32) = xss |> mapGlb(1, mapGlb(0, x => x * 2)) |> transpose""",
    "a joined result of tiles": """
        def p(xs: [12]f32) = xs |> split(4) |> mapWrg(0, c => c |> mapLcl(0, x => x) |> toLocal
          |> reorder(i => 3 - i, i => 3 - i) |> mapLcl(0, x => x * 2)) |> join""",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(LOWERED))
def test_a_program_lowered_by_hand_is_right(runtime: Device, name: str) -> None:
    got, arrays = run_lowered(LOWERED[name], runtime)
    expected = evaluate(parse(LOWERED[name]), *arrays, dtype=np.float64)
    agree(got, np.asarray(expected), name)


def test_a_fold_that_ignores_its_own_accumulator(runtime: Device) -> None:
    """The inner fold works in the outer's register only if it does not lose the outer's value."""
    got, _ = run_lowered(LOWERED["an outer accumulator in an inner fold"], runtime)
    assert got == 5


IN_EVERY_FAMILY = {
    "an index from the end as a number": """
        def p(xs: [7]i32) = zip(xs, generate(7, i => -i) |> reorder(i => 6 - i, i => 6 - i))
          |> map((x, k) => -k * k - x)""",
    "an index that is wide": """
        def p(xs: [7]i64) = zip(xs, generate(7, (i: i64) => i * 70000 * i * 70000))
          |> map((x, k) => k - x)""",
    "maps side by side": """
        def p(xss: [3][5]f32, yss: [4][5]f32) = concat(xss |> map(map(x => x * 2)),
          yss |> map(row => let s = row |> reduce((a, x) => a * 0.5 + x, 0)
            in row |> map(x => x - s)))""",
    "zips side by side": """
        def p(xss: [2][5]f32, yss: [3][5]f32) = concat(
          xss |> map(row => zip(row, row |> map(x => x * 2))),
          yss |> map(row => zip(row |> map(x => x - 1), row)))""",
    "blocks that are read": """
        def p(xss: [6][5]f32, const kss: [8][5]f32) = xss |> map(row => kss |> map(column =>
          zip(row, column) |> map(mul) |> reduce(add, 0)))
          |> (t => zip(t |> join, generate(48, i => i)))""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(IN_EVERY_FAMILY))
def test_a_program_is_right_in_every_form(runtime: Device, name: str, kept: Path) -> None:
    right_in_every_family(parse(IN_EVERY_FAMILY[name]), runtime, kept)


REFUSED = {
    "toLocal under mapLcl": """xss |> mapWrg(0, row => row |> mapLcl(0, x =>
        ys |> mapSeq(y => y * x) |> toLocal |> reduceSeq(add, 0)))""",
    "toLocal under mapGlb": """ys |> mapGlb(0, x =>
        ys |> mapSeq(y => y * x) |> toLocal |> reduceSeq(add, 0))""",
    "mapGlb read at the root": "ys |> mapGlb(0, x => x * 2) |> slide(3, 1)",
    "mapGlb read by mapGlb": """ys |> mapGlb(0, x => x * 2) |> slide(3, 1)
        |> mapGlb(0, w => w |> reduceSeq(add, 0))""",
    "mapGlb read after pad": "ys |> mapGlb(0, x => x * 2) |> pad(1, 1, 0)",
    "mapGlb read twice": "let t = ys |> mapGlb(0, x => x * 2) in zip(t, t) |> mapGlb(0, mul)",
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_a_kernel_is_refused(name: str) -> None:
    """A reason, and no exception of the emitter's own, where memory is not shared that far."""
    with pytest.raises(TypeRefused, match=r"\w+ \w+"):
        compile_program(lowered(f"def p(xss: [3][4]f32, ys: [12]f32) = {REFUSED[name]}"))
