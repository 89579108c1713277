"""The forms of a program: its partitions, and those with narrower storage or other algorithms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from liftpy.errors import ConstraintRefused
from liftpy.ir.expr import Expr
from liftpy.ir.formats import Format
from liftpy.ir.program import Program
from liftpy.ir.storing import storable
from liftpy.ir.types import scalars
from liftpy.ir.walk import at
from liftpy.rewrite.bank import USUAL, Bank
from liftpy.rewrite.by_tiles import each_value
from liftpy.rewrite.cuts import all_cut, cut_form, is_unambiguous
from liftpy.rewrite.narrowed import narrowed
from liftpy.rewrite.partition import APART, AXES, Partition, cut_in_stages, direct, other_algorithms
from liftpy.rewrite.stages import FUSED, STORED, WIDENED, Stage
from liftpy.rewrite.strategies.axes import axes_apart
from liftpy.rewrite.strategies.elementwise import folds_inward, recomputes
from liftpy.rewrite.strategies.shapes import lets
from liftpy.rewrite.strategies.widened import operands_widened
from liftpy.rewrite.strategy import Result, at_path, attempt

MOST_STORED = 32
"""The most combinations of types; beyond it, a form stores one value in another type, or all."""


def partitions(
    program: Program, bank: Bank = USUAL, words: frozenset[str] | None = None
) -> tuple[Partition, ...]:
    """Every way to cut a program into stages, the one with the fewest stages first.

    At most one of the cuts fused into a stage may have elements that its reader computes more than
    once. Forms that store values in the types that the program declares follow, and forms that
    fold windows one axis after the other. Forms of the program by the F(m, r) of a bank come last;
    their cuts are all stored, or the transformed tiles and the products of all correlations are
    held. With `words`, the forms by F(m, r) are those with one of these words, such as `2x2`.
    ConstraintRefused for a program with open sizes: the choices depend on their numbers.
    """
    return tuple(in_turn(program, bank, words))


def in_turn(
    program: Program, bank: Bank = USUAL, words: frozenset[str] | None = None
) -> Iterator[Partition]:
    """The same one by one: forms by F(m, r), most of the work, are made when they are reached."""
    yield from as_declared(program)
    yield from other_forms(program, bank, words)


def as_declared(program: Program) -> Iterator[Partition]:
    """The partitions that compute directly and store values in the types of the program."""
    return (in_full(form, program) for form in direct(program))


def other_forms(
    program: Program, bank: Bank = USUAL, words: frozenset[str] | None = None
) -> Iterator[Partition]:
    """Those that store values in other types, and those with other algorithms."""
    yield from (in_full(form, program) for form in stored_forms(program))
    yield from (in_full(form, program) for form in by_axes(program))
    yield from (in_full(form, program) for form in in_f32(program))
    yield from (in_full(form, program) for form in other_algorithms(program, bank, words))


def in_full(form: Partition, program: Program) -> Partition:
    """A form with a word for each declared value: the type in which it is stored.

    A cut that is stored as it is computed keeps its own word.
    """
    known, types = dict(form.words), storable(program)
    more = tuple(
        (name, str(*{*scalars(types[name])})) for name, _ in program.storage if name not in known
    )
    if not more:
        return form
    stages = form.stages
    if form.is_whole:
        stages = tuple(replace(s, within=(*more, *s.within)) for s in stages)
    return replace(form, words=(*more, *form.words), stages=stages)


@lru_cache(maxsize=64)
def by_axes(program: Program) -> tuple[Partition, ...]:
    """The forms that fold overlapping windows of two dimensions one axis after the other.

    The folds of rows are stored or held: a form that computes them again for each window would take
    as many steps as the program itself. As many of the other values as possible are fused with what
    reads them.
    """
    form, count = each_value(cut_form(program), axes_apart)
    made = [*cut_in_stages(program, all_cut(form), finished)] if count else []
    changed = (one for one in made if one.steps)  # the others are the program as it is written
    once = [one for one in changed if not any(map(folds_again, one.stages))]
    most = max(map(fused_in, once), default=0)
    found = (marked(one, (AXES, APART)) for one in once if fused_in(one) == most)
    return tuple(sorted(found, key=lambda made: len(made.stages)))


@lru_cache(maxsize=64)
def in_f32(program: Program) -> tuple[Partition, ...]:
    """The forms that compute exact sums of small integers in f32, of operands stored in f32.

    At least one operand is stored: the form that stores neither is the choice `sums=f32` of a
    family.
    """
    form, count = each_value(cut_form(program), operands_widened)
    made = [*cut_in_stages(program, all_cut(form))] if count else []
    found = (marked(one, (WIDENED, "f32")) for one in made)
    stored = [one for one in found if any(stage.converts for stage in one.stages)]
    return tuple(sorted(stored, key=lambda made: len(made.stages)))


def marked(form: Partition, chosen: tuple[str, str]) -> Partition:
    """A form with the choice that distinguishes it, in all its stages."""
    stages = tuple(replace(s, within=(chosen, *s.within)) for s in form.stages)
    return replace(form, words=(chosen, *form.words), stages=stages)


def finished(stage: Expr) -> Result:
    """Fuse operations on the results of folds with these, below the held values of a stage."""
    return at_path((1,) * sum(1 for _ in lets(stage)), attempt(folds_inward))(stage)


def fused_in(form: Partition) -> int:
    """The number of values that a form fuses with what reads them."""
    return sum(word == FUSED for _, word in form.words)


def folds_again(stage: Stage) -> bool:
    """Whether a stage repeats the folds of a value that is fused into it."""
    if FUSED not in dict(stage.within).values():
        return False
    body = stage.program.body.body
    held = [*lets(body)]
    return any(map(recomputes, (*(let.args[0] for let in held), at(body, (1,) * len(held)))))


@lru_cache(maxsize=64)
def stored_forms(program: Program) -> tuple[Partition, ...]:
    """The forms that store values in declared types. They compute directly.

    The values are stages. Those that depend on constants alone belong to the prepare phase, and the
    kernels that pack them read the stored numbers.
    """
    for name, _ in program.storage:
        if not is_unambiguous(name):
            raise ConstraintRefused(
                f"the storage of {name} cannot be a choice of {program.name}\n"
                "  a setting of the compiler has the same name\n"
                f"  rename the value, for example {name}_"
            )
    found = [form for stored in combinations(program) for form in storing(program, stored)]
    used = {name for form in found for name, _ in form.storage}
    if lost := [name for name, _ in program.storage if name not in used]:
        raise ConstraintRefused(
            f"{lost[0]} of {program.name} cannot be stored in another type\n"
            "  it is never read from memory: it is the result, or its reader always computes it\n"
            "  permit it for a parameter, or for a value that another stage reads"
        )
    return tuple(sorted(found, key=lambda made: len(made.stages)))


def combinations(program: Program) -> Iterator[dict[str, Format]]:
    """The values that a form stores in another type, each with its type."""
    each = [[None, *types] for _, types in program.storage]
    count = 1
    for types in each:
        count *= len(types)
    if count > MOST_STORED:
        yield from ({name: t} for name, types in program.storage for t in types)
        first = [types[0] for _, types in program.storage]
        yield dict(zip((name for name, _ in program.storage), first, strict=True))
        return
    for chosen in itertools.product(*each):
        pairs = zip(program.storage, chosen, strict=True)
        stored = {name: t for (name, _), t in pairs if t is not None}
        if stored:
            yield stored


def storing(program: Program, stored: Mapping[str, Format]) -> Iterator[Partition]:
    """The partitions of a program that stores these values, in which they are stages."""
    form, variables = narrowed(program, stored)
    chosen = tuple((name, str(t)) for name, t in stored.items())
    copies = {v for name in stored if name in program.constants for v in variables[name]}
    for made in direct(form):
        words = dict(made.words)
        stages = {stage.name for stage in made.stages}
        own = [v for several in variables.values() for v in several]
        if not stages.issuperset(own) or any(words.get(name, STORED) != STORED for name in own):
            continue
        rest = tuple((name, word) for name, word in made.words if name not in own)
        yield replace(
            made,
            words=(*chosen, *rest),
            stages=tuple(
                replace(s, within=(*chosen, *s.within), prepared_copy=s.name in copies)
                for s in made.stages
            ),
            storage=chosen,
        )
