"""The model of a GPU: lanes, residency, and lines against those that the loop IR touches."""

from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.ir.nat import var
from liftpy.ir.types import F32
from liftpy.loops.tree import (
    For,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.traffic.gpu import (
    OPERANDS,
    axes_of,
    computing,
    cycles_of,
    kernel_on_gpu,
    loading,
    pieces_of,
    residency_of,
    side_by_side,
)
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.nest import Loop, accesses_in
from liftpy.traffic.reading import Reader
from liftpy.traffic.reuse import Reuse
from liftpy.traffic.subgroups import addresses, lanes
from liftpy.views.terms import Memory
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


XS = Cell(Memory("xs", "global", F32, 1 << 20), var("lid0", 0, 31))
WARPS = replace(HARDWARE, load_bytes=128, cache_line=128, sector=32, line_lookups=4)


@pytest.mark.parametrize(
    ("stride", "cycles"),
    [
        (4, 1),  # one line
        (64, 8),  # 32 sectors of 16 lines
        (128, 8),  # 32 lines in all sets
        (256, 16),  # in two sets of four
        (512, 32),  # in one
        (640, 8),
    ],
)
def test_lines_of_one_set_are_looked_up_one_after_the_other(stride, cycles):
    starts = range(0, 32 * stride, stride)
    assert cycles_of(XS, starts, 4, WARPS) == cycles
    assert cycles_of(XS, [], 4, WARPS) == 1  # no work-item is active


def test_a_vector_of_unknown_alignment_is_loaded_in_pieces():
    words = replace(HARDWARE, unaligned_bytes=4)
    each = [(0, 4), (4, 4), (8, 4), (12, 4)]
    vector, lane = replace(XS, width=4), var("lid0", 0, 31)
    assert [*pieces_of(vector, 0, HARDWARE)] == [(0, 16)]
    assert [*pieces_of(vector, 0, words)] == each
    local = Cell(Memory("l0", "local", F32, 512), 4 * lane, 4)
    assert [*pieces_of(local, 8, words)] == [(0, 16)]  # such arrays are aligned
    assert [*pieces_of(local, 2, words)] == each
    assert [*pieces_of(replace(local, index=lane), 0, words)] == each


def test_an_image_is_loaded_in_texels():
    words = replace(HARDWARE, unaligned_bytes=4)
    texels = Cell(Memory("xs", "image", F32, 512, writable=False), 8 * var("lid0", 0, 31), 8)
    assert [*pieces_of(texels, 0, words)] == [(0, 16), (16, 16)]
    assert [*pieces_of(replace(texels, width=1), 0, words)] == [(0, 4)]


def test_work_items_beyond_a_loop_load_nothing():
    few = For("i", "lid0", 3, 8, ())
    items = [*lanes((8, 1, 1), 8, "lid")]
    cell = replace(XS, index=var("i", 0, 2))
    assert addresses(cell, (few,), items) == [0, 4, 8]


def test_groups_share_the_local_memory_of_a_unit():
    code = tiled()
    roomy = replace(HARDWARE, resident_items=1024, register_bytes=1 << 20)
    one = sum(4 * m.length for m in code.locals)
    groups = [
        residency_of(code, replace(GPU, compute_units=1), replace(roomy, **limit)).at_once
        for limit in ({"unit_local_memory": 3 * one}, {"resident_groups": 2}, {})
    ]
    assert groups == [3, 2, 4]  # all groups are on the unit


def test_sums_without_a_register_are_loaded_and_stored_at_each_operation():
    code = tiled()  # 16 sums of 4 bytes
    counts, placed = counts_of(code)
    each = sum(width * n for width, n in counts.operations.items()) * placed.subgroups
    enough, few = (
        loading(counts, code, placed, replace(HARDWARE, item_register_bytes=OPERANDS + 4 * n))
        for n in (16, 12)
    )
    assert [b - a for a, b in zip(enough, few, strict=True)] == [each / 4 * 2] * 2


def test_a_subgroup_begins_one_instruction_in_a_cycle():
    code = tiled()
    counts, placed = counts_of(code)
    fast = replace(HARDWARE, instructions=4, flops_per_cycle=128)
    each = sum(width * n for width, n in counts.operations.items()) * placed.subgroups
    for resident, at_once in ((1, 1), (3, 3), (6, 3), (8, 4)):  # 6: two schedulers have one each
        few = replace(placed, at_once=resident)
        assert computing(counts, code, few, fast, 6.0) == (each + 6) / at_once


def test_groups_that_are_alone_wait_for_what_they_load():
    code, alone = tiled(), replace(HARDWARE, resident_groups=1)
    few, slow = (replace(alone, load_latency=n) for n in (30, 40))
    one, longer = (kernel_on_gpu(code, GPU, h) for h in (few, slow))
    assert one.cycles == one.alone > one.operations + one.loads
    assert one.spent(HARDWARE.levels[1:]).keys() == {"latency"}
    groups = residency_of(code, GPU, alone).groups
    # of two chunks, each of 4 items copies 4 numbers in a loop that begins at an id, and 3 x 4 in
    # one from 0, whose iterations load together, as those of the sums do
    assert longer.alone - one.alone == pytest.approx(10 * groups * 2 * (4 + 3 + 1))
    many = kernel_on_gpu(code, GPU, replace(HARDWARE, resident_groups=64, resident_items=1024))
    assert many.alone < one.alone


def tiled():
    """A product with tiles in local memory."""
    sizes = {"tile0": 4, "tile1": 16, "sigma": 4, "kappa": 4, "chunk": 3, "v": 1, "gap": 0}
    text = """
def m(a: [16][6]f32, b: [6][16]f32) =
  a |> map(r => b |> transpose |> map(s => zip(r, s) |> map(mul) |> reduce(add, 0)))"""
    return code_of(text, family="cooperative", buffers="1", **sizes)


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
