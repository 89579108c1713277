"""The types of numbers that are written without one, found out from where the numbers go.

A number that stands beside nothing typed has an open type. Where values of two types meet that must
be one (`a + b`, an argument and its parameter, a fold's function and its initial value), `unify`
decides open types; `ir.expr.settle` then writes the decisions into an expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from liftpy.ir.types import BOOL, ArrayType, OpenType, ScalarType, TupleType, Type, VectorType

P = TypeVar("P")


@dataclass
class Holes(Generic[P]):
    """Open types by number, with what was decided of each and where its number is written."""

    places: list[P] = field(default_factory=list[P])
    decided: dict[int, Type] = field(default_factory=dict[int, Type])
    #: Numbers of which an f32 would be a guess: both branches of a `select` that compares integers.
    guesses: dict[int, Type] = field(default_factory=dict[int, Type])
    #: What `settle` made of parts, by their identity: the part, what it became, at which decision.
    settled: dict[int, tuple[Any, Any, int]] = field(
        default_factory=dict[int, tuple[Any, Any, int]]
    )

    def open(self, place: P) -> OpenType:
        """A new open type, of a number at this place."""
        self.places.append(place)
        return OpenType("number", len(self.places) - 1)

    def resolve(self, t: Type) -> Type:
        """The type with what is decided by now; itself if that changes nothing."""
        match t:
            case OpenType():
                found = self.decided.get(t.number)
                return t if found is None else self.resolve(found)
            case ArrayType(element, length):
                new = self.resolve(element)
                return t if new is element else ArrayType(new, length)
            case VectorType(element, width):
                new = self.resolve(element)
                return t if new is element else VectorType(new, width)
            case TupleType(elements):
                parts = tuple(map(self.resolve, elements))
                same = all(new is old for new, old in zip(parts, elements, strict=True))
                return t if same else TupleType(parts)
            case _:
                return t

    def unify(self, a: Type, b: Type) -> None:
        """Decide open types so that the two become the same where they can."""
        if not self.places:
            return
        a, b = self.resolve(a), self.resolve(b)
        match a, b:
            case OpenType(), OpenType():
                if a.number != b.number:
                    self.decided[max(a.number, b.number)] = min(a, b, key=lambda t: t.number)
            case (OpenType() as hole, ScalarType() as t) | (ScalarType() as t, OpenType() as hole):
                if t != BOOL:
                    self.decided[hole.number] = t
            case (ArrayType(), ArrayType()) | (VectorType(), VectorType()):
                self.unify(a.element, b.element)
            case TupleType(), TupleType():
                for x, y in zip(a.elements, b.elements, strict=False):
                    self.unify(x, y)
            case _:
                pass

    def close(self, default: Type) -> int | None:
        """Decide what is left open; or the number of which that would be a guess."""
        for number in self.guesses:
            if isinstance(self.resolve(OpenType("number", number)), OpenType):
                return number
        for number in range(len(self.places)):
            self.decided.setdefault(number, default)
        return None
