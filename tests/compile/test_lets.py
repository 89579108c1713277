"""What is mentioned more than once is computed once, in the right block, behind its conditions."""

from __future__ import annotations

import pytest

from liftpy.constraints.device import Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.semantics.evaluate import evaluate
from tests.batch import results
from tests.compile.test_tuples import alike
from tests.lowered import lowered

DEPTH = 24  # written out, 2^24 copies of the innermost value
LONGEST = 30_000  # characters: lanes and registers have copies each


def nest(x: str, last: str) -> str:
    """Names, each of which mentions the one before twice."""
    names = ", ".join(f"a{k + 1} = a{k} * 3 - (a{k} + {k})" for k in range(DEPTH))
    return f"let a0 = {x} * 2, {names} in {last.format(a=f'a{DEPTH}')}"


def chain(stage: str) -> str:
    """Stages, each of which mentions its element twice."""
    return " |> ".join(stage.format(f"x => x * 3 - (x + {k})") for k in range(DEPTH))


NEST = nest("x", "{a}")
PAIR = nest("x", "({a} - 1, {a} * {a})")
PROGRAMS = {
    "scalars": f"xs |> mapGlb(0, x => {NEST})",
    "components": f"xs |> mapGlb(0, x => {PAIR})",
    "components that a fold reads": f"""
        xss |> mapGlb(0, row => row |> mapSeq(x => {PAIR})
          |> reduceSeq((s, t) => (s.0 * 3 - t.0, s.1 - t.1), (0i32, 1i32)))""",
    "tuples": "xs |> mapGlb(0, x => "
    + "".join(f"let a{k + 1} = (a{k}.1 - a{k}.0, a{k}.0 * 3) in " for k in range(DEPTH))
    .replace("a0.1", "x")
    .replace("a0.0", "x")
    + f"a{DEPTH})",
    "functions one after another": f"xs |> {chain('mapSeq({})')} |> mapGlb(0, x => x)",
    "an array beside itself": "xs |> "
    + " |> ".join(["(ys => zip(ys, ys) |> mapSeq((a, b) => a * 3 - b))"] * (DEPTH // 2))
    + " |> mapGlb(0, x => x)",
    "behind a border": f"xs |> mapSeq(x => {NEST}) |> pad(2, 1, 5) |> mapGlb(0, x => x)",
    "between borders": f"""
        xs |> mapSeq(x => {NEST}) |> pad(1, 0, 5) |> mapSeq(x => {NEST}) |> pad(1, 1, 7)
          |> mapGlb(0, x => x)""",
    "in both parts of a concat": f"""
        concat(xs |> mapSeq(x => {NEST}),
            xs |> reorder(i => 7 - i, i => 7 - i) |> mapSeq(x => {NEST}))
          |> mapSeq(x => {NEST}) |> mapGlb(0, x => x)""",
    "in windows of a border": f"""
        xs |> mapSeq(x => {NEST}) |> pad(1, 1, 5) |> slide(3, 1) |> mapGlb(0, w => w
          |> reduceSeq((s, x) => s * 3 - x, 0i32))""",
    "in a step": f"""
        xss |> mapGlb(0, row => row |> reduceSeq((s, x) => {nest("x", "s * 3 - {a}")}, 0i32))""",
    "of an accumulator": f"""
        xss |> mapGlb(0, row => row |> reduceSeq((s, x) => {nest("s", "{a} - x")}, 0i32))""",
    "of accumulators": f"""
        xss |> mapGlb(0, row => row |> reduceSeq((s, x) =>
          {nest("s.1", "({a} - s.0, {a} + x * s.1)")}, (1i32, 2i32)))""",
    "in a scan": f"xss |> mapGlb(0, row => row |> scanSeq((s, x) => {nest('s', '{a} - x')}, 0i32))",
    "of registers": f"""
        xss |> mapGlb(0, row => row |> mapSeq(x => x * 5) |> toPrivate |> mapSeq(x => {NEST})
          |> mapSeqUnroll(x => x - 1))""",
    "of local memory": f"""
        xss |> mapWrg(0, row => row |> mapLcl(0, x => x * 5) |> toLocal
          |> reorder(i => 7 - i, i => 7 - i) |> mapSeq(x => {NEST}) |> mapLcl(0, x => x - 1))""",
    "lanes": f"xs |> asVector(4) |> mapGlb(0, mapVec(x => {NEST})) |> asScalar",
    "vectors": "xs |> asVector(4) |> mapGlb(0, v => v |> "
    + " |> ".join(f"(v => v |> mapVec(x => x * 3 - (x + {k})))" for k in range(DEPTH))
    + ") |> asScalar",
    "a fold of lanes": f"""
        xs |> asVector(8) |> mapGlb(0, v => v
          |> reduceVec((s, x) => {nest("s", "{a} - x")}, 1i32))""",
    "lanes behind a border": f"""
        xs |> mapSeq(x => {NEST}) |> pad(3, 1, 7) |> asVector(4) |> mapGlb(0, mapVec(x => {NEST}))
          |> asScalar""",
    "rows behind a border": f"""
        xss |> transpose |> mapSeq(row => row |> mapSeq(x => {NEST})) |> pad(2, 2, 7) |> join
          |> asVector(4) |> mapGlb(0, mapVec(x => {NEST})) |> asScalar""",
    "a condition": f"xs |> mapGlb(0, x => {nest('x', 'select({a} < x, {a} - x, x * {a})')})",
    "bytes": "xs |> mapGlb(0, x => let b = i8(x), c = b < 3, d = select(c, b, -b) in "
    "(c and not (d < 0), d * d - b, select(c, d, b)))",
}


def text_of(name: str) -> str:
    """A program's text."""
    return f"def p(xs: [8]i32, xss: [3][8]i32) = {PROGRAMS[name]}"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_code_does_not_grow_with_mentions(runtime: Device, name: str) -> None:
    """Right on a device too, with wrapping integers, of which every bit counts."""
    program = lowered(text_of(name))
    module = compile_program(program).module
    assert len(module.source) < LONGEST
    arrays = tuple(inputs(program).values())
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({}, poison=True)
        got = loaded.run(by_buffer(module, arrays), poison=True)
    alike(got, evaluate(program, *arrays))


CODE = {
    "outside the loop": (
        "xs |> mapGlb(0, x => ys |> mapSeq(y => let s = x * x in s * y - s))",
        ["v1 = v0 * v0;", "for (", "(v1 * v2) - v1"],
    ),
    "once for two components": (
        "xs |> mapGlb(0, x => let s = x * x in (s, s - x))",
        ["float v1 = v0 * v0;", "output_0[gid0] = v1;", "output_1[gid0] = v1 - v0;"],
    ),
    "in its loop": (
        "xs |> mapGlb(0, x => ys |> mapSeq(y => let s = y - x in s * s))",
        ["for (", "float v2 = v0 - v1;", "v2 * v2"],
    ),
    "under its condition": (
        "xs |> mapSeq(x => let s = x * 3 in s * s) |> pad(1, 0, 7) |> mapGlb(0, x => x)",
        ["v0 = (gid0 - 1 >= 0) ? (xs[gid0 - 1] * 3.0f) : 0.0f;", "? (v0 * v0) : 7.0f"],
    ),
    "under the opposite of one": (
        "concat(xs, ys |> mapSeq(x => let s = x * 3 in s * s)) |> mapGlb(0, x => x)",
        ["v0 = (!(gid0 < 8)) ? (ys[gid0 - 8] * 3.0f) : 0.0f;", "? xs[gid0] : (v0 * v0)"],
    ),
    "not where it is used once": (
        "xs |> mapGlb(0, x => let s = x * 3, t = s - 1 in t * x)",
        ["output[gid0] = ((v0 * 3.0f) - 1.0f) * v0;"],
    ),
    "before its accumulator changes": (
        """xss |> mapGlb(0, row => row
          |> reduceSeq((s, x) => let d = s.0 - x in (d * d, d), (0f32, 1f32)))""",
        ["v1 = acc0_0 - v0;", "acc0_0 = v1 * v1;", "acc0_1 = v1;"],
    ),
}


@pytest.mark.parametrize("name", list(CODE))
def test_a_value_is_computed_where_it_belongs(name: str) -> None:
    text, wanted = CODE[name]
    program = lowered(f"def p(xs: [8]f32, ys: [5]f32, xss: [3][8]f32) = {text}")
    source = compile_program(program).module.source
    places = [source.find(line) for line in wanted]
    assert -1 not in places, source
    assert places == sorted(places), source


BESIDE = {
    "an input": "let p = (xs |> map(x => x * 3), ys) in (zip(p.0, p.0 |> map(x => x - 1)), p.1)",
    "a view": "let p = (ys |> reorder(i => 4 - i, i => 4 - i), xs |> map(x => x * 3)) "
    "in (p.1, p.0)",
    "a fold": "let p = (xs |> map(x => x * 3), ys |> reduce((s, y) => s * 3 - y, 1)) in "
    "p.0 |> map(x => x - p.1)",
    "fewer dimensions": "let p = (xs |> map(x => x * 3), ys |> map(y => xs |> map(x => x * y))) "
    "in zip(p.0, p.1 |> transpose |> map(reduce((s, x) => s * 3 - x, 0)))",
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", BESIDE)
def test_a_name_for_what_is_computed_beside_what_is_not_has_kernels(
    runtime: Device, name: str
) -> None:
    """One kernel for both would have every work-item store what has no work-items of its own."""
    program = parse(f"def p(xs: [8]i32, ys: [5]i32) = {BESIDE[name]}")
    arrays = tuple(inputs(program).values())
    drawn = list(Space.whole(program, runtime).sample(3, 1))
    modules = [compile_candidate(c.skeleton, c.assignment) for c in drawn]
    assert modules
    for got in results(runtime, modules, arrays):
        alike(got, evaluate(program, *arrays))
