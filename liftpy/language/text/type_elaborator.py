"""The types of values in a text: numbers get theirs from their uses, calls keep their places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeVar

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.scalars import bounds, cast_literal, misfit
from liftpy.ir.types import (
    BOOL,
    F32,
    INTEGERS,
    SCALARS,
    OpenType,
    ScalarType,
    TupleType,
    Type,
    with_article,
)
from liftpy.ir.walk import top_down
from liftpy.language.extent import limited
from liftpy.language.inference import Holes, settle
from liftpy.language.text.size_elaborator import SizeElaborator
from liftpy.language.text.syntax import (
    Call,
    Formal,
    Minus,
    Name,
    Node,
    Number,
    ProgramSyntax,
    word_of,
)
from liftpy.source.spans import Span, Spans

T = TypeVar("T")


@dataclass(frozen=True)
class TypeElaborator(SizeElaborator):
    """Builds literals and parameters, infers open types, and places refusals."""

    #: The calls made so far, with their places, by id; a kept call keeps its id unique.
    placed: dict[int, tuple[Expr, Span]] = field(default_factory=dict[int, tuple[Expr, Span]])
    #: Numbers whose types are inferred from their uses.
    holes: Holes[Number | Minus] = field(default_factory=Holes["Number | Minus"])

    def built(
        self, node: Node, make: Callable[[], T], suggestions: Callable[[], tuple[str, ...]]
    ) -> T:
        """The result of `make`; a refusal gets the place of `node` and the suggestions."""
        try:
            made = make()
            if isinstance(made, Expr):
                limited(made)
        except TypeRefused as refusal:
            what, _, why = str(refusal).partition(": ")
            if isinstance(node, Name | Call) and word_of(node) not in what:
                what, why = f"`{word_of(node)}` cannot be applied", str(refusal)
            raise self.refuse(TypeRefused, what, node, why, *suggestions()) from refusal
        if isinstance(made, Expr):
            self.placed[id(made)] = made, node.place
        return made

    def spans(self, node: ProgramSyntax, body: Expr) -> Spans:
        """The places of the calls in a program's body, and of its parameters."""
        calls = {
            path: self.placed[id(part)][1]
            for path, part in top_down(body)
            if id(part) in self.placed
        }
        return Spans(self.source, calls, {p.name: p.place for p in node.params})

    def agree(self, values: Iterable[Expr], types: Iterable[Type]) -> tuple[Expr, ...]:
        """Values unified with these types, which decides open types in both."""
        given = tuple(values)
        if not self.holes.places:
            return given
        for value, t in zip(given, types, strict=False):
            self.holes.unify(value.type, t)
        return tuple(map(self.typed, given))

    def typed(self, expr: Expr) -> Expr:
        """The expression, with decided types filled in if its own type is decided."""
        return expr if self.holes.resolve(expr.type) is expr.type else self.settled(expr)

    def settled(self, expr: Expr) -> Expr:
        """The expression with all decided types filled in; its parts keep their places.

        TypeRefused if a number does not fit its type.
        """
        if not self.holes.places:
            return expr
        try:
            return settle(expr, self.holes)
        except TypeRefused:
            for number, node in enumerate(self.holes.places):
                t = self.holes.resolve(OpenType("number", number))
                if not isinstance(t, OpenType):
                    self.literal(node, t)
            raise

    def closed(self, expr: Expr) -> Expr:
        """A whole body: types that remain open become f32; TypeRefused if that would be a guess."""
        if (guess := self.holes.close(F32)) is not None:
            other, node = self.holes.guesses[guess], self.holes.places[guess]
            digits = self.source.text[node.place.start : node.place.end]
            why = (
                f"the condition compares {other}, and nothing determines the result's type",
                f"write `{digits}{other}` or `{digits}f32`",
            )
            what = f"the type of `{digits}` is ambiguous: {other} or f32"
            raise self.refuse(TypeRefused, what, node, *why)
        made = self.settled(expr)
        for old, became, _ in list(self.holes.settled.values()):
            if id(old) in self.placed:
                self.placed[id(became)] = became, self.placed[id(old)][1]
        return made

    def variables(self, params: AbstractSet[Param]) -> AbstractSet[Param]:
        """Variables with decided types filled in."""
        if not self.holes.decided:
            return params
        return {Param(p.name, self.holes.resolve(p.type)) for p in params}

    def resolved(self, function: Lambda) -> Lambda:
        """A function with decided types filled in."""
        if not self.holes.places:
            return function
        params = tuple(Param(p.name, self.holes.resolve(p.type)) for p in function.params)
        if params == function.params:
            return function
        return Lambda(params, self.settled(function.body))

    def bound(self, formals: tuple[Formal, ...], types: tuple[Type, ...]) -> tuple[Param, ...]:
        """Parameters with their written types, or else with the types of their arguments."""
        params: list[Param] = []
        for formal, t in zip(formals, types, strict=True):
            written = t if formal.type is None else self.type(formal.type)
            self.holes.unify(written, t)
            params.append(Param(formal.name, self.holes.resolve(written)))
        return tuple(params)

    def literal(self, node: Number | Minus, t: Type | None) -> Literal:
        """A number; without a suffix it has type `t`, or f32 if `t` is not a type of numbers."""
        number = node.value if isinstance(node, Minus) else node
        if not isinstance(number, Number):
            message = f"a literal of {type(number).__name__}"
            raise InternalError(message)
        wanted = t if isinstance(t, ScalarType) and t != BOOL else F32
        kind = SCALARS[number.suffix] if number.suffix else wanted
        if not number.suffix and (t is None or isinstance(t, OpenType)):
            kind = self.holes.open(node)
            self.holes.unify(kind, t or kind)
        sign = -1 if isinstance(node, Minus) else 1
        if isinstance(kind, OpenType):
            digits = number.digits
            return Literal(sign * (int(digits) if digits.isdigit() else float(digits)), kind)
        if kind in INTEGERS:
            if not number.digits.isdigit():
                what = f"`{number.digits}` is not {with_article(kind)}"
                raise self.refuse(TypeRefused, what, node, "write a whole number")
            value = sign * int(number.digits)
        else:
            value = sign * float(number.digits)
        lost = math.isinf(value) and number.digits != "inf"
        if (why := "it is infinite" if lost else misfit(value, kind)) is not None:
            what = f"`{'-' * (sign < 0)}{number.digits}` is not {with_article(kind)}"
            raise self.refuse(TypeRefused, what, node, why, bounds(kind))
        return Literal(cast_literal(value, kind), kind)

    def spread(self, node: Number | Minus, t: Type) -> Expr:
        """A number as a literal of a type; for a tuple type, a tuple of literals."""
        if isinstance(t, TupleType):
            return Tuple(tuple(self.spread(node, e) for e in t.elements))
        return self.literal(node, t)
