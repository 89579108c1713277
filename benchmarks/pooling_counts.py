"""Modelled counts of pooling on DaVinci, beside published speedups. No device is needed.

    python benchmarks/pooling_counts.py
    python benchmarks/pooling_counts.py --claim R5

The model is `liftpy.traffic.pooling`, the analysis by C. S. Rohwedder (dissertation, Unicamp 2021).
The first table has a row for each image of Inception-v3, with one block of 16 channels, windows of
3 x 3 and stride 2. `forward` is the modelled speedup of `im2col` over `direct`, and `backward` that
of `col2im` over `vadd`. The second table has the modelled cycles, in thousands, of each forward
variant for an image of 29 x 29 and each stride. The third has the claims of the source; `--claim`
prints one of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from liftpy.traffic.pooling import FORWARD, Costs, PoolTile, Variant, pool_counts

IMAGES = (147, 71, 35, 17)
STRIDES = (1, 2, 3)
SIDE = 29
COSTS = Costs()


LARGEST = PoolTile((71, 71))  # of the images that the source times


def cycles(tile: PoolTile, variant: Variant, *, mask: bool = False) -> float:
    """The modelled cycles of a variant."""
    return pool_counts(tile, variant, mask=mask).cycles(COSTS)


def ratio(tile: PoolTile, slow: Variant, fast: Variant, *, mask: bool = False) -> float:
    """How many times fewer cycles the second variant takes."""
    return cycles(tile, slow, mask=mask) / cycles(tile, fast, mask=mask)


def at(stride: int) -> PoolTile:
    """Windows of 3 x 3 of the image of the second table."""
    return PoolTile((SIDE, SIDE), stride=(stride, stride))


def order(stride: int, variants: tuple[Variant, ...] = FORWARD) -> str:
    """The variants of an image from the fastest to the slowest, with thousands of cycles."""
    found = sorted((cycles(at(stride), v) / 1000, v) for v in variants)
    return ", ".join(f"{v} {n:.1f}" for n, v in found)


def masks() -> str:
    """For two variants, the cycles with a mask divided by those without one."""
    found = {v: cycles(LARGEST, v, mask=True) / cycles(LARGEST, v) for v in ("direct", "im2col")}
    return ", ".join(f"{v} {n:.1f} times as many" for v, n in found.items())


TIMED: tuple[Variant, ...] = ("direct", "im2col", "expansion")
CLAIMS: dict[str, tuple[str, str, Callable[[], str]]] = {
    "R1": (
        "forward, im2col over direct",
        "3.2",
        lambda: f"{ratio(LARGEST, 'direct', 'im2col'):.1f}",
    ),
    "R2": (
        "forward with mask, im2col over direct",
        "5",
        lambda: f"{ratio(LARGEST, 'direct', 'im2col', mask=True):.1f}",
    ),
    "R3": ("backward, col2im over vadd", "5.8", lambda: f"{ratio(LARGEST, 'vadd', 'col2im'):.1f}"),
    "R4": ("cycles with a mask", "clearly more", masks),
    "R5": (
        "strides 2 and 3",
        "im2col, expansion, direct",
        lambda: f"{order(2, TIMED)}; {order(3, TIMED)}",
    ),
    "R6": (
        "im2col over expansion, strides 2 and 3",
        "faster",
        lambda: ", ".join(f"{ratio(at(s), 'expansion', 'im2col'):.1f}" for s in (2, 3)),
    ),
    "R7": ("stride 1", "direct is fastest", lambda: order(1, TIMED)),
    "R8": ("stride 2, split", "slower than im2col and expansion", lambda: order(2)),
    "R9": (
        "fastest of those timed at strides 1, 2 and 3",
        "im2col except at 1",
        lambda: ", ".join(order(s, TIMED).split()[0] for s in STRIDES),
    ),
}


def claims(names: list[str]) -> Iterator[str]:
    """The claims of the source with what the model finds, in Markdown."""
    yield "| claim | about | source | model |"
    yield f"|{' --- |' * 4}"
    for name in names:
        of, said, found = CLAIMS[name]
        yield f"| {name} | {of} | {said} | {found()} |"


def counts() -> Iterator[str]:
    """The counts of the images of Inception-v3, in Markdown."""
    yield (
        "| image | direct | im2col | Im2Col fractals | vadd | Col2Im fractals "
        "| forward | backward |"
    )
    yield f"|{' --- |' * 8}"
    for side in IMAGES:
        tile = PoolTile((side, side))
        direct, rearranged = (pool_counts(tile, v).steps for v in ("direct", "im2col"))
        added, planes = (pool_counts(tile, v).steps["merge"] for v in ("vadd", "col2im"))
        cells = [
            f"{s['reduce'].instructions} / {s['reduce'].iterations}" for s in (direct, rearranged)
        ]
        cells += [str(n) for n in (rearranged["load"].fractals, added.iterations, planes.fractals)]
        gains = ratio(tile, "direct", "im2col"), ratio(tile, "vadd", "col2im")
        yield f"| {side} x {side} | {' | '.join(cells)} | {gains[0]:.1f} | {gains[1]:.1f} |"


def by_stride() -> Iterator[str]:
    """The cycles of an image at each stride, in Markdown."""
    yield f"| stride | {' | '.join(FORWARD)} |"
    yield f"|{' --- |' * (1 + len(FORWARD))}"
    for stride in STRIDES:
        thousands = [f"{cycles(at(stride), v) / 1000:.1f}" for v in FORWARD]
        yield f"| {stride} | {' | '.join(thousands)} |"


def main() -> None:
    """Prints the tables in Markdown."""
    parser = argparse.ArgumentParser(description="counts of pooling")
    parser.add_argument("--claim", choices=CLAIMS, help="print only this claim of the source")
    given = parser.parse_args()
    if given.claim:
        print(*claims([given.claim]), sep="\n")
        return
    print(*counts(), "", *by_stride(), "", *claims([*CLAIMS]), sep="\n")


if __name__ == "__main__":
    main()
