"""The space of a program on a device: `lp.space`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from liftpy.constraints.device import Device
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.explore.space.given_points import (
    are_listed,
    bank_asked,
    bank_in,
    with_points,
    with_points_used,
)
from liftpy.explore.space.settings import Fixed, Settings
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for, families_in, images_suit
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.opencl.devices import find_device
from liftpy.pipeline import collection_paused, compile_candidate
from liftpy.rewrite.bank import Bank
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.semantics.sizes import closed
from liftpy.semantics.storage import StorageLike, with_storage


@entry("lp.space")
def space_of(  # noqa: PLR0913  one argument per setting
    program: Program,
    device: Device | str | None = None,
    *,
    families: Sequence[str] | None = None,
    memory_limit: int | None = None,
    max_error: float | None = None,
    winograd_points: str | Sequence[str] | Bank = (),
    sizes: Mapping[str, int] | None = None,
    where: Sequence[str] = (),
    fixed: Fixed | None = None,
    settings: Settings | None = None,
    storage: StorageLike | None = None,
) -> Space:
    """The space of a program on a device (a `Device`, or an argument of `find_device`).

    >>> squares = lp.parse("def squares(xs: [64]f32) = xs |> map(x => x * x)")
    >>> space = lp.space(squares, "profile:mali-g72", families=["tiled"], where=["tile0 <= 8"])
    >>> space.count()
    96

    `families` restricts the families, `memory_limit` the peak of candidates, in bytes. Forms by
    F(m, r), and with narrower storage, are left out if their error bound, relative to the largest
    possible result, exceeds `max_error`; `winograd_points` are the points of F(m, r): `"bound"`
    (the default), `"measured"`, or lists such as `"0,1,-1,1/2,-1/2"`, each for every F(m, r) with
    as many (docs/commands.md). `sizes` gives numbers for open sizes. `where` has conditions on
    sizes, such as `"kappa*sigma <= 64"`; `fixed` has settings with their allowed value or values:
    `{"pad": "copy", "kappa": [8, 16]}`. Families that `settings` name are in the space, even if
    they do not suit the device, and so are forms with the points that they name, and reads through
    images if they name `images`. `storage` has types in which values may be stored
    (`lp.with_storage`). Raises TypeRefused for a program without kernels, TransformRefused for
    points that make no F(m, r).
    """
    program = closed(with_storage(program, storage or {}), sizes)
    target = device if isinstance(device, Device) else find_device(device)
    if isinstance(families, str):  # one family: do not iterate over its letters
        families = (families,)
    chosen = {**(settings or {}), **(fixed or {})}
    if isinstance(winograd_points, Bank):
        bank = winograd_points
    else:
        bank = bank_asked(winograd_points) if winograd_points else bank_in(chosen)
    derive = partial(
        whole_space,
        program,
        target,
        memory_limit=memory_limit,
        max_error=max_error,
        fixed=None if where else fixed,  # a condition may name a size of any skeleton
        made=with_points(partitions, bank),
        images=images_suit(target, chosen),
    )
    if bank.points and not isinstance(winograd_points, Bank) and are_listed(winograd_points):
        derive = partial(with_points_used, derive, bank)
    if families:
        space = _of_families(derive, families, where, fixed or {})
        if space is not None:
            return space
    named = (*(families or ()), *families_in(chosen))
    space = derive(families=families_for(target, named)).asking(where, fixed or {})
    if families is None:
        return space
    if not families:
        known = dict.fromkeys(member.family for member in space.every)
        raise ConstraintRefused(
            f"families is empty: give at least one of {', '.join(known)}, or None for all"
        )
    return space.of_families(families)


def _of_families(
    derive: Callable[..., Space], families: Sequence[str], where: Sequence[str], fixed: Fixed
) -> Space | None:
    """The space of some families, derived without the others.

    None if a family makes no stage, or if a request is refused. The whole space is derived then,
    since a refusal lists what exists, and a condition may name a size of another family.
    """
    space = derive(families=tuple(name for name in FAMILIES if name in families))
    if not {*families} <= {member.family for member in space.every}:
        return None
    try:
        return space.asking(where, fixed)
    except (ConstraintRefused, UnknownName):
        return None


def whole_space(
    program: Program,
    device: Device,
    *,
    families: tuple[str, ...] | None = None,
    memory_limit: int | None = None,
    max_error: float | None = None,
    fixed: Fixed | None = None,
    made: Callable[[Program], Iterable[Partition]] = partitions,
    images: bool | None = None,
) -> Space:
    """The space of a program on a device; raises TypeRefused for a program without kernels.

    `made` returns the partitions to derive; the default is all of them. `images` as in `units_of`.
    """
    with collection_paused(kept=True):
        space = Space.whole(
            program,
            device,
            families=families,
            memory_limit=memory_limit,
            max_error=max_error,
            fixed=fixed,
            made=made,
            images=images,
        )
    for unit in space.units:
        least = unit.without_sizes()
        if least is not None:  # a program without kernels in its simplest form has no space
            compile_candidate(least, {})
            break
    return space
