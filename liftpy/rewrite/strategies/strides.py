"""The distances in memory between elements that an expression reads, from the meaning of layouts.

The expression is evaluated to places in arrays, for the middle element of each map around it, where
no element is read that padding adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall
from liftpy.ir.denote import Environment, denote
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ZERO, Nat, NatLike, nat
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.ir.walk import Path, at
from liftpy.primitives import AnyMap, ToGlobal


def stride(expr: Expr, path: Path, over: Path) -> int | None:
    """The distance in memory between the scalars from which two successive elements are computed.

    `path` leads to an array in `expr`. The elements are those of the map at `over`, which is around
    the array, or the array's own if `over` is `path`. If an element is computed from several
    scalars, the distance is that of the first ones. None if the distance is not known, because the
    elements are read from no array, an index depends on data, or a size is open.
    """
    if any(n.constant is None for p in expr.free for n in p.type.lengths()):
        return None
    first, second = (places(expr, path, over, step) for step in (0, 1))
    return (second[0] - first[0]).constant if first and second else None


def places(expr: Expr, path: Path, over: Path, step: int) -> tuple[Nat, ...]:
    """The indices read for the middle elements of maps, `step` elements later at `over`."""
    read = PlacesRead()
    env: Environment = {p: array_of_places(p.type) for p in expr.free}
    for k, position in enumerate(path):
        part = at(expr, path[:k])
        if not isinstance(part, FunCall) or position < len(part.args):
            continue
        values = [denote(a, env, read) for a in part.args]
        match part.fun:
            case Lambda(params=params):
                env = {**env, **dict(zip(params, values, strict=True))}
            case AnyMap(f=f):
                env = {**env, f.params[0]: middle(values[0], step if path[:k] == over else 0)}
            case _:
                return ()
    return scalars(middle(denote(at(expr, path), env, read), step if path == over else 0))


@dataclass(frozen=True)
class Places:
    """A scalar: the indices, counted in scalars, at which arrays are read to compute it."""

    indices: tuple[Nat, ...] = ()


class PlacesRead(ByName):
    """Evaluates meanings to the places that they read; of a choice, to its first alternative's."""

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """All places of the operands."""
        return Places(tuple(i for arg in args for i in arg.indices))

    def literal(self, value: float, t: Type) -> Value:
        """No place."""
        return Places()

    def of_index(self, index: Index, t: Type) -> Value:
        """No place."""
        return Places()

    def inside(self, index: Index, length: NatLike) -> Value:
        """No condition is decided."""
        return None

    def clip(self, index: Index, of: Pull) -> Index:
        """The index itself."""
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """What is read if the condition holds."""
        return then

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """What is read if the condition holds."""
        return then

    def element_at(self, xs: Pull, index: Value) -> Value:
        """No place, since the index depends on data."""
        return emptied(xs[ZERO])

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        """What the first step reads."""
        return step(ZERO, init)

    def made(self, fun: Any, values: list[Value], result: Value) -> Value:
        """An array of its own for what is stored."""
        return stored(result) if isinstance(fun, ToGlobal) else result

    def unknown(self, function: Any, args: tuple[Value, ...]) -> NoReturn:
        """Refuse: programs have no unknown functions."""
        message = "this is no program: a function of it is unknown"
        raise InternalError(message)


def array_of_places(t: Type, index: Nat = ZERO) -> Value:
    """The places of a value in row-major memory, from an index on; a tuple has several memories."""
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            return Pull(length, lambda i: array_of_places(element, index * length + i))
        case TupleType(elements):
            return tuple(array_of_places(e, index) for e in elements)
        case _:
            return Places((index,))


def stored(value: Value, index: Nat = ZERO) -> Value:
    """The places of a value that is stored in memory of its own, row-major, from an index on."""
    match value:
        case Pull(length=length):
            return Pull(length, lambda i: stored(value[i], index * length + i))
        case Parts(pairs):
            return Parts(stored(pairs, index))
        case tuple():
            return tuple(stored(part, index) for part in value)
        case _:
            return Places((index,))


def middle(xs: Pull, step: int) -> Value:
    """The element `step` after the one in the middle."""
    return xs[nat((int(xs.length) - 1) // 2 + step)]


def scalars(value: Value) -> tuple[Nat, ...]:
    """The places of a value's scalars, those of an array's first element for all of them."""
    match value:
        case Pull():
            return scalars(value[ZERO])
        case Parts(pairs):
            return scalars(pairs)
        case tuple():
            return tuple(i for part in value for i in scalars(part))
        case _:
            return value.indices


def emptied(value: Value) -> Value:
    """A value of the same shape that is read from no place."""
    match value:
        case Pull():
            return Pull(value.length, lambda i: emptied(value[i]))
        case Parts(pairs):
            return Parts(emptied(pairs))
        case tuple():
            return tuple(map(emptied, value))
        case _:
            return Places()
