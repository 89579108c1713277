"""The units of a program's space: skeletons of the program as one stage, then its partitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from liftpy.constraints.collect import Around, Collected, collect, collected
from liftpy.constraints.device import Device
from liftpy.constraints.stages import around_each, result_of
from liftpy.deadline import check
from liftpy.errors import DeviceRefused
from liftpy.explore.space.member import Member
from liftpy.explore.space.product import Product
from liftpy.explore.space.settings import Fixed
from liftpy.ir.place import refusals_placed
from liftpy.rewrite.composition import skeletons_with, stage_skeletons
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import FAMILY
from liftpy.rewrite.stages import Stage
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.rewrite.strategies.families.form import Choices
from liftpy.rewrite.strategies.images import IMAGES


def units_of(
    device: Device,
    forms: Iterable[Partition],
    *,
    families: Sequence[str] | None = None,
    memory_limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    images: bool | None = None,
) -> Iterator[Member | Product]:
    """The units of some partitions of a program on a device, each derived when it is reached.

    Only these families lower stages; the default is `families_for` the device. With `images`, they
    may read arrays through images; the default is whether `images_suit` the device. A partition is
    left out if one of its stages has no skeleton of these families. With `settings`, skeletons of
    the program as one stage are left out if a choice differs from its setting, and each is derived
    without the others of its family.
    """
    families = families or families_for(device)
    images = images_suit(device, settings or {}) if images is None else images
    of_stage: dict[Stage, list[Collected]] = {}
    known: dict[tuple[Stage, Around], tuple[Member, ...]] = {}
    for partition in forms:
        if partition.is_whole:
            (stage,) = partition.stages
            if settings is None:
                made = stage_skeletons(partition, stage, families, images=images)
            else:
                named = [name for name in families if agrees(settings, ((FAMILY, name),))]
                fits = partial(agrees, settings)
                made = skeletons_with(partition, stage, named, fits, images=images)
            for skeleton in made:
                check()
                with refusals_placed(partition.program):
                    system = collect(skeleton, device, memory_limit=memory_limit)
                yield Member(skeleton, system)
            continue
        each: list[list[Collected]] = []
        for stage in partition.stages:
            if stage not in of_stage:
                made = stage_skeletons(partition, stage, families, images=images)
                of_stage[stage] = [collected(s, device, result_of(stage)) for s in made]
            each.append(of_stage[stage])
            if not each[-1]:
                break
        if not each[-1]:
            continue
        groups: list[tuple[Member, ...]] = []
        for of, (stage, around) in zip(each, around_each(partition, each), strict=True):
            key = stage, around
            if key not in known:
                limit = None if stage.runs_once else memory_limit  # for runs only
                systems = ((one.skeleton, one.within(around, limit)) for one in of)
                known[key] = tuple(Member(s, system, stage.name) for s, system in systems)
            groups.append(known[key])
            check()
        yield Product(partition, tuple(groups))


def units_settled(
    device: Device,
    forms: Iterable[Partition],
    settings: Mapping[str, Any],
    families: Sequence[str],
    memory_limit: int | None = None,
    *,
    images: bool | None = None,
) -> Iterator[Member | Product]:
    """The units of those partitions whose words agree with the settings; `images` as in `units_of`.

    If the settings name a family for each stage of a partition, only these families lower it.
    """
    agreeing = (form for form in forms if agrees(settings, form.words))
    for named, group in itertools.groupby(agreeing, lambda form: stage_families(form, settings)):
        yield from units_of(
            device,
            group,
            families=named or families,
            memory_limit=memory_limit,
            settings=settings,
            images=images,
        )


def stage_families(form: Partition, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The families that settings name for the stages of a partition; none unless all have one."""
    named = {str(settings.get(f"{stage.name}.{FAMILY}")) for stage in form.stages}
    return tuple(sorted(named)) if named <= FAMILIES.keys() else ()


def agrees(settings: Mapping[str, Any], words: Choices) -> bool:
    """Whether no word differs from a setting of that name."""
    return all(str(settings.get(name, word)) == word for name, word in words)


def families_for(device: Device, named: Iterable[str] = ()) -> tuple[str, ...]:
    """The families that lower stages for a device: those that suit it, and those that are named."""
    named = {*named}
    return tuple(
        name
        for name, family in FAMILIES.items()
        if name in named or family.suits(device.type, device.extensions)
    )


def images_suit(device: Device, settings: Fixed) -> bool:
    """Whether stages may read arrays through images on a device, or settings ask for it.

    A CPU has no texture caches: there, it is a choice only if settings name it. Raises
    DeviceRefused if they name it, and the device has no images.
    """
    named = [name for name in settings if name.rpartition(".")[2] == IMAGES]
    if named and not device.image_texels:
        raise DeviceRefused(
            f"{named[0]}={settings[named[0]]}: {device.name} ({device.platform}) has no images of "
            "buffers, or its profile does not state their size (image_texels). Leave out "
            f"{named[0]}, or use a device with images: `liftpy devices --json` shows image_texels."
        )
    return bool(device.image_texels) and (bool(named) or device.type != "CPU")


def families_in(fixed: Fixed) -> Iterator[str]:
    """The families that settings name, of the program or of a stage."""
    for name, given in fixed.items():
        if name.rpartition(".")[2] == FAMILY:
            yield from map(str, in_list(given))


def with_words(forms: Sequence[Partition], fixed: Fixed) -> Sequence[Partition]:
    """The partitions that have the fixed words; all of them if one of these words is in none.

    Leaving out the other partitions does not change the space that has these settings, and takes
    less time. If no partition has a word, all are kept, because the refusal lists their words.
    """
    words = [dict(form.words) for form in forms]
    names = {name for word in words for name in word} & fixed.keys()
    allowed = {name: {*map(str, in_list(fixed[name]))} for name in names}
    if any(not allowed[name] <= {word.get(name) for word in words} for name in names):
        return forms
    kept = [
        form
        for form, word in zip(forms, words, strict=True)
        if all(word.get(name) in allowed[name] for name in names)
    ]
    return kept or forms


def in_list(given: Any) -> tuple[Any, ...]:
    """One value, or each of several."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return tuple(given) if several else (given,)
