"""The kinds of random programs: each makes the program of a seed."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.program import Program
from tests.fuzz.data_indices import indexing
from tests.fuzz.generator import make, nested
from tests.fuzz.stages import chained

MAKERS: dict[str, Callable[[int], Program]] = {
    "any": make,
    "lets": nested,
    "stages": chained,
    "indices": indexing,
}
