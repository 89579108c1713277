"""Spaces of programs. A derivation is the same for every device, and is made once."""

from functools import cache

from liftpy.constraints.device import Device
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.skeleton import Skeleton


@cache
def derived(program: Program, families: tuple[str, ...] | None = None) -> tuple[Skeleton, ...]:
    """The skeletons of a program, of some families or of all that apply."""
    return skeletons(program, families)


def space(program: Program, device: Device) -> Space:
    """All candidates of a program for a device."""
    return Space.whole(program, device)
