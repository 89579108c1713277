"""A fixed kernel whose time shows whether a device is disturbed: throttled, or shared.

Its work never changes. It is run before and after a candidate's samples: if its time departs from
its usual time, the samples cannot be trusted either.
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
"""Two dependent multiply-adds per step: arithmetic, and almost no memory traffic."""

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
"""Seconds of warm-up runs before a look: a sleeping thread of the device needs some milliseconds to
get a processor again, and a kernel as short as this takes twice as long until then."""

RUNS = 3
"""Runs per look, of which the shortest counts: others may have been interrupted."""

FIRST_LOOKS = 5

TOO_LONG = 0.25
"""If a run takes this many seconds, the device is a simulator, and its times mean nothing."""


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
        """The kernel's present time as a multiple of its usual time; always 1 on a simulator."""
        if not self._used:
            return 1.0
        end = time.perf_counter() + WARM
        while time.perf_counter() < end:
            self._loaded.profile(RUNS, 0)
        return self._history.take(min(sum(row) for row in self._loaded.profile(RUNS, 0)))
