"""Scratch: what a work-item holds in global memory, in an element of its own of a buffer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import StrayWrite, TypeRefused
from liftpy.language.text.program import parse
from liftpy.opencl.session import Session
from liftpy.pipeline import Compilation, compile_program
from tests.compile.test_programs import all_right
from tests.draws import unproved
from tests.fuzz.generator import inputs
from tests.loops.interpret import interpret
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind

BACK = {n: f"reorder(i => {n - 1} - i, i => {n - 1} - i)" for n in (3, 4, 5, 6)}
"""Arrays of so many elements backwards, so that none is read where it was written."""

PROGRAMS = {
    "blocks in turn": f"""
        def p(xs: [35][3]f32) =
          xs |> split(7) |> mapGlb(0, blocks => blocks |> mapSeq(row =>
            let s = (row |> mapSeq(x => x * x + 1.0) |> toGlobal) in
            s |> {BACK[3]} |> mapSeq(x => s |> reduceSeq((a, y) => a * 0.5 + y, x)))) |> join""",
    "two dimensions": """
        def p(xss: [5][7][3]f32) =
          xss |> mapGlb(1, rows => rows |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> mapSeq(x => s |> reduceSeq((a, y) => a * 0.5 + y, x))))""",
    "two values": f"""
        def p(xs: [6][5]f32) =
          xs |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            let t = (s |> {BACK[5]} |> mapSeq(x => x * 3.0) |> toGlobal) in
            zip(s, t) |> mapSeq((x, y) => x - y))""",
    "a value in a value": f"""
        def p(xs: [6][5]f32) =
          xs |> mapGlb(0, row =>
            let t = (let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
                     s |> {BACK[5]} |> mapSeq(x => x * 3.0) |> toGlobal) in
            t |> mapSeq(x => t |> reduceSeq((a, y) => a * 0.5 + y, x)))""",
    "tuples": f"""
        def p(xs: [6][5]f32) =
          xs |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => (x, x * x)) |> toGlobal) in
            s |> {BACK[5]} |> mapSeq((x, y) => x - y))""",
    "padded": """
        def p(xs: [6][5]f32) =
          xs |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> pad(1, 1, 0.0) |> slide(3, 1) |> mapSeq(w => w |> reduceSeq(add, 0.0)))""",
    "a padded result": """
        def p(xs: [6][5]f32) =
          xs |> mapGlb(0, row => row |> mapSeq(x => x + 1.0) |> toGlobal |> pad(1, 1, 0.0))""",
    "work-items of groups": """
        def p(xs: [6][4][3]f32) =
          xs |> mapWrg(0, rows => rows |> mapLcl(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> mapSeq(x => s |> reduceSeq((a, y) => a * 0.5 + y, x))))""",
    "all of a group": f"""
        def p(xs: [6][4]f32) =
          xs |> mapWrg(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> {BACK[4]} |> mapLcl(0, x => s |> reduceSeq((a, y) => a * 0.5 + y, x)))""",
    "more rows than ids": f"""
        def p(xs: [6][4]f32, ys: [11][4]f32) =
          concat(xs |> mapGlb(0, row => row |> mapSeq(x => x)),
                 ys |> mapGlb(0, row => let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
                   s |> {BACK[4]} |> mapSeq(x => x * 2.0)))""",
    "one work-item": f"""
        def p(xs: [4]f32) =
          let s = (xs |> mapSeq(x => xs |> reduceSeq((a, y) => a * 0.5 + y, x))) in
          s |> {BACK[4]} |> mapSeq(x => x + 1.0)""",
    "a step of a fold": f"""
        def p(xs: [6][4]f32) =
          xs |> mapGlb(0, row => row |> reduceSeq((a, x) =>
            let s = (row |> mapSeq(y => y * a) |> toGlobal) in
            s |> {BACK[4]} |> reduceSeq((b, y) => b * 0.5 + y, x), 0.5))""",
    "integers": f"""
        def p(xs: [6][4]i32) =
          xs |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1) |> toGlobal) in
            s |> {BACK[4]} |> mapSeq(x => x * 3))""",
}


def compiled(name: str) -> Compilation:
    """The program of this name."""
    return compile_program(lowered(PROGRAMS[name]))


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_right(runtime: Device, name: str) -> None:
    """Every buffer is poisoned: nothing is read that the work-item has not written."""
    all_right(parse(PROGRAMS[name]), [(name, compiled(name).module)], runtime)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_access_is_proved_inside_and_each_element_has_one_writer(name: str) -> None:
    assert unproved(compiled(name).optimized) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_what_is_held(name: str) -> None:
    """The interpreter sees what is read before it is written, and what two work-items write."""
    made = compiled(name)
    arrays = inputs(parse(PROGRAMS[name]))
    for before, after in zip(made.loops, made.optimized, strict=True):
        values, again = interpret(before, arrays), interpret(after, arrays)
        assert values.keys() == again.keys()
        for buffer, value in values.items():
            np.testing.assert_allclose(again[buffer], value, rtol=1e-6)


@pytest.mark.oclgrind
def test_no_work_item_touches_what_another_one_holds() -> None:
    jobs = [(compiled(name).module, inputs(parse(text))) for name, text in PROGRAMS.items()]
    assert [complaints for _, complaints in check_all_under_oclgrind(jobs)] == [[]] * len(jobs)


def test_each_work_item_has_room_for_one_value() -> None:
    """Five chunks of seven blocks: five rows of three elements, whatever the number of blocks."""
    made = compiled("blocks in turn")
    (buffer,) = (b for b in made.module.buffers if b.role == "temporary")
    assert buffer.shape == (5, 3)
    assert made.module.memory.scratch == 5 * 3 * 4
    assert made.module.memory.peak == (2 * 35 * 3 + 5 * 3) * 4
    assert made.module.memory.local == 0


def test_every_dimension_of_the_launch_counts() -> None:
    (buffer,) = (b for b in compiled("two dimensions").module.buffers if b.role == "temporary")
    assert buffer.shape == (5 * 7, 3)
    (buffer,) = (b for b in compiled("all of a group").module.buffers if b.role == "temporary")
    assert buffer.shape == (6 * 4, 4)


def test_kernels_share_their_scratch() -> None:
    """What one kernel holds is not alive in the next."""
    made = compile_program(
        lowered(f"""
        def p(xs: [6][5]f32) =
          let one = (xs |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> {BACK[5]} |> mapSeq(x => x * 2.0)) |> toGlobal) in
          one |> transpose |> mapGlb(0, column =>
            let t = (column |> mapSeq(x => x + 1.0) |> toGlobal) in
            t |> {BACK[6]} |> mapSeq(x => x))""")
    )
    slots = {b.name: b.slot for b in made.module.buffers}
    (stored,) = slots.keys() - {"xs", "scratch", "scratch1", "output"}
    assert slots["scratch"] in {slots["scratch1"], slots["output"]}
    assert len({slots[stored], slots["scratch1"], slots["output"]}) == 3
    assert made.module.memory.scratch == (30 + 30) * 4


def test_the_result_takes_the_place_of_what_is_no_longer_needed(runtime: Device) -> None:
    """The first value is larger than the result, and no longer needed when that is stored."""
    program = lowered("""
        def p(xs: [7][5]f32) =
          let padded = (xs |> pad(1, 1, 3) |> mapGlb(0, mapSeq(x => x + 1.0)) |> toGlobal) in
          let sums = (padded |> slide(3, 1) |> mapGlb(0, rows =>
            rows |> transpose |> mapSeq(reduceSeq(add, 0.0))) |> toGlobal) in
          sums |> mapGlb(0, mapSeq(x => x * 2.0))""")
    module = compile_program(program).module
    sizes = {b.name: (b.slot, b.bytes) for b in module.buffers if b.role != "input"}
    (first,) = (name for name, (_, size) in sizes.items() if size == 9 * 5 * 4)
    assert sizes["output"] == (sizes[first][0], 7 * 5 * 4)
    assert module.memory.peak == module.memory.allocated == (35 + 45 + 35) * 4
    assert module.memory.scratch == 45 * 4
    xs = np.arange(35, dtype=np.float32).reshape(7, 5)
    rows = np.pad(xs, ((1, 1), (0, 0)), constant_values=3) + 1
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({})
        for _ in range(2):
            got = loaded.run({"xs": xs}, poison=True)
            np.testing.assert_array_equal(got, 2 * (rows[:-2] + rows[1:-1] + rows[2:]))
        assert loaded.allocated_bytes == module.memory.allocated


PAST = """
    def p(xs: [64]f32) =
      let tops = (xs |> pad(40, 40, 0.0) |> mapGlb(0, x => max(x, 0.0)) |> toGlobal) in
      let sums = (tops |> slide(41, 1) |> mapGlb(0, reduceSeq(add, 0.0)) |> toGlobal) in
      sums |> take(96) |> mapGlb(0, x => x - 0.5)"""


@pytest.mark.parametrize("wrong", ["if (get_global_id(0) < 90) output[", "output[1 + "])
def test_a_wrong_store_to_memory_that_was_used_before_is_found(runtime: Device, wrong: str) -> None:
    """The result is smaller than the first value, whose memory it takes."""
    module = compile_program(lowered(PAST)).module
    output, first = module.buffer("output"), module.buffer(module.launches[0].arguments[-1])
    assert (output.slot, output.bytes) == (first.slot, first.bytes - 48 * 4)
    before, last = module.source.split("void k2_output")
    module = replace(module, source=f"{before}void k2_output{last.replace('output[', wrong, 1)}")
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({}, poison=True)
        xs = {"xs": np.ones(64, np.float32)}
        if wrong.startswith("if"):
            assert np.isnan(loaded.run(xs, poison=True)).sum() == 6
        else:
            with pytest.raises(StrayWrite, match="wrote from byte 384 to byte 387 of buffer outp"):
                loaded.run(xs, poison=True)


def test_scratch_of_the_prepare_phase_counts_there() -> None:
    made = compile_program(
        lowered(f"""
        def p(const w: [6][5]f32, xs: [6][5]f32) =
          let one = (w |> mapGlb(0, row =>
            let s = (row |> mapSeq(x => x + 1.0) |> toGlobal) in
            s |> {BACK[5]} |> mapSeq(x => x * 2.0)) |> toGlobal) in
          zip(one, xs) |> mapGlb(0, (ys, zs) => zip(ys, zs) |> mapSeq((y, z) => y * z))""")
    )
    memory = made.module.memory
    assert memory.prepare == (30 + 30 + 30) * 4
    assert (memory.scratch, memory.peak) == (0, (30 + 30 + 30) * 4)


def test_a_value_of_all_work_items_is_refused() -> None:
    with pytest.raises(TypeRefused, match="toGlobal cannot hold the result of mapLcl"):
        compile_program(
            lowered(f"""
            def p(xs: [6][4]f32) =
              xs |> mapWrg(0, row => row |> mapLcl(0, x => x + 1.0) |> toGlobal |> {BACK[4]}
                |> mapLcl(0, x => x))""")
        )
