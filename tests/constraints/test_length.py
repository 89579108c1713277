"""The bound on a kernel's statements holds, and is at most four times what is emitted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from liftpy.constraints.collect import CODE_LIMIT, alternatives, collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.length import Length, _length, length, serial_length
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.ir.nat import Nat
from liftpy.ir.program import Program
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.loops.nest import MOST_STATEMENTS
from liftpy.pipeline import compile_program
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import HELD, WINOGRAD
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import workload
from tests.draws import of_family
from tests.fuzz.correlations import Case
from tests.fuzz.generator import make
from tests.loops.interpreted import statements
from tests.lowered import lowered
from tests.workloads.references import CASES

NEAREST = """
def nearest(queries: [64][8]f32, points: [100][8]f32) =
  queries |> map(q => points
    |> map(p => zip(q, p) |> map((a, b) => (a - b) * (a - b)) |> reduce(add, 0))
    |> (ds => zip(ds, generate(100, (i: i32) => i)))
    |> reduce((best, c) =>
         (select(c.0 < best.0, c.0, best.0), select(c.0 < best.0, c.1, best.1)), (inf, 0i32))
    |> get(1))
"""
QUICK = ("matmul", "kmeans", "scal", "stencil/jacobi9")  # the others are slow together


def lengths(candidates: list[Candidate]) -> Iterator[tuple[int, int, object]]:
    """Of each kernel the bound, what is emitted, and which it is."""
    for candidate in candidates:
        cut = chain(candidate.skeleton.program)
        loops = compile_program(candidate.skeleton.at(candidate.assignment)).loops
        for kernel, made in zip(cut.kernels, loops, strict=True):
            bound = int(length(kernel).value(candidate.assignment))
            serial = serial_length(kernel)
            assert serial is None or serial.value(candidate.assignment) >= bound
            yield bound, statements(made), (candidate, kernel.name)


def drawn(program: Program, each: int) -> list[Candidate]:
    """Candidates of a program, of each family that applies."""
    return [c for name in FAMILIES for c in of_family(name, program, DEFAULT_DEVICE, each)]


def holds(candidates: list[Candidate]) -> None:
    """Every kernel is within its bound, and the bound near."""
    for bound, emitted, what in lengths(candidates):
        assert emitted <= bound <= 4 * emitted, what


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_the_bound_of_a_drawn_candidate_holds_and_is_near(name: str) -> None:
    family, colon, layout = name.partition(":")
    sizes = "x".join(map(str, CASES[name][0]))
    holds(drawn(workload(f"{family}/{sizes}{colon}{layout}"), 1))


@pytest.mark.sampled(30)
@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 2))
def test_the_bound_of_random_programs_holds_and_is_near(start: int) -> None:
    for seed in range(start, start + 2):
        holds(drawn(make(seed), 1))


def test_a_fold_that_each_column_of_lanes_would_repeat_has_no_valid_point() -> None:
    """In vectors of queries all distances are folded again for each point: 10^5 statements."""
    program = parse(NEAREST)
    members = Space.whole(program, DEFAULT_DEVICE).every
    points = {m.skeleton.key: m.first({}, 0) for m in members}
    repeated = [m.skeleton for m in members if "vector=yes" in m.skeleton.key]
    assert repeated
    assert all(points[s.key] is None for s in repeated)
    assert sum(point is not None for point in points.values()) > 3
    (kernel,) = chain(repeated[0].program).kernels
    assert length(kernel).value({"tile0": 4, "v": 2}) > CODE_LIMIT


@pytest.mark.parametrize(
    "text",
    [
        "def p(x: f32) = x |> iterate(2, a => a |> iterate(2, b => a))",
        """def p(xs: [5]f32, ys: [3]f32) =
             xs |> reduce((s, x) => ys |> reduce((t, y) => t - s, x), 0)""",
        """def p(xs: [1][8]f32) = xs |> map(row =>
             let ys = (row |> gather(3, i => i // 2 - 8*(i // 16)) |> map(x =>
               let y = (let z = 2 - x in select(z <= x, x, z)) in select(x == y, y, -2))) in
             let zs = (ys |> map(y => let y = y * 3 in abs(y))) in
             zip(zs, zs, ys |> reorder(i => 2 - i, i => 2 - i)) |> slide(2, 2))""",
        """fun twice(x: f32, y: f32) = x * 2 - y
           def p(xss: [2][3][5]f32) = xss |> map(xs =>
             let ys = xs |> scan((acc, x) => acc, -3) in
             zip(ys, ys) |> map(y =>
               let a = (let i = y.0 |> iterate(3, _ => 1) in i - i) in
               let b = (let c = twice(a, a) in select(c <= 2, 2, c)) in b - b))""",
        """def p(xs: [2][6]f32, ns: [30]i32, ys: [6]f32) = xs |> map(x =>
             concat(ys, ys) |> slide(10, 3) |> map(y => concat(y, concat(y, y))))
             |> map(rows => zip(rows |> reduce((a, row) => row,
               rows |> transpose |> map(column => column |> reduce((a, x) => x, 0))), ns))""",
        """def p(x: f32, xs: [7][1][6]f32) = concat(xs, xs) |> map(rows => let held =
             ((let r = rows in r |> map(y => concat(concat(y, y), concat(y, y))))
               |> map(y => y |> scan((a, x) => x, 0) |> splitAt(1) |> get(0)), rows) in x)""",
        """def p(xs: [6]f32) = zip(
             concat(xs |> map(x => x |> iterate(2, y => y * 2)) |> take(2),
                    xs |> map(x => x |> iterate(2, y => y * 2)) |> drop(2)), xs) |> slide(3, 1)""",
        """def p(xs: [4][2]i32) = generate(5, i => xs
             |> map(row => row |> scan((s, x) => s + x, 0))
             |> map(row => row |> map(x => let small = x < 2 in select(small, small, false)))
             |> at(i))""",
        """def p(xs: [8][1]f32) = xs |> map(row =>
             let ys = row |> scan((acc, x) => acc, -3) |> map(y => y - y) in concat(ys, ys))""",
        """def p(xs: [5][1][5]f32) = xs |> map(rows => rows |> slideStrict(1, 3)
             |> slide(1, 1) |> reduce((s, w) => w |> scan((t, x) => t, s) |> pad(2, 2, 3)
             |> reduce((t, x) => x, 0), 0))""",
        """def p(xs: [5]i32, ys: [3]f32, zs: [3]f32) = xs |> map(i => let j = i + 1 in
             zip(ys |> scan((s, y) => s + y, 0), zs)
             |> map((s, z) => let y = s * z in z * y + y * (y - z)) |> at(j))""",
        """fun twice(x: f32, y: f32) = x * 2 - y
           def p(xs: [4][5]bool) = xs |> map(row =>
             let ys = row |> iterate(1, r => r |> map(x => x and x)) in
             let pairs = zip(ys, ys |> reorder(i => 4 - i, i => 4 - i)) |> cover(5) |> join in
             zip(pairs, pairs |> reorder(i => 4 - i, i => 4 - i)) |> reduce((acc, t) =>
               twice(f32(t.1.0), twice(f32(t.0.0), f32(t.0.1))), 0))""",
    ],
)
def test_a_program_of_few_statements_is_within_its_bound(text: str) -> None:
    """What takes a statement more than it seems.

    In a fold that reads an outer accumulator, that is kept until the inner fold has ended, and is
    then assigned. What is loaded in a loop, and mentioned by a variable that is declared outside of
    the loop, is loaded again there. A variable of a value that an iteration overwrites is computed
    in each pass of an unrolled loop. Where an index that is data chooses a register, the variables
    of all elements are computed. An index that is clamped reads an element of its own. Elements at
    different indices may be one element in a pass of an unrolled loop. Nor does it
    count much that is not emitted: a pass of an unrolled loop reads one part of a concatenation.
    """
    holds(drawn(parse(text), 1))


EMITTED = {
    "one side of a condition in each pass of a loop": """xs |> split(4) |> mapGlb(0, row =>
      concat(row, concat(row |> reorder(i => 3 - i, i => 3 - i), row))
        |> mapSeq(x => x * x) |> toPrivate)""",
    "a variable on each side of a condition": """xs |> mapSeq(x => let y = abs(x) in y * y)
      |> (ys => concat(ys |> gather(7, i => 0), ys |> gather(9, i => 0)))
      |> mapGlb(0, y => y + 1)""",
    "a variable for each lane behind a condition": """xs |> mapSeq(x => let y = abs(x) in y * y)
      |> pad(3, 1, 0) |> asVector(4) |> mapGlb(0, mapVec(x => x - 2)) |> asScalar""",
    "a variable in each of two stores": """xs
      |> mapGlb(0, x => x * 3 |> toPrivate |> (y => ((y + 1) * (y + 1), y + 1)))""",
    "what another pass of a loop names": """xs |> split(2) |> mapGlb(0, row => row
      |> mapSeq(x => x * 3) |> toPrivate |> (ys => zip(ys, ys |> reorder(i => 1 - i, i => 1 - i)))
      |> mapSeq(y => (y.0 + 1) * (y.0 + 1) - (y.1 + 1)))""",
    "lanes that are not in a row": """xs |> split(4) |> transpose |> mapGlb(0, row => row
      |> asVector(4) |> mapSeq(v => v |> reduceVec(add, 0)))""",
    "lanes that are stored apart": """xs |> asVector(4) |> mapGlb(0, mapVec(x => x + 2))
      |> asScalar |> split(4) |> transpose""",
    "choices among choices": """xs |> slide(3, 1) |> split(7) |> mapGlb(0, ws =>
      concat(concat(ws |> drop(1), ws |> take(1)), concat(ws |> drop(2), ws |> take(2)))
        |> mapSeq(w => w |> reduceSeq((s, x) => s - x, 0)))""",
    "steps of lanes that have loops": """xs |> asVector(4) |> mapGlb(0, v => v
      |> reduceVec((a, x) => xs |> reduceSeq((b, y) => b + y * x, a), 1))""",
}


@pytest.mark.parametrize("name", EMITTED)
def test_the_bound_of_a_lowered_program_holds_and_is_nearer(name: str) -> None:
    made = compile_program(lowered(f"def p(xs: [16]f32) = {EMITTED[name]}"))
    for kernel, code in zip(made.chain.kernels, made.loops, strict=True):
        bound = length(kernel).constant
        assert bound is not None
        assert statements(code) <= bound <= 1.5 * statements(code)


ALTERNATIVES = "concat(xs |> gather(4, i => 3*i), xs |> gather(4, i => 5*i))"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (f"{ALTERNATIVES} |> asVector(8) |> mapGlb(0, mapVec(x => x - 2)) |> asScalar", 8 + 2),
        (f"{ALTERNATIVES} |> split(4) |> mapGlb(0, row => row |> mapSeq(x => x - 2))", 1 + 3),
        (
            f"""zip({ALTERNATIVES}, xs |> gather(8, i => 2 * i)) |> asVector(8)
              |> mapGlb(0, mapVec((x, y) => x - y)) |> asScalar""",
            8 + 2 + 8,
        ),
    ],
)
def test_at_most_one_of_two_alternative_loads_is_in_variables(text: str, bound: int) -> None:
    """A choice that is emitted contains both loads; otherwise, only one of them is emitted."""
    made = compile_program(lowered(f"def p(xs: [16]f32) = {text}"))
    (kernel,), (code,) = made.chain.kernels, made.loops
    assert length(kernel).constant == bound
    assert statements(code) <= bound


LEVELS = (
    "mapGlb(1, mapGlb(0, mapSeq(x => x + 1)))",
    "mapWrg(1, mapLcl(1, mapSeq(x => x + 1)))",
    "mapGlb(0, mapSeq(mapSeq(x => x + 1)))",
    "mapSeq(mapGlb(2, mapSeq(x => x + 1)))",
)


def test_kernels_that_differ_in_levels_only_share_the_length_of_one_work_item() -> None:
    views = ("xs", "xs |> byClasses")
    pairs = itertools.product(views, LEVELS)
    texts = (f"def p(xs: [3][5][7]f32) = {view} |> {maps}" for view, maps in pairs)
    kernels = [kernel for text in texts for kernel in chain(lowered(text)).kernels]
    (serial,) = {serial_length(kernel) for kernel in kernels}
    assert serial is not None
    assert [length(kernel).constant for kernel in kernels] == 2 * [3, 3, 4, 4]
    assert serial.constant == 5


def test_a_map_over_one_id_has_no_serial_length() -> None:
    one = lowered("def p(xs: [1][5]f32) = xs |> mapGlb(1, mapGlb(0, x => x + 1))")
    assert [serial_length(kernel) for kernel in chain(one).kernels] == [None]


def test_the_skeletons_of_a_space_share_few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The space has 171 kernels, and their code differs only in what is padded."""
    passes: list[Length] = []
    count = Length.statements

    def counted(self: Length, *args: Any) -> Nat:
        passes.append(self)
        return count(self, *args)

    monkeypatch.setattr(Length, "statements", counted)
    _length.cache_clear()
    assert len(Space.whole(workload("stencil/jacobi5/7x11"), DEFAULT_DEVICE).every) > 100
    assert len(passes) <= 15


SHARED_LATER = """xs |> split(8) |> mapGlb(0, row =>
  let ts = row |> mapSeq(x => x * 3) |> toPrivate in
  concat(ts |> mapSeq(t => t + 1), ts |> mapSeq(t => (t + 1) * (t + 1))))"""


def test_another_pass_counts_the_same_unless_it_is_known_to_differ() -> None:
    differ: set[str] = set()
    for text in (*EMITTED.values(), SHARED_LATER):
        (kernel,) = chain(lowered(f"def p(xs: [16]f32) = {text}")).kernels
        found = Length(kernel.body)
        first = found.statements(kernel.reads, kernel.writes)
        known = found.has_met_later_shared
        if found.statements(kernel.reads, kernel.writes) != first:
            assert known
            differ.add(text)
        else:
            assert not known
    choice = EMITTED["one side of a condition in each pass of a loop"]
    assert differ == {choice, SHARED_LATER}


def test_conditions_on_a_bound_that_is_a_maximum_have_formulas() -> None:
    """A loop over the one kernel may be unrolled or not: sizes decide which code is longer."""
    forms = partitions(Case((14, 16), 3, 1, (4, 4), 0, "nchw").program)
    words = {WINOGRAD: "2x2+overlap", "inputs": HELD}
    form = next(p for p in forms if words.items() <= dict(p.words).items())
    made = skeletons_of(FAMILIES["blocked"], form.stages[-1].canonical)
    assert not isinstance(made, str)
    skeleton = next(s for s in made if s.words["hold"] == "private")
    assert 2 in {len([*alternatives(length(k))]) for k in chain(skeleton.program).kernels}
    assert Points(collect(skeleton, DEFAULT_DEVICE)).count() == 0  # its unrolled code is too long


def test_what_is_valid_never_gets_too_long_for_the_emitter() -> None:
    assert CODE_LIMIT < MOST_STATEMENTS
