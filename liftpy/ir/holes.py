"""Type inference for numbers that are written without a type.

A number without a typed operand has an open type. If two types must be equal (those of `a` and `b`
in `a + b`, of an argument and its parameter, of a fold's function and its initial value), `unify`
decides open types. `ir.expr.settle` then writes the decisions into an expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from liftpy.ir.types import BOOL, ArrayType, OpenType, ScalarType, TupleType, Type, VectorType

P = TypeVar("P")


@dataclass
class Holes(Generic[P]):
    """Open types by number, with the decisions made so far and the places of the numbers."""

    places: list[P] = field(default_factory=list[P])
    decided: dict[int, Type] = field(default_factory=dict[int, Type])
    #: Numbers for which f32 would be a guess: both branches of a `select` that compares integers.
    guesses: dict[int, Type] = field(default_factory=dict[int, Type])
    #: Results of `settle` by the id of the part: the part, its result, the number of decisions.
    settled: dict[int, tuple[Any, Any, int]] = field(
        default_factory=dict[int, tuple[Any, Any, int]]
    )

    def open(self, place: P) -> OpenType:
        """A new open type for a number at this place."""
        self.places.append(place)
        return OpenType("number", len(self.places) - 1)

    def resolve(self, t: Type) -> Type:
        """The type with decided types filled in; itself if that changes nothing."""
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
        """Decide open types so that the two types become equal, as far as possible."""
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
        """Decide the remaining open types; returns a number for which that would be a guess."""
        for number in self.guesses:
            if isinstance(self.resolve(OpenType("number", number)), OpenType):
                return number
        for number in range(len(self.places)):
            self.decided.setdefault(number, default)
        return None
