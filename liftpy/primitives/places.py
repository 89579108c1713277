"""Where layouts take their elements from, derived from their meaning.

The meaning is evaluated at symbolic indices and sizes. An element of the result is then an element
of the argument at an index that is a term, or a choice between such an element and something else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, NatLike, Var, nat, var
from liftpy.ir.primitive import Layout, index_fields
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType

INDEX = "index "  # prefix of index variables; no size can have a name with a space


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """An element of the argument."""

    indices: tuple[Nat, ...]


class Chosen:
    """An element of the argument if a condition holds, else something else."""


CHOSEN = Chosen()


class PlaceReader(ByName):
    """Evaluates the meaning of a layout to places; refuses anything that computes."""

    def inside(self, index: Index, length: NatLike) -> Value:
        """None: no condition is decided."""

    def clip(self, index: Index, of: Pull) -> Index:
        """The index itself: outside the array, `choose` selects something else."""
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """A choice."""
        return CHOSEN

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """A choice."""
        return CHOSEN

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a layout uses no other operations."""
        message = "this is not a layout: it computes something"
        raise InternalError(message)

    operate = literal = of_index = unknown = fold = refuse


def argument(t: Type, indices: tuple[Nat, ...] = ()) -> Value:
    """A value of type `t` whose scalars are places and whose lengths are symbols."""
    match t:
        case ArrayType(element, _) | VectorType(element, _):
            length = var(f"length {len(indices)}")
            return Pull(length, lambda i: argument(element, (*indices, nat(i))))
        case TupleType(elements):
            return tuple(argument(e, indices) for e in elements)
        case _:
            return ElementPlace(indices)


@lru_cache(maxsize=1 << 10)
def stepped(layout: Layout, t: ArrayType, dimension: int) -> int | None:
    """The dimension in which an argument of type `t` is read for a step in one of the result.

    A step takes the first element of the dimension to the second. None if there is no step, if the
    second element is not the next one of a dimension, or if a condition decides what it is.
    """
    first, second = (
        place_at(layout.meaning(PlaceReader(), whole(t)), dimension, k) for k in (0, 1)
    )
    if first is None or second is None:
        return None
    steps = [b - a for a, b in zip(first.indices, second.indices, strict=True)]
    moved = [k for k, step in enumerate(steps) if step != 0]
    return moved[0] if len(moved) == 1 and steps[moved[0]] == 1 else None


def whole(t: Type, indices: tuple[Nat, ...] = ()) -> Value:
    """A value of type `t` whose scalars are places, with its own lengths; open ones exceed 1."""
    if isinstance(t, ArrayType | VectorType):
        own = t.length if isinstance(t, ArrayType) else t.width
        length = own if own.constant is not None else var(f"length {len(indices)}", 2)
        return Pull(length, lambda i: whole(t.element, (*indices, nat(i))))
    return ElementPlace(indices)


def place_at(value: Value, dimension: int, index: int) -> ElementPlace | None:
    """The place of an element of a layout's result whose indices are 0 but in one dimension."""
    while isinstance(value, Pull):
        if dimension == 0 and nat(value.length).constant == 1 and index:
            return None
        value, dimension = value[nat(index if dimension == 0 else 0)], dimension - 1
    return value if isinstance(value, ElementPlace) else None


def at_open_sizes(layout: Layout) -> Layout:
    """A layout with symbols for its numbers, since its kind does not depend on them."""
    kept = index_fields(type(layout))
    sizes = {name: var(name, None) for name in layout.numbers() if name not in kept}
    return replace(layout, **sizes)


@lru_cache(maxsize=1 << 10)
def is_indirect(layout: Layout, t: Type) -> bool:
    """Whether reading through a layout costs more than an index.

    It does if a condition decides what is read, or if an index is a quotient, a remainder, a
    minimum or a maximum. Otherwise every index is made of the given ones with sums and products.
    """
    return indirect(at_open_sizes(layout).meaning(PlaceReader(), argument(t)), 0)


def indirect(value: Value, depth: int) -> bool:
    """`is_indirect` for a part of a layout's result."""
    match value:
        case Pull():
            return indirect(value[var(f"{INDEX}{depth}")], depth + 1)
        case Parts():
            return indirect(value.pairs, depth)
        case tuple():
            return any(indirect(part, depth) for part in value)
        case ElementPlace(indices):
            return not all(map(is_plain, indices))
        case _:
            return True


def is_plain(index: Nat) -> bool:
    """Whether an index is made of the given indices with sums and products only."""
    return all(isinstance(a, Var) for a in index.atoms() if any(map(is_index, a.names)))


def is_index(name: str) -> bool:
    """Whether a variable is an index variable."""
    return name.startswith(INDEX)
