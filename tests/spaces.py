"""Spaces of programs. A derivation is the same for every device, and is made once."""

from collections.abc import Iterator
from functools import cache

from liftpy.constraints.device import Device
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.rewrite.composition import of_stage, skeletons, stage_skeletons
from liftpy.rewrite.forms import as_declared
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import derived as derived_alone
from liftpy.rewrite.strategies.families.form import Form
from liftpy.rewrite.strategy import Failure
from tests.staged import form_of


@cache
def derived(program: Program, families: tuple[str, ...] | None = None) -> tuple[Skeleton, ...]:
    """The skeletons of a program, of some families or of all that apply."""
    return skeletons(program, families)


@cache
def as_one_stage(program: Program, families: tuple[str, ...] | None = None) -> tuple[Skeleton, ...]:
    """The skeletons of a program as one stage that folds all axes together.

    Without the forms by F(m, r), which have several stages, and take most of the time in which
    `derived` derives a convolution.
    """
    return tuple(
        skeleton
        for cut in as_declared(program)
        if cut.is_whole
        for skeleton in stage_skeletons(cut, cut.stages[0], families)
    )


def some_of(program: Program, family: str, most: int, **words: str) -> list[Skeleton]:
    """At most `most` skeletons of a program as one stage, spread evenly over those with `words`.

    Only these are derived.
    """
    found: list[Skeleton] = []
    for cut, form, own in forms_of(program, family):
        options = [made for made in form.choices() if words.items() <= dict(made).items()]
        for choices in options[:: -(-len(options) // most) or 1]:
            made = derived_alone(family, form, own, choices)
            assert not isinstance(made, Failure), made
            found.append(of_stage(made, cut, cut.stages[0]))
    return found


def words_of(program: Program, family: str) -> set[tuple[str, str]]:
    """The words of all choices that a family offers for a program as one stage."""
    return {
        word
        for _, form, _ in forms_of(program, family)
        for choices in form.choices()
        for word in choices
    }


def forms_of(program: Program, family: str) -> Iterator[tuple[Partition, Form, Program]]:
    """The partitions into one stage that a family makes, each with its form and its program."""
    for cut in as_declared(program):
        found = form_of(cut.stages[0], family) if cut.is_whole else None
        if found is not None:
            yield cut, *found


def space(program: Program, device: Device) -> Space:
    """All candidates of a program for a device."""
    return Space.whole(program, device)
