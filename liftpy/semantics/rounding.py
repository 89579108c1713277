"""An a-priori bound of the rounding error of each element of a program that is computed in f32.

A program of sums, products, maxima and the like computes each result as a sum over the paths from
its inputs; `winograd/error.py` derives the bound e(K) S from them. S, the sum of the magnitudes of
the paths to an element, is the meaning of the program on the magnitudes of its inputs, with sums
for differences: `Magnitudes` reads it. K, the most roundings on a path to any element, depends on
the program alone: `Roundings` reads it, with one number for all elements of an array. A sum of n
numbers has n roundings, in whatever order it is computed. So the bound of a form of a program holds
for all candidates that are derived from this form by rules that change the order of sums, but not
by rules that join several sums to a longer one (`reduce_of_map_reduce`).

A number that is stored in a storage type and read again is rounded once more, by up to the error of
the type (`storing_error`), which a path multiplies like a rounding.

The error of a maximum, a minimum or a choice between two values is at most the larger of their
errors, if what decides is exact. A quotient by a constant counts as `DIVISION` roundings. Other
functions (exp, a quotient by a computed number) have no bound here, nor have programs with numbers
other than f32 and its storage types. A number that underflows may be wrong by the least normal
number (`TINY`). A result without roundings may be wrong by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.denote import denote
from liftpy.ir.nat import NatLike
from liftpy.ir.operators import COMPARISONS, LOGICAL
from liftpy.ir.program import Program
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import (
    BOOL,
    F32,
    SCALARS,
    STORAGE,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    scalars,
)
from liftpy.ir.walk import scalars_in
from liftpy.semantics.evaluate import Evaluated
from liftpy.semantics.numbers import NumpyReader, operation_of
from liftpy.winograd.error import compounded

DIVISION = 6
"""The roundings of a quotient: 2.5 units in the last place, each of two roundings, and one more.

The rule `reciprocal` makes it a product with a quotient.
"""

TINY = 2.0**-102
"""The magnitude that stands for underflow: one rounding of it is the least normal f32 number.

It is added to each magnitude that is computed, so that later factors enlarge it as they do the
error.
"""

ON_MAGNITUDES = {np.subtract: np.add, np.fmin: np.fmax}
"""The operations on magnitudes that differ from those on numbers."""

MOST = 1 << 22
"""The most roundings of a bound: e(K) needs K u < 1."""

STEPS = 4
"""The steps of a fold that are taken before the others are extrapolated."""


class Unbounded(Exception):
    """A program has no bound here; the message says why."""


@dataclass(frozen=True)
class Path:
    """The most roundings on the paths to a number, and its value if it is a constant.

    `stored` is the largest relative error that storing numbers in storage types adds on a path.
    """

    roundings: int
    constant: float | None = None
    stored: float = 0.0

    @property
    def power(self) -> bool:
        """Whether products with it are exact: it is zero or a power of two."""
        return self.constant is not None and abs(np.frexp(self.constant)[0]) in {0, 0.5}


def roundings(program: Program) -> int:
    """The most roundings on a path to an element of the result; Unbounded if there is no bound.

    >>> from liftpy.language.text.program import parse
    >>> roundings(parse("def p(x: [9]f32, w: [9]f32) = zip(x, w) |> map(mul) |> reduce(add, 0)"))
    9
    """
    return worst_path(program).roundings


def worst_path(program: Program) -> Path:
    """The most roundings and the largest error of storage on a path; Unbounded as `roundings`.

    >>> from liftpy.language.text.program import parse
    >>> worst_path(parse("def p(x: [9]f32) = x |> map(v => f32(bf16(v)) * 3)")).stored == 2**-8
    True
    """
    if any(not STORAGE.keys().isdisjoint(scalars(p.type)) for p in program.params):
        raise Unbounded("a parameter has a storage type")
    known = {F32, BOOL, *(t for t, base in STORAGE.items() if base == F32)}
    if other := [str(t) for t in scalars_in(program.body) if t not in known]:
        raise Unbounded(f"it has numbers of type {', '.join(sorted(other))}")
    reader = Roundings()
    env = {p: everywhere(p.type, Path(0)) for p in program.params}
    found = worst(denote(program.body.body, env, reader))
    if found.roundings > MOST:
        raise Unbounded(f"a result has {found.roundings} roundings")
    return found


def storing_error(t: ScalarType) -> float:
    """The largest relative error of storing a number, apart from numbers that underflow.

    >>> from liftpy.ir.types import SCALARS
    >>> storing_error(SCALARS["flyte16"]) == 2**-7, storing_error(SCALARS["bf16"]) == 2**-8
    (True, True)
    >>> storing_error(SCALARS["flyte8"])
    0.75
    """
    record = RECORDS[t.name]
    dropped = RECORDS[record.base].exponent - record.exponent
    if dropped and not record.packed:  # the next value is 2^(2^dropped) times as large
        return 1 - 2.0 ** -(2**dropped)
    return 2.0 ** -(record.significand - (not record.nearest))


def least_normal(t: ScalarType) -> float:
    """A magnitude below which the error of storing a number is that of this magnitude."""
    record = RECORDS[t.name]
    return 2.0 ** (2 - 2 ** (record.exponent - 1)) if record.packed else TINY


def together(*errors: float) -> float:
    """The relative error of a product of numbers with these relative errors."""
    return math.prod(1 + error for error in errors) - 1


def everywhere(t: Type, path: Path) -> Value:
    """A value of a type whose numbers all have this path."""
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            inside = everywhere(element, path)
            return Pull(length, lambda _: inside)
        case TupleType(elements):
            return tuple(everywhere(part, path) for part in elements)
        case _:
            return path


def worst(value: Value) -> Path:
    """The worst of the paths to the numbers in a value; those of an array are all alike."""
    match value:
        case Pull():
            return worst(value[0])
        case Parts():
            return worst(value.pairs[0])
        case tuple():
            paths = [*map(worst, value)]
            most = max((path.roundings for path in paths), default=0)
            return Path(most, None, max((path.stored for path in paths), default=0.0))
        case _:
            return value


def alike(value: Value, path: Path | None = None) -> Value:
    """The value, each part computed once: with its own numbers, or with `path` for each."""
    match value:
        case Pull():
            inside = alike(value[0], path)
            return Pull(value.length, lambda _: inside)
        case Parts():
            return Parts(alike(value.pairs, path))
        case tuple():
            return tuple(alike(part, path) for part in value)
        case _:
            return value if path is None else path


class Roundings(ByName):
    """Reads the most roundings on a path: a `Path` for each number.

    All elements of an array have the same, so an index decides nothing.
    """

    def operate(self, op: str, args: tuple[Value, ...]) -> Path:
        """The path to the result of an operator."""
        counts = [arg.roundings for arg in args]
        kept = max(arg.stored for arg in args)
        both = together(*(arg.stored for arg in args))
        match op, args:
            case (("+" | "-"), (Path(_, left), Path(_, right))):
                return Path(max(counts) + (0.0 not in {left, right}), None, kept)
            case "*", (left, right):
                return Path(sum(counts) + (not left.power and not right.power), None, both)
            case "/", (_, Path(_, divisor)) if divisor:
                return Path(sum(counts) + DIVISION, None, both)
            case "neg", (Path(count, constant),):
                return Path(count, None if constant is None else -constant, kept)
            case (("min" | "max" | "abs" | "f32"), _):
                return Path(max(counts), None, kept)
            case _ if op in SCALARS and SCALARS[op] in STORAGE:
                return Path(max(counts), None, together(kept, storing_error(SCALARS[op])))
            case _ if op in COMPARISONS | LOGICAL and not any(counts) and not kept:
                return Path(0)
            case "select", (condition, *branches) if not (condition.roundings or condition.stored):
                return worst(tuple(branches))
            case _:
                raise Unbounded(f"it computes `{op}`")

    def literal(self, value: float, t: Type) -> Path:
        """A constant, which is rounded if f32 does not represent it."""
        return Path(int(float(np.float32(value)) != value), float(value))

    def inside(self, index: Index, length: NatLike) -> None:
        """Nothing: an index decides nothing."""

    def clip(self, index: Index, of: Pull) -> Index:
        """The index."""
        return index

    def choose(self, condition: None, then: Path, otherwise: float) -> Path:
        """A number or a constant."""
        return self.either(condition, then, self.literal(otherwise, F32))

    def either(self, condition: None, then: Path, otherwise: Path) -> Path:
        """One of two numbers."""
        return then if then == otherwise else worst((then, otherwise))

    def of_index(self, index: Index, t: Type) -> Path:
        """Refused: an index has no bound."""
        raise Unbounded("it computes with an index")

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Refused: an unknown function has no bound."""
        raise Unbounded(f"the function {function.name} is unknown")

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        """The last of equal increases; Unbounded if a step adds more than the one before it.

        The error of storage must not change after the first step.

        The roundings of a sum's step are those before it plus a constant, but at least another
        constant. Such a step adds the same from the second on.
        """
        count, value, seen = int(length), alike(init), list[Path]()
        for _ in range(min(count, STEPS)):
            value = alike(step(0, value))
            seen.append(worst(value))
            value = alike(value, Path(seen[-1].roundings, None, seen[-1].stored))
        if count <= STEPS:
            return value
        more = {after.roundings - before.roundings for before, after in pairwise(seen)}
        if len(more) > 1 or len({path.stored for path in seen}) > 1:
            raise Unbounded("a fold multiplies what it has accumulated")
        last = seen[-1]
        total = last.roundings + (count - STEPS) * more.pop()
        return alike(value, Path(total, None, last.stored))

    def scan(
        self,
        length: NatLike,
        init: Value,
        step: Callable[[Index, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """Every element as the last one, which has the most roundings."""
        last = self.fold(length, init, step)
        return Pull(length, lambda _: last)

    def bound(self, value: Value, meant: Any, env: Any) -> Value:
        """The value, computed once."""
        return alike(value)

    def handed(self, function: Any, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values, computed once."""
        return tuple(map(alike, values))


class Magnitudes(NumpyReader):
    """Reads the sum of the magnitudes of all paths to each element, in float64."""

    def __init__(self) -> None:
        super().__init__(0, np.float64)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """The sum of the magnitudes of the paths to the result of an operator."""
        match op, args:
            case (("+" | "-"), (left, right)):
                return left + right + TINY
            case (("min" | "max"), (left, right)):
                return np.fmax(left, right)
            case (("neg" | "abs"), (given,)):
                return given
            case "select", (_, left, right):
                return np.fmax(left, right)
            case (("*" | "/"), _):
                return super().operate(op, args) + TINY
            case _ if op in SCALARS and SCALARS[op] in STORAGE:
                return args[0] + least_normal(SCALARS[op])
            case _:
                return super().operate(op, args)

    def literal(self, value: float, t: Type) -> Value:
        """The magnitude of a constant; that of infinity, where a maximum begins, is not counted."""
        return super().literal(abs(value) if np.isfinite(value) else 0, t)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """The magnitude of a number or of a constant."""
        return super().choose(condition, then, abs(otherwise) if np.isfinite(otherwise) else 0)

    def operation(self, f: Callable[[Value, Value], Value]) -> np.ufunc | None:
        """The operation on magnitudes."""
        return ON_MAGNITUDES.get(found := operation_of(f), found)

    def reduced(self, f: Callable[[Value, Value], Value], init: Value, xs: Pull) -> Value:
        """The fold, each step of which may underflow."""
        found = super().reduced(f, init, xs)
        return found if isinstance(found, Pull | Parts | tuple) else found + int(xs.length) * TINY


class ErrorBounds:
    """The bounds of the elements of a program's result on arrays, by parameter.

    `roundings` is K, and `stored` the relative error that numbers in storage types add. Raises
    Unbounded if there is no bound.

    >>> from liftpy.language.text.program import parse
    >>> program = parse("def p(x: [2]f32) = x |> map(x => x * x - 1)")
    >>> bounds = ErrorBounds(program, {"x": np.float32([1, 3])})
    >>> bounds.roundings, bounds.at(np.array([[0], [1]])) * 2**24
    (2, array([ 4.00000048, 20.00000238]))
    """

    def __init__(self, program: Program, arrays: dict[str, Any]) -> None:
        self.program = program
        self.arrays = arrays
        path = worst_path(program)
        self.roundings, self.stored = path.roundings, path.stored
        self._evaluated: Evaluated | None = None

    def at(self, points: NDArray[np.int64], component: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """The largest error of a component of the result at some points."""
        if self._evaluated is None:
            given = tuple(magnitudes(self.arrays[p.name]) for p in self.program.params)
            self._evaluated = Evaluated(self.program, given, np.float64, reader=Magnitudes())
        paths = np.asarray(self._evaluated.at(points, component), np.float64)
        factor = together(float(compounded(max(1, self.roundings))), self.stored)
        found = factor * (paths + TINY)
        return np.where(np.isfinite(found), found, np.inf)


def magnitudes(given: Any) -> Any:
    """The magnitudes of arrays, nested like them; truth values are kept."""
    if isinstance(given, tuple):
        return tuple(map(magnitudes, given))
    array = np.asarray(given)
    return array if array.dtype == np.bool_ else np.abs(array)
