"""The forms of a program whose correlations are computed by F(m, r), tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from liftpy.ir.expr import Expr
from liftpy.ir.walk import Path, at
from liftpy.rewrite.cuts import all_cut
from liftpy.rewrite.strategies.outward import lets_outside
from liftpy.rewrite.strategies.phases import has_stride, phased
from liftpy.rewrite.strategies.shapes import is_let, lets, maker, working_map
from liftpy.rewrite.strategies.transformed import Tiling, applies, tilings, winograd
from liftpy.rewrite.strategy import Failure, Result, Strategy, Success, at_path, choose, seq


def by_tiles(form: Success) -> Iterator[tuple[str, Success]]:
    """Forms of a program by F(m, r), each with the word for the results of a tile.

    `form` has all cuts. Every value to which a rule with these tiles applies is computed so. If
    there is none, values that have a stride are computed so by phases; of these, convolutions in
    the functions of maps are left as they are.
    """
    made = [*forms(form, winograd, [form.expr])]
    if not made and has_stride(form.expr):
        blocks = [phased(at(form.expr, place)) for place in values(form)]
        found = [result.expr for result in blocks if isinstance(result, Success)]
        made = [*forms(form, lambda tiling: seq(phased, winograd(tiling)), found)]
    yield from made


def forms(
    form: Success, computed: Callable[[Tiling], Strategy], exprs: Sequence[Expr]
) -> Iterator[tuple[str, Success]]:
    """The forms in which values are `computed` by a tiling that applies to one of `exprs`.

    Each has the word for the results of a tile.
    """
    for word, shapes in tilings().items():
        fitting = (s for s in shapes if any(applies(s, expr) for expr in exprs))
        found = [*map(computed, fitting)]
        if found:
            other, count = each_value(form, also_within(choose(*found)))
            if count:
                yield word, all_cut(other)


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
        cut = cuts_outside(expr)
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
