"""The forms of a program whose correlations are computed by F(m, r), tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from liftpy.ir.expr import Expr
from liftpy.ir.walk import Path, at
from liftpy.rewrite.bank import USUAL, Bank
from liftpy.rewrite.cuts import all_cut
from liftpy.rewrite.strategies.outward import lets_outside
from liftpy.rewrite.strategies.phases import has_stride, phased
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import is_let, lets, maker, working_map
from liftpy.rewrite.strategies.share import has_fold_in
from liftpy.rewrite.strategies.transformed import (
    GROUPED,
    OVERLAP,
    Tiling,
    applies,
    tilings,
    winograd,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    choose,
    identity,
    seq,
    where,
)


def by_tiles(
    form: Success, bank: Bank = USUAL, words: Collection[str] | None = None
) -> Iterator[tuple[str, Success]]:
    """Forms of a program by the F(m, r) of a bank, each with the word for the results of a tile.

    With `words`, only forms with one of these words are returned. The others are not derived,
    unless a value has a stride.

    `form` has all cuts. Every value to which a rule with these tiles applies is computed so. If
    there is none, values that have a stride are computed so by phases.
    """

    def at_once(shapes: Sequence[Tiling]) -> Strategy:
        return where(takes(shapes), also_within(by_one_of(shapes)))

    strided = has_stride(form.expr)
    made = [*forms(form, bank, at_once, None if strided else words)]
    if not made and strided:
        made = [*forms(form, bank, lambda shapes: by_one_of(shapes, PHASED), words)]
    yield from (found for found in made if words is None or found[0] in words)


def forms(
    form: Success,
    bank: Bank,
    computed: Callable[[Sequence[Tiling]], Strategy],
    words: Collection[str] | None,
) -> Iterator[tuple[str, Success]]:
    """The forms in which values are `computed` by one of the tilings of a word, with the word.

    In a form with tiles that overlap, other values are computed by the same tiles without overlap.
    """
    for word, shapes in tilings().items():
        if words is not None and word not in words:
            continue
        other, count = each_value(form, computed(of_bank(shapes, bank)))
        if count and word.endswith(OVERLAP) and len(values(form)) > 1:
            disjoint = tilings()[word.removesuffix(OVERLAP)]
            other, count = each_value(form, computed(of_bank((*shapes, *disjoint), bank)))
        if count:
            yield word, all_cut(other)


def of_bank(shapes: Sequence[Tiling], bank: Bank) -> list[Tiling]:
    """Tilings whose rules have the points of a bank."""
    return [replace(shape, rule=bank.name(shape.rule), law=bank.law) for shape in shapes]


def takes(shapes: Sequence[Tiling]) -> Callable[[Expr], bool]:
    """A predicate: the value contains a fold, and takes windows that fit one of the tilings."""
    return lambda value: has_fold_in(value) and any(applies(s, value) for s in shapes)


def by_one_of(shapes: Sequence[Tiling], prepared: Strategy = identity) -> Strategy:
    """Apply a strategy, then compute by one of the tilings that fit the windows."""

    def run(expr: Expr) -> Result:
        ready = prepared(expr)
        if isinstance(ready, Failure):
            return ready
        fitting = [winograd(s) for s in shapes if applies(s, ready.expr)]
        if not fitting:
            return Failure("winograd", "no tiling fits the windows")
        found = choose(*fitting)(ready.expr)
        if isinstance(found, Failure):
            return found
        return Success(found.expr, (*ready.steps, *found.steps))

    return run


def phased_within(expr: Expr) -> Result:
    """`phased` for the correlation in the function of the map that makes the result."""
    place = maker(expr)
    if not working_map(at(expr, place)):
        return Failure("phased", "no map makes the result")
    return at_path((*place, 1), PHASED)(expr)


PHASED = choose(phased, phased_within, seq(GROUPED, phased_within))
"""Computes the correlation that makes the result by phases: as it is, or in a map's function."""


def values(form: Success) -> list[Path]:
    """The places of the values of a form: of its result, and of its first lets, the last first."""
    lasts = [(1,) * depth for depth in range(sum(1 for _ in lets(form.expr)) + 1)]
    return [lasts[-1], *((*path, 0) for path in reversed(lasts[:-1]))]


def each_value(form: Success, strategy: Strategy) -> tuple[Success, int]:
    """Apply a strategy to every value to which it applies, and count these.

    The values are those of the lets at the beginning of a form, and its result.
    """
    count = 0
    for place in values(form):
        result = at_path(place, strategy)(form.expr)
        if isinstance(result, Success):
            form, count = Success(result.expr, (*form.steps, *result.steps)), count + 1
    return form, count


def also_within(strategy: Strategy) -> Strategy:
    """Apply a strategy to a value, or to more than one part of it that can be a value itself.

    The parts are the cuts in the function of the map that makes the value.
    """

    def run(expr: Expr) -> Result:
        whole = strategy(expr)
        cut = CUTS_OUTSIDE(expr)
        if isinstance(cut, Failure):
            return whole
        parts, count = each_value(cut, strategy)
        return parts if count > isinstance(whole, Success) else whole

    return run


def cuts_outside(expr: Expr) -> Result:
    """Move the cuts in the function of the map that makes a value out of the map."""
    place = maker(expr)
    if not working_map(at(expr, place)):
        return Failure("cuts_outside", "no map makes the value")

    def cut(body: Expr) -> Result:
        form = all_cut(Success(body))
        return form if is_let(form.expr) else Failure("cuts_outside", "the map has no cuts")

    moved = at_path(place, seq(at_path((1,), cut), lets_outside))(expr)
    return moved if isinstance(moved, Failure) else all_cut(moved)


CUTS_OUTSIDE = remembered(cuts_outside, 16)
"""`cuts_outside`, done once for all tilings of a program's values."""
