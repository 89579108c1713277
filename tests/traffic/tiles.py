"""The loop nests of convolution slicing, tile by tile: which level serves each load of a tile.

The oracle of the formulas: nested loops, and the set of tiles that each cache holds.
"""

from collections import Counter


def served(stationary: int, moving: int, k2: int, k3: int) -> Counter[tuple[str, str]]:
    """How many loads of tiles of each operand each level serves, for one set of channels.

    A cache holds what the analysis gives room for: one stationary tile in L1, a group of K2 moving
    tiles in L2, a group of K3 stationary tiles in L3. A stationary tile is loaded into L1 whenever
    its turn begins, as a kernel that packs on demand does.
    """
    counts: Counter[tuple[str, str]] = Counter()
    second, third = range(0), range(0)
    for start in range(0, stationary, k3):
        group = range(start, min(start + k3, stationary))
        for begin in range(0, moving, k2):
            tiles = range(begin, min(begin + k2, moving))
            for held in group:
                counts["stationary", "L3" if held in third else "memory"] += 1
                third = range(start, max(held + 1, third.stop if third.start == start else 0))
                for tile in tiles:
                    counts["moving", "L2" if tile in second else "memory"] += 1
                    kept = second.stop if second.start == begin else 0
                    second = range(begin, max(tile + 1, kept))
    return counts
