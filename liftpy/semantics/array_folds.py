"""Folds whose accumulator holds arrays, evaluated element by element where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from liftpy.deadline import check
from liftpy.ir.pull import Index, Parts, Pull, Value
from liftpy.semantics.held import Held, Like, number, view
from liftpy.semantics.kept import Ranked

Path: TypeAlias = tuple[Index, ...]


class Elsewhere(Exception):
    """A step reads its accumulator at another index than it writes; caught in this module."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold


class Storing(Ranked, Protocol):
    """A reader that stores values: `like` is the shape of the value."""

    def stored(self, value: Value, like: Like) -> Value:
        """The value with every element computed."""
        ...


class Fold:
    """A fold whose accumulator holds arrays, as an array.

    If its steps read the accumulator only at the index that they write, each element is a fold of
    its own. Otherwise all elements of the accumulator are computed after each step.
    """

    def __init__(
        self,
        reader: Storing,
        steps: int,
        init: Value,
        step: Callable[[Index, Value], Value],
    ) -> None:
        self.reader = reader
        self.steps = steps
        self.init = init
        self.step = step
        self.rank = reader.rank
        self.elementwise = True
        self.stored: Value = None

    def read(self, shape: Value, path: Path) -> Value:
        """The part of the result at `path`; `shape` is the same part of the initial value."""
        match shape:
            case Pull():
                return Pull(shape.length, lambda i: self.read(shape[i], (*path, i)))
            case Parts():
                count = len(shape.pairs[np.int64(0)])
                return tuple(self.read(shape[k], (*path, k)) for k in range(count))
            case tuple():
                return tuple(self.read(part, (*path, k)) for k, part in enumerate(shape))
            case _:
                return self.element(shape, path)

    def element(self, start: Value, path: Path) -> Value:
        """One scalar of the result."""
        if self.elementwise:
            try:
                value = start
                for k in range(self.steps):
                    check()
                    acc = focus(self, self.init, path, value)
                    value = along(self.step(np.int64(k), acc), path)
            except Elsewhere as found:
                if found.fold is not self:
                    raise
                self.elementwise = False
            else:
                return value
        if self.stored is None:
            self.stored = self.whole()
        return along(self.stored, path)

    def whole(self) -> Value:
        """The accumulator after all steps."""
        rank, self.reader.rank = self.reader.rank, self.rank
        try:
            acc = self.reader.stored(self.init, None)
            for k in range(self.steps):
                check()
                acc = self.reader.stored(self.step(np.int64(k), view(acc, {})), acc)
        finally:
            self.reader.rank = rank
        return view(acc, {})


def along(value: Value, path: Path) -> Value:
    """The part of a value at a path of indices and components."""
    for index in path:
        value = value[index]
    return value


def focus(fold: Fold, shape: Value, path: Path, value: Value) -> Value:
    """An accumulator of a fold of which only the part at `path` is known."""
    if not path:
        return value
    here, *rest = path

    def only(i: Index) -> Value:
        if i is here or np.array_equal(number(i), number(here)):
            return focus(fold, shape[here], tuple(rest), value)
        raise Elsewhere(fold)

    return Held(shape.length, only) if isinstance(shape, Pull) else OnlyPart(only)


class OnlyPart:
    """A tuple of which one component is known."""

    def __init__(self, only: Callable[[Index], Value]) -> None:
        self.only = only

    def __getitem__(self, k: int) -> Value:
        return self.only(k)
