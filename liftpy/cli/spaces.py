"""The device and the space that the options of a command select."""

from __future__ import annotations

from collections.abc import Sequence

from liftpy.cli.arguments import load_program
from liftpy.cli.options import settings_and_lists
from liftpy.cli.pulse import pulse
from liftpy.cli.screen import note
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.campaign.forms import DERIVING
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.settings import Fixed, Settings
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.opencl.devices import devices, find_device


def device_or_default(name: str | None) -> Device:
    """The named device; by default the first one, or the generic one if no device is attached."""
    return DEFAULT_DEVICE if name is None and not devices() else find_device(name)


def asked_space(  # noqa: PLR0913  one argument per option
    program: str,
    size: Sequence[str] | None,
    device: str | None,
    set_: Sequence[str] | None,
    where: Sequence[str] | None,
    memory_limit: int | None,
    max_error: float | None = None,
    *,
    winograd_points: Sequence[str] | None = None,
    storage: Sequence[str] | None = None,
) -> tuple[Space, Settings]:
    """The space that the options select, and the single-valued settings, not yet applied to it."""
    chosen, listed = settings_and_lists(set_)
    with pulse.phase(DERIVING):
        space = space_of(
            load_program(program, size, storage),
            device_or_default(device),
            memory_limit=memory_limit,
            max_error=max_error,
            winograd_points=winograd_points or (),
            where=where or (),
            fixed=listed,
            settings=chosen,
        )
    note_unbound(space)
    for form in space.left_out:
        note(f"note: {form.why}")
    return space, chosen


def asked_candidate(
    program: Program,
    device: Device,
    chosen: Settings,
    *,
    memory_limit: int | None = None,
    where: Sequence[str] = (),
    fixed: Fixed | None = None,
) -> Candidate:
    """The first candidate with the chosen settings in the space that the other options select.

    The whole space is derived only if conditions restrict it: they may be about any skeleton.
    """
    if not (where or fixed):
        return candidate_of(program, device, chosen, memory_limit=memory_limit)
    space = space_of(
        program, device, memory_limit=memory_limit, where=where, fixed=fixed, settings=chosen
    )
    note_unbound(space)
    return space.candidate(chosen)


def note_unbound(space: Space) -> None:
    """Reports the user's conditions that do not restrict some skeletons."""
    for text, count in space.unbound.items():
        note(
            f"note: {text} does not restrict {count} of {len(space.every)} skeletons, which lack "
            "its sizes; --set family=... selects skeletons"
        )
