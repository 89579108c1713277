"""`reduceInPlace`: folds whose accumulator stays in memory, as loops and as chains of kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.explore.measure.inputs import inputs
from liftpy.kernels.chain import chain
from liftpy.loops.bounds import bounds
from liftpy.loops.tree import (
    Block,
    Store,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.loops.writers import shared_stores
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.compile.test_tuples import alike
from tests.loops.test_bounds import changed
from tests.lowered import lowered

PROGRAMS = {
    "rows of work-items": """def p(xsss: [5][3][7]i32) = xsss |> mapGlb(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> mapSeq(t => t.0 * 3 - t.1), 2i32 |> repeat(7))
      )""",
    "a pass of one": """def p(xsss: [5][1][7]i32) = xsss |> mapGlb(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> mapSeq(t => t.0 * 3 - t.1), 2i32 |> repeat(7))
      )""",
    "a fold that begins with another's result": """def p(xsss: [5][3][7]i32) = xsss
      |> mapGlb(0, rows => rows |> reduceInPlace((a, row) => zip(a, row)
        |> mapSeq(t => t.0 * 3 - t.1), rows |> reduceInPlace((a, row) => zip(a, row)
          |> mapSeq(t => t.1 * 2 - t.0), 2i32 |> repeat(7))))""",
    "launches": """def p(xss: [3][7]i32, ys: [7]i32) = xss
      |> reduceInPlace((a, row) => zip(a, row) |> mapGlb(0, t => t.0 * 3 - t.1), ys)""",
    "launches in launches": """def p(xsss: [3][2][7]i32) = xsss
      |> reduceInPlace((b, rows) => rows |> reduceInPlace((a, row) => zip(a, row)
        |> mapGlb(0, t => t.0 * 3 - t.1), b), 1i32 |> repeat(7))""",
    "launches that another kernel reads": """def p(xss: [3][7]i32) = xss
      |> reduceInPlace((a, row) => zip(a, row) |> mapGlb(0, t => t.0 * 3 - t.1), 2i32 |> repeat(7))
      |> toGlobal |> slide(3, 2) |> mapGlb(0, w => w |> reduceSeq((a, x) => a * 5 + x, 0))""",
    "loops in launches": """def p(xsss: [3][2][7]i32) = xsss
      |> reduceInPlace((b, rows) => zip(b, rows |> transpose) |> mapGlb(0, t => t.1
        |> reduceSeq((a, x) => a * 3 - x, t.0)), 1i32 |> repeat(7))""",
    "pairs that change places": """def p(xsss: [5][3][7]i32) = xsss |> mapWrg(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row)
        |> mapLcl(0, t => (t.0.1 + t.1, t.0.0 * 2)), (1i32, 2i32) |> repeat(7)))""",
    "vectors": """def p(xsss: [5][3][8]i32) = xsss |> mapGlb(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> asVector(4)
        |> mapSeq(mapVec(t => t.0 * 3 - t.1)) |> asScalar,
        2i32 |> repeat(8)))""",
    "a computed start of one work-item": """def p(xsss: [5][3][7]i32, ys: [4]i32) = xsss
      |> mapGlb(0, rows => rows |> reduceInPlace((a, row) => zip(a, row)
        |> mapSeq(t => t.0 * 3 - t.1), ys |> reduceSeq((s, y) => s * 2 + y, 0) |> repeat(7)))""",
    "launches that end in toGlobal": """def p(xss: [3][7]i32) = xss
      |> reduceInPlace((a, row) => zip(a, row) |> mapGlb(0, t => t.0 * 3 - t.1) |> toGlobal,
        2i32 |> repeat(7))""",
    "launches that read a computed value": """def p(xss: [3][7]i32, ys: [4]i32) =
      let s = (ys |> reduceSeq((s, y) => s * 2 + y, 0)) in xss
        |> reduceInPlace((a, row) => zip(a, row) |> mapGlb(0, t => t.0 * s - t.1),
          2i32 |> repeat(7))""",
    "through a layout": """def p(xsss: [5][3][7]i32) = xsss |> mapGlb(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> mapSeq(t => t.0 * 3 - t.1), 2i32 |> repeat(7)))
      |> transpose""",
    "local memory": """def p(xsss: [5][3][7]i32) = xsss |> mapWrg(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> mapLcl(0, t => t.0 * 3 - t.1), 2i32 |> repeat(7))
      |> toLocal |> reorder(i => 6 - i, i => 6 - i) |> mapLcl(0, x => x + 1))""",
    "scratch": """def p(xsss: [5][3][7]i32) = xsss |> mapGlb(0, rows => rows
      |> reduceInPlace((a, row) => zip(a, row) |> mapSeq(t => t.0 * 3 - t.1), 2i32 |> repeat(7))
      |> toGlobal |> slide(3, 1) |> mapSeq(w => w |> reduceSeq((a, x) => a * 5 + x, 0)))""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_folds_in_place_are_right_and_have_no_races(runtime: Device, name: str) -> None:
    program = lowered(PROGRAMS[name])
    made = compile_program(program)
    for code in made.optimized:
        assert all(bound.way for bound in bounds(code))
        assert not shared_stores(code)
    arrays = inputs(program)
    with Session(runtime) as session, session.load(made.module) as loaded:
        got = loaded.run(by_buffer(made.module, list(arrays.values())), poison=True)
    alike(got, evaluate(program, *arrays.values()))


def test_a_pass_has_no_buffer_of_its_own() -> None:
    cut = chain(lowered(PROGRAMS["launches that another kernel reads"]))
    first, *others = cut.run
    assert [k.updates for k in cut.run] == [False, True, True, False]
    assert [b.span for b in cut.buffers if b.param == first.writes] == [(0, 3)]
    assert others[1].writes == first.writes
    cut = chain(lowered(PROGRAMS["launches in launches"]))
    assert {k.writes for k in cut.run} == {cut.result}
    assert [b.role for b in cut.buffers] == ["input", "output"]


def test_a_work_item_that_reads_what_another_one_stores_is_found() -> None:
    code = compile_program(lowered(PROGRAMS["launches"])).optimized[1]

    def moved(of: object) -> object:
        if isinstance(of, Cell) and of.memory.name == "output":
            return replace(of, index=(of.index + 1) % 7)
        return of

    *before, store = code.block
    (other,) = changed(Block((store,)), moved)
    assert isinstance(store, Store)
    assert isinstance(other, Store)
    wrong = replace(code, block=Block((*before, replace(store, value=other.value))))
    found = shared_stores(wrong)
    assert [f for f in found if "is touched at gid0 = " in str(f)], found


def test_a_kernel_that_updates_another_element_is_refused() -> None:
    with pytest.raises(TypeRefused, match=r"cannot update output in place.*\(gid0 \+ 6\)%7"):
        compile_program(
            lowered("""def p(xss: [3][7]i32) = xss |> reduceInPlace((a, row) =>
              zip(a |> padWrap(1, -1), row) |> mapGlb(0, t => t.0 - t.1), 2i32 |> repeat(7))""")
        )


FOLD = "ys |> reduceSeq((s, y) => s * 2 + y, 0)"
REFUSED = {
    "a computed start in a group": (
        f"""def p(xsss: [5][3][7]i32, zs: [7]i32, ys: [4]i32) = xsss |> mapWrg(0, rows => rows
          |> reduceInPlace((a, row) => zip(a, row) |> mapLcl(0, t => t.0 * 3 - t.1),
            zs |> mapSeq(y => y + ({FOLD}))))""",
        "must be computed element by element",
    ),
    "a start by other work-items": (
        """def p(xsss: [5][3][8]i32, zs: [8]i32) = xsss |> mapWrg(0, rows => rows
          |> reduceInPlace((a, row) => zip(a, row) |> mapLcl(0, t => t.0 * 3 - t.1),
            zs |> split(2) |> mapLcl(0, mapSeq(y => y * 5)) |> join |> toLocal))""",
        "must be computed element by element",
    ),
    "a fold that begins with another's result": (
        """def p(xsss: [5][3][8]i32) = xsss |> mapWrg(0, rows => rows
          |> reduceInPlace((a, row) => zip(a, row) |> mapLcl(0, t => t.0 * 3 - t.1), rows
            |> reduceInPlace((a, row) => zip(a, row) |> split(2)
              |> mapLcl(0, mapSeq(t => t.0 * 5 + t.1)) |> join, 2i32 |> repeat(8))))""",
        "must be computed element by element",
    ),
    "a start by the items of a group, passes by each": (
        """def p(xsss: [5][3][8]i32, zs: [8]i32) = xsss |> mapWrg(0, rows => rows
          |> reduceInPlace((a, row) => zip(a, row) |> mapSeq(t => t.0 * 3 - t.1),
            zs |> mapLcl(0, y => y * 5)) |> toLocal |> mapLcl(0, x => x))""",
        "one part of the kernel is stored over mapLcl",
    ),
    "the outer accumulator in an inner loop": (
        """def p(xsss: [3][2][7]i32) = xsss |> split(3) |> mapGlb(0, all => all
          |> reduceInPlace((b, rows) => rows |> reduceInPlace((a, row) => zip(a, zip(b, row))
            |> mapSeq(t => t.0 + t.1.0 * t.1.1), b), 2i32 |> repeat(7)))""",
        "reads the outer accumulator",
    ),
    "the outer accumulator in inner launches": (
        """def p(xsss: [3][2][7]i32) = xsss
          |> reduceInPlace((b, rows) => let c = (zip(b, b) |> mapGlb(0, add)) in rows
            |> reduceInPlace((a, row) => zip(a, zip(c, row))
              |> mapGlb(0, t => t.0 + t.1.0 * t.1.1), b), 2i32 |> repeat(7))""",
        "reads the outer accumulator",
    ),
    "a value that a step stores": (
        """def p(xss: [3][7]i32) = xss |> reduceInPlace((a, row) =>
          zip(a |> mapGlb(0, x => x * 2) |> toGlobal, row) |> mapGlb(0, t => t.0 - t.1),
          2i32 |> repeat(7))""",
        "cannot store a value that depends on its accumulator",
    ),
    "an iteration in a step": (
        """def p(xss: [3][7]i32) = xss |> reduceInPlace((a, row) =>
          zip(a |> iterateSeq(2, v => v |> mapGlb(0, x => x * 2)), row)
            |> mapGlb(0, t => t.0 - t.1), 2i32 |> repeat(7))""",
        "cannot store a value that depends on its accumulator",
    ),
    "folds with too many passes in all": (
        """def p(xsss: [40][30][7]i32) = xsss
          |> reduceInPlace((b, rows) => rows |> reduceInPlace((a, row) => zip(a, row)
            |> mapGlb(0, t => t.0 * 3 - t.1), b), 1i32 |> repeat(7))""",
        "at most 1000 passes in all",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_read_an_element_too_early_or_too_late_is_refused(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(TypeRefused, match=message):
        compile_program(lowered(text))
