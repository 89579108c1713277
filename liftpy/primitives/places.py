"""Where layouts take their elements from: what of a layout follows from its meaning.

The meaning is read at indices and sizes that are symbols. An element of the result is then one of
the argument, at an index that is a term, or a choice between such a one and something else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from liftpy.errors import InternalError
from liftpy.ir.expr import Layout, index_fields
from liftpy.ir.nat import Nat, NatLike, Var, nat, var
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType

INDEX = "index "  # the variables of indices, in this room only: no size is called so


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """An element of the argument."""

    indices: tuple[Nat, ...]


class Chosen:
    """An element of the argument under a condition, else something else."""


CHOSEN = Chosen()


class PlaceReader(ByName):
    """Reads the meaning of a layout as places; that of anything that computes is refused."""

    def inside(self, index: Index, length: NatLike) -> Value:
        """Nothing is decided."""

    def clip(self, index: Index, of: Pull) -> Index:
        """The index: where it is outside, something else is chosen."""
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """A choice."""
        return CHOSEN

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """A choice."""
        return CHOSEN

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """A layout asks for nothing else."""
        message = "this is no layout: it computes something"
        raise InternalError(message)

    operate = literal = of_index = unknown = fold = scan = refuse


def argument(t: Type, indices: tuple[Nat, ...] = ()) -> Value:
    """A value of a type whose scalars are places; its lengths are symbols."""
    match t:
        case ArrayType(element, _) | VectorType(element, _):
            length = var(f"length {len(indices)}")
            return Pull(length, lambda i: argument(element, (*indices, nat(i))))
        case TupleType(elements):
            return tuple(argument(e, indices) for e in elements)
        case _:
            return ElementPlace(indices)


def at_open_sizes(layout: Layout) -> Layout:
    """A layout with symbols for its numbers: what it is does not depend on these."""
    kept = index_fields(type(layout))
    sizes = {name: var(name, None) for name in layout.numbers() if name not in kept}
    return replace(layout, **sizes)


@lru_cache(maxsize=1 << 10)
def is_indirect(layout: Layout, t: Type) -> bool:
    """Whether reading through a layout costs more than an index.

    It does where a condition decides what is read, or where an index is a quotient, a remainder, a
    minimum or a maximum. Otherwise it is made of those that are given by sums and products.
    """
    return indirect(at_open_sizes(layout).meaning(PlaceReader(), argument(t)), 0)


def indirect(value: Value, depth: int) -> bool:
    """`is_indirect` for a part of what a layout gives."""
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
    """Whether an index is made of indices that are given by sums and products alone."""
    return all(isinstance(a, Var) for a in index.atoms() if any(map(is_index, a.names)))


def is_index(name: str) -> bool:
    """Whether a variable is one of an index."""
    return name.startswith(INDEX)
