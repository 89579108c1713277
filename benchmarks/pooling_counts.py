"""Modelled counts of pooling on DaVinci, beside published speedups. No device is needed.

    python benchmarks/pooling_counts.py

The model is `liftpy.traffic.pooling`, the analysis by C. S. Rohwedder (dissertation, Unicamp 2021).
The first table has a row for each image of Inception-v3, with one block of 16 channels, windows of
3 x 3 and stride 2. `forward` is the modelled speedup of `im2col` over `direct`, and `backward` that
of `col2im` over `vadd`. The second table has the modelled cycles, in thousands, of each forward
variant for an image of 29 x 29 and each stride.
"""

from __future__ import annotations

import argparse

from liftpy.traffic.pooling import FORWARD, Costs, PoolTile, Variant, pool_counts

IMAGES = (147, 71, 35, 17)
STRIDES = (1, 2, 3)
SIDE = 29
COSTS = Costs()


def ratio(tile: PoolTile, slow: Variant, fast: Variant) -> float:
    """How many times fewer cycles the second variant takes."""
    return pool_counts(tile, slow).cycles(COSTS) / pool_counts(tile, fast).cycles(COSTS)


def main() -> None:
    """Prints both tables in Markdown."""
    argparse.ArgumentParser(description="counts of pooling").parse_args()
    print(
        "| image | direct | im2col | Im2Col fractals | vadd | Col2Im fractals "
        "| forward | backward |"
    )
    print(f"|{' --- |' * 8}")
    for side in IMAGES:
        tile = PoolTile((side, side))
        direct, rearranged = (pool_counts(tile, v).steps for v in ("direct", "im2col"))
        added, planes = (pool_counts(tile, v).steps["merge"] for v in ("vadd", "col2im"))
        cells = [
            f"{s['reduce'].instructions} / {s['reduce'].iterations}" for s in (direct, rearranged)
        ]
        cells += [str(n) for n in (rearranged["load"].fractals, added.iterations, planes.fractals)]
        gains = ratio(tile, "direct", "im2col"), ratio(tile, "vadd", "col2im")
        print(f"| {side} x {side} | {' | '.join(cells)} | {gains[0]:.1f} | {gains[1]:.1f} |")
    print(f"\n| stride | {' | '.join(FORWARD)} |\n|{' --- |' * (1 + len(FORWARD))}")
    for stride in STRIDES:
        tile = PoolTile((SIDE, SIDE), stride=(stride, stride))
        cycles = [f"{pool_counts(tile, v).cycles(COSTS) / 1000:.1f}" for v in FORWARD]
        print(f"| {stride} | {' | '.join(cycles)} |")


if __name__ == "__main__":
    main()
