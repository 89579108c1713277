"""What memory gives: a copy of a stencil's input, measured like a peer.

Each thread copies its part by numpy. Its time is what a stencil's is held against; it computes
nothing, so it is no peer of the ratios.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cases import Case

from peers.interface import Made, Peer


class Copy(Peer):
    """As many bytes read and written as a stencil, or a map of rows, has to."""

    name = "copy"
    module = "numpy"
    computes = False

    def make(self, case: Case, threads: int) -> Made | None:
        """The copy of the one input."""
        if not case.streams:
            return None
        source = next(iter(case.arrays.values()))
        target = np.empty_like(source)
        pool = ThreadPoolExecutor(threads)
        cuts = np.linspace(0, len(source), threads + 1, dtype=int)
        parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]

        def run() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        return Made(run, lambda: target)
