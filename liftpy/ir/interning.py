"""Interning of expressions: equal ones are the same object, so that caches compare identities.

Skeletons of a program share most of their expressions, and the steps that lead to them. What is
computed of an expression (its kinds of calls, its conditions, what a rule makes of it) is then
computed once for all of them.
"""

from __future__ import annotations

import atexit
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

#: Whether each call is an object of its own: the forms of the language record by identity where a
#: call was written.
_APART: ContextVar[bool] = ContextVar("_APART", default=False)

_KNOWN: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
# At exit, Python sets the globals of modules to None. Expressions that are deleted afterwards would
# be compared by functions that need these globals.
atexit.register(_KNOWN.clear)


class Interned(type):
    """A metaclass: a call that would make an equal object returns the one that exists.

    A class defines `identity`, which takes the arguments of the class. Objects with the same
    identity have to be equal and print the same.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _APART.get():
            return super().__call__(*args, **kwargs)
        key = cls.identity(*args, **kwargs)
        found = _KNOWN.get(key)
        return keep(key, super().__call__(*args, **kwargs)) if found is None else found

    def identity(cls, *args: Any, **kwargs: Any) -> Hashable:
        """What distinguishes an object with these arguments from all others."""
        raise NotImplementedError


def known(key: Hashable) -> Any:
    """The object with an identity, None if there is none."""
    return None if _APART.get() else _KNOWN.get(key)


def keep(key: Hashable, made: Any) -> Any:
    """The object with an identity: `made`, unless there is one."""
    return made if _APART.get() else _KNOWN.setdefault(key, made)


@contextmanager
def apart() -> Generator[None]:
    """Makes every expression an object of its own."""
    token = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(token)
