"""Indexing of arrays and tuples as in NumPy: `xs[0]`, `xs[-1]`, `xs[1:4]`, `rows[0, 1]`."""

from __future__ import annotations

from typing import Any, cast

from liftpy.errors import TypeRefused, plural
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import BOOL, ArrayType, TupleType, Type
from liftpy.language.embedded.placing import at_place
from liftpy.language.embedded.stages import get, join, reduce, slide
from liftpy.language.embedded.words import WORDS

INDICES = "an index is a whole number, or a slice such as 1:4"


def part(x: Any, index: Any) -> Any:
    """The part of an expression that an index selects."""
    t = x.type
    if isinstance(index, tuple):
        for k, one in enumerate(index):
            if isinstance(one, slice) and k < len(index) - 1:
                what = "a slice cannot be followed by another index"
                suggestion = "write xs[1:3] >> lp.map(lambda row: row[0])"
                raise refused(what, "the second index would apply to each element", suggestion)
            x = part(x, one)
        return x
    if isinstance(index, slice) and isinstance(t, ArrayType):
        return sliced(x, t, index)
    if isinstance(index, bool) or not (hasattr(index, "__index__") or isinstance(index, Nat)):
        raise refused(f"{shown(index)} is not an index", INDICES)
    if hasattr(index, "type"):
        suggestion = "xs >> lp.at(k) is the element at an index k that is computed (an i32)"
        raise refused("an expression cannot be an index", INDICES, suggestion)
    if getattr(index, "ndim", 0):
        suggestion = "xs >> lp.gather(n, f) reads at computed indices"
        raise refused("a NumPy array cannot be an index", INDICES, suggestion)
    place: int | Nat = index if isinstance(index, Nat) else int(cast("int", index))
    if isinstance(t, TupleType):
        return component(x, t, place)
    if not isinstance(t, ArrayType):
        raise refused(f"{t} cannot be indexed", "only arrays and tuples have elements")
    place = counted(place, t)
    return element(sliced(x, t, slice(place, nat(place) + 1)), t.element)


def component(x: Any, t: TupleType, index: int | Nat) -> Any:
    """A component of a tuple; a negative index counts from the end."""
    count = len(t.elements)
    if isinstance(index, Nat) or not -count <= index < count:
        what = f"{t} has no component {index}"
        raise refused(
            what, f"it has {plural(count, 'component')}", f"use an index in -{count} .. {count - 1}"
        )
    return get(index % count)(x)


def counted(index: int | Nat, t: ArrayType) -> int | Nat:
    """An index counted from the beginning; TypeRefused if it is out of a known range."""
    negative = not isinstance(index, Nat) and index < 0
    place = t.length + index if negative else index
    length, at = t.length.constant, nat(place).constant
    if length is not None and at is not None and not 0 <= at < length:
        what = f"index {index} is out of range for {t}"
        raise refused(what, f"its length is {length}", f"use an index in -{length} .. {length - 1}")
    return place


def sliced(x: Any, t: ArrayType, index: slice) -> Any:
    """The elements of a slice; as in NumPy, a bound beyond the length is clipped."""
    step = 1 if index.step is None else index.step
    if not isinstance(step, Nat) and (not isinstance(step, int) or step < 1):
        what = f"a slice cannot have the step {step}"
        suggestion = "xs >> lp.gather(n, lambda i: n - 1 - i) reverses an array"
        raise refused(what, "a step is at least 1", suggestion)
    for end in (index.start, index.stop):
        if end is not None and not isinstance(end, int | Nat):
            raise refused(f"{shown(end)} is not a slice bound", INDICES)
    start, stop = ends(index, t.length)
    length = stop - start
    if length.constant is not None and length.constant < 1:
        what = f"the slice {start}:{stop} of {t} is empty"
        raise refused(what, "an array has at least one element", "use a start below the stop")
    if start != nat(0):
        x = WORDS["drop"](start)(x)
    if stop != t.length:
        x = WORDS["take"](length)(x)
    return x if step == 1 else join()(slide(1, step)(x))


def ends(index: slice, length: Nat) -> tuple[Nat, Nat]:
    """The first position of a slice and the one past its last."""
    found: list[Nat] = []
    for given, default in ((index.start, nat(0)), (index.stop, length)):
        end = default if given is None else nat(given)
        if end.constant is not None and end.constant < 0:
            end = length + end
        known = length.constant
        if known is not None and end.constant is not None:
            end = nat(max(0, min(end.constant, known)))
        found.append(end)
    return found[0], found[1]


def element(one: Any, t: Type) -> Any:
    """The element of an array of length 1."""
    if isinstance(t, ArrayType):
        return join()(one)
    return reduce(lambda acc, x: x, False if t == BOOL else 0)(one)


def refused(what: str, *why: str) -> TypeRefused:
    """A refusal without a place."""
    return TypeRefused("\n".join([what, *(f"  {reason}" for reason in why)]))


def shown(value: object) -> str:
    """A value in a message."""
    return "..." if value is Ellipsis else repr(value)


def indexed(self: Expr, index: Any) -> Expr:
    """A component of a tuple; an element or a part of an array, as in NumPy."""
    return at_place(part, self, index)


Expr.__getitem__ = indexed
