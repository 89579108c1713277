"""The count model of pooling: published counts as golden numbers, and the published orderings."""

from __future__ import annotations

import pytest

from liftpy.traffic.pooling import FORWARD, MASKED, Costs, PoolTile, pool_counts

# Side of the image and of the result; instructions and iterations of the direct form and of the
# rearranged form; fractals of a load; additions of windows, and of fractals; bytes held by the
# direct form, by the rearranged form, by the latter with its mask, and by the gradient. Windows of
# 3 x 3, stride 2.
COUNTS = [
    (147, 73, (15987, 47961), (9, 6003), 334, 47961, 3006, (862016, 1705280, 3240032, 3931520)),
    (71, 35, (3675, 11025), (9, 1386), 77, 11025, 693, (200512, 392000, 744800, 906112)),
    (35, 17, (867, 2601), (9, 333), 19, 2601, 171, (48448, 92480, 175712, 214912)),
    (17, 8, (192, 576), (9, 72), 4, 576, 36, (11296, 20480, 38912, 48160)),
]
SIZES = (21, 25, 29)
COSTS = (Costs(), Costs(instruction=3, bytes_per_cycle=128))


@pytest.mark.parametrize("case", COUNTS, ids=lambda c: str(c[0]))
def test_the_published_counts(case):
    side, out, direct, rearranged, fractals, added, planes, held = case
    tile = PoolTile((side, side))
    found = {v: pool_counts(tile, v) for v in (*FORWARD, "vadd", "col2im")}
    reduced = {v: found[v].steps["reduce"] for v in ("direct", "im2col")}
    merged = {v: found[v].steps["merge"] for v in ("vadd", "col2im")}
    assert tile.out == (out, out)
    assert (reduced["direct"].instructions, reduced["direct"].iterations) == direct
    assert (reduced["im2col"].instructions, reduced["im2col"].iterations) == rearranged
    assert found["expansion"].steps["reduce"] == reduced["im2col"]
    assert found["im2col"].steps["load"].fractals == 9 * fractals
    assert merged["vadd"].instructions == merged["vadd"].iterations == added
    assert (merged["col2im"].instructions, merged["col2im"].fractals) == (9, planes)
    masked = pool_counts(tile, "im2col", mask=True)
    parts = (found["direct"], found["im2col"], masked, found["col2im"])
    assert tuple(p.held for p in parts) == held


def test_windows_that_are_adjacent_share_a_vector():
    """9 windows of 16 channels in a row are 144 lanes: two iterations."""
    near = pool_counts(PoolTile((11, 11), stride=(1, 1)), "direct").steps["reduce"]
    assert (near.instructions, near.iterations) == (9 * 9, 2 * 9 * 9)


def test_rows_before_columns():
    steps = pool_counts(PoolTile((71, 71)), "split").steps
    assert (steps["width"].instructions, steps["width"].iterations) == (71 * 35, 71 * 35 * 3)
    assert (steps["reduce"].instructions, steps["reduce"].iterations) == (35 * 3, 35 * 3 * 5)


@pytest.mark.parametrize("costs", COSTS, ids=str)
@pytest.mark.parametrize("side", SIZES)
def test_the_published_orderings(costs: Costs, side: int):
    """R5 to R8 of the source, in modelled cycles; rows before columns is measured at stride 2 only.

    R5 and R6: with a stride, rearranged by loads, then rearranged by copies, then direct. R7: at
    stride 1 direct. R8: rows before columns is slower than both, though it has fewer iterations
    than the direct form.
    """
    for stride in (2, 3):
        tile = PoolTile((side, side), stride=(stride, stride))
        cycles = {v: pool_counts(tile, v).cycles(costs) for v in FORWARD}
        assert cycles["im2col"] < cycles["expansion"] < cycles["direct"]
        if stride == 2:
            assert cycles["expansion"] < cycles["split"]
            split, direct = (pool_counts(tile, v).steps for v in ("split", "direct"))
            few = sum(s.iterations for s in split.values())
            assert few < direct["reduce"].iterations
    near = PoolTile((side, side), stride=(1, 1))
    cycles = {v: pool_counts(near, v).cycles(costs) for v in ("direct", "im2col", "expansion")}
    assert min(cycles, key=lambda v: cycles[v]) == "direct"


@pytest.mark.parametrize(
    ("costs", "gains"), [*zip(COSTS, [(3.9, 4.2, 4.9), (4.1, 4.9, 5.5)], strict=True)]
)
def test_the_gains_of_the_second_image(costs: Costs, gains: tuple[float, ...]) -> None:
    """R1 to R3: 3.2 forward, 5 with the mask, 5.8 backward in the source, in this order."""
    tile = PoolTile((71, 71))
    pairs = (("direct", "im2col", False), ("direct", "im2col", True), ("vadd", "col2im", False))
    found = [
        pool_counts(tile, a, mask=m).cycles(costs) / pool_counts(tile, b, mask=m).cycles(costs)
        for a, b, m in pairs
    ]
    assert tuple(round(f, 1) for f in found) == gains
    assert found == sorted(found)


@pytest.mark.parametrize("costs", COSTS, ids=str)
def test_a_mask_takes_many_cycles(costs: Costs) -> None:
    """R4: a mask takes clearly more cycles than the maximum alone; at least a half more."""
    for side in (*SIZES, *(case[0] for case in COUNTS)):
        for variant in ("direct", "im2col"):
            plain, masked = (
                pool_counts(PoolTile((side, side)), variant, mask=m).cycles(costs)
                for m in (False, True)
            )
            assert masked > 1.5 * plain


@pytest.mark.parametrize("costs", COSTS, ids=str)
def test_rearranged_windows_are_fastest_except_at_stride_1(costs: Costs) -> None:
    """R9, for the images of the source: windows repeat elements 9 times at 1, and once at 3."""
    for side in (case[0] for case in COUNTS):
        for stride in (2, 3):
            tile = PoolTile((side, side), stride=(stride, stride))
            cycles = {v: pool_counts(tile, v).cycles(costs) for v in FORWARD}
            assert min(cycles, key=lambda v: cycles[v]) == "im2col"
            back = [pool_counts(tile, v).cycles(costs) for v in ("col2im", "vadd")]
            assert back[0] < back[1]
    element = 32
    for stride, copies in ((1, 9), (2, 9 / 4), (3, 1)):
        tile = PoolTile((999, 999), stride=(stride, stride))
        windows = pool_counts(tile, "im2col").held / element - tile.out[0] * tile.out[1]
        assert windows / 999**2 == pytest.approx(copies, rel=0.01)


def test_a_gradient_moves_its_mask_and_a_mask_is_computed_and_stored():
    tile = PoolTile((11, 11))
    for variant in MASKED:
        plain, masked = (pool_counts(tile, variant, mask=m) for m in (False, True))
        assert masked.moved - plain.moved == masked.held - plain.held == 9 * 25 * 32
        assert masked.steps == plain.steps | {"mask": plain.steps["reduce"]}
    assert pool_counts(tile, "col2im").moved == (121 + 10 * 25) * 32
