"""Expressions: immutable trees that are type-checked when they are built.

    Param(name, type)            a variable
    Literal(value, type)         a scalar constant
    Tuple(elements)
    FunCall(fun, args)           a call (`liftpy.ir.call`)

The callee of a call is a Primitive (`liftpy.ir.primitive`) or a UserFun, a Lambda or (in rules) a
FunVar (`liftpy.ir.function`). Two expressions are equal if their structure is equal, including the
names of bound variables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from liftpy.ir.equality import NESTED, compared, exactly
from liftpy.ir.interning import Interned
from liftpy.ir.provided import TRACE
from liftpy.ir.scalars import exact
from liftpy.ir.types import TupleType, Type
from liftpy.source.caller import refusal

NO_PARAMS: frozenset[Param] = frozenset()


class Expr(metaclass=Interned):
    """A typed expression. `free` is the set of its free variables.

    >>> import liftpy as lp
    >>> squares = lp.iota(4) >> lp.map(lambda x: x * x)
    >>> print(squares.type, squares.free, isinstance(squares, lp.Expr))
    [4]i32 frozenset() True

    Python's operators on expressions belong to the embedded form. It defines `scalar`, the other
    methods here that are not implemented, and the refusals of all that Python and NumPy may call
    besides (`liftpy.language.embedded.operators`).
    """

    type: Type
    free: frozenset[Param]
    #: Makes NumPy defer to the methods of an expression.
    __array_priority__ = 1000

    def __copy__(self) -> Expr:
        return self  # expressions are immutable

    def __deepcopy__(self, _: dict[int, Any]) -> Expr:
        return self

    def __reduce_ex__(self, _: Any) -> Any:
        raise refusal(
            "an expression cannot be pickled",
            "it holds hashes, which differ in each process",
            "pickle the text of the program, lp.show(program); lp.parse reads it back",
        )

    def scalar(self, op: str, *args: Any) -> Expr:
        """A scalar operator applied to expressions and numbers."""
        raise NotImplementedError

    def looked_up(self) -> None:
        """Refuse `x in {1, 2}` in a traced function, which would be False."""
        raise NotImplementedError

    # operators that build a call of a scalar operator

    def __add__(self, other: Any) -> Expr:
        return self.scalar("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return self.scalar("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return self.scalar("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return self.scalar("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return self.scalar("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return self.scalar("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return self.scalar("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self.scalar("/", other, self)

    def __mod__(self, other: Any) -> Expr:
        return self.scalar("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return self.scalar("%", other, self)

    def __neg__(self) -> Expr:
        return self.scalar("neg", self)

    def __abs__(self) -> Expr:
        return self.scalar("abs", self)

    def __floor__(self) -> Expr:
        return self.scalar("floor", self)

    def __ceil__(self) -> Expr:
        return self.scalar("ceil", self)

    def __lt__(self, other: Any) -> Expr:
        return self.scalar("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return self.scalar("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return self.scalar("<", other, self)

    def __ge__(self, other: Any) -> Expr:
        return self.scalar("<=", other, self)

    def __pos__(self) -> Expr:
        return self

    # operators that the embedded form defines

    def __and__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __rand__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __or__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __ror__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __invert__(self) -> Expr:
        raise NotImplementedError

    def __xor__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __rxor__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        raise NotImplementedError

    def __rpow__(self, base: Any) -> Expr:
        raise NotImplementedError

    def __floordiv__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __rfloordiv__(self, other: Any) -> Expr:
        raise NotImplementedError

    def __matmul__(self, other: Any) -> Any:
        raise NotImplementedError

    def __lshift__(self, count: Any) -> Expr:
        raise NotImplementedError

    def __rlshift__(self, given: Any) -> Expr:
        raise NotImplementedError

    def __rshift__(self, function: Any) -> Expr:
        raise NotImplementedError

    def __rrshift__(self, given: Any) -> Expr:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Expr]:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Expr:
        raise NotImplementedError


@lru_cache(maxsize=1 << 12)
def interned(t: Type) -> Type:
    """The same object for equal types, so that comparing variables seldom compares types."""
    return t


@compared
@dataclass(frozen=True)
class Param(Expr):
    """A variable.

    parts: the names of its components, if a text unpacks it: `(a, b) => a * b`. They affect only
    how it is printed.
    """

    name: str
    type: Type
    parts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    @classmethod
    def identity(cls, name: str, type: Type, parts: tuple[str, ...] = ()) -> Hashable:  # noqa: A002
        return cls, name, interned(type), parts

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", interned(self.type))
        object.__setattr__(self, "hashed", hash((self.name, self.type)))
        object.__setattr__(self, "free", frozenset((self,)))

    def __hash__(self) -> int:
        if TRACE.get() is not None:
            self.looked_up()
        return self.hashed


@compared
@dataclass(frozen=True)
@exactly
class Literal(Expr):
    """A scalar constant."""

    value: float | bool
    type: Type
    free: frozenset[Param] = field(init=False, compare=False, repr=False, default=NO_PARAMS)

    @classmethod
    def identity(cls, value: float, type: Type) -> Hashable:  # noqa: A002
        return cls, value.__class__, exact(value), type


@compared
@dataclass(frozen=True)
class Tuple(Expr):
    """A tuple of expressions."""

    elements: tuple[Expr, ...]
    type: Type = field(init=False, compare=False, repr=False)
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    @classmethod
    def identity(cls, elements: tuple[Expr, ...]) -> Hashable:
        return cls, *map(id, elements)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", TupleType(tuple(e.type for e in self.elements)))
        object.__setattr__(self, "free", union(self.elements))
        object.__setattr__(self, "hashed", hash(self.elements))

    def __hash__(self) -> int:
        return self.hashed


NESTED[Tuple] = ("elements",)


def union(exprs: tuple[Expr, ...]) -> frozenset[Param]:
    """The free variables of several expressions."""
    if len(exprs) == 1:
        return exprs[0].free
    return NO_PARAMS.union(*(e.free for e in exprs))
