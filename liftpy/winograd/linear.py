"""A constant matrix applied to a small array, as straight-line code in exact arithmetic.

A program is data: a tuple of steps, each a sum, a difference or a product with a constant, of
inputs and of earlier steps. Constants stay rationals until they are printed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, TypeVar

from liftpy.winograd.matrices import Matrix, identity

Value = TypeVar("Value")


@dataclass(frozen=True)
class Sum:
    """`left + right`, or `left - right`: values by their numbers."""

    left: int
    right: int
    minus: bool = False


@dataclass(frozen=True)
class ScaledValue:
    """`factor` times a value; -1 is a change of sign."""

    factor: Fraction
    of: int


Step: TypeAlias = Sum | ScaledValue


@dataclass(frozen=True)
class Counts:
    """The operations of a program; a change of sign is no multiplication."""

    additions: int
    multiplications: int
    negations: int


@dataclass(frozen=True)
class Straight:
    """A straight-line program: `results` of `inputs` values.

    The inputs are the values 0, 1, ...; each step makes the next one. A result is the number of a
    value, or None where it is 0 for all inputs.

    >>> twice_and_sum = Straight(2, (ScaledValue(Fraction(2), 0), Sum(2, 1)), (2, 3, None))
    >>> print(*twice_and_sum.evaluate([Fraction(5), Fraction(7)]))
    10 17 0
    """

    inputs: int
    steps: tuple[Step, ...]
    results: tuple[int | None, ...]

    def fold(
        self,
        values: Iterable[Value],
        add: Callable[[Value, Value, bool], Value],
        scale: Callable[[Fraction, Value], Value],
        zero: Value,
    ) -> list[Value]:
        """The results, with `add(left, right, minus)` and `scale(factor, value)` for the steps."""
        found = list(values)
        for step in self.steps:
            match step:
                case Sum(left, right, minus):
                    found.append(add(found[left], found[right], minus))
                case ScaledValue(factor, of):
                    found.append(scale(factor, found[of]))
        return [zero if result is None else found[result] for result in self.results]

    def evaluate(self, values: Sequence[Fraction]) -> list[Fraction]:
        """The results for some inputs, exactly."""
        return self.fold(
            values,
            lambda x, y, minus: x - y if minus else x + y,
            lambda factor, x: factor * x,
            Fraction(0),
        )

    def matrix(self) -> Matrix:
        """The matrix that the program applies."""
        units = [self.evaluate(unit) for unit in identity(self.inputs)]
        return tuple(zip(*units, strict=True))

    @property
    def counts(self) -> Counts:
        """The operations."""
        products = [step for step in self.steps if isinstance(step, ScaledValue)]
        negations = sum(step.factor == -1 for step in products)
        return Counts(len(self.steps) - len(products), len(products) - negations, negations)

    def __str__(self) -> str:
        """The program as text: inputs x0, x1, ...; steps t0, t1, ...; results y0, y1, ..."""
        lines = [f"t{j} = {self._said(step)}" for j, step in enumerate(self.steps)]
        lines += [
            f"y{i} = {'0' if result is None else self._name(result)}"
            for i, result in enumerate(self.results)
        ]
        return "\n".join(lines)

    def _name(self, value: int) -> str:
        return f"x{value}" if value < self.inputs else f"t{value - self.inputs}"

    def _said(self, step: Step) -> str:
        match step:
            case Sum(left, right, minus):
                return f"{self._name(left)} {'-' if minus else '+'} {self._name(right)}"
            case ScaledValue(factor, of):
                return f"-{self._name(of)}" if factor == -1 else f"{factor} * {self._name(of)}"


Signed: TypeAlias = tuple[int, bool]
"""The number of a value, and whether it is negated."""


class Builder:
    """Builds a program; with `shared`, an operation that it already has is reused."""

    def __init__(self, inputs: int, *, shared: bool = True) -> None:
        self.inputs = inputs
        self.shared = shared
        self.steps: list[Step] = []
        self._depths = [0] * inputs
        self._known: dict[Step, int] = {}

    def _value(self, step: Step, depth: int) -> int:
        """The number of the value of a step; `depth` is the longest path from an input."""
        if self.shared and step in self._known:
            return self._known[step]
        self.steps.append(step)
        self._depths.append(depth)
        self._known[step] = len(self._depths) - 1
        return self._known[step]

    def product(self, factor: Fraction, of: int) -> int:
        """A constant times a value."""
        if factor == 1:
            return of
        return self._value(ScaledValue(factor, of), self._depths[of] + 1)

    def add(self, one: Signed, other: Signed) -> Signed:
        """The sum of two signed values, as a signed value."""
        (x, x_minus), (y, y_minus) = one, other
        depth = max(self._depths[x], self._depths[y]) + 1
        if x_minus == y_minus:
            return self._value(Sum(min(x, y), max(x, y)), depth), x_minus
        if x_minus:
            x, y = y, x
        if self.shared and (turned := self._known.get(Sum(y, x, minus=True))) is not None:
            return turned, True
        return self._value(Sum(x, y, minus=True), depth), False

    def total(self, terms: Iterable[Signed]) -> Signed:
        """The sum of one or more signed values, the shallowest first, so that paths stay short."""
        heap = [(self._depths[value], value, minus) for value, minus in terms]
        heapq.heapify(heap)
        while len(heap) > 1:
            _, x, x_minus = heapq.heappop(heap)
            _, y, y_minus = heapq.heappop(heap)
            value, minus = self.add((x, x_minus), (y, y_minus))
            heapq.heappush(heap, (self._depths[value], value, minus))
        _, value, minus = heap[0]
        return value, minus

    def positive(self, signed: Signed) -> int:
        """A signed value as a value."""
        value, minus = signed
        return self.product(Fraction(-1), value) if minus else value

    def combination(self, groups: Iterable[tuple[Fraction, Sequence[Signed]]]) -> int:
        """The sum over groups `(c, members)` of c times the sum of the members, with c > 0."""
        terms: list[Signed] = []
        scaled: list[tuple[Fraction, Signed]] = []
        for factor, members in groups:
            if factor == 1:
                terms += members
            else:
                scaled.append((factor, self.total(members)))
        if all(minus for _, minus in terms) and all(minus for _, (_, minus) in scaled) and scaled:
            # A negative constant saves a change of sign at the end.
            factor, (value, _) = scaled.pop()
            terms.append((self.product(-factor, value), False))
        terms += [(self.product(factor, value), minus) for factor, (value, minus) in scaled]
        return self.positive(self.total(terms))

    def inline(self, program: Straight, values: Sequence[int | None]) -> list[int | None]:
        """The results of a program applied to values; either all or none of them are None (0)."""
        given = [value for value in values if value is not None]
        if not given:
            return [None] * len(program.results)
        found = given
        for step in program.steps:
            match step:
                case Sum(left, right, minus):
                    made = self.add((found[left], False), (found[right], minus))
                    found.append(self.positive(made))
                case ScaledValue(factor, of):
                    found.append(self.product(factor, found[of]))
        return [None if result is None else found[result] for result in program.results]

    def program(self, results: Sequence[int | None]) -> Straight:
        """The program with these results."""
        return Straight(self.inputs, tuple(self.steps), tuple(results))


class Sharing(StrEnum):
    """Which common subexpressions a program computes once (`sharing`)."""

    NONE = "none"
    SETS = "sets"
    PAIRS = "pairs"


class Form(StrEnum):
    """How a matrix is applied: to a vector, to a flattened square, or to its columns, then rows."""

    VECTOR = "vector"
    FLAT = "flat"
    SEPARABLE = "separable"
