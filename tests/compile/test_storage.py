"""Storage types: their bits, the refusals, and kernels that read and write them."""

from __future__ import annotations

import math
import re
import shutil

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.measure.check import Checker, Right
from liftpy.explore.measure.meaning import allowed, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.spaces import space_of, whole_space
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.scalars import stored, stored_bits
from liftpy.ir.types import SCALARS, STORAGE
from liftpy.language.text.program import parse, show
from liftpy.opencl.arguments import POISON
from liftpy.opencl.driver import cl
from liftpy.opencl.session import Session
from liftpy.opencl.storage import (
    element_c,
    is_split,
    load_helper,
    storage_helpers,
    store_helper,
    units,
)
from liftpy.pipeline import compile_candidate
from liftpy.semantics.rounding import least_normal, storing_error
from liftpy.semantics.storage import in_bytes, in_words
from tests.oclgrind import check_under_oclgrind
from tests.staged import by_definition
from tests.subsample import is_first

TYPES = [pytest.param(t, id=str(t)) for t in STORAGE]
#: Types of whose kernels every form is tried; the conversions of all types are tried together.
IN_KERNELS = ["bf16", "binary16", "flyte24", "flyte56_nearest"]
WIDTHS = [1, 2, 4, 8, 16]
NARROW = [pytest.param(t, id=str(t)) for t in STORAGE if RECORDS[t.name].bits <= 16]

SPECIAL = [0.0, -0.0, 1.0, -2.5, 21.35, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, -1e-38]


def all_bits(t) -> np.ndarray:
    """Every value of a narrow storage type, as bits."""
    return np.arange(1 << RECORDS[t.name].bits).astype(RECORDS[t.name].numpy)


def numbers(t, count: int) -> np.ndarray:
    """Numbers of all magnitudes in the base of a type; half of them are ties for bf16, or near."""
    rng = np.random.default_rng(5)
    base = RECORDS[STORAGE[t].name]
    words = (
        rng.integers(0, 1 << base.bits, count, np.uint64, endpoint=False)
        if base.bits < 64
        else (rng.integers(0, 1 << 63, count, np.uint64) * np.uint64(2) + np.uint64(1))
    )
    dropped = base.bits - RECORDS[t.name].bits
    kept = words >> np.uint64(dropped) << np.uint64(dropped)
    ties = (
        kept[::2]
        + np.uint64(1 << (dropped - 1))
        + rng.integers(-1, 2, len(kept[::2])).astype(np.uint64)
    )
    words[::2] = ties
    found = words.astype(f"uint{base.bits}").view(base.numpy)
    return np.concatenate([np.array(SPECIAL, base.numpy), found])


def neighbour(bits: np.ndarray, t, k: int) -> np.ndarray:
    """The values that are k places further in a storage type."""
    record = RECORDS[t.name]
    words = in_words(bits, record).astype(np.uint64) + np.array(k).astype(np.uint64)
    return in_bytes(words & np.uint64((1 << record.bits) - 1), record)


def quiet(t, bits: np.ndarray) -> np.ndarray:
    """The bits with the quiet bit of NaN set, as a rounding to the nearest sets it."""
    record = RECORDS[t.name]
    is_nan = np.isnan(lp.from_storage(bits, t))
    return np.where(is_nan & record.nearest, bits | record.quiet, bits)


@pytest.mark.parametrize("t", NARROW)
def test_every_value_is_read_and_stored_unchanged(t) -> None:
    """Reading is exact, so storing again gives the same bits; bf16 also sets a NaN's quiet bit."""
    bits = all_bits(t)
    read = lp.from_storage(bits, t)
    np.testing.assert_array_equal(lp.to_storage(read, t), quiet(t, bits))
    if RECORDS[t.name].packed:
        np.testing.assert_array_equal(read, bits.view(np.float16).astype(np.float32))
        return
    base = RECORDS[STORAGE[t].name]
    wide = bits.astype(f"u{base.bytes}") << np.uint8(base.bits - RECORDS[t.name].bits)
    np.testing.assert_array_equal(read.view(wide.dtype), wide)


@pytest.mark.parametrize("t", TYPES)
def test_numbers_are_rounded_as_their_type_says(t) -> None:
    """Truncated towards 0, or to the nearest neighbour, the even one if both are as near."""
    record = RECORDS[t.name]
    given = numbers(t, 4000)
    bits = lp.to_storage(given, t)
    read = lp.from_storage(bits, t)
    ordinary = np.isfinite(given) & np.isfinite(read)
    wanted, found = (x[ordinary].astype(np.float64) for x in (given, read))
    words = in_words(bits, record)
    with np.errstate(invalid="ignore"):  # a neighbour may be a signaling NaN
        above, below = (
            lp.from_storage(neighbour(bits, t, k)[ordinary], t).astype(np.float64) for k in (1, -1)
        )
    if not record.nearest:
        assert np.all(np.abs(found) <= np.abs(wanted))
        is_last = (np.abs(above) < np.abs(found)) | ~np.isfinite(above)
        assert np.all((np.abs(above) > np.abs(wanted)) | is_last)
        return
    apart = np.abs(found - wanted)
    others = np.minimum(
        *(np.where(np.isfinite(o), np.abs(o - wanted), np.inf) for o in (above, below))
    )
    assert np.all(apart <= others)
    assert np.any(apart == others)
    assert np.all(words[ordinary][apart == others] % 2 == 0)


@pytest.mark.parametrize("t", TYPES)
def test_storing_keeps_the_bound_of_its_error(t) -> None:
    """Relative to the number, or to the least number that is stored with all its digits."""
    given = numbers(t, 4000)
    read = lp.from_storage(lp.to_storage(given, t), t)
    ordinary = np.isfinite(given) & np.isfinite(read)
    size = np.abs(given[ordinary].astype(np.float64)) + least_normal(t)
    error = np.abs(read[ordinary].astype(np.float64) - given[ordinary]) / size
    assert 0.5 * storing_error(t) < error.max() <= storing_error(t)


@pytest.mark.parametrize("t", TYPES)
def test_the_reference_on_python_numbers_is_that_on_arrays(t) -> None:
    given = numbers(t, 300)
    bits = [stored_bits(float(x), t) for x in given]
    np.testing.assert_array_equal(
        np.array(bits, np.uint64), in_words(lp.to_storage(given, t), RECORDS[t.name])
    )
    read = np.array([stored(float(x), t) for x in given])
    np.testing.assert_array_equal(read, lp.from_storage(lp.to_storage(given, t), t))


def test_worked_values() -> None:
    """The published ones of 21.35; flyte8 has only powers of 2, with an odd exponent."""
    found = {str(t): float(lp.from_storage(lp.to_storage([21.35], t), t)[0]) for t in STORAGE}
    assert found["flyte24"] == 21.349609375
    assert found["flyte24_nearest"] == 21.35009765625
    assert found["binary16"] == 21.34375
    assert found["flyte16"] == 21.25
    assert found["flyte8"] == 8.0
    assert found["bf16"] == 21.375
    assert lp.to_storage([math.inf], lp.flyte8)[0] == 0x7F  # is read as 2^127
    assert float(lp.from_storage(np.array([0x7F], np.uint8), lp.flyte8)[0]) == 2.0**127


# --- programs -------------------------------------------------------------------------------------


def of_vectors(program: lp.Program, device, name: str):
    """A candidate for each of some skeletons of a program, vectors among them."""
    space = space_of(program, device)
    found = {c.skeleton.key: c for c in space.sample(6, 0)}
    assert any("vector=yes" in key or " v=" in c.label for key, c in found.items()), name
    return found.values()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", IN_KERNELS)
def test_kernels_read_and_store_bit_for_bit(runtime, name: str) -> None:
    """One lane at a time and in vectors; the bits stored for a NaN may differ."""
    t = SCALARS[name]
    record, base = RECORDS[t.name], STORAGE[t]
    count = 1 << 12
    given = np.resize(numbers(t, count - len(SPECIAL)), count)
    bits = lp.to_storage(given, t)
    read = parse(f"def read(x: [{count}]{t}) = x |> map(v => {base}(v))")
    store = parse(f"def store(x: [{count}]{base}) = x |> map(v => {t}(v))")
    for program, x, wanted in (
        (read, bits, lp.from_storage(bits, t)),
        (store, given.astype(RECORDS[base.name].numpy), bits),
    ):
        for candidate in of_vectors(program, runtime, record.name):
            found = lp.compile(program, candidate.assignment, device=runtime)(x)
            if program is read:
                np.testing.assert_array_equal(found, wanted)
            else:
                nan = np.isnan(given)
                np.testing.assert_array_equal(found[~nan], wanted[~nan])
                assert np.array_equal(
                    np.isnan(lp.from_storage(found, t)), np.isnan(lp.from_storage(wanted, t))
                )


def one_kernel(t, width: int, verb: str) -> str:
    """A kernel that reads or stores vectors of a type: `width` elements for each work-item."""
    base, c = RECORDS[STORAGE[t].name].c, element_c(t)
    at, lanes = f"{width}*i", "" if width == 1 else str(width)

    def load(t, c: str, name: str) -> str:
        place = f"&{name}[{units(t)}*{at}]"
        if t in STORAGE and is_split(t):
            return f"load_{t}_global_{width}({place})"
        return f"vload{lanes}(i, {name})" if lanes else f"{name}[i]"

    def store(t, value: str) -> str:
        if t in STORAGE and is_split(t):
            return f"store_{t}_global_{width}({value}, &y[{units(t)}*{at}]);"
        return f"vstore{lanes}({value}, i, y);" if lanes else f"y[i] = {value};"

    given, made = (c, base) if verb == "read" else (base, c)
    source, target = (t, STORAGE[t]) if verb == "read" else (STORAGE[t], t)
    value = f"{verb if verb == 'read' else 'stored'}_{t}_{width}({load(source, given, 'x')})"
    return (
        f"__kernel void try_{verb}_{t}_{width}(__global const {given}* x, __global {made}* y) "
        f"{{ const int i = get_global_id(0); {store(target, value)} }}"
    )


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.sampled(5)
@pytest.mark.parametrize("t", TYPES)
def test_conversions_of_all_types_and_widths_are_right(runtime, t) -> None:
    """One program of OpenCL with every conversion, load and store of a type that kernels call."""
    cases = [(width, verb) for width in WIDTHS for verb in ("read", "store")]
    text = "\n".join(one_kernel(t, *case) for case in cases)
    with Session(runtime) as session:
        context, queue = session.opened.context, session.opened.queue
        program = cl.Program(context, "\n".join([*storage_helpers(text), text])).build()
        for width, verb in cases:
            given = np.resize(numbers(t, 400), 400)
            bits = lp.to_storage(given, t)
            read = lp.from_storage(bits, t)
            x, wanted = (bits, read) if verb == "read" else (given, bits)
            found = np.zeros_like(wanted)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            there, back = (cl.Buffer(context, flags, hostbuf=a) for a in (x, found))
            kernel = cl.Kernel(program, f"try_{verb}_{t}_{width}")
            kernel(queue, (400 // width,), None, there, back)
            cl.enqueue_copy(queue, found, back)
            number = ~np.isnan(given) & ~np.isnan(read)
            np.testing.assert_array_equal(found[number], wanted[number], f"{verb} {t} {width}")
            as_read = found if verb == "read" else lp.from_storage(found, t)
            np.testing.assert_array_equal(np.isnan(as_read), np.isnan(read))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [t.name for t in STORAGE if not RECORDS[t.name].is_whole])
def test_loads_and_stores_of_bytes_are_exact(name: str, width: int) -> None:
    """No vector of bytes begins before the first element or ends after the last one."""
    size = RECORDS[name].bytes
    loads = re.findall(r"vload(\d+)\(0, p \+ (\d+)\)", load_helper(name, "global", width))
    stores = re.findall(r"vstore(\d+)\(.*, 0, p \+ (\d+)\)", store_helper(name, "global", width))
    for found in (loads, stores):
        touched = [set(range(int(at), int(at) + int(n))) for n, at in found]
        assert not touched or set().union(*touched) == set(range(size * width))
    assert sum(int(n) for n, _ in stores) in {0, size * width}


@pytest.mark.skipif(shutil.which("oclgrind") is None, reason="Oclgrind is not installed")
@pytest.mark.parametrize("name", ["flyte24", "binary16"])
def test_loads_and_stores_touch_nothing_else(name: str) -> None:
    """Oclgrind reports accesses outside a buffer, races, and values that were never written."""
    t = SCALARS[name]
    program = parse(f"def p(x: [12]{t}) = x |> map(v => {t}({STORAGE[t]}(v) * 2))")
    space = space_of(program, DEFAULT_DEVICE, fixed={"vector": "yes", "v": 4, "tile0": 4})
    candidate = space.candidate({})
    x = np.arange(12).astype(RECORDS[STORAGE[t].name].numpy)
    module = compile_candidate(candidate.skeleton, candidate.point)
    found, complaints = check_under_oclgrind(module, {"x": lp.to_storage(x, t)})
    assert complaints == []
    np.testing.assert_array_equal(lp.from_storage(found, t), 2 * x)


PROGRAMS = {
    "product": """
        def p(w: [24][40]{t}, x: [40]f32) =
          w |> map(row => zip(row |> map(v => f32(v)), x) |> map(mul) |> reduce(add, 0))""",
    "matrices": """
        def p(a: [12][20]{t}, b: [20][16]{t}) =
          a |> map(row => b |> transpose |> map(column =>
            zip(row, column) |> map((u, v) => f32(u) * f32(v)) |> reduce(add, 0)))""",
    "convolution": """
        def p(x: [6][7][4]{t}, const w: [8][3][3][4]{t}) =
          x |> map(map(map(v => f32(v)))) |> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1) |> map2d(part =>
            w |> map(k => zip(part |> join |> join, k |> join |> join)
              |> map((u, v) => u * f32(v)) |> reduce(add, 0)))""",
    "a padded image": """
        def p(x: [9]{t}) =
          x |> pad(1, 1, 0) |> slide(3, 1) |> map(s => s |> map(v => f32(v)) |> reduce(add, 0))""",
    "stored between": """
        def p(x: [16][8]f32) =
          let y = x |> map(row => {t}(row |> reduce(add, 0))) in
          y |> map(v => {t}(f32(v) * 0.5))""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_stored_numbers_are_right(runtime, name: str) -> None:
    t = "bf16" if is_first(runtime) else "flyte16"
    program = parse(PROGRAMS[name].format(t=t))
    assert parse(show(program)) == program
    rng = np.random.default_rng(3)
    arrays = [
        lp.to_storage(x, SCALARS[t]) if f"{p.type}".endswith(t) else x.astype(np.float32)
        for p in program.params
        for x in [rng.uniform(-1, 1, tuple(map(int, p.type.shape)))]
    ]
    meant = lp.evaluate(program, *arrays)
    wide = meant if meant.dtype == np.float32 else lp.from_storage(meant, SCALARS[t])
    space = whole_space(program, runtime, made=by_definition)
    for candidate in space.sample(4, 1):
        found = lp.compile(program, candidate.assignment, device=runtime)(*arrays)
        assert found.dtype == meant.dtype
        got = found if found.dtype == np.float32 else lp.from_storage(found, SCALARS[t])
        near = 1e-5 if found.dtype == np.float32 else 2.0**-7  # a rounding may end at a neighbour
        np.testing.assert_allclose(got, wide, atol=near * np.abs(wide).max())


NUMBERS = {
    "1.5bf16": [1.5, 1.5, 1.5, 1.5],
    "-2flyte16": [-2.0, -2.0, -2.0, -2.0],
    "bf16(0.1)": [0.10009765625] * 4,  # a conversion rounds
    "flyte16(0.1)": [0.099609375] * 4,
    "bf16(inf)": [math.inf] * 4,
    "select(f32(v) < 0, v, 1.5)": [-1.0, 1.5, 1.5, 1.5],
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_of_storage_types(device, text: str) -> None:
    """They print and read back, and kernels have the same values as the meaning."""
    program = parse(f"def p(x: [4]bf16) = x |> map(v => f32({text}))")
    assert parse(show(program)) == program
    x = lp.to_storage([-1.0, 0.5, 2.0, 3.0], lp.bf16)
    np.testing.assert_array_equal(lp.evaluate(program, x), np.float32(NUMBERS[text]))
    np.testing.assert_array_equal(lp.compile(program, device=device)(x), np.float32(NUMBERS[text]))


@pytest.mark.parametrize("value", ["1.5", "inf", "-inf", "0"])
def test_a_stored_array_is_padded_with_any_number_of_its_type(device, value: str) -> None:
    text = f"def p(x: [3]bf16) = x |> pad(1, 1, {value}) |> map(v => f32(v))"
    found = lp.compile(parse(text), device=device)(lp.to_storage([1, 2, 3], lp.bf16))
    np.testing.assert_array_equal(found, np.float32([float(value), 1, 2, 3, float(value)]))


@pytest.mark.usefixtures("in_one_process")
def test_a_rectifier_in_python_is_explored(tmp_path, device) -> None:
    @lp.program
    def rectifier(x: lp.array(lp.bf16, 12)):
        return x >> lp.map(lambda v: lp.select(lp.convert(v, lp.f32) < 0, 0, v))

    assert parse(show(rectifier)) == rectifier
    campaign = lp.explore(rectifier, device=device, samples=3, db=tmp_path / "r.db")
    assert {row.outcome for row in campaign.rows} == {"measured"}


@pytest.mark.usefixtures("in_one_process")
def test_a_campaign_checks_stored_results(tmp_path, device) -> None:
    """The result is compared as numbers, and a conversion may end at a neighbour."""
    program = parse("def p(x: [64][32]f32) = x |> map(row => bf16(row |> reduce(add, 0)))")
    campaign = lp.explore(program, device=device, samples=4, db=tmp_path / "p.db")
    assert {row.outcome for row in campaign.rows} == {"measured"}


@pytest.mark.parametrize("t", TYPES)
def test_a_check_finds_wrong_and_unwritten_numbers(t) -> None:
    """A neighbour of each number is right; zeros, and the fill of the buffers, are not."""
    base = STORAGE[t]
    program = parse(f"def p(x: [9000]{base}) = x |> map(v => {t}(v))")
    x = np.linspace(1, 2, 9000).astype(RECORDS[base.name].numpy)
    right = lp.to_storage(x, t)
    checker = Checker(expected(program, {"x": x}))
    checked = checker.check(right)
    assert isinstance(checked, Right)
    assert not checked.doubts
    assert isinstance(checker.check(neighbour(right, t, 1)), Right)
    far = max(2, 1 << max(0, RECORDS[t.name].significand - 35))  # beyond the tolerance of f64
    assert isinstance(checker.check(neighbour(right, t, far)), WrongResult)
    assert isinstance(checker.check(np.zeros_like(right)), WrongResult)
    (part,) = checker.parts
    place = next(k for k in range(9000) if (k,) not in part.compared)
    right.reshape(9000, 1).view(np.uint8)[place] = np.resize(
        np.frombuffer(POISON[t.name].tobytes(), np.uint8), RECORDS[t.name].bytes
    )
    (doubt,) = checker.check(right).doubts
    assert (place,) in {tuple(point) for point in doubt.points.tolist()}


def test_what_is_computed_from_stored_numbers_may_differ_by_their_spacing() -> None:
    text = "def p(x: [64][9]f32) = x |> map(row => f32(bf16(row |> reduce(add, 0))) * 2)"
    assert allowed(parse(text), 1e-5) == pytest.approx(1e-5 + 2.0**-7)
    assert allowed(parse(text.replace("bf16(row", "f32(row")), 1e-5) == pytest.approx(1e-5)
    assert allowed(parse("def p(x: [9]f32) = x |> map(v => bf16(v))"), 1e-5) == pytest.approx(1e-5)


def test_a_parameter_may_have_the_name_of_a_conversion(device) -> None:
    program = parse("def p(read_bf16_1: [8]bf16) = read_bf16_1 |> map(v => f32(v))")
    x = lp.to_storage(range(8), lp.bf16)
    np.testing.assert_array_equal(lp.compile(program, device=device)(x), np.arange(8))


def test_tuples_of_stored_numbers(device) -> None:
    program = parse("""
        def p(x: [6](bf16, f32)) =
          x |> map((u, v) => (bf16(f32(u) + v), v)) |> map((u, v) => (u, f32(u) * v))
    """)
    x = lp.to_storage(range(6), lp.bf16), np.arange(6, dtype=np.float32)
    meant = lp.evaluate(program, x)
    for found in (meant, lp.compile(program, device=device)(x)):
        np.testing.assert_array_equal(lp.from_storage(found[0], lp.bf16), 2 * np.arange(6))
        np.testing.assert_array_equal(found[1], 2 * np.arange(6) ** 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def p(x: [8]bf16) = x |> map(v => v + v)", "`+` does not compute with the storage type"),
        ("def p(x: [8]bf16) = x |> map(v => exp(v))", "`f32(x)` converts"),
        ("def p(x: [8]bf16) = x |> map(v => v == v)", "`f32(x)` converts"),
        (
            "def p(x: [8]bf16) = x |> map(v => i32(v))",
            "bf16 converts to f32 only: write `i32(f32(x))`",
        ),
        ("def p(x: [8]i32) = x |> map(v => bf16(v))", "`bf16(f32(x))`"),
        ("def p(x: [8]bf16) = x |> map(v => flyte16(v))", "`flyte16(f32(x))`"),
        ("def p(x: [8]bf16) = x |> pad(1, 1, 0.1)", "it would be rounded"),
        ("def p(x: [8]bf16) = generate(8, (i: bf16) => f32(i))", "cannot take bf16"),
    ],
)
def test_what_storage_types_do_not_do_is_refused(text: str, said: str) -> None:
    with pytest.raises(lp.LiftError, match=re.escape(said)):
        parse(text)


def test_an_array_of_numbers_is_refused_with_what_stores_it() -> None:
    program = parse("def p(x: [3]bf16) = x |> map(v => f32(v))")
    with pytest.raises(lp.LiftError, match=r"lp\.to_storage\(x, lp\.bf16\)"):
        lp.evaluate(program, np.zeros(3, np.float32))
    with pytest.raises(lp.LiftError, match=r"lp\.to_storage\(x, lp\.bf16\)"):
        lp.from_storage(np.zeros(3, np.float32), lp.bf16)
    with pytest.raises(lp.LiftError, match=r"np\.uint16\(x\) has the same bits"):
        lp.evaluate(program, [1, 2, 3])
    number = parse("def p(x: bf16) = f32(x)")
    with pytest.raises(lp.LiftError, match=r"np\.uint16\(x\) has the same bits"):
        lp.evaluate(number, 3)
    kernel = lp.compile(number)
    with pytest.raises(lp.LiftError, match=r"np\.uint16\(x\) has the same bits"):
        kernel(3)
    kernel.close()
    with pytest.raises(lp.LiftError, match=r"pass an array of shape \(3,\)"):
        lp.evaluate(program, np.zeros(4, np.uint16))
    with pytest.raises(lp.LiftError, match="write rows of one length"):
        lp.to_storage([[1, 2], [3]], lp.bf16)
    with pytest.raises(lp.LiftError, match=r"f32 is not a storage type"):
        lp.to_storage(np.zeros(3), lp.f32)
