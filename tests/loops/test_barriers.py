"""A barrier stands exactly where two work-items of a group may touch one address and one writes."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.composition import skeletons_with
from liftpy.rewrite.forms import as_declared
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import workload
from tests.constraints.faults import kernels
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.opencl.waits import BARRIER, is_race, without_barriers
from tests.workloads.references import CASES

GROUP = "xs |> split(12) |> mapWrg(0, tile => {}) |> join"
#: Programs over [24]f32, each with how many barriers it has.
PROGRAMS = {
    "a map shorter than the group, its own elements": (
        GROUP.format(
            "concat(tile |> take(4) |> mapLcl(0, x => x + 1) |> toLocal, tile |> drop(4))"
            " |> mapLcl(0, x => x * 2)"
        ),
        0,
    ),
    "a map longer than the group, its own elements": (
        GROUP.format(
            "tile |> split(3) |> mapLcl(0, row => row |> reduceSeq(add, 0)) |> toLocal |> (sums =>"
            " zip(tile |> mapLcl(0, x => x * 2) |> toLocal, tile) |> mapLcl(0, (x, y) => x * y))"
        ),
        0,
    ),
    "a map longer than the group, neighbours": (
        GROUP.format(
            "tile |> mapLcl(0, x => x) |> toLocal |> slide(3, 1)"
            " |> mapLcl(0, w => w |> reduceSeq(add, 0))"
        ),
        1,
    ),
    "a map shorter than the group, shared": (
        GROUP.format(
            "tile |> split(3) |> mapLcl(0, w => w |> mapSeq(x => x)) |> join |> toLocal"
            " |> mapLcl(0, x => x + 1)"
        ),
        1,
    ),
    "a tile of pairs": (
        GROUP.format(
            "tile |> mapLcl(0, x => (x, x + 1)) |> toLocal |> reorder(i => 11 - i, i => 11 - i)"
            " |> mapLcl(0, (x, y) => x * y)"
        ),
        1,
    ),
    "two tiles": (
        GROUP.format(
            "zip(tile |> mapLcl(0, x => x) |> toLocal, tile |> mapLcl(0, x => x + 1) |> toLocal)"
            " |> reorder(i => 11 - i, i => 11 - i) |> mapLcl(0, (x, y) => x * y)"
        ),
        1,
    ),
    "a tile of a tile": (
        GROUP.format(
            "tile |> mapLcl(0, x => x) |> toLocal |> reorder(i => 11 - i, i => 11 - i)"
            " |> mapLcl(0, x => x + 1) |> toLocal |> slide(3, 1)"
            " |> mapLcl(0, w => w |> reduceSeq(add, 0))"
        ),
        2,
    ),
    "a tile in a loop": (
        GROUP.format(
            "tile |> split(6) |> mapSeq(part => part |> mapLcl(0, x => x) |> toLocal"
            " |> reorder(i => 5 - i, i => 5 - i) |> mapLcl(0, x => x)) |> join"
        ),
        2,
    ),
    "tiles of fewer groups than are launched": (
        " |> join, ".join(
            f"{part} |> split(12) |> mapWrg(0, tile => tile |> mapLcl(0, x => x) |> toLocal"
            " |> reorder(i => 11 - i, i => 11 - i) |> mapLcl(0, x => x + 1))"
            for part in ("concat(xs", "xs |> take(12)")
        )
        + " |> join)",
        2,
    ),
    "a tile of a tile in a loop": (
        GROUP.format(
            "tile |> split(6) |> mapSeq(part => part |> mapLcl(0, x => x) |> toLocal"
            " |> reorder(i => 5 - i, i => 5 - i) |> mapLcl(0, x => x + 1) |> toLocal"
            " |> reorder(i => 5 - i, i => 5 - i) |> mapLcl(0, x => x)) |> join"
        ),
        2,
    ),
}


def module_of(body: str) -> Module:
    """A kernel of a program over [24]f32."""
    return compile_program(lowered(f"def p(xs: [24]f32) = {body}")).module


def stands_exactly(source: str) -> None:
    """No race, no barrier too many, none beside another, and two work-items in each witness."""
    assert not is_race(source), source
    for less in without_barriers(source):
        assert is_race(less), source
    assert not re.search(rf"{re.escape(BARRIER)}[^\n]*\n[ }}\n]*{re.escape(BARRIER)}", source)
    for line in source.splitlines():
        if BARRIER in line:
            one, two = line.split("is touched at", 1)[1].split(" and at ")
            assert re.findall(r"lid\d = \d+", one) != re.findall(r"lid\d = \d+", two), line


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_barrier_stands_exactly_where_it_is_needed(name: str) -> None:
    body, count = PROGRAMS[name]
    source = module_of(body).source
    assert source.count(BARRIER) == count, source
    stands_exactly(source)


def grown(seed: int) -> str:
    """Some tiles of tiles of 12 elements, each read in another order, now and then in a loop."""
    random = Random(seed)

    def fill(value: str) -> str:
        n = random.choice((1, 1, 2, 3))
        if n == 1:
            return f"{value} |> mapLcl(0, x => x + 1)"
        return f"{value} |> split({n}) |> mapLcl(0, r => r |> mapSeq(x => x * 2)) |> join"

    def read(value: str) -> str:
        order = random.choice(("i", "i", "{0} - i", "(i + 5) % {1}", "i * 5 % {1}"))
        back = {"(i + 5) % {1}": "(i + {2}) % {1}", "i * 5 % {1}": "i * 5 % {1}"}.get(order, order)
        size = 12 if not looped else 6
        both = (text.format(size - 1, size, size * 5 - 5) for text in (order, back))
        return f"{value} |> reorder(i => {next(both)}, i => {next(both)})"

    looped = random.random() < 0.4
    value = "part" if looped else "tile"
    for _ in range(random.randint(1, 3)):
        value = read(f"{fill(value)} |> toLocal")
        if random.random() < 0.3:
            value = f"zip({value}, {read(fill(value) + ' |> toLocal')}) |> mapSeq((x, y) => x - y)"
    value = fill(value)
    if looped:
        value = f"tile |> split(6) |> mapSeq(part => {value}) |> join"
    return GROUP.format(value)


SEEDS = range(20)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_barriers_of_random_tiles_stand_exactly_where_they_are_needed(seed: int) -> None:
    stands_exactly(module_of(grown(seed)).source)


def test_random_tiles_have_none_and_several_barriers() -> None:
    assert [module_of(grown(s)).source.count(BARRIER) for s in (2, 0, 4, 13)] == [0, 2, 3, 4]


@pytest.mark.oclgrind
def test_oclgrind_sees_no_race_and_the_results_are_right() -> None:
    bodies = [body for body, _ in PROGRAMS.values()] + [grown(seed) for seed in SEEDS[:6]]
    x = np.arange(24, dtype=np.float32)
    modules = [module_of(body) for body in bodies]
    checked = check_all_under_oclgrind([(m, {m.parameters[0]: x}) for m in modules])
    for body, (got, complaints) in zip(bodies, checked, strict=True):
        assert complaints == [], body
        np.testing.assert_array_equal(got, evaluate(parse(f"def p(xs: [24]f32) = {body}"), x))


def test_barriers_of_every_program_with_windows_stand_exactly_where_they_are_needed() -> None:
    """Of their family `local`: no other stages in local memory."""
    waiting = 0
    for family, (sizes, _) in CASES.items():
        head, colon, layout = family.partition(":")
        program = workload(f"{head}/{'x'.join(map(str, sizes))}{colon}{layout}")
        made = [
            skeleton
            for cut in as_declared(program)
            if cut.is_whole
            for skeleton in skeletons_with(cut, cut.stages[0], ("local",), lambda _: True)
        ]
        space = Space.of(program, DEFAULT_DEVICE, made[::3])
        for candidate in space.sample(2, seed=1):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            (kernel,) = kernels(module.source)
            waiting += BARRIER in kernel
            stands_exactly(kernel)
    assert waiting > 1
