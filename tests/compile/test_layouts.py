"""Every layout in a kernel: what it reads, and, where it has an inverse, what is written through.

Lengths are prime or odd, values distinct; buffers are poisoned, so that an element that nobody
writes shows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.compile.test_families import generic
from tests.compile.test_programs import (
    agree,
    convolution,
    every_family_is_right,
    every_form_is_right,
    inputs,
    run_lowered,
)
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind

pytestmark = pytest.mark.usefixtures("derived_once")

XS_YS = "xs: [7]f32, ys: [5]f32"
XS, XSS, XSSS = "xs: [7]f32", "xss: [3][5]f32", "xsss: [2][3][5]f32"
DOUBLE = "mapGlb(0, x => x * 2 + 1)"
VECTORS = "asVector(4) |> mapGlb(0, v => v |> mapVec(x => x * 2)) |> asScalar"
ROWS = "mapGlb(1, mapGlb(0, x => x * 2 + 1))"

READ = {
    "pad": (XS, f"xs |> pad(3, 2, 9) |> {DOUBLE}"),
    "padClamp": (XS, f"xs |> padClamp(3, 12) |> {DOUBLE}"),
    "padClamp that crops": (XS, f"xs |> padClamp(-2, 3) |> {DOUBLE}"),
    "padMirror": (XS, f"xs |> padMirror(7, 6) |> {DOUBLE}"),
    "padMirror that crops": (XS, f"xs |> padMirror(5, -3) |> {DOUBLE}"),
    "padWrap": (XS, f"xs |> padWrap(9, 20) |> {DOUBLE}"),
    "padWrap that crops": (XS, f"xs |> padWrap(-3, 5) |> {DOUBLE}"),
    "padClamp2d": (XSS, f"xss |> padClamp2d(2, 1, 0, 3) |> {ROWS}"),
    "padMirror2d": (XSS, f"xss |> padMirror2d(3, 1, 2, 5) |> {ROWS}"),
    "padWrap2d": (XSS, f"xss |> padWrap2d(4, 1, 6, 3) |> {ROWS}"),
    "padClamp and slide": (
        XS,
        """xs |> padClamp(1, 1) |> slide(3, 1)
           |> mapGlb(0, w => w |> reduceSeq((a, x) => 2 * a + x, 1))""",
    ),
    "padMirror in vectors": (XS, f"xs |> padMirror(1, 4) |> {VECTORS}"),
    "padClamp in local memory": (
        XSS,
        """xss |> mapWrg(0, row => row |> mapLcl(0, x => x * 2) |> toLocal |> padClamp(1, 1)
           |> slide(3, 1) |> mapLcl(0, w => w |> reduceSeq((a, x) => 2 * a + x, 1)))""",
    ),
    "padWrap in registers": (
        XSS,
        """xss |> mapGlb(0, row => row |> mapSeq(x => x * 2) |> toPrivate |> padWrap(1, 7)
           |> mapSeq(x => x + 1))""",
    ),
    "concat in registers": (
        XSS,
        """xss |> mapGlb(0, row => concat(row |> mapSeq(x => x * 2), row |> take(2)) |> toPrivate
           |> padMirror(3, 7) |> mapSeq(x => x + 1))""",
    ),
    "slide3d": (
        XSSS,
        """xsss |> slide3d(2, 1) |> mapGlb(0, mapSeq(mapSeq(w => w |> join |> join
           |> reduceSeq((a, x) => 2 * a + x, 0))))""",
    ),
    "pad3d": (XSSS, "xsss |> pad3d(1, 0, 2, 1, 0, 1, 9) |> mapGlb(1, mapGlb(0, mapSeq(x => -x)))"),
    "slideStrict": (XS, "xs |> slideStrict(3, 2) |> mapGlb(0, w => w |> mapSeq(x => -x))"),
    "unslide": (XS, f"xs |> slide(3, 2) |> unslide(3, 2) |> {DOUBLE}"),
    "unslide of windows that differ": (XSS, f"xss |> unslide(5, 3) |> {DOUBLE}"),
    "concat": (XS_YS, f"concat(xs, ys) |> {DOUBLE}"),
    "concat of rows": (XSS + ", yss: [2][5]f32", f"concat(xss, yss) |> {ROWS}"),
    "concat of columns": (
        XSS + ", yss: [3][2]f32",
        f"zip(xss, yss) |> map((x, y) => concat(x, y)) |> {ROWS}",
    ),
    "concat of pairs": (
        XS_YS,
        """concat(zip(xs, xs), zip(ys, ys |> reorder(i => 4 - i, i => 4 - i)))
           |> mapGlb(0, (x, y) => x - 2 * y)""",
    ),
    "concat in vectors": (XS_YS, f"concat(xs, ys) |> {VECTORS}"),
    "concat in aligned vectors": ("xs: [8]f32, ys: [4]f32", f"concat(xs, ys) |> {VECTORS}"),
    "concat of padded arrays": (
        XS,
        f"concat(xs |> pad(1, 1, 9), xs |> drop(2) |> pad(0, 2, 8)) |> {DOUBLE}",
    ),
    "splitAt": (XS, f"concat((xs |> splitAt(3)).1, (xs |> splitAt(3)).0) |> {DOUBLE}"),
    "take": (XS, f"xs |> take(3) |> {DOUBLE}"),
    "drop": (XS, f"xs |> drop(3) |> {DOUBLE}"),
    "slice": (XS, f"xs |> slice(2, 3) |> {DOUBLE}"),
    "gather": (XS, f"xs |> gather(11, i => 3 * i % 7) |> {DOUBLE}"),
    "gather at the border": (XS, f"xs |> gather(12, i => min(max(i - 3, 0), 6)) |> {DOUBLE}"),
    "scatter": (XS, f"xs |> scatter(i => 3 * i % 7, i => 5 * i % 7) |> {DOUBLE}"),
    "permute": (XSSS, "xsss |> permute(2, 0, 1) |> mapGlb(1, mapGlb(0, mapSeq(x => -x)))"),
    "repeat": (XS, f"xs |> repeat(3) |> {ROWS}"),
    "full": (XS, "zip(xs, full(7, 2.5)) |> mapGlb(0, (x, y) => x - y)"),
    "generate": (XS, "zip(xs, generate(7, (i: f32) => i * i + 1)) |> mapGlb(0, (x, y) => x / y)"),
    "generate of rows": (XS, f"generate(3, (i: f32) => xs |> mapSeq(x => x * i)) |> {ROWS}"),
    "generate in vectors": (
        "xs: [8]f32",
        """zip(xs, generate(8, (i: f32) => i)) |> asVector(4)
           |> mapGlb(0, v => v |> mapVec((x, y) => x - 2 * y)) |> asScalar""",
    ),
    "iota": ("ints: [7]i32", "zip(ints, iota(7)) |> mapGlb(0, (x, i) => x - 3 * i)"),
    "iota alone": (XS, "iota(7) |> mapGlb(0, i => i * i)"),
}

WRITTEN = {
    "concat": (XS_YS, f"concat(xs |> {DOUBLE}, ys |> mapGlb(0, y => -y))"),
    "concat of three": (
        XS,
        f"concat(xs |> {DOUBLE}, concat(xs |> mapGlb(0, x => -x), xs |> mapGlb(0, x => x * x)))",
    ),
    "concat inside a row": (
        XSS,
        """xss |> mapGlb(0, row =>
             concat(row |> mapSeq(x => -x), row |> drop(1) |> mapSeq(x => x * x)))""",
    ),
    "concat in local memory": (
        XSS,
        """xss |> mapWrg(0, row => concat(row |> mapLcl(0, x => -x), row |> mapLcl(0, x => x * x))
           |> toLocal |> reorder(i => 9 - i, i => 9 - i) |> mapLcl(0, x => x + 1))""",
    ),
    "unslide of windows side by side": (XSS, f"xss |> {ROWS} |> unslide(5, 5)"),
    "scatter": (XS, f"xs |> {DOUBLE} |> scatter(i => 3 * i % 7, i => 5 * i % 7)"),
    "permute": (XSSS, "xsss |> mapGlb(1, mapGlb(0, mapSeq(x => x * 2))) |> permute(2, 0, 1)"),
}


def right(params: str, body: str, runtime: Device) -> None:
    """The kernel's result is that of the meaning."""
    text = f"def p({params}) = {body}"
    got, arrays = run_lowered(text, runtime)
    agree(got, np.asarray(evaluate(parse(text), *arrays)), text)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", READ)
def test_what_a_layout_reads_is_right(runtime: Device, name: str) -> None:
    right(*READ[name], runtime)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_through_a_layout_is_right(runtime: Device, name: str) -> None:
    right(*WRITTEN[name], runtime)


@pytest.mark.oclgrind
@pytest.mark.parametrize("programs", [READ, WRITTEN], ids=["read", "written"])
def test_no_layout_reads_or_writes_outside(programs: dict[str, tuple[str, str]]) -> None:
    """Simulated: neither a border nor the end of a part is overstepped, and nobody races."""
    jobs, meant = [], []
    for params, body in programs.values():
        program = lowered(f"def p({params}) = {body}")
        arrays, module = inputs(program), compile_program(program).module
        jobs.append((module, dict(zip(module.parameters, arrays, strict=True))))
        meant.append(np.asarray(evaluate(program, *arrays)))
    for name, (got, complaints), wanted in zip(
        programs, check_all_under_oclgrind(jobs), meant, strict=True
    ):
        assert not complaints, (name, complaints)
        agree(got, wanted, name)


@pytest.mark.parametrize("stage", ["unslide(5, 3)", "join |> take(4)", "join |> padWrap(1, 1)"])
def test_a_layout_without_inverse_wants_its_argument_stored_first(stage: str) -> None:
    with pytest.raises(TypeRefused, match="store it with toGlobal"):
        compile_program(lowered(f"def p({XSS}) = xss |> {ROWS} |> {stage}"))


def test_a_border_costs_no_branch() -> None:
    """Clamped and mirrored indices are arithmetic; the padding of a constant is a choice."""
    for word in ("padClamp(1, 1)", "padMirror(1, 1)", "padWrap(1, 1)"):
        source = compile_program(lowered(f"def p({XS}) = xs |> {word} |> {DOUBLE}")).module.source
        assert "?" not in source.split("kernel void", 1)[1], source


def test_an_inner_element_of_a_clamped_array_has_a_plain_index() -> None:
    """Where ranges say that an index is inside, nothing of the border is left of it."""
    text = f"def p({XS}) = xs |> padClamp(2, 2) |> slice(2, 7) |> {DOUBLE}"
    source = compile_program(lowered(text)).module.source
    assert "min(" not in source
    assert "max(" not in source


# --- as they are written, not lowered by hand -----------------------------------------------------

PRODUCT = "map(row => kss |> map(c => zip(row, c) |> map((x, y) => x * y) |> reduce(add, 0)))"
CONVOLUTION = convolution("x", "x", "bias")
BORDERS = {
    f"convolution with {word}": CONVOLUTION.replace("pad2d(1, 1, 1, 1, 0)", f"{word}(1, 1, 1, 1)")
    for word in ("padClamp2d", "padMirror2d", "padWrap2d")
}
PROGRAMS = BORDERS | {
    "stencil": "def p(xs: [11]f32) = xs |> padClamp(1, 1) |> slide(3, 1) |> map(reduce(add, 0))",
    "rows of a product": f"""
        def p(xss: [9][5]f32, const kss: [8][5]f32) = xss |> drop(2) |> take(6) |> {PRODUCT}""",
    "product of two parts": f"""
        def p(xss: [4][5]f32, yss: [2][5]f32, const kss: [8][5]f32) =
          concat(xss, yss) |> {PRODUCT}""",
    "two parts, computed apart": """
        def p(xs: [5]f32, ys: [7]f32) = concat(xs |> map(x => x * 2), ys |> map(y => y + 1))""",
    "a computed part and one that is read again": """
        def p(xs: [7]f32) =
          concat(xs |> map(x => x * 2), xs |> map(x => x + 1) |> padWrap(1, 1))""",
    "made beside read": """
        def p(xs: [7]f32) = zip(xs, generate(7, (i: f32) => i * 2)) |> map((x, i) => x * i)""",
    "made alone": "def p(xs: [7]f32) = iota(7) |> map(i => i * i)",
    "a border of results": "def p(xs: [7]f32) = xs |> map(x => x * 2) |> padMirror(2, 3)",
    "a border of rows of results": """
        def p(xs: [7][3]f32) = xs |> map(map(x => x * 2)) |> map(padWrap(1, 1)) |> transpose""",
    "gathered results": "def p(xs: [7]f32) = xs |> map(x => x * 2) |> gather(9, i => min(i, 6))",
    "scattered results": """
        def p(xs: [7]f32) = xs |> map(x => x * 2) |> scatter(i => 3 * i % 7, i => 5 * i % 7)""",
    "windows put back": """
        def p(xs: [9]f32) = xs |> slide(3, 2) |> map(t => t |> map(x => x * 2)) |> unslide(3, 2)""",
    "tiles of a stencil": """
        def p(xs: [8]f32) = xs |> padClamp(1, 1) |> slide(4, 2)
          |> map(slide(3, 1) |> map(reduce(add, 0))) |> unslide(2, 2)""",
    "a sum, repeated": "def p(xs: [7]f32) = xs |> reduce(add, 0) |> repeat(3)",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_layouts_is_right_in_every_family(
    runtime: Device, name: str, kept: Path
) -> None:
    families = every_family_is_right(parse(PROGRAMS[name]), runtime, kept)
    assert ("direct" in families) == (name in BORDERS or "product" in name)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_a_program_with_layouts_is_right(
    runtime: Device, name: str, kept: Path
) -> None:
    families = every_form_is_right(parse(PROGRAMS[name]), runtime, kept)
    assert ("direct" in families) == (name in BORDERS or "product" in name)


@pytest.mark.parametrize(
    ("name", "kernels"),
    [("a border of results", 2), ("scattered results", 1), ("two parts, computed apart", 1)],
)
def test_only_what_is_read_again_has_a_kernel_of_its_own(name: str, kernels: int) -> None:
    candidate = space_of(parse(PROGRAMS[name]), generic()).candidate({})
    source = compile_program(candidate.skeleton.at(candidate.point)).module.source
    assert source.count("__kernel") == kernels
