"""What a fold begins with, where a plain number is given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.caller import locate, raised_at
from liftpy.ir.expr import Expr, Lambda, Literal, Primitive, Tuple, agreeing, cast_literal
from liftpy.ir.holes import Holes
from liftpy.ir.operand import is_number, plain, shown
from liftpy.ir.types import (
    BOOL,
    F32,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    base,
    scalars,
)
from liftpy.ir.under_way import TRACE
from liftpy.primitives.functions import Callee, element, function, zip_
from liftpy.primitives.words import Section, applied

T = TypeVar("T")

#: The initial value of a fold: numbers take the types of what is folded (see `accumulators`).
Start: TypeAlias = "Expr | float | tuple[Start, ...]"


def accumulators(one: Type) -> tuple[Type, ...]:
    """The types that a plain number may have as the initial value of a fold over such elements.

    It is a scalar of theirs; over tuples a scalar of a component's type, or else a tuple, the
    number at each component. The first type that the fold's function gives back is meant.
    """
    inner = base(one)
    if not isinstance(inner, TupleType):
        return (inner if isinstance(inner, ScalarType) and inner != BOOL else F32,)
    numbers = [s for s in scalars(inner) if s != BOOL] or [F32]
    return (*dict.fromkeys(numbers), inner) if scalars(inner) else (F32,)


def component_types(one: Type, count: int) -> tuple[Type, ...]:
    """The types of plain numbers in a tuple of so many, as the initial value of a fold."""
    inner = base(one)
    if isinstance(inner, TupleType) and len(inner.elements) == count:
        return inner.elements
    return (accumulators(one)[0],) * count


def spread(value: float, t: Type) -> Expr:
    """A number as a literal of a type; at every component of a tuple type."""
    if isinstance(t, TupleType):
        return Tuple(tuple(spread(value, e) for e in t.elements))
    if isinstance(t, ArrayType | VectorType):
        message = f"a fold to {t} cannot start with {value}: give an array"
        raise TypeRefused(message)
    return Literal(cast_literal(value, t), t)


def starts(init: Start, one: Type) -> Iterator[Callable[[], Expr]]:
    """What an initial value may be, the likeliest first."""
    if isinstance(init, Expr):
        yield lambda: init
    elif isinstance(init, tuple):
        types = component_types(one, len(init))
        yield lambda: Tuple(
            tuple(
                next(starts(part, t))() if isinstance(part, tuple | Expr) else spread(part, t)
                for part, t in zip_(init, types)
            )
        )
    elif not is_number(init):
        message = f"a fold cannot start with {shown(init)}: give a number, an expression or a tuple"
        raise TypeRefused(message)
    elif isinstance(plain(init), bool):
        yield lambda: Literal(plain(init), BOOL)
    else:
        for t in accumulators(one):
            yield lambda t=t: spread(plain(init), t)


def first_that_fits(attempts: Iterable[Callable[[], T]], holes: Holes[Any] | None = None) -> T:
    """The first attempt that is not refused; else the refusal of the first.

    What a refused one decided of numbers' types is forgotten.
    """
    refusal: TypeRefused | None = None
    for attempt in attempts:
        before = None if holes is None else (dict(holes.decided), dict(holes.settled))
        try:
            return attempt()
        except TypeRefused as error:
            locate(error, raised_at(error.__traceback__))
            refusal = refusal or error
            if holes is not None and before is not None:
                holes.decided, holes.settled = before
    message = "no attempt was made"
    raise refusal or InternalError(message)


def reduction(make: Callable[[Lambda], Primitive], f: Callee, init: Start) -> Section:
    """The section of a primitive that folds with `f` from `init`."""

    def build(xs: Expr) -> Expr:
        (one,) = element(xs)

        def attempt(start: Callable[[], Expr]) -> Expr:
            begun = start()
            step = function(f, (begun.type, one))
            (body,) = agreeing((step.body,), (begun.type,))
            return applied(make(Lambda(step.params, body)), begun, xs)

        trace = TRACE.get()
        attempts = (functools.partial(attempt, s) for s in starts(init, one))
        return first_that_fits(attempts, None if trace is None else trace.holes)

    return Section(build)
