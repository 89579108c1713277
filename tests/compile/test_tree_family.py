"""The family `tree`: which stages it takes, and that every drawn candidate is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.loops.tree import (
    Barrier,
    statements_in,
)
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import workload
from tests.arrays import distinct_integers
from tests.draws import unproved
from tests.loops.interpreted import interpreted
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of

FAMILY = "tree"
LATER = "fun later(x: i32, y: i32) = select(y == 0, x, y) laws associative, neutral 0\n"
SOFTMAX = """
  let most = (row |> reduce(maximum, -inf)),
      powers = (row |> map(x => exp((x - most) * 0.01))),
      sum = (powers |> reduce(add, 0))
  in powers |> map(p => p / sum)"""

Arrays = list[np.ndarray]
Reference = Callable[[Arrays], np.ndarray | tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Case:
    """A program, and its result computed by NumPy in float64."""

    text: str
    reference: Reference
    trees: int = 1
    """The number of trees in its first kernel."""
    scans: bool = False

    @property
    def program(self) -> Program:
        """The program."""
        return parse(self.text)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of distinct small integers, so that their sums are exact."""
        return distinct_integers(self.program)

    def check(self, got: Any, label: str) -> None:
        """Compare a result with the reference: integers exactly."""
        wanted = self.reference([a.astype(np.float64) for a in self.arrays.values()])
        parts = got if isinstance(got, tuple) else (got,)
        wholes = wanted if isinstance(wanted, tuple) else (wanted,)
        for one, other in zip(parts, wholes, strict=True):
            exact = np.array_equal(other, np.round(other))
            bound = 0 if exact else 1e-6 * np.abs(other).max()
            np.testing.assert_allclose(one, other, rtol=0, atol=bound, err_msg=label)


def softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp((rows - rows.max(axis=-1, keepdims=True)) * 0.01)
    return powers / powers.sum(axis=-1, keepdims=True)


def later_before(numbers: np.ndarray, first: float) -> np.ndarray:
    """The last number other than 0 before each place, or the first one if there is none."""
    found = []
    for number in numbers:
        found.append(first)
        first = number or first
    return np.array(found)


def normalised(rows: np.ndarray) -> np.ndarray:
    apart = rows - rows.mean(axis=1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(axis=1, keepdims=True) + 0.5)


CASES = {
    "a scalar product": Case(
        "def p(xs: [211]f32, ys: [211]f32) = zip(xs, ys) |> map(mul) |> reduce(add, 3)",
        lambda given: given[0] @ given[1] + 3,
    ),
    "two results": Case(
        "def p(xs: [97]f32) = (xs |> reduce(maximum, -inf), xs |> reduce(add, 0))",
        lambda given: (given[0].max(), given[0].sum()),
    ),
    "an operator that does not commute": Case(
        f"{LATER}def p(xs: [91]f32) = xs |> map(x => i32(x) % 3) |> reduce(later, 7)",
        lambda given: [r for r in np.fmod(given[0], 3) if r][-1],
    ),
    "rows": Case(
        "def p(a: [5][53]f32, x: [53]f32, y: [5]f32) = zip(a, y) |> map((row, b) =>"
        " 2 * (zip(row, x) |> map(mul) |> reduce(add, 0)) + b)",
        lambda given: 2 * given[0] @ given[1] + given[2],
    ),
    "columns": Case(
        "def p(a: [31][3]f32) = a |> transpose |> map(reduce(maximum, -inf))",
        lambda given: given[0].max(axis=0),
    ),
    "pairs of rows": Case(
        "def p(a: [5][23]f32) = a"
        " |> map(row => (row |> reduce(add, 0), row |> reduce(maximum, -inf)))",
        lambda given: (given[0].sum(axis=1), given[0].max(axis=1)),
        trees=2,
    ),
    "softmax of heads": Case(
        f"def p(a: [2][3][29]f32) = a |> map(map(row => {SOFTMAX}))",
        lambda given: softmax(given[0]),
        trees=2,
    ),
    "a scan": Case(
        "def p(xs: [101]f32) = xs |> scan(add, 3)",
        lambda given: given[0].cumsum() + 3,
        scans=True,
    ),
    "a scan before each element, by an operator that does not commute": Case(
        f"{LATER}def p(xs: [91]f32) = xs |> map(x => i32(x) % 3) |> exclusiveScan(later, 7)",
        lambda given: later_before(np.fmod(given[0], 3), 7),
        scans=True,
    ),
    "normalised": Case(
        """def p(a: [3][37]f32) = a |> map(row =>
             let mean = (row |> reduce(add, 0)) / 37,
                 variance = (row |> map(x => (x - mean) * (x - mean)) |> reduce(add, 0)) / 37
             in row |> map(x => (x - mean) / sqrt(variance + 0.5)))""",
        lambda given: normalised(given[0]),
        trees=2,
    ),
}


@cache
def some_skeletons(name: str) -> list[Skeleton]:
    """Some of the family's skeletons of a case, for all devices."""
    return some_of(CASES[name].program, FAMILY, 4)


@cache
def space(name: str, device: Device) -> Space:
    """Their candidates."""
    return Space.of(CASES[name].program, device, some_skeletons(name))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", list(CASES))
def test_every_drawn_candidate_is_right(runtime: Device, name: str) -> None:
    case = CASES[name]
    with Session(runtime) as session:
        for candidate in space(name, runtime).sample(2, seed=5):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                loaded.set_constants({})
                case.check(loaded.run(case.arrays, poison=True), candidate.label)


def local_bytes(candidate: Candidate, trees: int, row: int) -> int:
    """The local memory of a candidate: an element for each item, and for each result after it."""
    steps, held = int(candidate.assignment["steps"]), candidate.assignment.get("arrays") == "local"
    return 4 * (trees * (int(candidate.assignment["group"]) + 2**steps - 2) + row * held)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", list(CASES))
def test_each_step_has_a_barrier_and_half_of_the_results(name: str) -> None:
    case = CASES[name]
    for candidate in space(name, DEFAULT_DEVICE).sample(2, seed=2):
        made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
        first = next(code for code in made.optimized if code.locals)
        steps = int(candidate.assignment["steps"])
        barriers = sum(isinstance(part, Barrier) for part in statements_in(first.block))
        assert steps * case.trees <= barriers <= (steps + 1) * case.trees
        assert sum(m.length for m in first.locals) * 4 == local_bytes(candidate, case.trees, 29)
        assert first.local_size == (candidate.assignment["group"], 1, 1)
        assert not unproved(made.optimized)
        case.check(interpreted(made, made.optimized, case.arrays), candidate.label)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.scans])
def test_a_scan_halves_totals_and_doubles_what_items_begin_with(name: str) -> None:
    (candidate,) = space(name, DEFAULT_DEVICE).sample(1, seed=3)
    made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
    scan, steps = made.optimized[-1], int(candidate.assignment["steps"])
    barriers = sum(isinstance(part, Barrier) for part in statements_in(scan.block))
    assert barriers == 2 * steps
    lengths = sorted(memory.length for memory in scan.locals)
    halves = [2**k for k in range(1, steps)]
    assert lengths == sorted(2 * [*halves, candidate.assignment["group"]])


@pytest.mark.oclgrind
@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
def test_oclgrind_has_no_complaint(part: int) -> None:
    jobs, cases = [], []
    for name, case in [*CASES.items()][part::4]:
        for candidate in space(name, DEFAULT_DEVICE).sample(1, seed=7):
            jobs.append((compile_candidate(candidate.skeleton, candidate.assignment), case.arrays))
            cases.append((candidate.label, case))
    for (label, case), (got, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], label
        case.check(got, label)


def test_an_operator_that_does_not_commute_folds_adjacent_elements() -> None:
    made = skeletons_of(FAMILIES[FAMILY], CASES["an operator that does not commute"].program)
    assert not isinstance(made, str), made
    assert {dict(skeleton.choices)["strided"] for skeleton in made} == {"no"}


def test_results_of_groups_are_folded_by_an_item_or_by_another_group() -> None:
    sizes = {"steps": "4", "strided": "yes", "group": 11, "chunk": 3}
    launches = {}
    for last in ("item", "group"):
        settings = {"family": FAMILY, **sizes, "last": last}
        candidate = candidate_of(CASES["a scalar product"].program, DEFAULT_DEVICE, settings)
        module = compile_candidate(candidate.skeleton, candidate.assignment)
        launches[last] = [launch.global_size[0] for launch in module.launches]
    assert launches == {"item": [77, 1], "group": [77, 11, 1]}


REFUSED = {
    "def p(xs: [97]f32) = xs |> reduce((a, x) => a * 0.5 + x, 0)": (
        "its folds cannot be divided (reduce_extension: the function is not declared neutral)"
    ),
    "def p(xs: [7]f32) = xs |> reduce(add, 0)": "a group has at least 9 items for 7 elements",
    "def p(xs: [97]f32) = xs |> map(x => x + 1)": "no fold makes the result or a part of each row",
    "def p(xs: [97]f32) = xs |> slide(25, 1) |> map(reduce(add, 0))": (
        "windows are folded, whose elements a work-item reuses"
    ),
    "def p(a: [9][9]f32) = a |> map(x => a |> map(y => zip(x, y) |> map(mul) |> reduce(add, 0)))": (
        "the folds of a row read the same for each element"
    ),
    "def p(a: [9][9]f32) = a |> map(x => (x |> reduce(add, 0), x |> map(y => y * 2)))": (
        "a part of each row is made by no map"
    ),
    "def p(a: [9][9]f32) = concat(a |> map(reduce(add, 0)), a |> map(reduce(add, 0)))": (
        "several maps next to each other make the result"
    ),
    "def p(a: [9][9]f32) = a |> map(x => x |> scan(add, 0) |> reduce(maximum, -inf))": (
        "a scan or an iteration of a row is made by one work-item"
    ),
    """def p(a: [5][9][11]f32) = a |> map(rows =>
         rows |> reduce((s, row) => zip(s, row) |> map(add), 0 |> repeat(11))
           |> map(x => x * 2) |> reduce(maximum, 0))""": (
        "the folded array is in registers of one work-item, which its group cannot read"
    ),
    "def p(a: [2][2][2][2][9]f32) = a |> map(map(map(map(reduce(add, 0)))))": (
        "rows in more than 3 dimensions"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_stages_are_refused_with_the_reason(text: str) -> None:
    assert skeletons_of(FAMILIES[FAMILY], parse(text)) == f"{FAMILY}: {REFUSED[text]}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["mali-g72", "adreno-650"])
@pytest.mark.parametrize("program", ["dot/1048576", "matvec/64x1000"])
def test_draws_keep_the_limits_of_a_profile(name: str, program: str) -> None:
    device = find_device(f"profile:{name}")
    of = workload(program)
    drawn = Space.of(of, device, some_of(of, FAMILY, 4)).sample(6, seed=11)
    assert len({c.label for c in drawn}) == 6
    for candidate in drawn:
        (first, *_) = compile_candidate(candidate.skeleton, candidate.assignment).launches
        assert first.local_size is not None
        assert first.local_size[0] <= device.max_work_group_size


def test_only_the_space_of_a_device_with_local_memory_has_it_unnamed() -> None:
    assert FAMILY in families_for(DEFAULT_DEVICE)
    assert FAMILY not in families_for(replace(DEFAULT_DEVICE, type="CPU"))
