"""Kernels that are built without the driver's optimizer, most of them, here and in workers.

What is tested is what liftpy writes, and a driver's optimizer takes most of the time of a build,
which was half of the time of all tests. Commands, bundles, `make soak`, and the workers of
campaigns whose tests do not ask for `plain_workers` (tests/conftest.py) build as users do.

    python -m tests.plainly MODULE FD       a worker that builds plainly

Such a worker takes what an earlier one has built of a source: a campaign starts several, each of
which builds the kernel of `liftpy.explore.measure.reference` first.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liftpy.explore.measure import reference, starting
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import BUILD_OPTIONS, Session
from tests.binaries import building_once

OPTIMIZED = 6
"""Of so many sources one is built as users build it."""

PLAINLY = (*BUILD_OPTIONS, "-cl-opt-disable")

BINARIES = "LIFTPY_TESTS_BINARIES"
"""Workers that build plainly have this in their environment: where what they build is kept."""


def options_of(source: str) -> tuple[str, ...]:
    """How a source is built: the same in each run and in each process."""
    chosen = hashlib.sha256(source.encode()).digest()[0] % OPTIMIZED == 0
    return BUILD_OPTIONS if chosen or source == reference.SOURCE else PLAINLY


@contextmanager
def building_plainly() -> Generator[None]:
    """Has most sources built without the driver's optimizer, unless a session asks otherwise."""
    build = Session._build

    def plainly(session: Session, module: Module) -> Any:
        asked = session.options
        if asked == BUILD_OPTIONS:
            session.options = options_of(module.source)
        try:
            return build(session, module)
        finally:
            session.options = asked

    Session._build = plainly
    try:
        yield
    finally:
        Session._build = build


if __name__ == "__main__":
    reference.WARM = 0.0  # a look at whether the device is disturbed does not keep it busy before
    with building_plainly():
        if BINARIES in os.environ:
            Session._build = building_once(Path(os.environ[BINARIES]), PLAINLY[-1])
        starting.start(sys.argv[1])
