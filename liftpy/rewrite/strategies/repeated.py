"""Stores values that would otherwise be read or computed again and again.

A view is read where it is used, and a map that another part reads is computed there. In a chain of
such values, each of which uses the previous one more than once, the number of readings doubles at
every step. Above a limit, the value is stored in global memory, and later values read that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get, function_of
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.ir.walk import Path, at
from liftpy.primitives import MemoryPrimitive, Zip
from liftpy.rewrite.strategies.shapes import lets, nests, working_map
from liftpy.rewrite.strategies.share import is_storable
from liftpy.rewrite.strategy import Result, Strategy, Success, at_path, rule, seq

MOST = 32
"""The most readings of stored arrays per element of a value that is not stored."""


@dataclass(frozen=True)
class Readings:
    """The number of readings of stored arrays per element of a value.

    `once` counts readings for all components together, `parts` those that each component adds.
    """

    once: int = 0
    parts: tuple[Readings, ...] = ()

    @property
    def total(self) -> int:
        """The readings of all components."""
        return self.once + sum(part.total for part in self.parts)

    def part(self, index: int) -> Readings:
        """The readings of one component."""
        return self.parts[index].and_once(self.once) if self.parts else self

    def and_once(self, more: int) -> Readings:
        """These readings, and `more` that are done once for all components."""
        return replace(self, once=self.once + more)


STORED = Readings(1)
Scope = Mapping[Param, Readings]


def store_repeated(lower: Strategy, *, held: bool = False) -> Strategy:
    """Make kernels for named values and maps whose elements take more than `MOST` readings.

    Only values outside functions are stored, each after those it reads; `lower` makes a kernel.
    With `held`, the kernel itself holds the values of the lets at the beginning.
    """
    stored = seq(rule("to_global"), at_path((0,), lower))

    def run(expr: Expr) -> Result:
        count = sum(1 for _ in lets(expr)) if held else 0
        parts: list[Path] = [*((*(1,) * k, 0) for k in range(count)), (1,) * count]
        found: list[Path] = []
        made: set[Path] = set()  # what these maps make is stored by the kernel itself
        for path in parts:
            outside(at(expr, path), {}, path, found)
            made |= {nest.path for nest in nests(at(expr, path), path)}
        found = [path for path in found if path not in made]
        return seq(at_path(found[0], stored), run)(expr) if found else Success(expr)

    return run


def outside(expr: Expr, scope: Scope, path: Path, found: list[Path]) -> Readings:
    """The readings of a part outside functions.

    Adds to `found` the paths of storable maps and named values that take too many readings.
    """
    if isinstance(expr, Tuple):
        parts = (outside(e, scope, (*path, k), found) for k, e in enumerate(expr.elements))
        return Readings(0, tuple(parts))
    if not isinstance(expr, FunCall) or isinstance(expr.fun, MemoryPrimitive):
        return readings(expr, scope)
    args = [outside(a, scope, (*path, k), found) for k, a in enumerate(expr.args)]
    if isinstance(expr.fun, Lambda):
        for k, (arg, given) in enumerate(zip(expr.args, args, strict=True)):
            if given.total > MOST and is_storable(arg.type):
                found.append((*path, k))
        inner, once = bound(expr.fun, args, scope)
        return outside(expr.fun.body, inner, (*path, len(args)), found).and_once(once)
    made = of_call(expr, args, scope)
    if path and made.total > MOST and working_map(expr) and is_storable(expr.type):
        found.append(path)
    return made


def readings(expr: Expr, scope: Scope) -> Readings:
    """The readings of arrays per element of a value."""
    match expr:
        case Param():
            return scope.get(expr, STORED)
        case Literal():
            return Readings()
        case Tuple(elements):
            return Readings(0, tuple(readings(e, scope) for e in elements))
        case FunCall(MemoryPrimitive(), _):
            return STORED
        case FunCall(Lambda() as f, args):
            inner, once = bound(f, [readings(a, scope) for a in args], scope)
            return readings(f.body, inner).and_once(once)
        case FunCall(_, args):
            return of_call(expr, [readings(a, scope) for a in args], scope)
        case _:
            return STORED


def of_call(expr: FunCall, args: list[Readings], scope: Scope) -> Readings:
    """The readings of a call other than a let, given those of its arguments."""
    if isinstance(expr.fun, Get):
        return args[0].part(expr.fun.index)
    if isinstance(expr.fun, Zip):
        return Readings(0, tuple(args))
    function = function_of(expr.fun)
    if function is None:
        if len(args) == 1:
            return moved(args[0], expr.args[0].type, expr.type)
        return Readings(sum(a.total for a in args))
    # The last parameter is an element of the last argument; one before it is an accumulator.
    given = [Readings() for _ in function.params]
    if args:
        given[-1] = args[-1]
    inner, once = bound(function, given, scope)
    starts = sum(a.total for a in args[:-1])
    return readings(function.body, inner).and_once(once + starts)


def moved(given: Readings, before: Type, after: Type) -> Readings:
    """The readings after a layout; if it makes a tuple, each part may have all components."""
    inner = tuples_in(before)
    if tuples_in(after) == inner:
        return given
    if isinstance(after, TupleType) and all(tuples_in(e) == inner for e in after.elements):
        return Readings(0, tuple(given for _ in after.elements))
    return Readings(given.total)


Tuples: TypeAlias = "tuple[Tuples, ...] | None"


def tuples_in(t: Type) -> Tuples:
    """The nested tuples of a type; None for a type without tuples."""
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    return tuple(map(tuples_in, t.elements)) if isinstance(t, TupleType) else None


def bound(f: Lambda, args: list[Readings], scope: Scope) -> tuple[Scope, int]:
    """The readings per use of a function's variables, and those done once for its scalars."""
    given = [of_uses(p.type, a) for p, a in zip(f.params, args, strict=True)]
    uses = dict(zip(f.params, (uses for uses, _ in given), strict=True))
    return {**scope, **uses}, sum(once for _, once in given)


def of_uses(t: Type, given: Readings) -> tuple[Readings, int]:
    """The readings per use of a variable, and those done once: scalars are kept in variables."""
    if not has_arrays(t):
        return Readings(), given.total
    if not isinstance(t, TupleType):
        return given, 0
    parts = [of_uses(e, given.part(k)) for k, e in enumerate(t.elements)]
    return Readings(0, tuple(uses for uses, _ in parts)), sum(once for _, once in parts)


def has_arrays(t: Type) -> bool:
    """Whether a type contains arrays or vectors, whose elements are read one by one."""
    if isinstance(t, TupleType):
        return any(map(has_arrays, t.elements))
    return isinstance(t, ArrayType | VectorType)
