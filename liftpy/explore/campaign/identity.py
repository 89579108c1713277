"""The identity of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from liftpy.constraints.device import Device
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.measure.check import TOLERANCE
from liftpy.explore.measure.inputs import INPUT_SEED
from liftpy.explore.measure.meaning import POINTS
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.settings import Settings
from liftpy.explore.space.space import Space
from liftpy.explore.space.version import VERSION
from liftpy.rewrite.bank import USUAL, Bank
from liftpy.rewrite.rules.correlation import spelled_points

BOUND = "bound"
"""The setting `check` of a campaign whose results are compared with the bounds of their errors."""


def identity_of(  # noqa: PLR0913  one argument per setting
    space: Space,
    seed: int,
    *,
    search: str,
    families: Sequence[str] | None = None,
    memory_limit: int | None = None,
    max_error: float | None = None,
    bank: Bank = USUAL,
    sizes: Mapping[str, int] | None = None,
    tolerance: float = TOLERANCE,
    bounded: bool = False,
    lag: int = 1,
    first: str | Settings | None = None,
    direct_first: int = 0,
    devices: Sequence[Device] = (),
    times: Sequence[Path | str] = (),
    modelled: bool = False,
) -> Identity:
    """The identity of a campaign: everything that determines its candidates and their check.

    `bounded`: whether results are also compared with the bounds of their rounding errors
    (`measure/bounding.py`), because the user gave no tolerance.
    `lag` is the number of candidates whose outcomes a search has not seen yet (`run.py`). `first`
    names the kind of the first candidate if the search does not draw it (`plainest.py`), or has the
    settings of that candidate.
    `direct_first` is the number of candidates after it that compute directly. `devices`
    are those that measure, if there are several. `times` are the files whose times its search
    begins with.
    """
    return Identity(
        program=space.program.name,
        text=program_text(space.program),
        device=space.device.to_json(),
        version=VERSION,
        seed=seed,
        settings={
            "families": None if families is None else list(families),
            "memory_limit": memory_limit,
            "max_error": max_error,
            "winograd_points": spelled_points(bank.points) or None,
            "sampler": space.sampler,
            "sizes": dict(sizes) if sizes else None,
            "conditions": list(space.asked) or None,
            "tolerance": tolerance,
            "check": BOUND if bounded else None,
            "points": POINTS,
            "input_seed": INPUT_SEED,
            "search": search,
            "lag": lag,
            "first": first,
            "direct_first": direct_first or None,
            "modelled": modelled or None,
            "times": sorted({str(path) for path in times}) or None,
            "devices": [device.to_json() for device in devices] if len(devices) > 1 else None,
        },
    )
