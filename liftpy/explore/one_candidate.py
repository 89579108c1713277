"""One candidate of a program, derived without the rest of its space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from liftpy.constraints.device import Device
from liftpy.constraints.draw import nearest_first
from liftpy.explore.search.local import distance
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.given_points import bank_in
from liftpy.explore.space.member import Drawn, Member
from liftpy.explore.space.product import Product
from liftpy.explore.space.settings import Settings
from liftpy.explore.space.units import families_for, families_in, images_suit, units_settled
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.rewrite.bank import USUAL, Bank
from liftpy.rewrite.forms import in_turn
from liftpy.rewrite.skeleton import FAMILY
from liftpy.rewrite.stages import WINOGRAD
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.semantics.sizes import closed
from liftpy.semantics.storage import StorageLike, with_storage


def candidate_of(
    program: Program,
    device: Device,
    settings: Settings,
    *,
    memory_limit: int | None = None,
    sizes: Mapping[str, int] | None = None,
    storage: StorageLike | None = None,
) -> Candidate:
    """The same as `candidate(settings)` of `space_of` with the other arguments, with less work.

    Only partitions and skeletons whose words agree with the settings are derived, up to the first
    candidate that has them. The whole space is needed only to explain why there is none.
    """
    program = closed(with_storage(program, storage or {}), sizes)
    found = first_with(program, device, settings, memory_limit)
    if found is not None:
        return found
    space = space_of(program, device, memory_limit=memory_limit, settings=settings)
    return space.candidate(settings)


def exact_candidate(
    program: Program,
    device: Device,
    assignment: Settings,
    *,
    sizes: Mapping[str, int] | None = None,
    storage: StorageLike | None = None,
) -> Candidate:
    """The same as `exactly(assignment)` of `space_of`, with less work if it is complete."""
    program = closed(with_storage(program, storage or {}), sizes)
    found = exactly(program, assignment, units_with(program, device, assignment, None))
    if found is not None:
        return found
    return space_of(program, device, settings=assignment).exactly(assignment)


def first_with(
    program: Program, device: Device, settings: Settings, memory_limit: int | None = None
) -> Candidate | None:
    """The first candidate with these settings; None if there is none."""
    return agreeing(program, settings, units_with(program, device, settings, memory_limit))


def candidate_in_space(
    program: Program,
    device: Device,
    settings: Settings,
    memory_limit: int | None = None,
    bank: Bank = USUAL,
) -> Candidate | None:
    """The candidate with exactly these settings, if the space without conditions contains it."""
    return exactly(program, settings, units_in_space(program, device, settings, memory_limit, bank))


def exactly(
    program: Program, settings: Settings, units: Iterable[Member | Product]
) -> Candidate | None:
    """The candidate of some units with exactly these settings; None if there is none.

    A candidate that has further settings, such as a choice that other skeletons lack, is skipped.
    """
    for unit in units:
        part = unit.fitting(settings)
        whole = None if part is None else part.exactly({*settings})
        found = None if whole is None else whole.first(settings, 0)
        if found is not None and (candidate := made(program, found)).assignment == {**settings}:
            return candidate
    return None


def agreeing(
    program: Program, settings: Settings, units: Iterable[Member | Product]
) -> Candidate | None:
    """The first candidate of some units with these settings; None if there is none."""
    for unit in units:
        part = unit.fitting(settings)
        found = None if part is None else part.first(settings, 0)
        if found is not None:
            return made(program, found)
    return None


def nearest_candidate(
    program: Program, device: Device, settings: Settings, memory_limit: int | None = None
) -> Candidate | None:
    """The candidate of a program that is nearest to the settings of another program's candidate.

    It has the same families and the same choices; if no candidate has, its choices differ least.
    Its sizes are nearest in ratio. None if the program has no candidate of these families.
    """
    words = {name: str(word) for name, word in settings.items() if not isinstance(word, int)}
    near = nearest_first({n: value for n, value in settings.items() if isinstance(value, int)})
    for unit in units_in_space(program, device, {**words}, memory_limit):
        part = unit.fitting(words)
        found = None if part is None else part.preferred(near)
        if found is not None:
            return made(program, found)
    families = {n: word for n, word in words.items() if n.rpartition(".")[2] == FAMILY}
    alike = [
        (distance(found[0].words, words), found)
        for unit in units_in_space(program, device, {**families}, memory_limit)
        if (part := unit.fitting(families)) is not None
        and (found := part.preferred(near, lambda m: distance(m.words, words))) is not None
    ]
    if not alike:
        return None
    return made(program, min(alike, key=lambda pair: pair[0])[1])


def made(program: Program, drawn: Drawn) -> Candidate:
    """A skeleton and its sizes as a candidate."""
    skeleton, sizes = drawn
    return Candidate(program, skeleton, tuple(sizes.items()))


def units_with(
    program: Program, device: Device, settings: Settings, memory_limit: int | None
) -> Iterator[Member | Product]:
    """The units of a program whose choices agree with settings, each derived when it is reached.

    Settings may name families and images that do not suit the device.
    """
    family = settings.get(FAMILY)
    named = families_for(device, families_in(settings))
    families = [str(family)] if family in FAMILIES else named  # others do not fit
    forms = in_turn(program, bank_in(settings), tiles_in(settings))
    return units_settled(device, forms, settings, families, memory_limit)


def units_in_space(
    program: Program,
    device: Device,
    settings: Settings,
    memory_limit: int | None,
    bank: Bank = USUAL,
) -> Iterator[Member | Product]:
    """Those units of `units_with` that the space has without conditions."""
    suited = families_for(device)
    if not {*families_in(settings)} & {*FAMILIES} <= {*suited}:
        return iter(())
    forms = in_turn(program, bank, tiles_in(settings))
    images = images_suit(device, {})
    return units_settled(device, forms, settings, suited, memory_limit, images=images)


def tiles_in(settings: Settings) -> frozenset[str] | None:
    """The shape of tiles that settings name, if they do."""
    return frozenset({str(settings[WINOGRAD])}) if WINOGRAD in settings else None
