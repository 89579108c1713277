"""Reductions over parallel maps: a work-group copies tiles of both operands in every step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.loops.bounds import bounds
from liftpy.loops.writers import shared_stores
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import Compilation, compile_program
from tests.loops.interpreted import interpreted, nests_of
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.opencl.waits import BARRIER, is_race, without_barriers


@dataclass(frozen=True)
class Tiled:
    """A matrix product `rows x depth x columns` in tiles of `tile` rows and columns.

    A work-item has a block of `block` rows and columns, and each step reads `chunk` of the depth.
    """

    rows: int
    depth: int
    columns: int
    tile: tuple[int, int]
    chunk: int
    block: tuple[int, int]

    @property
    def text(self) -> str:
        """The program: tiles cover the result, and the depth is padded to whole chunks."""
        (down, right), (tall, wide) = self.tile, self.block
        more = -self.depth % self.chunk
        return f"""
def product(a: [{self.rows}][{self.depth}]f32, b: [{self.depth}][{self.columns}]f32) =
  a |> map(pad(0, {more}, 0.0)) |> cover({down}) |> mapWrg(1, rows =>
    b |> transpose |> map(pad(0, {more}, 0.0)) |> cover({right}) |> mapWrg(0, columns =>
      zip(rows |> transpose |> split({self.chunk}), columns |> transpose |> split({self.chunk}))
        |> reduceSeq((acc, chunks) =>
             (chunks.0 |> mapLcl(1, row => row |> mapLcl(0, x => x)) |> toLocal) |> (left =>
             (chunks.1 |> mapLcl(1, row => row |> mapLcl(0, x => x)) |> toLocal) |> (right =>
             zip(acc, left |> transpose |> split({tall})) |> mapLcl(1, (blocks, few) =>
               zip(blocks, right |> transpose |> split({wide})) |> mapLcl(0, (block, lines) =>
                 zip(few |> transpose, lines |> transpose)
                   |> reduceSeq((sums, pair) =>
                        zip(sums, pair.0) |> mapSeq((line, x) =>
                          zip(line, pair.1) |> mapSeq((sum, y) => sum + x * y)), block))))),
             generate({down // tall}, i => 0) |> mapLcl(1, z =>
               generate({right // wide}, j => 0) |> mapLcl(0, z =>
                 generate({tall}, i => generate({wide}, j => 0.0)) |> mapSeq(mapSeq(x => x)))))
        |> mapLcl(1, blocks => blocks |> mapLcl(0, block => block |> mapSeq(mapSeq(x => x))))
        |> map(transpose) |> join |> map(join)) |> transpose |> map(uncover({self.columns})))
    |> uncover({self.rows})
"""

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Operands of distinct small numbers, so that sums are exact."""
        a = np.arange(self.rows * self.depth).reshape(self.rows, self.depth) - 31
        b = (np.arange(self.depth * self.columns) * 7).reshape(self.depth, self.columns) % 4099
        return {"a": a.astype(np.float32), "b": b.astype(np.float32)}

    @property
    def expected(self) -> np.ndarray:
        """The product in float64."""
        a, b = (x.astype(np.float64) for x in self.arrays.values())
        return np.einsum("ik,kj->ij", a, b)


CASES = {
    "tiles divide all": Tiled(6, 10, 12, (6, 6), 5, (2, 3)),
    "nothing divides": Tiled(7, 11, 13, (6, 4), 3, (3, 2)),
    "more elements in a tile than work-items": Tiled(11, 17, 7, (8, 6), 8, (4, 3)),
    "fewer elements in a tile than work-items": Tiled(13, 5, 11, (12, 10), 1, (1, 1)),
    "one step": Tiled(5, 3, 7, (5, 7), 3, (1, 7)),
    "groups of one dimension": Tiled(5, 7, 11, (2, 6), 4, (2, 1)),
    "groups of one work-item": Tiled(5, 7, 3, (4, 3), 2, (4, 3)),
}


@cache
def compiled(name: str) -> Compilation:
    """A case, compiled."""
    return compile_program(lowered(CASES[name].text))


def run(device: Device, module: Module, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The module's result, with all memory poisoned first."""
    with Session(device) as session, session.load(module) as loaded:
        loaded.set_constants({})
        return loaded.run(arrays, poison=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(CASES))
def test_a_product_by_tiles_is_right(runtime: Device, name: str) -> None:
    case = CASES[name]
    module = compiled(name).module
    np.testing.assert_array_equal(run(runtime, module, case.arrays), case.expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(CASES))
def test_every_stage_of_the_loop_ir_is_right_and_inside_its_memories(name: str) -> None:
    case = CASES[name]
    made = compiled(name)
    for kernels in (*nests_of(made).values(), made.loops, made.optimized):
        np.testing.assert_array_equal(interpreted(made, kernels, case.arrays), case.expected)
    assert all(b.way for code in made.optimized for b in bounds(code))
    assert not any(map(shared_stores, made.optimized))


@pytest.mark.parametrize("name", list(CASES))
def test_a_work_item_holds_its_block_and_a_group_both_tiles(name: str) -> None:
    case = CASES[name]
    memory = compiled(name).module.memory
    assert memory.private == 4 * case.block[0] * case.block[1]
    assert memory.local == 4 * case.chunk * sum(case.tile)


@pytest.mark.parametrize("name", list(CASES))
def test_barriers_stand_exactly_where_they_are_needed(name: str) -> None:
    """After the tiles are filled, and before they are filled again."""
    source = compiled(name).module.source
    expected = {"one step": 1, "groups of one work-item": 0}.get(name, 2)
    assert source.count(BARRIER) == expected
    assert not is_race(source)
    assert all(map(is_race, without_barriers(source)))


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint() -> None:
    jobs = [(compiled(name).module, case.arrays) for name, case in CASES.items()]
    checked = check_all_under_oclgrind(jobs)
    for (name, case), (got, complaints) in zip(CASES.items(), checked, strict=True):
        assert complaints == [], name
        np.testing.assert_array_equal(got, case.expected)


#: Folds over parallel maps that are refused, each with the reason.
REFUSED = {
    # a group waits in every step, but its work-items make different numbers of steps
    "the barrier of some work-items": (
        (
            "mapWrg(0, tile => tile |> split(5) |> mapLcl(0, part => part |> reduceSeq((acc, x) =>"
            " generate(3, i => x) |> mapSeq(y => y) |> toLocal |> reduceSeq(add, acc), 0.0)))"
        ),
        "toLocal must be inside a mapWrg and outside every mapLcl",
    ),
    "an initial value that is not divided": (
        (
            "mapWrg(0, tile => tile |> split(5) |> reduceSeq((acc, part) =>"
            " zip(acc, part) |> mapLcl(0, (x, y) => x + y), generate(5, i => 0.0)))"
        ),
        r"its initial value is not made by mapLcl\(0\)",
    ),
    "an accumulator of another size than the group": (
        (
            "mapWrg(0, tile => concat(tile |> take(4) |> mapLcl(0, x => x), tile |> split(5)"
            " |> reduceSeq((acc, part) => zip(acc, part) |> mapLcl(0, (x, y) => x + y),"
            " generate(5, i => 0.0) |> mapLcl(0, x => x)) |> mapLcl(0, x => x)))"
        ),
        r"has 5 elements over mapLcl\(0\), and a work-group has 4 work-items",
    ),
    "the element of a neighbour": (
        (
            "mapWrg(0, tile => tile |> split(5) |> reduceSeq((acc, part) =>"
            " zip(acc |> reorder(i => 4 - i, i => 4 - i), part) |> mapLcl(0, (x, y) => x + y),"
            " generate(5, i => 0.0) |> mapLcl(0, x => x)) |> mapLcl(0, x => x))"
        ),
        "private memory cannot be indexed by lid0",
    ),
    "groups inside a step": (
        (
            "reduceSeq((acc, part) => zip(acc, part) |> mapWrg(0, (x, y) => x + y),"
            " generate(15, i => 0.0))"
        ),
        "reduceSeq cannot hold the result of mapWrg",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_work_items_would_have_to_share_is_refused(name: str) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(TypeRefused, match=reason):
        compile_program(lowered(f"def p(xs: [30]f32) = xs |> split(15) |> {body}"))
