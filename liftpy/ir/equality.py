"""Structural equality of expressions and functions, without recursion over their parts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import Any, TypeVar

from liftpy.ir.provided import TRACE
from liftpy.ir.scalars import exact
from liftpy.source.caller import compared_by_user

T = TypeVar("T")

NESTED: dict[type, tuple[str, ...]] = {}
"""The fields by which expressions with parts, and functions, are compared."""


def alike(one: Any, other: Any) -> bool:
    """Whether two expressions of one class have equal parts.

    Without recursion over calls, functions and tuples: code with many names is deep.
    """
    waiting = [(one, other)]
    while waiting:
        a, b = waiting.pop()
        if a is b:
            continue
        kind = a.__class__
        if b.__class__ is not kind:
            return False
        if kind is tuple:
            if len(a) != len(b):
                return False
            waiting += zip(a, b, strict=True)
        elif (names := NESTED.get(kind)) is None:
            if a != b:
                return False
        elif hash(a) != hash(b):
            return False
        else:
            waiting += [(getattr(a, name), getattr(b, name)) for name in names]
    return True


def compared(cls: type[T]) -> type[T]:
    """Adds structural equality to a class; in a traced function, `==` is a word instead."""
    equal = cls.__eq__

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if TRACE.get() is not None and compared_by_user():
            return self.scalar("==", self, other)
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return hash(self) == hash(other) and (alike if cls in NESTED else equal)(self, other)

    def __ne__(self: Any, other: object) -> Any:  # noqa: N807
        if TRACE.get() is not None and compared_by_user():
            return self.scalar("!=", self, other)
        same = __eq__(self, other)
        return same if same is NotImplemented else not same

    cls.__eq__, cls.__ne__ = __eq__, __ne__
    return cls


def exactly(cls: type[T]) -> type[T]:
    """Compares the constants in the fields of a data class by `exact`: 0 is not -0."""

    def key(self: Any) -> tuple[Hashable, ...]:
        return tuple(exact(getattr(self, f.name)) for f in fields(self) if f.compare)

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        return other.__class__ is self.__class__ and key(self) == key(other)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(key(self))

    cls.__eq__, cls.__hash__ = __eq__, __hash__
    return cls
