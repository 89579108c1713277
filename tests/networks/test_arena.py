"""Placement of blocks in an arena, against exhaustive search and a checker of its own."""

import random

import pytest

from liftpy.networks.arena import Block, conflict, end_of, greedy, lower_bound, place


def drawn(seed, most=5, least=2):
    rng = random.Random(seed)
    blocks = []
    for k in range(rng.randint(least, most)):
        first = rng.randrange(6)
        blocks.append(Block(f"b{k}", rng.randint(1, 7), first, first + rng.randrange(4)))
    return blocks


def used(blocks, offsets):
    """The bytes in use, byte by byte and step by step; None if one is used twice."""
    taken = set()
    for b in blocks:
        for step in range(b.first, b.last + 1):
            for byte in range(offsets[b.name], offsets[b.name] + b.bytes):
                if (step, byte) in taken:
                    return None
                taken.add((step, byte))
    return max(byte for _, byte in taken) + 1


def least(blocks):
    """The size of the smallest arena, by trying all offsets that are sums of sizes."""
    sums = {0}
    for b in blocks:
        sums |= {s + b.bytes for s in sums}
    best = sum(b.bytes for b in blocks)

    def search(k, offsets, top):
        nonlocal best
        if top >= best:
            return
        if k == len(blocks):
            best = top
            return
        b = blocks[k]
        for at in sorted(sums):
            end = at + b.bytes
            clear = all(
                not b.meets(o) or end <= offsets[o.name] or offsets[o.name] + o.bytes <= at
                for o in blocks[:k]
            )
            if clear:
                search(k + 1, {**offsets, b.name: at}, max(top, end))

    search(0, {}, 0)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_a_greedy_placement_is_valid_and_known_to_be_optimal_only_if_it_is(seed):
    blocks = drawn(seed)
    found = place(blocks)
    assert used(blocks, found.offsets) == found.bytes
    assert conflict(blocks, found.offsets, found.bytes) is None
    sums = [sum(b.bytes for b in blocks if b.first <= k <= b.last) for k in range(12)]
    assert found.bound == lower_bound(blocks) == max(sums)
    if found.proved:
        assert found.bytes == least(blocks)


@pytest.mark.parametrize("seed", range(24))
def test_the_solver_finds_the_smallest_arena(seed):
    solver = pytest.importorskip("liftpy.networks.solver", exc_type=ImportError)
    blocks = drawn(1000 + seed)
    hint = {}
    for b in blocks:  # a bad one, so that the solver has to work
        hint[b.name] = sum(o.bytes for o in blocks[: blocks.index(b)])
    offsets, proved = solver.smallest(blocks, lower_bound(blocks), hint)
    assert used(blocks, offsets) == least(blocks)
    assert proved


def test_the_solver_improves_what_greedy_cannot():
    solver = pytest.importorskip("liftpy.networks.solver", exc_type=ImportError)
    harder = [blocks for s in range(100) if not place(blocks := drawn(s, 20, 12)).proved]
    assert len(harder) > 5
    better = 0
    for blocks in harder:
        found = place(blocks, solve=solver.smallest)
        assert used(blocks, found.offsets) == found.bytes
        assert found.proved
        better += found.bytes < end_of(blocks, greedy(blocks))
    assert better > 3


def test_the_gap_before_the_first_block_is_used():
    """XNNPACK's planner left it: 240 bytes instead of 180."""
    blocks = [Block("a", 60, 0, 1), Block("b", 120, 1, 2), Block("c", 60, 2, 3)]
    assert place(blocks).bytes == 180


def test_offsets_are_aligned_and_sizes_are_rounded_up():
    blocks = [Block("a", 5, 0, 2), Block("b", 130, 1, 2), Block("c", 64, 0, 0)]
    found = place(blocks, 64)
    assert found.bytes == found.bound == 64 + 192
    assert all(at % 64 == 0 for at in found.offsets.values())
    assert conflict(blocks, found.offsets, found.bytes, 64) is None


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"a": 0, "b": 32, "c": 0}, "a at 0 and b at 32 share bytes 32 to 63"),
        ({"a": 0, "b": 64, "c": 0}, "a at 0 and c at 0 share bytes 0 to 31"),
        ({"a": 0, "b": 64, "c": 192}, "c at 192 with 32 bytes is not within 192 bytes"),
        ({"a": -1, "b": 64, "c": 0}, "a at -1"),
        ({"a": 0, "b": 64, "c": 130}, "c at 130 is not at a multiple of 32"),
    ],
)
def test_the_checker_finds_each_kind_of_error(offsets, message):
    blocks = [Block("a", 64, 0, 3), Block("b", 64, 2, 2), Block("c", 32, 3, 4)]
    assert message in conflict(blocks, offsets, 192, 32)


def test_no_blocks_need_no_arena():
    assert place([]).bytes == 0
    assert place([]).proved
