"""Functions that have a body or a declared type: lambdas, named scalar functions, unknown ones.

A `Lambda` is a function, not an expression. It is a field of a primitive (`Map(f)`), or the callee
of a call, which is a `let`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from liftpy.errors import TypeRefused, plural
from liftpy.ir.constraint import Equal
from liftpy.ir.equality import NESTED, exactly
from liftpy.ir.expr import NO_PARAMS, Expr, Param
from liftpy.ir.types import ScalarType, Type, same_shape


class Function(Protocol):
    """The callee of a call."""

    def result(self, *args: Type) -> Type:
        """The type of a call; raises TypeRefused."""
        ...

    @property
    def free(self) -> frozenset[Param]:
        """The free variables of the function."""
        ...


@dataclass(frozen=True)
class Lambda:
    """A function of some variables."""

    params: tuple[Param, ...]
    body: Expr
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "free", self.body.free.difference(self.params))
        object.__setattr__(self, "hashed", hash((self.params, self.body)))

    def __hash__(self) -> int:
        return self.hashed

    def result(self, *args: Type) -> Type:
        """The body's type, after checking that the arguments fit the parameters."""
        check_arguments("let", tuple(p.type for p in self.params), args)
        return self.body.type


NESTED[Lambda] = ("params", "body")


@dataclass(frozen=True)
class FunVar:
    """An unknown function, in rules only."""

    name: str
    params: tuple[Type, ...]
    type: Type

    @property
    def free(self) -> frozenset[Param]:
        """It takes nothing from its surroundings."""
        return NO_PARAMS

    def result(self, *args: Type) -> Type:
        """The declared result type."""
        check_arguments(self.name, self.params, args)
        return self.type


@dataclass(frozen=True)
@exactly
class Law:
    """A declared law of a user function: `associative`, `commutative`, `neutral` with a value."""

    name: str
    value: float | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name} {self.value:g}"


@dataclass(frozen=True)
class UserFun:
    """A named function with declared laws, made by `lp.fun`.

    >>> import liftpy as lp
    >>> laws = (lp.ASSOCIATIVE, lp.COMMUTATIVE, lp.neutral(0))
    >>> larger = lp.fun("larger", {"a": lp.u8, "b": lp.u8}, lambda a, b: lp.maximum(a, b), laws)
    >>> [law.name for law in larger.laws]
    ['associative', 'commutative', 'neutral']

    For floats, laws hold up to rounding: a derivation that uses one is marked as reassociating.
    """

    name: str
    params: tuple[Param, ...]
    body: Expr
    laws: tuple[Law, ...] = ()
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash((self.name, self.params)))

    @property
    def free(self) -> frozenset[Param]:
        """It takes nothing from its surroundings."""
        return NO_PARAMS

    def __hash__(self) -> int:
        return self.hashed

    def result(self, *args: Type) -> Type:
        """The declared result type."""
        check_arguments(self.name, tuple(p.type for p in self.params), args)
        return self.body.type

    def law(self, name: str) -> Law | None:
        """The declared law of that name."""
        return next((law for law in self.laws if law.name == name), None)

    def noun(self) -> str:
        return f"the user function {self.name}"

    def __call__(self, *args: Expr | float) -> Expr:
        """A call; the embedded form defines it, since numbers take the types of the parameters."""
        raise NotImplementedError


@dataclass(frozen=True)
class OpenFun(UserFun):
    """A user function of numbers whose type is open, with its variant for each type."""

    variants: Mapping[ScalarType, UserFun] = field(
        default_factory=dict[ScalarType, UserFun], compare=False, repr=False
    )

    def __hash__(self) -> int:
        return self.hashed


def check_arguments(what: str, expected: tuple[Type, ...], got: tuple[Type, ...]) -> None:
    """Refuse arguments whose types can never be the expected ones; sizes may still be open."""
    if len(expected) != len(got):
        message = f"{what} takes {plural(len(expected), 'argument')}, got {len(got)}"
        raise TypeRefused(message)
    for position, (e, g) in enumerate(zip(expected, got, strict=True)):
        if e is g:
            continue
        pairs = same_shape(e, g)
        if pairs is None or any(Equal(a, b).known() is False for a, b in pairs):
            message = f"{what} cannot be applied to {g}: argument {position + 1} must be {e}"
            raise TypeRefused(message)
