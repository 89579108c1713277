"""Memories of small kernels that tests write by hand."""

from liftpy.ir.types import F32
from liftpy.views.terms import Memory

XS = Memory("xs", "global", F32, 8, writable=False)
OUTPUT = Memory("output", "global", F32, 64)
HELD = Memory("held", "private", F32, 8)
