"""Values held while a block of what reads them is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.draw import Space
from liftpy.ir.program import Program
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.loops.values import (
    Operate,
)
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.composition import skeletons, stage_skeletons
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import HELD
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategy import replay
from liftpy.semantics.evaluate import evaluate
from tests.compile.test_programs import all_right
from tests.draws import draws, tried
from tests.fuzz.generator import inputs
from tests.loops.interpret import Machine
from tests.oclgrind import check_all_under_oclgrind
from tests.rewrite.test_partition import nameless
from tests.spaces import derived, some_of
from tests.subsample import first

PRODUCT = "{} |> map(a => {} |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"
ROWS = """map(row =>
    let most = (row |> reduce(maximum, -inf)),
        powers = (row |> map(x => exp((x - most) * 0.125))),
        sum = (powers |> reduce(add, 0))
    in powers |> map(p => p / sum))"""

PROGRAMS = {
    "two products": f"""
        def p(x: [7][12]f32, w: [8][12]f32, u: [6][8]f32) =
          let one = ({PRODUCT.format("x", "w")}) in {PRODUCT.format("one", "u")}""",
    "three products, of constants": f"""
        def p(x: [6][8]f32, const w: [4][8]f32, const u: [8][4]f32, const v: [4][8]f32) =
          let one = ({PRODUCT.format("x", "w")}),
              two = ({PRODUCT.format("one", "u")})
          in {PRODUCT.format("two", "v")}""",
    "attention": f"""
        def p(q: [3][8][4]f32, k: [3][16][4]f32, v: [3][16][8]f32) =
          let scores = (zip(q, k) |> map((qs, ks) => {PRODUCT.format("qs", "ks")})),
              weights = (scores |> map({ROWS}))
          in zip(weights, v) |> map((ws, vs) => {PRODUCT.format("ws", "(vs |> transpose)")})""",
    "windows and their largest": """
        def p(x: [8][10][4]f32, const w: [8][3][3][4]f32) =
          let one = (x |> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1) |> map2d(window =>
                w |> map(kernel => max(zip(window |> join |> join, kernel |> join |> join)
                  |> map(mul) |> reduce(add, 0), 0))))
          in one |> slide2d(2, 2)
            |> map2d(w => w |> join |> transpose |> map(reduce(maximum, -inf)))""",
    "a value beside others": """
        def p(x: [5][8]f32, y: [5]f32, z: [5][6]f32) =
          let rows = (zip(x, z) |> map((r, s) =>
                s |> map(b => r |> reduce((a, e) => a * b - e, 0))))
          in zip(zip(y, rows), z) |> map((t, s) =>
            s |> map(e => t.1 |> reduce((a, b) => a * 0.5 - b, e * t.0)))""",
    "groups": """
        def p(x: [12][6]f32) =
          let sums = (x |> map(row => row |> reduce((a, e) => a * 0.5 + e, 0)))
          in sums |> split(3) |> map(group => group |> map(e => e * 2) |> reduce(add, 0))""",
}

PROGRAMS["something done to each element"] = f"""
    def p(x: [6][8]f32, w: [4][8]f32, u: [8][4]f32, c: [4]f32) =
      let one = ({PRODUCT.format("x", "w")})
      in {PRODUCT.format("one |> map(row => zip(c, row) |> map((b, e) => b - 2 * e))", "u")}"""

PROGRAMS["a value fused into one that is held"] = f"""
    def p(x: [6][8]f32, w: [4][8]f32, u: [8][4]f32, c: [4]f32) =
      let one = ({PRODUCT.format("x", "w")}),
          two = (one |> map(row => zip(c, row) |> map((b, e) => b - 2 * e)))
      in {PRODUCT.format("two", "u")}"""

PROGRAMS["a view that reads twice, in groups"] = f"""
    def p(x: [6][4]f32, w: [5][4]f32) =
      let one = ({PRODUCT.format("x", "w")})
      in one |> map(row => zip(row, row |> pad(1, 0, 0) |> take(5))) |> split(2)
        |> map(group => group |> map(row => row |> map((a, b) => a - 2 * b) |> reduce(add, 0))
          |> reduce((a, b) => a * 0.5 - b, 0))"""

SUM = "map2d(window => window |> join |> reduce((a, e) => a * 0.5 + e, 0))"

PROGRAMS["blocks with a halo"] = f"""
    def p(x: [8][11]f32) =
      let one = (x |> padClamp2d(1, 1, 1, 1) |> slide2d(3, 1) |> {SUM})
      in one |> padClamp2d(1, 1, 1, 1) |> slide2d(3, 1) |> {SUM}"""

PROGRAMS["a halo of a halo"] = """
    def p(x: [41]f32) =
      let one = (x |> slide(4, 1) |> map(w => w |> reduce((a, e) => a * 0.5 + e, 0))),
          two = (one |> slide(5, 1) |> map(w => w |> reduce((a, e) => a * 0.5 - e, 0)))
      in two |> slide(4, 2) |> map(w => w |> reduce((a, e) => e - a * 0.5, 0))"""

for border in ("padMirror", "padWrap"):
    PROGRAMS[f"a halo and {border}"] = f"""
        def p(x: [12][5]f32) =
          let one = (x |> map(reduce((a, e) => a * 0.5 + e, 0)))
          in one |> {border}(2, 1) |> slide(4, 1)
            |> map(w => w |> reduce((a, e) => a * 0.5 - e, 0))"""

REFUSED = {
    "windows that overlap a pad": """
        def p(x: [8][4]f32) =
          let one = (x |> map(reduce(add, 0)))
          in one |> pad(1, 1, 0) |> slide(3, 1) |> map(reduce(add, 0))""",
    "in another order": """
        def p(x: [8][4]f32, w: [4][4]f32) =
          let one = (x |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0))))
          in one |> transpose |> map(reduce(add, 0))""",
    "folded": """
        def p(x: [8][4]f32) =
          let one = (x |> map(reduce(add, 0))) in one |> reduce(add, 0)""",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_held_values_are_right(runtime: Device, name: str, kept: Path) -> None:
    program = parse(PROGRAMS[name])
    drawn = draws(program, first(), 2, kept, ("blocked",))
    assert drawn
    named = ((d.label, d.module) for d in tried(drawn, program, runtime))
    all_right(program, named, runtime)


@pytest.mark.slow
@pytest.mark.oclgrind
@pytest.mark.sampled(2)
@pytest.mark.parametrize("half", [0, 1])
def test_a_group_of_many_items_has_no_race_and_no_stray_access(half: int) -> None:
    """Of each program a block that several work-items make."""
    made = []
    for text in [*PROGRAMS.values()][half::2]:
        program = parse(text)
        skeleton = some_of(program, "blocked", 1, items="many")[0]
        points = Space(collect(skeleton, DEFAULT_DEVICE)).draws(0)
        modules = (compile_candidate(skeleton, p) for p in points)
        made.append((program, next(m for m in modules if work_items(m) > 1)))
    all_right_under_oclgrind(made)


def all_right_under_oclgrind(made: list[tuple[Program, Module]]) -> None:
    """Modules of programs are right, and Oclgrind finds no race and no stray access in them."""
    assert made
    arrays = [inputs(program) for program, _ in made]
    expected = [evaluate(p, *a.values()) for (p, _), a in zip(made, arrays, strict=True)]
    jobs = [(module, a) for (_, module), a in zip(made, arrays, strict=True)]
    for (got, complaints), right in zip(check_all_under_oclgrind(jobs), expected, strict=True):
        assert complaints == []
        np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def work_items(module: Module) -> int:
    """The work-items of a group of the last launch."""
    return int(np.prod(module.launches[-1].local_size or (1,)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivations_replay(name: str) -> None:
    program = parse(PROGRAMS[name])
    found = some_of(program, "blocked", 4)
    assert found
    for skeleton in found:
        *_, (_, last) = replay(skeleton.derivation.start, skeleton.derivation.steps)
        assert nameless(last) == nameless(skeleton.program.body.body)


def test_a_let_in_the_function_of_the_reader_has_no_block_inside_this_function() -> None:
    program = parse("""
        def p(x: [6][8]f32) =
          let sums = (x |> map(row => row |> slide(3, 1) |> map(reduce(add, 0))))
          in sums |> map(row => let squares = (row |> map(s => s * s)) in
            zip(row, squares) |> map((s, q) => q - s))""")
    form = FAMILIES["blocked"].match(program)
    assert not isinstance(form, str)
    assert {dict(choices)["inside"] for choices in form.choices()} == {"0"}


def test_no_held_value_is_in_global_memory() -> None:
    """Scores and weights of a block are in local memory; keys in columns are global."""
    words = {"hold": "local", "items": "one", "weights.arrays": "local", "scores.rows": "columns"}
    made = next(
        s
        for s in derived(parse(PROGRAMS["attention"]), ("blocked",))
        if words.items() <= s.words.items()
    )
    scores = {"scores.kappa": 16, "scores.sigma": 2, "scores.v": 8}
    result = {"result.kappa": 8, "result.sigma": 4, "result.v": 8}
    weights = {"weights.strip": 8, "weights.v": 8}
    module = compile_candidate(made, {"block": 4, **scores, **result, **weights})
    assert len(module.launches) == 2
    assert module.memory.scratch == 3 * 16 * 4 * 4
    assert module.memory.local == (4 * 16 + 4 * 16 + 16) * 4


def test_a_work_item_holds_one_block_at_a_time_in_scratch() -> None:
    """Twelve rows: two work-items make three blocks of two rows each, in room for a block each."""
    text = PROGRAMS["two products"].replace("[7][12]", "[12][12]")
    words = {"hold": "global", "one.form": "direct", "result.form": "direct"}
    made = next(s for s in skeletons(parse(text), ("blocked",)) if words.items() <= s.words.items())
    one = {"one.kappa": 8, "one.sigma": 2, "one.v": 8}
    result = {"result.kappa": 6, "result.sigma": 1, "result.v": 2}
    for turns, items in ((1, 6), (3, 2), (6, 1)):
        module = compile_candidate(made, {"block": 2, "turns": turns, **one, **result})
        (launch,) = module.launches
        assert launch.global_size == (items, 1, 1)
        assert module.memory.scratch == items * 2 * 8 * 4
        assert module.memory.local == 0


def test_the_largest_block_is_the_whole_map() -> None:
    skeleton = derived(parse(PROGRAMS["two products"]), ("blocked",))[0]
    assert {p.name: p.high for p in skeleton.parameters} == {
        "block": 7,
        "one.kappa": 8,
        "one.sigma": 7,
        "one.v": 16,
        "result.kappa": 6,
        "result.sigma": 7,
        "result.v": 16,
    }
    assert len(chain(skeleton.program).run) == 1


def test_choices_and_sizes_have_the_name_of_the_held_value() -> None:
    """Also where the program gives it none, as the cut is called then."""
    text = (
        f"def p(x: [6][8]f32, w: [4][8]f32, u: [5][4]f32) = ({PRODUCT}) |> map(a => u |> map(b => "
    )
    program = parse(text.format("x", "w") + "zip(a, b) |> map(mul) |> reduce(add, 0)))")
    skeleton = skeletons(program, ("blocked",))[0]
    assert skeleton.words["stage1"] == HELD
    assert {"stage1.form", "result.form"} <= skeleton.words.keys()
    assert {p.name.partition(".")[0] for p in skeleton.parameters} == {"block", "stage1", "result"}


def test_what_is_done_to_each_element_is_fused_into_what_is_held() -> None:
    """The held value has register blocks, and its elements are those that the reader wants."""
    program = parse(PROGRAMS["a value fused into one that is held"])
    words = [dict(p.words) for p in partitions(program)]
    assert {"one": "fused", "two": "held"} in words
    assert {"one": "held", "two": "fused"} in words
    for skeleton in derived(program, ("blocked",)):
        value = next(name for name in ("one", "two") if skeleton.words[name] == HELD)
        assert skeleton.words[f"{value}.form"] == "direct"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_element_by_element_is_not_held(name: str) -> None:
    words = [word for p in partitions(parse(REFUSED[name])) for _, word in p.words]
    assert HELD not in words


def test_two_families_alone_hold_values() -> None:
    program = parse(PROGRAMS["two products"])
    for partition in partitions(program):
        for stage in partition.stages:
            families = {s.family for s in stage_skeletons(partition, stage)}
            assert (families == {"blocked", "banded"}) == stage.holds
    rows = parse("def p(x: [6][4]f32) = x |> map(reduce(add, 0))")
    assert skeletons_of(FAMILIES["blocked"], rows) == "blocked: no value is held"


class Counting(Machine):
    """Counts how often work-items compute an operator, each lane of a vector for itself."""

    op = "exp"
    count_of_op = 0

    def operate(self, value: Operate, who: NDArray[Any]) -> NDArray[Any]:
        if value.op == self.op:
            self.count_of_op += int(who.sum()) * value.width
        return super().operate(value, who)


def test_the_arrays_of_a_row_may_be_held() -> None:
    """Each power is computed once, and lies in private or in local memory until it is divided.

    Where they are not held, they are computed again to be divided.
    """
    program = parse(f"def p(x: [6][32]f32) = x |> {ROWS}")
    x = np.random.default_rng(0).random((6, 32), np.float32)
    made = {s.words["arrays"]: s for s in skeletons(program, ("rows",))}
    assert made.keys() == {"again", "private", "local"}
    for arrays, skeleton in made.items():
        compilation = compile_program(skeleton.at({"strip": 8, "v": 4, "turns": 1}))
        (code,) = compilation.optimized
        machine = Counting(code, {"x": x})
        machine.block(code.block, machine.everybody)
        assert (machine.count_of_op > x.size) == (arrays == "again")
        assert machine.count_of_op >= x.size
        assert compilation.module.memory.local == (32 * 4 if arrays == "local" else 0)
        assert compilation.module.memory.scratch == 0


ONE = "let one = (x |> slide(3, 1) |> map(w => exp(w |> reduce(add, 0))))"
FOLD = "map(reduce((a, e) => a * 0.5 + e, 0))"
SHARED: dict[str, tuple[str, Callable[[int], int]]] = {
    "windows": (f"def p(x: [36]f32) = {ONE} in one |> slide(3, 1) |> {FOLD}", lambda b: b + 2),
    "steps": (f"def p(x: [67]f32) = {ONE} in one |> slide(3, 2) |> {FOLD}", lambda b: 2 * b + 1),
    "gaps": (f"def p(x: [127]f32) = {ONE} in one |> slide(1, 4) |> {FOLD}", lambda b: b),
    "windows of windows": (
        f"""
        def p(x: [40]f32) = {ONE}, two = (one |> slide(5, 1) |> {FOLD}) in
          two |> slide(3, 1) |> {FOLD}""",
        lambda b: b + 6,
    ),
    "rows": (
        f"""
        def p(x: [34][7]f32) =
          let one = (x |> slide2d(3, 1) |> map2d(w => exp(w |> join |> reduce(add, 0)))) in
          one |> padClamp2d(1, 1, 1, 1) |> slide2d(3, 1) |> {SUM}""",
        lambda b: (b + 2) * 5,
    ),
}
"""Programs with 32 results or rows, and the elements of `one` that a block of them computes."""


@pytest.mark.parametrize("block", [1, 4, 32])
@pytest.mark.parametrize("name", SHARED)
def test_a_block_computes_what_its_windows_share_once(name: str, block: int) -> None:
    """Besides its own elements, a block computes only its halo."""
    text, count = SHARED[name]
    program = parse(text)
    words = {"one": HELD, "two": HELD, "inside": "0", "hold": "local", "items": "one"}
    words |= {"one.vector": "no", "one.tail": "none"}
    held = derived(program, ("blocked",))
    skeleton = next(s for s in held if all(s.words.get(n, w) == w for n, w in words.items()))
    points = Space(collect(skeleton, DEFAULT_DEVICE)).draws(0)
    point = next(p for p in points if p["block"] == block)
    (code,) = compile_program(skeleton.at(point)).optimized
    small = {name: array * np.float32(1e-3) for name, array in inputs(program).items()}
    machine = Counting(code, small)
    machine.block(code.block, machine.everybody)
    assert machine.count_of_op == 32 // block * count(block)


def test_many_values_of_a_block_have_common_choices_and_sizes() -> None:
    """Each has two choices of two words: 256 combinations of four values, 16 of two."""
    step = f"padClamp2d(1, 1, 1, 1) |> slide2d(3, 1) |> {SUM}"
    many = parse(f"""
        def p(x: [16][32]f32) =
          let one = (x |> {step}), two = (one |> {step}), three = (two |> {step})
          in three |> {step}""")
    words = {"one": HELD, "two": HELD, "three": HELD, "inside": "0", "hold": "local"}
    found = [s for s in derived(many, ("blocked",)) if words.items() <= s.words.items()]
    assert found
    names = ("one", "two", "three", "result")
    for skeleton in found:
        for choice in ("form", "flat", "vector"):
            assert len({skeleton.words[f"{name}.{choice}"] for name in names}) == 1
        assert {p.name for p in skeleton.parameters} <= {
            *("block", "tiled.tile0", "tiled.tile1", "tiled.v"),
        }
    few = parse(f"""
        def p(x: [16][32]f32) = let one = (x |> {step}) in one |> {step}""")
    mixed = [s.words for s in derived(few, ("blocked",)) if "one.vector" in s.words]
    both = {(w["one.flat"], w["one.vector"], w["result.flat"], w["result.vector"]) for w in mixed}
    assert len(both) == 16
