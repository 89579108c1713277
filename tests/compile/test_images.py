"""Images: the choice `images`, the texels in kernels, and the devices that have them."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ConstraintRefused, DeviceRefused, TypeRefused
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.loops.show import show_kernel
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.resident import Place, Resident
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_program
from liftpy.rewrite.composition import skeleton_named
from liftpy.semantics.evaluate import evaluate
from tests.batch import results
from tests.compile.test_programs import agree, inputs, run_lowered
from tests.draws import unproved
from tests.loops.interpreted import interpreted, stages_of
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.subsample import subsample

DOUBLED = "mapSeq(mapVec(x => x * 2)) |> asScalar"

#: Bodies of programs of xs: [5][8]f32 and ys: [12]f32, and what is in the text of their kernels.
LOWERED = {
    "elements": (
        "xs |> asImage |> mapGlb(0, mapSeq(x => x * 2))",
        "element_of_texel_float(read_imagef(xs, (i0 / 4) + gid0 * 2), (i0 % 4))",
    ),
    "known elements": (
        "xs |> asImage |> mapGlb(0, row => row |> take(3) |> mapSeqUnroll(x => x * 2))",
        "read_imagef(xs, gid0 * 2).s2",
    ),
    "a texel": (
        f"xs |> asImage |> mapGlb(0, row => row |> asVector(4) |> {DOUBLED})",
        "const float4 v0 = read_imagef(xs, gid0 * 2 + i0);",
    ),
    "two texels": (
        f"xs |> asImage |> mapGlb(0, row => row |> asVector(8) |> {DOUBLED})",
        "(float8)(read_imagef(xs, gid0 * 2), read_imagef(xs, gid0 * 2 + 1))",
    ),
    "half a texel": (
        f"xs |> asImage |> mapGlb(0, row => row |> asVector(2) |> {DOUBLED})",
        "(float2)(element_of_texel_float(",
    ),
    "parts of two texels": (
        f"xs |> asImage |> mapGlb(0, row => row |> drop(3) |> take(4) |> asVector(4) |> {DOUBLED})",
        "(float4)(read_imagef(xs, gid0 * 2).s3, read_imagef(xs, gid0 * 2 + 1).s0",
    ),
    "behind a guard": (
        "xs |> asImage |> pad(1, 1, 7) |> mapGlb(0, mapSeq(x => x * 2))",
        "read_imagef(xs, ",
    ),
    "a vector behind a guard": (
        (
            "xs |> asImage |> map(pad(4, 2, 7)) |> mapGlb(0, row => row |> take(12)"
            f" |> asVector(4) |> {DOUBLED})"
        ),
        "read_imagef(xs, ",
    ),
    "of windows": (
        "ys |> asImage |> slide(5, 1) |> mapGlb(0, w => w |> reduceSeq((a, x) => a * 2 - x, 1))",
        "read_imagef(ys, ",
    ),
    "what another kernel stores": (
        (
            "xs |> mapGlb(0, mapSeq(x => x + 1)) |> toGlobal |> asImage"
            f" |> mapGlb(0, row => row |> asVector(4) |> {DOUBLED})"
        ),
        "read_imagef(t, ",
    ),
    "pairs that another kernel stores": (
        (
            "xs |> mapGlb(0, mapSeq(x => (x + 1, x * 3))) |> toGlobal |> asImage"
            " |> mapGlb(0, mapSeq(p => p.0 * 2 - p.1))"
        ),
        "read_imagef(t_1, ",
    ),
    "a tile in local memory": (
        (
            "xs |> asImage |> mapWrg(0, row => row |> mapLcl(0, x => x) |> toLocal"
            " |> reorder(i => 7 - i, i => 7 - i) |> mapLcl(0, x => x + 1))"
        ),
        "read_imagef(xs, ",
    ),
    "one of two arrays": (
        "xs |> asImage |> mapGlb(0, row => zip(row, ys |> take(8)) |> mapSeq(p => p.0 * p.1))",
        "__read_only image1d_buffer_t xs, __global const float* restrict ys",
    ),
    "at data": (
        "ys |> mapGlb(0, y => ys |> asImage |> at(i32(y) * 7 % 12))",
        "read_imagef(ys, ",
    ),
}


def program_of(body: str) -> str:
    """The text of a program with a body."""
    taken = ", ".join(t for t in ("xs: [5][8]f32", "ys: [12]f32") if t[:2] in body)
    return f"def p({taken}) = {body}"


@pytest.mark.parametrize("name", LOWERED)
def test_kernels_read_texels(runtime, name):
    body, expected = LOWERED[name]
    got, arrays = run_lowered(program_of(body), runtime)
    agree(got, evaluate(parse(program_of(body)), *arrays, dtype=np.float64), name)
    made = compile_program(lowered(program_of(body)))
    assert expected in made.module.source
    assert not unproved(made.optimized)
    given = dict(zip(made.module.parameters, arrays, strict=True))
    for stage, kernels in stages_of(made):
        agree(interpreted(made, kernels, given), got, stage)


def test_buffers_have_no_names_of_functions_that_read_texels():
    text = """def p(read_imagef: [8]f32, element_of_texel_float: [8]f32) =
      zip(read_imagef |> asImage, element_of_texel_float) |> mapGlb(0, p => p.0 + p.1)"""
    source = compile_program(lowered(text)).module.source
    assert "read_imagef(b_read_imagef, " in source
    assert " = b_element_of_texel_float[gid0];" in source


def test_an_image_is_shown_as_one():
    made = compile_program(lowered(program_of(LOWERED["elements"][0])))
    first, *_ = show_kernel(made.loops[0]).splitlines()
    assert first == "kernel k0_output(image xs: [40]f32) -> output: [40]f32"


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint_about_texels():
    made = [compile_program(lowered(program_of(body))).module for body, _ in LOWERED.values()]
    arrays = {n: np.arange(1.0, n_ + 1, dtype=np.float32) for n, n_ in (("xs", 40), ("ys", 12))}
    arrays["xs"] = arrays["xs"].reshape(5, 8)
    given = [{n: arrays[n] for n in module.parameters} for module in made]
    found = check_all_under_oclgrind([*zip(made, given, strict=True)])
    for (got, complaints), (name, (body, _)), own in zip(
        found, LOWERED.items(), given, strict=True
    ):
        assert complaints == [], name
        agree(got, evaluate(parse(program_of(body)), *own.values(), dtype=np.float64), name)


def test_texels_of_f16(device):
    """Sums and products of these numbers are exact."""
    text = """def p(xs: [3][8]f16, const ys: [8]f16) = xs |> asImage |> mapGlb(0, row =>
      zip(row, ys |> asImage) |> mapSeq(p => p.0 * p.1 + 1))"""
    if "cl_khr_fp16" not in device.extensions:
        pytest.skip(f"{device.name} has no f16")
    xs = np.arange(24, dtype=np.float16).reshape(3, 8)
    ys = np.arange(8, dtype=np.float16)[::-1].copy()
    with closing(lp.compile(lowered(text), device=device)) as kernel:
        assert "element_of_texel_half(read_imageh(ys, (i0 / 4))" in kernel.module.source
        np.testing.assert_array_equal(kernel(xs, ys), xs * ys + 1)


# --- refusals -------------------------------------------------------------------------------------

REFUSED = {
    "xs |> mapGlb(0, row => row |> asImage |> mapSeq(x => x * 2))": "depends on a variable",
    "xs |> mapGlb(0, row => row |> mapSeq(x => x * 2) |> toPrivate |> asImage"
    " |> mapSeq(x => x + 1))": "that is computed",
    "xs |> mapGlb(0, mapSeq(x => i32(x))) |> toGlobal |> asImage"
    " |> mapGlb(0, mapSeq(x => x + 1))": r"asImage cannot read t\w*, of i32: texels are of f32 or",
    "xs |> join |> drop(1) |> mapGlb(0, x => x * 2) |> toGlobal |> asImage"
    " |> mapGlb(0, x => x + 1)": r"asImage cannot read t\w*, an array of 39 f32.* 4 must divide",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_image_is_refused(body):
    with pytest.raises(TypeRefused, match=REFUSED[body]):
        compile_program(lowered(program_of(body)))


def test_a_device_without_images_runs_no_such_kernel(device):
    text = program_of(LOWERED["a texel"][0])
    module = compile_program(lowered(text)).module
    none, few = (replace(device, image_texels=most) for most in (0, 9))
    with Session(none) as session, pytest.raises(DeviceRefused, match="has no images"):
        session.load(module)
    with (
        Session(few) as session,
        pytest.raises(DeviceRefused, match=r"of 10 texels.*at most 9 tex"),
    ):
        session.load(module)


# --- the choice -----------------------------------------------------------------------------------

PROGRAMS = {
    "convolution": """
        def layer(x: [6][7][12]f32, const w: [8][3][3][12]f32, const b: [8]f32) =
          x |> pad2d(1, 1, 1, 1, 0.5) |> slide2d(3, 1) |> map(map(window =>
            zip(w, b) |> map((kernel, bias) => zip(window |> join |> join, kernel |> join |> join)
              |> map((v, u) => v * u) |> reduce(add, bias))))""",
    "matrix product": """
        def product(a: [13][20]f32, const b: [20][12]f32) = a |> map(row => b |> transpose
          |> map(column => zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))""",
    "rows": """
        def rows(x: [11][16]f32, const s: [16]f32) = x |> map(row =>
          let total = row |> map(v => v * v) |> reduce(add, 1) in
          zip(row, s) |> map((v, w) => v * w / total))""",
    "scaled": """
        def scaled(x: [9][20]f32, const s: [20]f32) =
          x |> map(row => zip(row, s) |> map((v, w) => v * w + 1))""",
}
CASES = {
    ("convolution", "direct"): ("constants", "inputs", "all"),
    ("convolution", "cooperative"): ("inputs",),
    ("matrix product", "direct"): ("constants", "inputs", "all"),
    ("matrix product", "cooperative"): ("all",),
    ("scaled", "tiled"): ("constants", "all"),
    ("rows", "rows"): ("inputs", "all"),
}
EACH = 4


@cache
def drawn(name: str, family: str, word: str) -> tuple[Program, list[Module]]:
    """A program, and some candidates of a family that read through images, proved and compiled."""
    program = parse(PROGRAMS[name])
    device = replace(DEFAULT_DEVICE, image_texels=1 << 16)
    space = space_of(program, device, families=[family], fixed={"images": word})
    modules: list[Module] = []
    for candidate in space.sample(EACH, seed=3):
        made = compile_program(candidate.skeleton.at(candidate.point))
        assert not unproved(made.optimized), candidate
        modules.append(made.module)
    assert modules
    return program, modules


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "family"), CASES)
def test_families_are_right_with_images(runtime, name, family):
    for word in CASES[name, family]:
        program, modules = drawn(name, family, word)
        arrays = inputs(program)
        expected = evaluate(program, *arrays, dtype=np.float64)
        some = subsample(modules, runtime)
        for module, got in zip(some, results(runtime, some, arrays), strict=True):
            agree(got, expected, (word, module.source))
            names = {name for launch in module.launches for name in launch.images}
            assert names, module.source
            constants = {b.name for b in module.buffers if b.role in {"constant", "packed"}}
            if word != "all":
                assert names <= constants if word == "constants" else not names & constants


@pytest.mark.oclgrind
@pytest.mark.parametrize(("name", "family"), CASES)
def test_oclgrind_has_no_complaint_about_families_with_images(name, family):
    program, modules = drawn(name, family, CASES[name, family][-1])
    arrays = inputs(program)
    given = dict(zip((p.name for p in program.params), arrays, strict=True))
    ((got, complaints),) = check_all_under_oclgrind([(modules[0], given)])
    assert complaints == []
    agree(got, evaluate(program, *arrays, dtype=np.float64), name)


def test_a_vector_of_constants_is_one_read_for_each_texel(device):
    program = parse(PROGRAMS["convolution"])
    settings = {"family": "direct", "pad": "fused", "level": "glb", "images": "constants"}
    for v in (4, 8):
        chosen = candidate_of(program, device, {**settings, "kappa": 8, "sigma": 7, "v": v})
        source = compile_program(chosen.skeleton.at(chosen.point)).module.source
        kernel = source[source.index("void k1_output(") :]
        assert re.search(r"__read_only image1d_buffer_t t\d*,", kernel)
        assert not re.search(r"vload\d+\(0, &t", kernel)
        assert "element_of_texel" not in source
        loop = re.findall(r"= (?:\(float8\)\()?read_imagef\(t\d*, [^%/]*\)", kernel)
        assert loop


def test_a_processor_has_the_choice_only_if_it_is_named(device):
    program = parse(PROGRAMS["matrix product"])
    assert device.type == "CPU"
    assert device.image_texels >= 1 << 16
    usual = lp.space(program, device)
    assert "images" not in usual.choices
    named = lp.space(program, device, fixed={"images": ["constants", "all"]})
    assert named.choices["images"] == ["constants", "all"]
    assert named.families == ["direct"]
    given = {"family": "direct", "pad": "fused", "level": "glb", "kappa": 4, "sigma": 1, "v": 4}
    plain = candidate_of(program, device, given)
    assert "images" not in plain.assignment
    assert candidate_of(program, device, {**given, "images": "all"}).assignment["images"] == "all"


def test_a_gpu_with_images_has_the_choice_and_others_keep_their_spaces():
    program = parse(PROGRAMS["matrix product"])
    usual = Space.whole(program, DEFAULT_DEVICE)
    assert "images" not in usual.choices
    with_images = Space.whole(program, replace(DEFAULT_DEVICE, image_texels=1 << 16))
    assert with_images.choices["images"] == ["constants", "inputs", "all"]
    words = [m.skeleton.words for m in with_images.members]
    assert [m.key for m in usual.members] == [
        m.key for m, w in zip(with_images.members, words, strict=True) if "images" not in w
    ]
    vectors = {w["family"] for w in words if "images" in w}
    assert vectors == {"direct", "cooperative"}


def test_a_key_names_the_skeleton_with_images():
    """So a stored candidate is derived again on any device."""
    program = parse(PROGRAMS["convolution"])
    key = "direct(pad=copy, level=wrg, images=inputs)"
    skeleton = skeleton_named(program, key)
    assert skeleton is not None
    assert skeleton.key == key
    steps = [step.rule for step in skeleton.derivation.steps]
    assert steps.count("as_image") == 1
    assert steps[-1] == "as_image"


def test_arrays_without_texels_are_no_choice():
    device = replace(DEFAULT_DEVICE, image_texels=1 << 16)
    odd = parse("def odd(x: [5][7]f32, const s: [7]f32) = x |> map(r => zip(r, s) |> map(mul))")
    whole = parse("def whole(x: [4][8]i32, const s: [8]i32) = x |> map(r => zip(r, s) |> map(mul))")
    assert all("images" not in lp.space(p, device).choices for p in (odd, whole))
    half = parse("def half(x: [4][7]f32, const s: [7]f32) = x |> map(r => zip(r, s) |> map(mul))")
    assert lp.space(half, device).choices["images"] == ["inputs"]


def test_copies_without_whole_texels_are_no_choice():
    """A stored padding of 13 x 14 elements is not read through an image, and has no candidates."""
    program = parse("""
        def sums(x: [13][12]f32) = x |> map(padClamp(1, 1)) |> map(slide(3, 1))
          |> map(map(w => w |> reduce(add, 0)))""")
    skeletons = [m.skeleton for m in lp.space(program, "profile:mali-g72").members]
    with_images = [s for s in skeletons if "images" in s.words]
    assert with_images
    for skeleton in with_images:
        assert any(step.rule == "as_image" for step in skeleton.derivation.steps), skeleton.key
    paddings = {s.words["pad"] for s in skeletons if s.family == "tiled"}
    assert "copy" in paddings - {s.words["pad"] for s in with_images}
    copied = f"tiled(pad=copy, {next(s for s in with_images).key.partition(', ')[2]}"
    assert skeleton_named(program, copied) is None


@pytest.mark.parametrize(("rows", "columns"), [(512, 256), (600, 512)])
def test_a_space_keeps_the_limit_of_a_profile(rows, columns):
    """An image of a buffer has at most 65536 texels on a Mali GPU, and 134217728 on an Adreno."""
    program = parse(f"""
        def product(a: [4][{rows}]f32, const b: [{rows}][{columns}]f32) = a |> map(row => b
          |> transpose |> map(column => zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))
    """)
    settings = {"family": "direct", "pad": "fused", "level": "glb", "images": "constants"}
    point = {**settings, "kappa": 16, "sigma": 4, "v": 4}
    for name, most in (("mali-g72", 65536), ("adreno-650", 134217728)):
        device = find_device(f"profile:{name}")
        assert device.image_texels == most
        space = space_of(program, device, families=["direct"], settings=settings)
        if rows * columns <= 4 * most:
            assert space.candidate(point).assignment["images"] == "constants"
            continue
        with pytest.raises(ConstraintRefused, match="device images: packed t"):
            space.candidate(point)


def test_settings_that_name_images_are_refused_without_them():
    device = find_device("profile:nvidia-hopper")
    with pytest.raises(DeviceRefused, match=r"images=all: NVIDIA H100 \(profile\) has no images"):
        space_of(parse(PROGRAMS["rows"]), device, fixed={"images": "all"})


# --- launches -------------------------------------------------------------------------------------


def test_a_module_with_images_is_the_same_from_its_manifest():
    made = compile_program(lowered(program_of(LOWERED["one of two arrays"][0]))).module
    assert made.launches[0].images == ("xs",)
    assert Module.of_manifest(made.source, made.manifest()) == made
    plain = compile_program(lowered(program_of("xs |> mapGlb(0, mapSeq(x => x * 2))"))).module
    assert all("images" not in launch for launch in plain.manifest()["launches"])


def test_a_module_runs_again_after_its_buffers_were_released(runtime):
    """The images of released buffers are not used again."""
    program, modules = drawn("convolution", "direct", "all")
    first, *rest = inputs(program)
    constants = dict(zip(("w", "b"), rest, strict=True))
    with Session(runtime) as session, session.load(modules[0]) as loaded:
        for scale in (1.0, 3.0):
            scaled = {name: np.float32(scale) * array for name, array in constants.items()}
            loaded.set_constants(scaled, poison=scale > 1)
            for x in (first, first[::-1].copy()):
                expected = evaluate(program, x, *scaled.values(), dtype=np.float64)
                agree(loaded.run({"x": x}), expected, scale)


def test_places_in_shared_memory_are_read_through_images(runtime):
    """A place that is a whole allocation has an image on every runtime."""
    module = compile_program(lowered(program_of(LOWERED["a texel"][0]))).module
    xs = np.arange(40, dtype=np.float32).reshape(5, 8)
    with Session(runtime) as session, Resident(session) as resident:
        places = {name: Place(name, 0, 160) for name in ("xs", "output")}
        for name in places:
            resident.allocate(name, 160)
        armed = resident.armed(module, "run", places)
        for array in (xs, xs[::-1].copy()):
            resident.write(places["xs"], array)
            resident.launch([armed])
            got = np.empty_like(array)
            resident.read(places["output"], got)
            np.testing.assert_array_equal(got, array * 2)


def test_draws_with_images_are_compiled_and_checked_by_a_campaign(device, tmp_path):
    program = parse(PROGRAMS["matrix product"])
    db = tmp_path / "a.db"
    fixed = {"images": ["constants", "inputs"]}
    campaign = lp.explore(program, samples=3, db=db, device=device, fixed=fixed)
    assert campaign.counts == {"measured": 3}
    again = lp.explore(program, samples=3, db=db, device=device, fixed=fixed)
    keys = [row.id for row in islice(campaign.rows, 3)]
    assert keys == [row.id for row in islice(again.rows, 3)]
