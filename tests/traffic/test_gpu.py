"""The model of a GPU: lanes, residency, and lines against those that the loop IR touches."""

from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.traffic.gpu import axes_of, kernel_on_gpu, loading, residency_of, side_by_side
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.nest import Loop, accesses_in
from liftpy.traffic.reading import Reader
from liftpy.traffic.reuse import Reuse
from tests.traffic.test_reading import codes_of, items, touched

GPU = replace(DEFAULT_DEVICE, type="GPU", vector_width=4, compute_units=3)
HARDWARE = replace(
    hardware_of(GPU),
    subgroup=4,
    load_bytes=64,
    cache_line=64,
    resident_items=32,
    register_bytes=4096,
)
N, M = 13, 24
DATA = "def t(xs: [640]f32, js: [32]i32) = js |> map(j => (xs |> at(j)) + 1)"
PRODUCT = f"""
def m(a: [{N}][{M}]f32, b: [17][{M}]f32) =
  a |> map(r => b |> map(s => zip(r, s) |> map(mul) |> reduce(add, 0)))"""
TRANSPOSED = f"def t(x: [{N}][{M}]f32) = x |> transpose |> map(map(neg))"


def code_of(text, **fixed):
    (code,) = codes_of(lp.space(lp.parse(text), GPU).candidate(fixed))
    return code


def counts_of(code):
    placed = residency_of(code, GPU, HARDWARE)
    names, *_ = axes_of(code, placed)
    reader = Reader("gid0")
    reader.block(code.block, names, [])
    return reader.counts, placed


def test_adjacent_work_items_load_one_line_and_strided_ones_a_line_each():
    code = code_of(TRANSPOSED, family="plain", map="glb1.glb0")  # dimension 0: along a column of x
    counts, placed = counts_of(code)
    load, store = counts.cells
    assert load.cell.memory.name == "x"
    assert store.stores
    assert store.cell.memory.name == "output"
    assert loading(counts, code, placed, HARDWARE)[1] == placed.subgroups * (4 + 1)
    wide = replace(HARDWARE, load_bytes=32)  # half a line in a cycle
    assert loading(counts, code, placed, wide)[1] == placed.subgroups * (8 + 2)


def test_a_group_that_no_subgroup_divides_leaves_lanes_unused():
    code = code_of(TRANSPOSED, family="plain", map="wrg0.lcl0")
    placed = residency_of(code, GPU, HARDWARE)
    assert placed.group == N
    assert placed.groups == M // 3  # on each of 3 units
    assert placed.subgroups == placed.groups * 4
    assert placed.used == kernel_on_gpu(code, GPU, HARDWARE).used == N / 16
    assert placed.at_once == 2  # 32 lanes, 16 for each group


def test_places_that_are_data_are_taken_to_be_far_apart():
    code = code_of(DATA, family="plain", map="glb0")
    counts, placed = counts_of(code)
    loads = {place.cell.memory.name for place in counts.cells if not place.stores}
    assert loads == {"xs", "js"}
    assert loading(counts, code, placed, HARDWARE)[1] == placed.subgroups * (4 + 1 + 1)


def test_registers_and_the_limit_of_a_unit_bound_the_work_items_at_once():
    code = code_of(f"def t(x: [{30 * N}]f32) = x |> map(neg)", family="plain", map="glb0")
    private = max(1, int(code.kernel.demand.private))
    assert residency_of(code, GPU, HARDWARE).resident == 32
    few = replace(HARDWARE, register_bytes=9 * (private + 64))
    assert residency_of(code, GPU, few).resident == 8  # whole subgroups


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        (TRANSPOSED, {"family": "plain", "map": "glb1.glb0"}),
        (TRANSPOSED, {"family": "plain", "map": "glb0.seq"}),
        (TRANSPOSED, {"family": "plain", "map": "wrg0.lcl0"}),
        (
            PRODUCT,
            {"family": "plain", "map": "glb1.glb0"},
        ),
    ],
)
def test_the_lines_of_all_units_are_those_that_the_kernel_touches(text, fixed):
    code = code_of(text, **fixed)
    placed = residency_of(code, GPU, HARDWARE)
    names, batches, together, shares = axes_of(code, placed)
    body = side_by_side(Reader("gid0").block(code.block, names, []), together)
    for axis in batches:
        body = (Loop(axis.name, axis.trips, body),)
    reuse = Reuse(body, 64, frozenset(axis for axis, _ in shares))
    seen = {}
    for at in items(code):
        for name, line in touched(code.block, at):
            seen.setdefault(name, set()).add(line)
    fetched = reuse.fetched(1 << 30)
    assert fetched.keys() == seen.keys() == {access.array for access in accesses_in(body)}
    for array, lines in seen.items():  # batches may be larger than what is left
        assert len(lines) <= fetched[array] <= 2 * len(lines) + 1


def test_a_gap_behind_each_row_avoids_conflicts_of_banks():
    """Four work-items store numbers that are 4 apart: all in one bank of four; 5 apart: in each."""
    banks = replace(HARDWARE, load_bytes=16)
    text = """
def m(a: [4][8]f32, b: [8][16]f32) =
  a |> map(r => b |> transpose |> map(s => zip(r, s) |> map(mul) |> reduce(add, 0)))"""
    sizes = {"tile0": 4, "tile1": 16, "sigma": 4, "kappa": 4, "chunk": 4, "v": 1}
    for gap, rounds in ((0, 4), (1, 1)):
        code = code_of(text, family="cooperative", buffers="1", gap=gap, **sizes)
        counts, placed = counts_of(code)
        rows, columns = ([c for c in counts.cells if c.cell.memory == m] for m in code.locals)
        assert [m.length for m in code.locals] == [4 * (4 + gap), 4 * (16 + gap)]
        for cells, each in ((rows, rounds), (columns, 1)):
            counts.cells[:] = [c for c in cells if c.stores]
            stores, cycles = loading(counts, code, placed, banks)
            assert stores > 0
            assert cycles == each * stores
