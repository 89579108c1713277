"""numpy by itself: stencils as sums of moved arrays, in one thread."""

from __future__ import annotations

import itertools

import numpy as np
from cases import Case

from peers.interface import Made, Peer

OFFSETS = {
    "jacobi5": [o for o in itertools.product((-1, 0, 1), repeat=2) if sum(map(abs, o)) <= 1],
    "jacobi9": list(itertools.product((-1, 0, 1), repeat=2)),
    "jacobi7": [o for o in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, o)) <= 1],
}
"""The cells that a stencil takes the mean of."""


class NumPy(Peer):
    """Stencils by slices."""

    name = "NumPy"
    module = "numpy"

    def make(self, case: Case, threads: int) -> Made | None:
        """The mean of moved views of the array with its border doubled."""
        offsets = OFFSETS.get(case.kind)
        if offsets is None:
            return None
        (x,) = case.arrays.values()
        wide, out = np.pad(x, 1, "edge"), np.empty_like(x)
        inner = (slice(1, -1),) * x.ndim
        views = [
            wide[tuple(slice(1 + by, 1 + by + n) for by, n in zip(o, x.shape, strict=True))]
            for o in offsets
        ]

        def run() -> None:
            wide[inner] = x
            for axis in range(x.ndim):
                for edge, beside in ((0, 1), (-1, -2)):
                    np.moveaxis(wide, axis, 0)[edge] = np.moveaxis(wide, axis, 0)[beside]
            np.add(views[0], views[1], out=out)
            for view in views[2:]:
                np.add(out, view, out=out)
            np.multiply(out, np.float32(1 / len(views)), out=out)

        return Made(run, lambda: out)
