"""Versions of loops without guards: they compute the same, and stand where they should."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, greatest, least, nat, var
from liftpy.ir.types import I32
from liftpy.language.text.program import parse
from liftpy.loops import unswitch
from liftpy.loops.bounds import DecidedTest, guards
from liftpy.loops.merge_stores import merge_stores
from liftpy.loops.show import show_kernel
from liftpy.loops.silent_stores import without_silent_stores
from liftpy.loops.terms import in_a_row, where_fails
from liftpy.loops.tree import (
    Assume,
    Block,
    For,
    If,
    Let,
    Statement,
    Store,
)
from liftpy.loops.unswitch import unswitched
from liftpy.loops.values import (
    All,
    Cell,
    Const,
    Name,
    RangeTest,
    Select,
    Value,
)
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.views.terms import Memory
from tests.compile.test_programs import agree, run_lowered
from tests.draws import unproved
from tests.loops.interpreted import interpreted
from tests.lowered import lowered

XS, XSS = "xs: [13]f32", "xss: [5][16]f32"
FOLD = "w |> reduceSeq((a, x) => 2 * a + x, 1)"
VECTOR = "asVector(4) |> mapSeq(mapVec(x => x * 3)) |> asScalar"

# What is read, and how often `? :` stands in the versions without guards and in all.
PROGRAMS = {
    "the guard is known before the loop": (
        XSS,
        f"""xss |> pad2d(2, 1, 0, 0, 9) |> slide(3, 1)
           |> mapGlb(0, rows => rows |> transpose |> mapSeq(w => {FOLD}))""",
    ),
    "the counter alone": (XSS, f"xss |> mapGlb(0, row => row |> pad(4, 4, 9) |> {VECTOR})"),
    "the counter and the row": (
        XSS,
        f"xss |> padClamp(2, 1) |> mapGlb(0, row => row |> padClamp(1, 3) |> {VECTOR})",
    ),
    "the counter in two places": (
        XSS,
        """xss |> mapGlb(0, row => row |> pad(1, 1, 9) |> split(3) |> transpose |> join
           |> mapSeq(x => x + 1))""",
    ),
    "the work-item and the counter": (
        XSS,
        """xss |> pad2d(1, 1, 2, 3, 9) |> slide(3, 1) |> mapGlb(0, rows => rows |> transpose
           |> slide(4, 1) |> mapSeq(w => w |> join |> reduceSeqUnroll((a, x) => 2 * a + x, 1)))""",
    ),
    "one that goes round": (XSS, f"xss |> mapGlb(0, row => row |> padWrap(5, 7) |> {VECTOR})"),
    "one that turns back": (XSS, f"xss |> mapGlb(0, row => row |> padMirror(3, 1) |> {VECTOR})"),
    "for all passes": (
        XS,
        f"xs |> pad(1, 1, 9) |> slide(3, 1) |> mapGlb(0, w => {FOLD})",
    ),
    "loops in a loop": (
        XSS,
        """xss |> mapGlb(0, row => row |> pad(2, 2, 9) |> slide(5, 1)
           |> mapSeq(w => w |> slide(2, 1) |> reduceSeq((a, v) => a + (v |> reduceSeq(
           (b, x) => 2 * b + x, 1)), 0)))""",
    ),
    "local memory": (
        XSS,
        f"""xss |> mapWrg(0, row => row |> pad(1, 1, 9) |> mapLcl(0, x => x + 1) |> toLocal
           |> slide(3, 1) |> mapLcl(0, w => {FOLD}))""",
    ),
}


#: The programs whose guards stay in all versions.
ALIKE = "the counter in two places", "one that turns back", "local memory"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_tests_that_versions_leave_out_are_proved(name: str) -> None:
    params, body = PROGRAMS[name]
    made = compile_program(lowered(f"def p({params}) = {body}")).optimized
    assert unproved(made) == []
    left_out = [g for code in made for g in guards(code) if isinstance(g.decided, DecidedTest)]
    assert bool(left_out) == any("assume" in show_kernel(code) for code in made)
    assert left_out or name in ALIKE


@pytest.mark.parametrize("by", [1, -1])
def test_a_loop_that_is_split_at_a_wrong_iteration_is_found(
    by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = unswitch.turning_point

    def wrong(test: RangeTest, counter: str) -> tuple[int, bool] | None:
        found = right(test, counter)
        return found and (found[0] + by, found[1])

    monkeypatch.setattr(unswitch, "turning_point", wrong)
    params, body = PROGRAMS["the counter alone"]
    made = compile_program(lowered(f"def p({params}) = {body}"))
    assert any(isinstance(g.decided, DecidedTest) and g.fault for g in guards(*made.optimized))
    xss = np.arange(80, dtype=np.float32).reshape(5, 16)
    with pytest.raises(InternalError, match=r"assumes that .*, which it does not"):
        interpreted(made, made.optimized, {"xss": xss})


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_with_versions_is_right(runtime: Device, name: str) -> None:
    params, body = PROGRAMS[name]
    text = f"def p({params}) = {body}"
    got, arrays = run_lowered(text, runtime)
    agree(got, np.asarray(evaluate(parse(text), *arrays)), text)


def test_a_guard_in_a_condition_is_known_too() -> None:
    text = """def p(xss: [5][16]f32) = xss |> mapWrg(0, row => row
      |> mapLcl(0, x => x + 1) |> toLocal |> pad(1, 1, 0) |> slide(3, 1)
      |> mapLcl(0, w => w |> reduceSeq((a, x) => select(x > 3, a + 1, a), 0)))"""
    source = compile_program(lowered(text)).module.source
    free, guarded = source.split("} else {")[:2]
    assert free.count("?") + 1 == guarded.count("?")


def test_a_test_that_a_loop_does_not_change_stands_in_front_of_it() -> None:
    text = "def p(xs: [4][8]f32) = xs |> pad2d(1, 0, 0, 0, 9) |> mapGlb(0, mapSeq(x => x + 1))"
    source = compile_program(lowered(text)).module.source
    assert source.count("if (gid0 - 1 >= 0)") == 1
    assert source.count("?") == 1


def test_where_the_guards_of_the_work_item_hold_the_iterations_are_split() -> None:
    """Intel's compiler crashed on loops whose first and last iterations have guards."""
    params, body = PROGRAMS["the work-item and the counter"]
    source = compile_program(lowered(f"def p({params}) = {body}")).module.source
    free, guarded = source.split("} else {")
    assert free.count("for (") == 3
    assert "?" not in free.partition("int i0 = 2")[2].partition("int i0 = 15")[0]
    assert guarded.count("for (") == 1


def value(
    block: Block, at: dict[str, int], known: Mapping[str, float] = MappingProxyType({})
) -> list[str]:
    """What a block stores, in its order, but for what changes nothing."""
    trace: list[str] = []
    names = dict(known)

    def number(of: Value) -> float:
        match of:
            case Select(condition, then, otherwise):
                return number(then if holds(condition, at) else otherwise)
            case Name(name):
                return names[name]
            case Const(found):
                return found
            case _:
                raise AssertionError(of)

    for s in block:
        match s:
            case For(name, first, bound, step, body):
                for k in range(at[first] if isinstance(first, str) else first, bound, step):
                    trace += value(body, {**at, name: k}, names)
            case If(condition, then, otherwise):
                trace += value(then if holds(condition, at) else otherwise, at, names)
            case Let(name, held):
                names[name] = number(held)
            case Store(_, held, silent):
                if holds(All(silent), at):
                    trace.append(f"{sorted(at.items())} {number(held)}")
            case Assume(holding, failing, same):
                assert all(holds(All((t,)), at) for t in holding)
                assert not any(holds(All((t,)), at) for t in failing)
                assert all(holds(All((t,)), at) == holds(All((other,)), at) for t, other in same)
            case _:
                raise AssertionError(s)
    return trace


def holds(condition: object, at: dict[str, int]) -> bool:
    assert isinstance(condition, All)
    return all(holds_at(t, at) for t in condition.tests)


def holds_at(test: RangeTest, at: dict[str, int]) -> bool:
    """Whether a test holds."""
    index = test.index.value(at)
    return index >= 0 if test.bound is None else index < test.bound


OTHERWISE, LANES = Const(-1, I32), Const(-2, I32)


def stored(held: Value, silent: tuple[RangeTest, ...] = ()) -> Store:
    """A store somewhere."""
    return Store(Cell(Memory("y", "private", I32, 1), nat(0)), held, silent)


def choice(rng: random.Random, counters: dict[str, Nat], number: int) -> tuple[All, Select]:
    """A guarded value, and what guards it."""
    tests: list[RangeTest] = []
    for _ in range(rng.randint(1, 3)):
        parts = [rng.choice([-2, -1, 0, 0, 1, 3]) * c for c in counters.values()]
        index = sum(parts, rng.randint(-4, 4) + var("gid0", 0, 3) * rng.choice([0, 0, 1, 2]))
        if counters and rng.random() < 0.2:  # a counter in two places
            index = index + rng.choice(list(counters.values())) // 2
        tests.append(RangeTest(index, rng.choice([None, rng.randint(-1, 8)])))
    condition = All(tuple(tests))
    return condition, Select(condition, Const(number, I32), OTHERWISE)


def guarded(rng: random.Random, counters: dict[str, Nat], number: int) -> Store:
    """A store of a guarded value; where some of the tests fail, it may change nothing."""
    condition, held = choice(rng, counters, number)
    return stored(held, tuple(t for t in condition.tests if rng.random() < 0.6))


def held(rng: random.Random, counters: dict[str, Nat], number: int) -> list[Statement]:
    """A guarded value in a variable, and what is stored of it."""
    first, last = guarded(rng, counters, number), guarded(rng, counters, number + 20)
    let = Let(f"v{number}", first.value)
    return [let, stored(Name(f"v{number}", I32), (*first.silent, *last.silent[:1])), last]


def stores(rng: random.Random, counters: dict[str, Nat], number: int) -> list[Statement]:
    """Stores in a row, some of them behind tests of their places."""
    made: list[Statement] = []
    for k in range(rng.randint(1, 3)):
        condition, _ = choice(rng, counters, number)
        inner = Block((stored(Const(100 * number + k, I32)),))
        other = Block((stored(LANES),)) if rng.random() < 0.3 else Block()
        nested = If(condition, inner, other)
        if rng.random() < 0.3:
            nested = If(choice(rng, counters, number)[0], Block((nested,)))
        made.append(nested)
    return made


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_versions_make_the_same_stores_in_the_same_order(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    counters = {f"i{depth}": var(f"i{depth}", 0, n - 1) for depth, n in enumerate(lengths)}
    inside: list[Statement] = [guarded(rng, counters, k) for k in range(rng.randint(1, 2))]
    inside += held(rng, counters, 5)
    if rng.random() < 0.5:
        inside += stores(rng, counters, 2)
    for depth, length in reversed(list(enumerate(lengths))):
        first, step = rng.choice([(0, 1), (0, 1), ("gid0", 4)])
        inside = [For(f"i{depth}", first, length, step, Block(tuple(inside)))]
        if rng.random() < 0.4:
            inside.append(guarded(rng, dict(list(counters.items())[:depth]), 10 + depth))
    whole = Block((*inside, *stores(rng, {}, 3)))
    versions = unswitched(merge_stores(whole))
    for gid0 in range(4):
        at = {"gid0": gid0}
        wanted = value(whole, at)
        assert value(versions, at) == wanted
        assert value(without_silent_stores(versions), at) == wanted
        assert value(without_silent_stores(whole), at) == wanted


@pytest.mark.parametrize("each", [-3, -2, -1, 1, 2, 3])
def test_what_is_known_of_a_variable_where_a_test_fails(each: int) -> None:
    for first, low, high, bound in itertools.product(range(-6, 7), (0, 1), (1, 4), (None, 0, 3)):
        test = RangeTest(nat(first) + each * var("x", low, high), bound)
        fails = [x for x in range(low, high + 1) if not holds(All((test,)), {"x": x})]
        found = where_fails(test)
        assert ({n: x.bounds for n, x in found.items()}) == (
            {"x": (min(fails), max(fails))} if fails else {}
        )


STEP, LANE = var("i", 0, 5), var("lane", 0, 3)
ROWS = {
    "straight": STEP * 4 + LANE,
    "held below": greatest(STEP * 4 + LANE - 2, 0),
    "held above": least(STEP * 4 + LANE + 2, 19),
    "held at both ends": least(greatest(STEP * 4 + LANE - 1, 0), 21) + STEP * 32,
    "round": (STEP * 4 + LANE - 3) % 24,
    "twice": greatest(least(STEP * 4 + LANE, 17) - 3, 0),
}


@pytest.mark.parametrize("name", ROWS)
def test_lanes_are_in_a_row_where_the_tests_say_so(name: str) -> None:
    index = ROWS[name]
    found = in_a_row(index, "lane", 4)
    assert found is not None
    first, tests = found
    held = [k for k in range(6) if holds(All(tests), {"i": k})]
    assert held
    for k, lane in itertools.product(held, range(4)):
        assert index.value({"i": k, "lane": lane}) == first.value({"i": k}) + lane


@pytest.mark.parametrize(
    "index", [STEP + 2 * LANE, STEP * 4 - LANE, greatest(LANE, STEP - LANE), LANE // 2]
)
def test_lanes_that_are_never_in_a_row_are_known(index: Nat) -> None:
    assert in_a_row(index, "lane", 4) is None
