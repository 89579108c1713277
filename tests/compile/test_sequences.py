"""Scans, iterations, unrolled maps and rotating windows: by hand and by the families."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.constraints.statements import statements
from liftpy.errors import TypeRefused
from liftpy.explore.measure.inputs import inputs
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.strategies.lower import plain
from liftpy.semantics.evaluate import evaluate
from tests.compile.test_tuples import alike, right_in_every_family
from tests.lowered import lowered
from tests.oclgrind import check_under_oclgrind

HORNER = "(s, x) => s * 3 - x"  # neither commutes nor associates
PROGRAMS = {
    "a scan": f"def p(xs: [13]i64) = xs |> scan({HORNER}, 2)",
    "an exclusive scan": f"def p(xs: [13]i64) = xs |> exclusiveScan({HORNER}, 2)",
    "an exclusive scan of one": f"def p(xs: [1]i64) = xs |> exclusiveScan({HORNER}, 2)",
    "an exclusive scan that windows read": f"""
        def p(xs: [9]i32) = xs |> exclusiveScan({HORNER}, 1) |> slide(3, 2)
          |> map(reduce({HORNER}, 0))""",
    "a scan of one": f"def p(xs: [1]i64) = xs |> scan({HORNER}, 2)",
    "a scan of each row": f"def p(xss: [5][7]i32) = xss |> map(scan({HORNER}, 1))",
    "a scan of pairs": """
        def p(xs: [7]i32, ys: [7]f32) = zip(xs, ys)
          |> scan((s, t) => (s.0 * 3 - t.0, s.1 * 0.5 + t.1), 0)""",
    "a scan that crosses its components": """
        def p(xs: [7]i32) = xs |> scan((s, x) => (s.1 - x, s.0 + s.1 * 2), (0, 1))""",
    "a scan of rows": """
        def p(xss: [5][3]i32, start: [3]i32) = xss |> scan((s, row) => zip(s, row)
          |> map((a, x) => a * 2 - x), start)""",
    "a named scan": f"""
        def p(xs: [9]i32) = let s = xs |> scan({HORNER}, 1), t = s |> slide(3, 3)
          |> map(reduce((a, x) => a * 5 + x, 0)) in t |> map(x => x - 1)""",
    "a scan between maps": f"""
        def p(xs: [13]i32) = xs |> map(x => x - 3) |> scan({HORNER}, 0) |> map(x => -x)""",
    "a scan that a reduction reads": f"""
        def p(xss: [5][7]i32) = xss |> map(row => row |> scan({HORNER}, 1)
          |> reduce((a, x) => a * 5 + x, 0))""",
    "a scan that windows read": f"""
        def p(xs: [9]i32) = xs |> scan({HORNER}, 1) |> slide(3, 2)
          |> map(reduce((a, x) => a * 5 + x, 0))""",
    "a scan that partial results read": """
        def p(xs: [12]i32) = xs |> scan((s, x) => s * 3 - x, 0) |> reduce(addInt, 0)""",
    "scans of rows that are read": f"""
        def p(xss: [5][7]i32, ys: [5]i32) = zip(ys, xss |> map(row => row |> scan({HORNER}, 1)
          |> map(x => -x))) |> map((y, row) => row |> map(x => x - y))""",
    "scans of rows under a let": f"""
        def p(xss: [5][7]i32) = (let t = xss in t |> map(scan({HORNER}, 1)) |> padWrap(2, 1))
          |> map(reduce((a, x) => a * 5 + x, 0))""",
    "pairs of scans": f"""
        def p(xss: [5][7]i32) = xss |> map(row => (row |> scan({HORNER}, 1), row |> drop(2)))
          |> map(t => zip(t.0 |> take(5), t.1) |> map((a, b) => a - b * 2))""",
    "a map over a scan in each row": f"""
        def p(xss: [5][7]i32) = xss |> map(row => row |> padMirror(0, 2) |> scan({HORNER}, 0)
          |> map(x => x * x + x))""",
    "an iteration of a layout that maps read": """
        def p(xss: [4][6]i32) = xss |> iterate(3, t => t |> reorder(i => 3 - i, i => 3 - i))
          |> split(2) |> map(map(reduce((a, x) => a * 5 + x, 0)))""",
    "an iteration of each row that a map reads": """
        def p(xss: [4][6]i32) = xss |> map(row => row
          |> iterate(3, r => r |> reorder(i => 5 - i, i => 5 - i)) |> map(x => x * x - x))""",
    "a scan of what a let names": f"""
        def p(xs: [7]i32, ys: [7]i32) =
          (let t = xs |> map(x => x * 3) in zip(let u = t in u |> scan({HORNER}, 1), ys))
            |> map((a, b) => a * 2 - b)""",
    "a scan of a component that a let names": f"""
        def p(xs: [7]i32, ys: [7]i32) =
          (let t = (xs |> map(x => x * 3), ys |> map(y => y - 1)), u = t.1 |> padWrap(2, 1) in
            zip(u |> scan({HORNER}, 1) |> drop(3), t.0)) |> map((a, b) => a * 2 - b)""",
    "a scan whose step reads what a let names": f"""
        def p(xs: [7]i32, ys: [5]i32) =
          (let t = ys |> reduce({HORNER}, 1), u = ys |> map(y => y - t) in
            zip(xs |> scan((s, x) => s * t - x, 1), xs |> exclusiveScan((s, x) =>
              s * 3 - (zip(u, ys) |> reduce((r, c) => r * 5 - c.0 * c.1, x)), 2)))
            |> map((a, b) => a * 2 - b)""",
    "lanes that folds make": f"""
        def p(xsss: [3][8][5]i32) = xsss |> map(xss => xss |> map(row => row |> reduce({HORNER}, 1))
          |> asVector(4) |> map(mapVec(x => x * 2 - 1)) |> asScalar)""",
    "a fold of lanes that folds make": """
        def p(xsss: [3][6][5]i32) = xsss |> map(xss => xss
          |> map(row => row |> reduce(minimum, 90)) |> slide(4, 2) |> join |> asVector(2)
          |> map(v => v |> reduceVec(minimum, 90)) |> reduce(minimum, 80))""",
    "lanes of a layout of scans": f"""
        def p(xsss: [3][4][5]i32) = xsss |> map(xss => xss |> map(row => row |> scan({HORNER}, 1))
          |> transpose |> join |> asVector(4) |> map(mapVec(x => x * 2 - 1)) |> asScalar)""",
    "tuples with scans at a data-dependent index": f"""
        def p(xsss: [5][3][4]i32, ys: [5]i32) = generate(3, k =>
          zip(xsss |> map(xss => xss |> map(scan({HORNER}, 1))), ys) |> at(k + 1))
            |> map(t => t.0 |> map(reduce({HORNER}, t.1)))""",
    "an iteration of a scalar": "def p(xs: [9]f32) = xs |> map(iterate(5, x => x * 0.5 + 1))",
    "an iteration of no steps": "def p(xs: [9]f32) = xs |> map(iterate(0, x => x * 0.5 + 1))",
    "an iteration of pairs": """
        def p(xs: [9]i32) = xs |> map(x => (x, 1i32) |> iterate(6, s => (s.1 - s.0, s.0 * 2)))""",
    "an iteration of rows": """
        def p(xss: [5][3]i32) = xss |> map(iterate(3, row => row |> reorder(i => 2 - i, i => 2 - i)
          |> scan((s, x) => s * 3 - x, 0)))""",
    "an iteration of a stencil": """
        def p(xs: [11]f32) = xs |> iterate(4, ys => ys |> pad(1, 1, 0.5) |> slide(3, 1)
          |> map(w => w |> reduce((s, x) => s * 0.5 + x, 0)))""",
    "an iteration of a stencil that is read": """
        def p(xs: [11]f32) = xs |> map(x => x - 1) |> iterate(3, ys => ys |> pad(1, 1, 0.5)
          |> slide(3, 1) |> map(w => w |> reduce((s, x) => s * 0.5 + x, 0))) |> map(x => -x)""",
    "an iteration that halves": """
        def p(xs: [12]i32) = xs |> iterate(2, ys => ys |> split(2)
          |> map(reduce((s, x) => s * 3 - x, 0)))""",
    "an iteration and a sum": """
        def p(xs: [7]i32) = (xs |> iterate(2, map(x => x * x - 3)), xs |> reduce(addInt, 0))""",
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_sequence_is_right_in_every_family(runtime: Device, name: str, kept: Path) -> None:
    right_in_every_family(parse(PROGRAMS[name]), runtime, kept)


LOWERED = {
    "scanSeq": f"def p(xs: [5][7]i32) = xs |> mapGlb(0, scanSeq({HORNER}, 2))",
    "scanSeq in registers": f"""
        def p(xs: [5][7]i32) = xs |> mapGlb(0, row => row |> scanSeq({HORNER}, 2) |> toPrivate
          |> mapSeq(x => x + 1))""",
    "scanSeq in local memory": f"""
        def p(xs: [5][8]i32) = xs |> mapWrg(0, row => row |> split(2) |> mapLcl(0,
          scanSeq({HORNER}, 2)) |> join |> toLocal |> split(2) |> transpose |> mapLcl(0,
          mapSeq(x => x + 1)))""",
    "scanSeq written backwards": f"""
        def p(xs: [5][7]i32) = xs |> mapGlb(0, row => row |> scanSeq({HORNER}, 2)
          |> reorder(i => 6 - i, i => 6 - i))""",
    "scanSeq of vectors": """
        def p(xs: [5][12]i32) = xs |> mapGlb(0, row => row |> asVector(4) |> mapSeq(v =>
          v |> mapVec(x => x + 1)) |> asScalar |> toPrivate |> scanSeq((s, x) => s * 3 - x, 0))""",
    "iterateSeq": "def p(xs: [5]i32) = xs |> mapGlb(0, iterateSeq(4, x => x * 3 - 1))",
    "iterateSeq on registers": """
        def p(xs: [5][4]i32) = xs |> mapGlb(0, row => row |> iterateSeq(3, r =>
          r |> reorder(i => (i + 1) % 4, i => (i + 3) % 4) |> mapSeq(x => x * 2 - 1)))""",
    "iterateSeq in a fold": """
        def p(xs: [5][4]i32) = xs |> mapGlb(0, row => row |> reduceSeq((s, x) =>
          s |> iterateSeq(3, t => t * 3 - x), 1))""",
    "iterateSeq of kernels": """
        def p(xs: [8]i32) = xs |> iterateSeq(3, ys => ys |> slide(1, 1) |> mapGlb(0, w =>
          w |> reduceSeq((s, x) => s * 3 - x, 1)))""",
    "iterateSeq of kernels in a tuple": """
        def p(xs: [8]i32) = let v = (xs |> iterateSeq(3, ys => ys |> mapGlb(0, x => x * 3 - 1)),
          xs |> mapGlb(0, x => x + 5)) |> toGlobal in
            zip(v.0, v.1) |> reduceSeq((s, t) => s * 3 - t.0 * t.1, 1i32)""",
    "reduceVec behind a border": """
        def p(xs: [5][12]i32) = xs |> mapGlb(0, row => row |> asVector(4)
          |> mapSeq(v => v |> reduceVec((s, x) => s * s - x, 1)) |> pad(2, 1, 9)
          |> slide(3, 1) |> mapSeq(w => w |> reduceSeq({}, 1)))""",
    "mapSeqUnroll": "def p(xs: [5][4]i32) = xs |> mapGlb(0, mapSeqUnroll(x => x * 3 - 1))",
    "slideSeq 3 1": "def p(xs: [5][11]i32) = xs |> mapGlb(0, slideSeq(3, 1, reduceSeq({}, 1)))",
    "slideSeq 5 2": "def p(xs: [5][11]i32) = xs |> mapGlb(0, slideSeq(5, 2, reduceSeq({}, 1)))",
    "slideSeq 3 3": "def p(xs: [5][11]i32) = xs |> mapGlb(0, slideSeq(3, 3, reduceSeq({}, 1)))",
    "slideSeq of one window": """
        def p(xs: [5][3]i32) = xs |> mapGlb(0, slideSeq(3, 1, reduceSeq({}, 1)))""",
    "slideSeq of pairs": """
        def p(xs: [5][7]i32, ys: [7]i32) = xs |> mapGlb(0, row => zip(row, ys)
          |> slideSeq(3, 2, reduceSeq((s, t) => s * 3 - t.0 * t.1, 1i32)))""",
    "slideSeq of padded values": """
        def p(xs: [5][7]i32) = xs |> mapGlb(0, row => row |> mapSeq(x => x * x) |> pad(1, 1, 7)
          |> slideSeq(3, 1, reduceSeq({}, 1)))""",
    "slideSeq of rows": """
        def p(xs: [9][3]i32) = xs |> slideSeq(4, 2, w => w |> join |> reduceSeq({}, 1))""",
    "slideSeq in registers": """
        def p(xs: [5][7]i32) = xs |> mapGlb(0, row => row |> slideSeq(3, 1, reduceSeq({}, 1))
          |> toPrivate |> reduceSeq({}, 0))""",
}


def test_lanes_that_work_items_share_have_a_kernel(runtime: Device) -> None:
    program = parse(f"""
        def p(xss: [6][5]i32) = xss |> map(row => row |> reduce({HORNER}, 1))
          |> asVector(2) |> map(mapVec(x => x * 2 - 1)) |> asScalar""")
    arrays = tuple(inputs(program).values())
    with closing(lp.compile(program, strategy=plain(), device=runtime)) as kernel:
        assert len(kernel.module.launches) == 2
        np.testing.assert_array_equal(kernel(*arrays), evaluate(program, *arrays))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(LOWERED))
def test_a_lowered_sequence_is_right(runtime: Device, name: str) -> None:
    program = lowered(LOWERED[name].replace("{}", HORNER))
    arrays = tuple(inputs(program).values())
    module = compile_program(program).module
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({})
        got = loaded.run(by_buffer(module, arrays), poison=True)
    alike(got, evaluate(program, *arrays))


def test_a_buffer_in_a_tuple_is_not_copied() -> None:
    steps = source("iterateSeq of kernels in a tuple").count("__kernel ")
    assert steps == 3 + 1 + 1  # of the iteration, of the other component, and of the fold


def source(name: str) -> str:
    return compile_program(lowered(LOWERED[name].replace("{}", HORNER))).module.source


@pytest.mark.parametrize("scan", ["scan", "exclusiveScan"])
def test_a_computed_array_is_stored_once_for_a_scan(scan: str) -> None:
    program = parse(f"def p(xs: [7]i32) = xs |> map(x => x * 3) |> {scan}({HORNER}, 2)")
    (skeleton,) = skeletons(program, ("plain",))
    assert len(compile_candidate(skeleton, {}).launches) == 2


def test_a_rotating_window_loads_each_element_once() -> None:
    """Two loads before the loop and one in it, where the windows would read three elements each."""
    assert source("slideSeq 3 1").count("xs[") == 3
    assert source("slideSeq 5 2").count("xs[") == 5


def test_mapSeqUnroll_has_no_loop() -> None:  # noqa: N802  the language's own word
    assert "for (" not in source("mapSeqUnroll")
    assert source("mapSeqUnroll").count("xs[") == 4


def test_what_is_unrolled_or_held_is_counted() -> None:
    def kernel(name: str):
        (found,) = chain(lowered(LOWERED[name].replace("{}", HORNER))).kernels
        return found

    assert int(statements(kernel("mapSeqUnroll").body)) == 4
    assert int(kernel("slideSeq 5 2").demand.private) == 5 * 4 + 4
    assert int(kernel("scanSeq").demand.private) == 4
    assert int(kernel("scanSeq in registers").demand.private) == 4 + 7 * 4
    assert int(kernel("iterateSeq on registers").demand.private) == 4 * 4
    module = compile_program(lowered(LOWERED["slideSeq 5 2"].replace("{}", HORNER))).module
    assert module.memory.private == 5 * 4 + 4


def test_an_iteration_of_kernels_swaps_two_buffers() -> None:
    """The result is in one of them."""
    text = "def p(xs: [8]i32) = xs |> iterateSeq(5, ys => ys |> mapGlb(0, x => x * 3))"
    module = compile_program(lowered(text)).module
    assert len(module.launches) == 5
    assert len({b.slot for b in module.buffers if b.role in {"temporary", "output"}}) == 2
    assert module.memory.allocated == 3 * 8 * 4


REFUSED = {
    "a scan that is read": f"xs |> mapGlb(0, r => r |> scanSeq({HORNER}, 2) |> mapSeq(x => x))",
    "a scan without a loop": f"xs |> mapGlb(0, scan({HORNER}, 2))",
    "too many kernels": "xs |> iterateSeq(1001, y => y |> mapGlb(0, r => r |> mapSeq(x => x)))",
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_has_no_code_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(TypeRefused, match=r"store it with|lower it|give a number"):
        compile_program(lowered(f"def p(xs: [5][7]i32) = {REFUSED[name]}"))


@pytest.mark.oclgrind
@pytest.mark.parametrize("name", ["scanSeq in local memory", "slideSeq of padded values"])
def test_sequences_under_oclgrind(name: str) -> None:
    program = lowered(LOWERED[name].replace("{}", HORNER))
    module = compile_program(program).module
    arrays = tuple(inputs(program).values())
    got, complaints = check_under_oclgrind(module, by_buffer(module, arrays))
    assert complaints == []
    np.testing.assert_array_equal(got, evaluate(program, *arrays))
