"""A fixed kernel whose time tells whether a device is disturbed: throttled, or shared.

Its work is known and never changes. It is run before and after a candidate's samples: where its
time departs from what it usually is, theirs cannot be trusted either.
"""

from __future__ import annotations

import time

from liftpy.explore.measure.samples import History
from liftpy.opencl.kernel import Buffer, Launch, MemoryFigures, Module
from liftpy.opencl.session import Session

ITEMS = 4096
STEPS = 256
SOURCE = f"""
kernel void reference(global float* restrict out) {{
  const int i = get_global_id(0);
  float a = i, b = i + 1;
  for (int k = 0; k < {STEPS}; ++k) {{
    a = mad(a, 0.5f, b);
    b = mad(b, 0.25f, a);
  }}
  out[i] = a + b;
}}
"""
"""Two multiply-adds a step, each in need of the one before: arithmetic, and hardly any memory."""

MODULE = Module(
    "reference",
    SOURCE,
    (Buffer("out", "output", "f32", (ITEMS,), 4 * ITEMS, "out"),),
    (Launch("reference", ("out",), (ITEMS,), None, "run"),),
    (),
    "out",
    MemoryFigures(4 * ITEMS, 4 * ITEMS, 0, 0, 0, 0),
)

WARM = 0.02
"""Seconds of runs before a look: a thread of the device that slept needs some milliseconds until it
has a processor again, and a kernel as short as this takes twice its time without it."""

RUNS = 3
"""Runs at a look, of which the shortest counts: one that was interrupted says nothing."""

FIRST_LOOKS = 5

TOO_LONG = 0.25
"""Seconds for a run with which a device is a simulator: its times mean nothing."""


class Reference:
    """The reference kernel on the device of a session."""

    def __init__(self, session: Session) -> None:
        self._history = History()
        self._loaded = session.load(MODULE)
        start = time.perf_counter()
        self._loaded.run({})
        self._used = time.perf_counter() - start < TOO_LONG
        for _ in range(FIRST_LOOKS):
            self.look()

    def look(self) -> float:
        """How many times its usual time the kernel takes now; always 1 on a simulator."""
        if not self._used:
            return 1.0
        end = time.perf_counter() + WARM
        while time.perf_counter() < end:
            self._loaded.profile(RUNS, 0)
        return self._history.take(min(sum(row) for row in self._loaded.profile(RUNS, 0)))
