"""The source of each element of the results of a program that only moves elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.denote import denote
from liftpy.ir.program import Program
from liftpy.ir.pull import Index, Pull, Value
from liftpy.ir.types import Type, components, count
from liftpy.primitives.work import computes
from liftpy.semantics.evaluate import empty, fill, leaf, rank_of, shape_of
from liftpy.semantics.numbers import NumpyReader

NOTHING = -1
"""The number of a value that is no element of an argument."""

MOST = 1 << 25
"""The largest number of elements of arguments and results for which `sources` gives an answer."""


class Numbering(NumpyReader):
    """Evaluates meanings on the numbers of elements instead of their values."""

    def number_type(self, t: Type) -> Any:
        """The type of the numbers, whatever the type of the elements."""
        del t
        return np.int64

    def literal(self, value: float, t: Type) -> Value:
        """A value that comes from no argument."""
        del value, t
        return np.int64(NOTHING)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """The element; `otherwise` is a value that comes from no argument."""
        del otherwise
        return super().choose(condition, then, NOTHING)

    def of_index(self, index: Index, t: Type) -> Value:
        """An index as a value: it comes from no argument."""
        del index, t
        return np.int64(NOTHING)

    def element_at(self, xs: Pull, index: Value) -> Value:
        """An element at a data-dependent index: its number is not known."""
        del xs, index
        return np.int64(NOTHING)


def sources(program: Program) -> tuple[NDArray[np.int64], ...] | None:
    """For each result, the number of the argument's element that each of its elements is.

    Elements are in C order. Those of all arguments are numbered, one argument after another, with
    one number left out between two arguments, so that no run of numbers spans both. `NOTHING` is a
    value that is no element of an argument. None if the program computes, takes tuples, or has a
    more than `MOST` elements in its arguments or results.

    >>> import liftpy as lp
    >>> both = lp.parse("def both(x: [2]f32, y: [3]f32) = concat(y, x)")
    >>> [found.tolist() for found in sources(both)]
    [[3, 4, 5, 0, 1]]
    >>> [found.tolist() for found in sources(lp.parse("def f(x: [2]i32) = generate(2, i => i)"))]
    [[-1, -1]]
    """
    body = program.body.body
    if computes(body) or any(len(components(p.type)) > 1 for p in program.params):
        return None
    if max(int(count(body.type)), sum(int(count(p.type)) for p in program.params)) > MOST:
        return None
    env: dict[Any, Value] = {}
    start = 0
    for p in program.params:
        size = int(count(p.type))
        shape = tuple(map(int, shape_of(p.type)))
        env[p] = leaf(np.arange(start, start + size, dtype=np.int64).reshape(shape), p.type)
        start += size + 1
    reader = Numbering(0)
    found = empty(body.type, (), reader)
    value = denote(body, env, reader)
    reader.rank = rank_of(body.type)
    fill(value, body.type, found, (), reader)
    return tuple(np.ravel(part) for part in (found if isinstance(found, tuple) else (found,)))
