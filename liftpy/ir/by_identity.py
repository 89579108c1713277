"""A cache for functions of one immutable object, by the object itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def by_identity(most: int) -> Callable[[Callable[[T], R]], Callable[[T], R]]:
    """Cache the last `most` results of a function, for arguments that are the same object.

    `functools.lru_cache` compares equal expressions part by part if they are different objects,
    which may take longer than to compute the result again. It also confuses `0.0` and `-0.0`.
    """

    def cached(function: Callable[[T], R]) -> Callable[[T], R]:
        known: OrderedDict[int, tuple[T, R]] = OrderedDict()

        @wraps(function)
        def call(argument: T) -> R:
            found = known.get(id(argument))  # the argument is kept, so its `id` is not used again
            if found is None:
                found = known[id(argument)] = argument, function(argument)
                if len(known) > most:
                    known.popitem(last=False)
            return found[1]

        return call

    return cached
