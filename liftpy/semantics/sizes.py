"""Numbers for the open sizes of a program: given, or inferred from the arrays it is applied to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from liftpy.errors import ArgumentRefused, ConstraintRefused, LiftError, UnknownName, Unsatisfiable
from liftpy.ir.nat import Nat, Var
from liftpy.ir.open_sizes import show_range, size_ranges
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.ir.walk import substitute_function
from liftpy.language.entry import entry
from liftpy.language.text import program as text
from liftpy.semantics.obligations import (
    Asked,
    admitted,
    conditions,
    first_broken,
    refusal,
    spell,
)

NEAREST = 3  # numbers suggested for a size
REACH = 1000  # how far from the given number they are searched for

#: Numbers for sizes by name.
Sizes = Mapping[str, int]


@entry("lp.parse")
def parse(program: str) -> Program:
    """The program that a text defines; refused, with a position, if no sizes satisfy it.

    >>> squares = lp.parse("def squares(xs: [4]f32) = xs |> map(x => x * x)")
    >>> squares
    <Program squares(xs: [4]f32) -> [4]f32>

    Raises SyntaxRefused, UnknownName or TypeRefused.
    """
    return admitted(text.parse(program))


@entry("lp.show")
def show(program: Program, sizes: Sizes | None = None) -> str:
    """The text of a program, with numbers for some of its sizes; raises what `at_sizes` raises.

    >>> squares = lp.parse("size n: 1..64 def squares(xs: [n]f32) = xs |> map(x => x * x)")
    >>> print(lp.show(squares, {"n": 8}))
    def squares(xs: [8]f32) =
      xs |> map(x => x * x)
    """
    return text.show(at_sizes(program, sizes or {}))


def closed(program: Program, sizes: Sizes | None = None) -> Program:
    """The program with a number for every size.

    Raises ConstraintRefused if a size has no number, and whatever `at_sizes` raises; TypeRefused
    if `program` is not a program.
    """
    given = at_sizes(program, sizes or {})
    if left := size_ranges(given):
        names = ", ".join(show_range(name, *ends) for name, ends in left.items())
        raise ConstraintRefused(
            f"{program.name} has open sizes, which need numbers here: {names}\n"
            f"  {how_to_give(left)}"
        )
    return given


def how_to_give(names: Iterable[str]) -> str:
    """The sentence that tells how to give sizes."""
    options = " ".join(f"--size {name}=..." for name in names)
    keywords = ", ".join(f'"{name}": ...' for name in names)
    return f"give numbers with {options}, or from Python with sizes={{{keywords}}}"


@entry("lp.at_sizes")
def at_sizes(program: Program, sizes: Sizes) -> Program:
    """The program with numbers for some of its sizes; positions in its text are kept.

    >>> squares = lp.parse("size n: 1..64 def squares(xs: [n]f32) = xs |> map(x => x * x)")
    >>> lp.at_sizes(squares, {"n": 8})
    <Program squares(xs: [8]f32) -> [8]f32>

    Raises UnknownName for a name that is not a size of the program, ConstraintRefused for a number
    out of range, and Unsatisfiable for numbers that break a condition, with the closest ones that
    do not.
    """
    if not sizes:
        return program
    ranges = size_ranges(program)
    for name, value in sizes.items():
        check(program, name, value)
    given = {name: int(value) for name, value in sizes.items()}
    asked = tuple(conditions(program))
    if ranges.keys() <= given.keys():
        broken = first_broken(asked, given)
    else:
        broken = first_broken((a for a in asked if a.condition.names() <= given.keys()), given)
    if broken is not None:
        raise breaking(program, broken, given, asked)
    body = substitute_function(program.body, given)
    return replace(program, body=body)


def check(program: Program, name: str, value: object) -> None:
    """Refuse a name that is not a size, and a value that is not a whole number or out of range."""
    ranges = size_ranges(program)
    if name not in ranges:
        known = ", ".join(show_range(n, *ends) for n, ends in ranges.items())
        has = f"its sizes are {known}" if known else "all its sizes are numbers already"
        raise UnknownName(f"{program.name} has no size '{name}': {has}")
    low, high = ranges[name]
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConstraintRefused(
            f"size {name} of {program.name} needs a whole number, not {value!r}: its range is"
            f" {show_range(name, low, high)}"
        )
    number = int(value)  # pyright: ignore[reportArgumentType]  it has an __index__
    if (low is not None and number < low) or (high is not None and number > high):
        end = low if low is not None and number < low else high
        raise ConstraintRefused(
            f"{program.name} cannot have {name} = {number}: it declares size "
            f"{show_range(name, low, high)}\n  the nearest number is {end}"
        )


def breaking(program: Program, broken: Asked, given: Sizes, asked: Sequence[Asked]) -> LiftError:
    """The refusal of numbers that break a condition: Unsatisfiable."""
    mine = {name: given[name] for name in given if name in broken.condition.names()}
    who = broken.who if broken.place is not None else broken.asker
    what = f"{spell(mine)} is not possible: {who} requires that {broken.condition}"
    why = [broken.condition.substitute(mine).denial()]
    for name in mine:
        near = nearest(program, name, given, asked)
        kept = " with the others kept" if len(given) > 1 else ""
        if near:
            why.append(f"{name}: {', '.join(map(str, near))} would work{kept}")
    if len(why) == 1:
        why.append(f"no nearby number for {' or '.join(mine)} alone would work")
    return refusal(program, Unsatisfiable, what, broken.place, *why)


def nearest(program: Program, name: str, given: Sizes, asked: Iterable[Asked]) -> list[int]:
    """The numbers closest to a given one, in ascending order, for which every condition holds."""
    low, high = size_ranges(program)[name]
    mine = [a for a in asked if a.condition.names() <= given.keys()]
    found: list[int] = []
    for distance in range(1, REACH + 1):
        for value in (given[name] - distance, given[name] + distance):
            in_range = (low is None or low <= value) and (high is None or value <= high)
            if in_range and first_broken(mine, {**given, name: value}) is None:
                found.append(value)
        if len(found) >= NEAREST:
            break
    return sorted(found[:NEAREST])


# --- sizes from arrays --------------------------------------------------------------------------


def at_arrays(program: Program, arrays: Sequence[Any], sizes: Sizes | None = None) -> Program:
    """The program with the sizes given and those that the shapes of its arrays determine.

    Raises ArgumentRefused if shapes contradict each other or do not determine a size.
    """
    known = dict(sizes or {})
    for name, value in known.items():
        check(program, name, value)
    if not (ranges := size_ranges(program)):
        return program
    read: dict[str, str] = {}
    equations = [
        equation
        for p, array in zip(program.params, arrays, strict=False)
        for equation in equations_of(p.name, p.type, array, ())
    ]
    while solved := next(solutions(equations, known), None):
        name, value, where = solved
        known[name], read[name] = value, where
    for length, number, where in equations:
        if no_whole_number(length.substitute(known), number):
            mine = {n: known[n] for n in sorted(length.names() & known.keys())}
            left = " and ".join(sorted(length.names() - known.keys()))
            raise ArgumentRefused(
                f"no whole number for {left} fits the arrays of {program.name}\n"
                f"  {where} has {number} elements, and its length is {length}"
                f"{f' with {spell(mine)}' if mine else ''}\n"
                "  pass arrays whose shapes agree"
            )
        if length.names() <= known.keys() and length.value(known) != number:
            told = ", ".join(
                f"{n} = {known[n]}" + (f" from {read[n]}" if n in read else "")
                for n in sorted(length.names())
            )
            raise ArgumentRefused(
                f"the arrays of {program.name} have different sizes\n"
                f"  {where} has {number} elements, and its length {length} must be "
                f"{length.value(known)} ({told})\n  pass arrays whose shapes agree"
            )
    if left := [n for n in ranges if n not in known]:
        raise ArgumentRefused(
            f"the shapes of the arrays of {program.name} do not determine {' and '.join(left)}\n"
            f"  {how_to_give(left)}"
        )
    return at_sizes(program, known)


def equations_of(
    name: str, t: Type, array: Any, outer: tuple[Nat, ...]
) -> Iterator[tuple[Nat, int, str]]:
    """Yield each open length of a parameter, its number in the array, and its place in words.

    An array of tuples is given as a tuple of arrays.
    """
    lengths = [*outer]
    while isinstance(t, ArrayType | VectorType):
        lengths.append(t.length if isinstance(t, ArrayType) else t.width)
        t = t.element
    if isinstance(t, TupleType):
        if isinstance(array, tuple):
            parts = cast("tuple[Any, ...]", array)
            for k, (part, element) in enumerate(zip(parts, t.elements, strict=False)):
                yield from equations_of(f"{name}.{k}", element, part, tuple(lengths))
        return
    for dim, (length, number) in enumerate(zip(lengths, np.shape(array), strict=False)):
        if length.names():
            yield length, number, f"dimension {dim} of {name}" if len(lengths) > 1 else name


def solutions(
    equations: Iterable[tuple[Nat, int, str]], known: Sizes
) -> Iterator[tuple[str, int, str]]:
    """Yield the sizes that an equation with one unknown determines."""
    for length, number, where in equations:
        line = linear(length.substitute(known))
        if line is not None and (number - line[2]) % line[1] == 0:
            yield line[0], (number - line[2]) // line[1], where


def no_whole_number(length: Nat, number: int) -> bool:
    """Whether a length with one unknown equals a number for no whole value of the unknown."""
    line = linear(length)
    return line is not None and (number - line[2]) % line[1] != 0


def linear(size: Nat) -> tuple[str, int, int] | None:
    """The variable `x` of a natural `a*x + b`, with `a` and `b`; None if it has another form."""
    variables = [m for m in size.terms if m]
    if len(variables) != 1 or len(variables[0]) != 1:
        return None
    ((factor, exponent),) = variables[0]
    if exponent != 1 or not isinstance(factor, Var):
        return None
    return factor.name, size.terms[variables[0]], size.terms.get((), 0)
