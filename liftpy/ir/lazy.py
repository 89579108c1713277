"""A property that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["lazy"]

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801  it is written like `property`
        """`functools.cached_property` without the lock that it has before Python 3.12.

        All objects of a class share that lock, and it is held while the value is computed: two
        threads in which keys of naturals and of their quotients need each other wait for ever.
        Two threads may compute a value twice here, and get equal ones.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self.function(instance)
            instance.__dict__[self.name] = value
            return value
