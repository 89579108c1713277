"""The initial value of a fold, which may be given as a plain number."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.scalars import cast_literal
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
from liftpy.language.embedded.functions import Callee, element, function, zip_
from liftpy.language.embedded.operations import agreeing
from liftpy.language.embedded.trace import current
from liftpy.language.embedded.words import Section, applied
from liftpy.language.given import is_number, plain, shown
from liftpy.language.inference import Holes
from liftpy.source.caller import locate, raised_at

T = TypeVar("T")

#: The initial value of a fold. Numbers take their types from the elements (see `accumulators`).
Start: TypeAlias = "Expr | float | tuple[Start, ...]"


def accumulators(one: Type) -> tuple[Type, ...]:
    """The types that a plain number may have as the initial value of a fold over `one`.

    For scalar elements, the type is theirs. For tuples, it is a scalar type of a component, or else
    the tuple type, with the number in each component. The caller uses the first type that the
    fold's function returns.
    """
    inner = base(one)
    if not isinstance(inner, TupleType):
        return (inner if isinstance(inner, ScalarType) and inner != BOOL else F32,)
    numbers = [s for s in scalars(inner) if s != BOOL] or [F32]
    return (*dict.fromkeys(numbers), inner) if scalars(inner) else (F32,)


def component_types(one: Type, count: int) -> tuple[Type, ...]:
    """The types of plain numbers in a tuple of `count` as the initial value of a fold."""
    inner = base(one)
    if isinstance(inner, TupleType) and len(inner.elements) == count:
        return inner.elements
    return (accumulators(one)[0],) * count


def spread(value: float, t: Type) -> Expr:
    """A number as a literal of a type; for a tuple type, a tuple of literals."""
    if isinstance(t, TupleType):
        return Tuple(tuple(spread(value, e) for e in t.elements))
    if isinstance(t, ArrayType | VectorType):
        message = f"a fold to {t} cannot start with {value}: give an array"
        raise TypeRefused(message)
    return Literal(cast_literal(value, t), t)


def starts(init: Start, one: Type) -> Iterator[Callable[[], Expr]]:
    """Attempts to build an initial value, the likeliest first."""
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
    """The result of the first attempt that is not refused. If all are, raises the first refusal.

    Types of numbers that a refused attempt decided are forgotten.
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
    """The section of a primitive that folds with `f`, starting at `init`."""

    def build(xs: Expr) -> Expr:
        (one,) = element(xs)

        def attempt(start: Callable[[], Expr]) -> Expr:
            begun = start()
            step = function(f, (begun.type, one))
            (body,) = agreeing((step.body,), (begun.type,))
            return applied(make(Lambda(step.params, body)), begun, xs)

        trace = current()
        attempts = (functools.partial(attempt, s) for s in starts(init, one))
        return first_that_fits(attempts, None if trace is None else trace.holes)

    return Section(build)
