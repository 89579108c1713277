"""What the models count of arrays that subgroups hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from liftpy.constraints.profile import profile
from liftpy.explore.one_candidate import candidate_of
from liftpy.language.text.program import parse
from liftpy.loops.tree import If, statements_in
from liftpy.loops.values import SUBGROUP_LOCAL_ID, SUBGROUP_SIZE
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import chain_of, compile_program, counted_loops_of
from liftpy.traffic.energy import executed
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.reading import Reader
from liftpy.traffic.subgroups import with_subgroups_of
from liftpy.traffic.time import modelled

M, K, N = 12, 64, 96
PROGRAM = parse(
    f"def product(a: [{M}][{K}]f32, b: [{K}][{N}]f32) = a |> map(row => b |> transpose |> "
    "map(column => zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))"
)
DEVICE = profile("mali-g610").device
SIZES = {"sigma": 3, "kappa": 4, "group": 24, "chunk": 16, "v": 4}


def lowered():
    """The product by subgroups."""
    chosen = candidate_of(PROGRAM, DEVICE, {"family": "broadcast", "chunks": "even", **SIZES})
    return chosen.skeleton.at(chosen.point)


def counted(size):
    """The counts of a work-item where subgroups have a size."""
    cut = chain_of(lowered())
    (code,) = counted_loops_of(cut.run, buffer_names(cut))
    sized = with_subgroups_of(code, size)
    reader = Reader("lid0", sized.regular, sized.ranges, size)
    reader.block(sized.block, {}, [])
    return reader.counts


@pytest.mark.parametrize("size", [1, 4, 15, 16, 64])
def test_a_row_is_loaded_once_for_a_subgroup_that_is_large_enough(size: int) -> None:
    """A group of 24 has no subgroup of 64."""
    own = 1 if size >= SIZES["chunk"] else SIZES["chunk"]
    places = (place for place in counted(size).cells if place.cell.memory.name == "a")
    loads = sum(place.times * len(place.shifts) for place in places)
    assert loads == K // SIZES["chunk"] * own * SIZES["sigma"]


def test_a_broadcast_is_one_operation_of_each_work_item() -> None:
    large, small = counted(16).operations, counted(8).operations
    assert large[1] - small.get(1, 0) == K * SIZES["sigma"]
    assert large[4] == small[4]


@pytest.mark.parametrize("size", [1, 8, 16, 24])
def test_the_size_of_subgroups_decides_all_tests_on_it(size: int) -> None:
    code = compile_program(lowered()).optimized[0]
    sized = with_subgroups_of(code, size)
    assert any(isinstance(s, If) for s in statements_in(code.block))
    assert not any(isinstance(s, If) for s in statements_in(sized.block))
    names = {n for s in statements_in(sized.block) if hasattr(s, "names") for n in s.names}
    assert not {SUBGROUP_SIZE, SUBGROUP_LOCAL_ID} & names
    assert executed(sized, size)["*", "f32"] == M * K * N


def test_the_model_takes_a_device_with_small_subgroups_to_load_more() -> None:
    hardware = hardware_of(DEVICE)
    assert hardware.subgroup == SIZES["chunk"]
    large = modelled(lowered(), DEVICE, hardware)
    small = modelled(lowered(), DEVICE, replace(hardware, subgroup=4))
    assert large.issued < small.issued
