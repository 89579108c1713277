"""Counts the products of F(m, 3) where m does not divide the result, for three ways to do the rest.

    python benchmarks/partial_tiles.py

For each size of a square result of a 3x3 layer with stride 1 in the built-in networks: the products
for each channel and kernel, with the best m of each way.

padded    The array is padded so that tiles of m x m fit; additional results are discarded.
hybrid    Whole tiles by F(m, 3), the other results directly. liftpy compiles it where it takes
          fewer products than padded tiles.
mixed     Rows and columns are cut into parts with different m, or with one result each. liftpy does
          not compile it.

No device is needed, and nothing is compiled.
"""

from __future__ import annotations

from functools import cache

from liftpy.rewrite.rules.correlation import SIZES
from liftpy.rewrite.strategies.transformed import hybrid_products
from liftpy.workloads import FAMILIES
from liftpy.workloads.networks import Network

R = 3
TILES = [m for m, r in SIZES if r == R]


def padded(side: int, m: int) -> int:
    """The products of the tiles that cover a result."""
    return (-(-side // m) * (m + R - 1)) ** 2


def hybrid(side: int, m: int) -> int:
    """The products of the whole tiles, and of the other results directly."""
    return hybrid_products((side, side), m, R)


@cache
def points(side: int) -> int:
    """The fewest points of a row of tiles of any m, or of single results."""
    if side <= 0:
        return 0
    return min(m + R - 1 + points(side - m) for m in (1, *TILES))


def sides() -> dict[int, list[str]]:
    """The sides of the results, with the networks that have them."""
    found: dict[int, list[str]] = {}
    for network in FAMILIES.values():
        if isinstance(network, Network):
            for layer in network.layers.values():
                plain = layer.kernel == (R, R) and layer.stride == (1, 1) and layer.groups == 1
                if plain and network.name not in found.setdefault(layer.out[0], []):
                    found[layer.out[0]].append(network.name)
    return {side: names for side, names in found.items() if names}


def main() -> None:
    """Prints a row for each side."""
    print(f"{'side':>4}  {'padded':>12} {'hybrid':>12} {'mixed':>7}  networks")
    for side, names in sorted(sides().items()):
        cells: list[str] = []
        for ways in (padded, hybrid):
            m = min(TILES, key=lambda m, ways=ways: ways(side, m))
            cells.append(f"{ways(side, m)}, m = {m}".rjust(12))
        print(f"{side:>4}  {' '.join(cells)} {points(side) ** 2:>7}  {', '.join(names)}")


if __name__ == "__main__":
    main()
