"""The words for data-dependent indices, and for folds that update their result in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.function import Lambda
from liftpy.ir.nat import NatLike, nat
from liftpy.ir.primitive import Primitive
from liftpy.ir.scalars import cast_literal
from liftpy.ir.types import I32, ArrayType, TupleType
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.folds import Start, first_that_fits, reduction, starts
from liftpy.language.embedded.functions import Callee, element, expression, function
from liftpy.language.embedded.operations import agreeing
from liftpy.language.embedded.trace import current
from liftpy.language.embedded.words import Section, applied
from liftpy.language.given import is_number, plain
from liftpy.primitives.data_index import At, ReduceByIndex, indexed
from liftpy.primitives.generate import Repeat
from liftpy.primitives.lowered import ReduceByIndexAtomic, ReduceByIndexSeq, ReduceInPlace


@word(At)
def at(index: Any) -> Section:
    """Reads an array at a data-dependent index: an i32, for example an element of another array.

    If the index is outside the array, every scalar of the result is 0 (or false).

    `index` is an i32 expression or a whole number; the array has at least one element. The result
    has the type of an element. An index of another type is refused (TypeRefused): write
    `lp.convert(x, lp.i32)`.

    >>> places = lp.iota(3) >> lp.map(lambda i: 2 * i)
    >>> lp.evaluate(places >> lp.map(lambda i: lp.iota(4) >> lp.at(i))).tolist()
    [0, 2, 0]
    """

    def build(xs: Expr) -> Expr:
        if is_number(index):
            place: Expr = Literal(cast_literal(plain(index), I32), I32)
        else:
            (place,) = agreeing((expression(index),), (I32,))
        return applied(At(), place, xs)

    return Section(build)


@word(ReduceByIndex)
def reduce_by_index(f: Callee, init: Start, bins: NatLike | None = None) -> Section:
    """Folds values into bins: the value of each pair of an index and a value goes to one bin.

    The pairs are an array of (i32, a), the result is an array of n bins of type b. `f` takes the
    accumulator of a bin (b) and a value (a), and returns a b; the values of a bin are folded in
    their order. `init` is an array [n]b with the initial value of each bin, or one initial value,
    and then `bins` is n; without it the call is refused (TypeRefused). A pair whose index is
    outside 0 .. n - 1 is ignored.

    >>> pairs = lp.zip(lp.iota(5) >> lp.map(lambda i: i % 3), lp.iota(5))
    >>> lp.evaluate(pairs >> lp.reduce_by_index(lp.add, 0, bins=4)).tolist()
    [3, 5, 2, 0]
    """
    return by_index(ReduceByIndex, f, init, bins)


@word(ReduceByIndexSeq)
def reduce_by_index_seq(f: Callee, init: Start, bins: NatLike | None = None) -> Section:
    """Runs `lp.reduce_by_index` as a loop of one work-item that updates bins in place.

    >>> pairs = lp.zip(lp.iota(5) >> lp.map(lambda i: i % 3), lp.iota(5))
    >>> lp.evaluate(pairs >> lp.reduce_by_index_seq(lp.add, 0, bins=4)).tolist()
    [3, 5, 2, 0]
    """
    return by_index(ReduceByIndexSeq, f, init, bins)


@word(ReduceByIndexAtomic)
def reduce_by_index_atomic(f: Callee, init: Start, bins: NatLike | None = None) -> Section:
    """Runs `lp.reduce_by_index` over the pairs that `map_glb(0)` makes, by atomic updates.

    `f` is `lp.add`, `lp.minimum` or `lp.maximum` of i32 or u32, or another function that applies
    `+`, `min`, `max`, `bitAnd`, `bitOr` or `bitXor` to its arguments.

    >>> pairs = lp.zip(lp.iota(5) >> lp.map(lambda i: i % 3), lp.iota(5))
    >>> bins = pairs >> lp.map_glb(0, lambda p: p) >> lp.reduce_by_index_atomic(lp.add, 0, bins=4)
    >>> lp.evaluate(bins).tolist()
    [3, 5, 2, 0]
    """
    return by_index(ReduceByIndexAtomic, f, init, bins)


@word(ReduceInPlace)
def reduce_in_place(f: Callee, init: Start) -> Section:
    """Runs `lp.reduce` in passes over an accumulator that stays in the memory of the result.

    >>> rows = lp.iota(6) >> lp.split(3)
    >>> added = lp.map_seq(lambda total, x: total + x)
    >>> sums = lp.reduce_in_place(lambda a, row: lp.zip(a, row) >> added, lp.iota(3))
    >>> lp.evaluate(rows >> sums).tolist()
    [3, 6, 9]
    """
    return reduction(ReduceInPlace, f, init)


def by_index(
    make: Callable[[Lambda], Primitive], f: Callee, init: Start, bins: NatLike | None
) -> Section:
    """The section of a primitive that folds values into bins."""
    if bins is None and not isinstance(init, Expr):
        message = (
            "the number of bins is missing\n"
            "  a single initial value does not determine it\n"
            "  write bins=10 after the initial value, or give an array of initial values"
        )
        raise TypeRefused(message)

    def build(pairs: Expr) -> Expr:
        (pairs,) = agreeing((pairs,), (indexed(pairs.type),))
        (pair,) = element(pairs)
        value = pair.elements[-1] if isinstance(pair, TupleType) else pair

        def attempt(start: Callable[[], Expr]) -> Expr:
            begun = start() if bins is None else applied(Repeat(nat(bins)), start())
            one = begun.type.element if isinstance(begun.type, ArrayType) else begun.type
            step = function(f, (one, value))
            (body,) = agreeing((step.body,), (one,))
            return applied(make(Lambda(step.params, body)), begun, pairs)

        trace = current()
        attempts = (functools.partial(attempt, s) for s in starts(init, value))
        return first_that_fits(attempts, None if trace is None else trace.holes)

    return Section(build)
