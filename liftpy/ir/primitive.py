"""Primitives: the functions of which the language consists; `liftpy.primitives` has most of them.

Components of tuples and scalar operators are defined here: substitution, typing and the printers
need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar

from liftpy.errors import TypeRefused, Unsatisfiable, plural
from liftpy.ir.constraint import Constraint, Equal
from liftpy.ir.equality import exactly
from liftpy.ir.expr import NO_PARAMS, Expr, Param
from liftpy.ir.function import Function, Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.operators import OPERATORS, type_of_operator
from liftpy.ir.pull import Reader, Value
from liftpy.ir.types import TupleType, Type, same_shape


@dataclass(frozen=True)
class Primitive:
    """The base class of primitives; a subclass defines one primitive.

    A subclass has `type_of`, `requires`, `meaning` and `reference`. Its field `f`, if present, is
    the function that it applies. `inverse` is its inverse layout, for primitives that can be
    written through.
    """

    name: ClassVar[str] = ""
    #: Whether it is written `word(xs, ys)`, not `ys |> word(xs)`, because no array is the main one.
    called: ClassVar[bool] = False
    #: Whether the parameters of `f` have the types that they declare, not those of arguments.
    declares_parameters: ClassVar[bool] = False
    #: Why `requires` has no conditions, if it has none.
    unconditional: ClassVar[str] = ""
    #: Conditions of `requires` that hold by definition, so that no proof needs them, and why.
    by_definition: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Compares the constants of a primitive by `exact`, before `dataclass` compares fields."""
        own = (vars(c).get("__annotations__", {}) for c in cls.__mro__)
        if any("float" in annotations.values() for annotations in own):
            exactly(cls)

    def __post_init__(self) -> None:
        """Initialize caches; subclasses do not override this."""

    # definition

    def parameter_types(self, *args: Any, **kwargs: Any) -> tuple[Type, ...]:
        """The types of the parameters of `f`, given the arguments."""
        raise NotImplementedError

    def type_of(self, *args: Any, **kwargs: Any) -> Type:
        """The type of a call."""
        raise NotImplementedError

    def requires(self, *args: Any, **kwargs: Any) -> Iterator[Constraint]:
        """The conditions under which a call has a meaning."""
        return iter(())

    def meaning(self, read: Reader, *args: Any, **kwargs: Any) -> Value:
        """The value of a call, as pull arrays. If there is an `f`, its closure comes first."""
        raise NotImplementedError

    def reference(self, *args: Any, **kwargs: Any) -> Any:
        """The value of a call on Python lists, written apart from `meaning`; `f` comes first."""
        raise NotImplementedError

    def inverse(self, *args: Any, **kwargs: Any) -> Primitive | None:
        """The inverse layout on arguments of these types; None if there is none."""
        return None

    # derived properties

    @property
    def function(self) -> Lambda | None:
        """The function that the primitive applies."""
        return getattr(self, "f", None)

    @property
    def free(self) -> frozenset[Param]:
        """Variables that the function takes from its surroundings."""
        function = self.function
        return NO_PARAMS if function is None else function.free

    def result(self, *args: Type) -> Type:
        """The type of a call; TypeRefused if a size condition is evidently false."""
        t = self.type_of(*args)
        for condition in self.conditions(*args):
            if condition.known() is False:
                raise Unsatisfiable(self.refusal(args, condition))
        return t

    def conditions(self, *args: Type) -> Iterator[Constraint]:
        """`requires`, and that the function's parameters have the sizes of its arguments."""
        yield from self.requires(*args)
        function = self.function
        if function is not None:
            for param, t in zip(function.params, self.parameter_types(*args), strict=True):
                if param.type is not t:
                    yield from sizes_agree(param.type, t)

    def refusal(self, args: tuple[Type, ...], condition: Constraint) -> str:
        """The message for a violated condition."""
        given = f"cannot be applied to {', '.join(map(str, args))}" if args else "cannot be made"
        return f"{self} {given}: it requires that {condition}"

    def numbers(self) -> dict[str, Nat]:
        """The size parameters by field name."""
        return {n: getattr(self, n) for n in nat_fields(type(self))}

    def __str__(self) -> str:
        shown = [str(getattr(self, f.name)) for f in fields(self) if f.name != "f" and f.init]
        if self.function is not None:
            shown.append("...")
        return f"{self.name}({', '.join(shown)})" if shown else self.name


@dataclass(frozen=True)
class Layout(Primitive):
    """The base class of primitives that only move elements: views of their arguments.

    The meaning uses only `inside`, `clip`, `choose` and `either` of a reader. All other properties
    of a layout follow from the meaning (`liftpy.primitives.places`) and from `inverse`.

    A layout whose elements are those of its argument, each at most once, has an `adjoint`. One that
    uses an element several times is the `equivalent` of layouts that have one and of `repeat`, the
    adjoint of which is a sum.
    """

    def constants(self) -> dict[str, float]:
        """The constants that the layout inserts, by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.type == "float"}

    def border(self) -> tuple[Nat, ...]:
        """How many elements it adds at each end of an array, behind guards.

        If it adds any, a kernel may have a version for each class of positions at which the same
        guards hold.
        """
        return ()

    #: The adjoint of a layout without one that is a layout, in words: a sum.
    adjoint_by_definition: ClassVar[str] = ""

    def adjoint(self, *args: Any, **kwargs: Any) -> Primitive | None:
        """The layout that moves each element of the result back to where it was read.

        Elements that were not read become 0. None if an element may be read several times.
        """
        return self.inverse(*args, **kwargs)

    def equivalent(self, xs: Expr) -> Expr | None:
        """An equal expression of `repeat` and of layouts with an adjoint; None if there is none."""
        return None


def function_of(fun: Function) -> Lambda | None:
    """The function with a body that a call runs: that of a primitive or a `let`; None if none."""
    if isinstance(fun, Primitive):
        return fun.function
    return fun if isinstance(fun, Lambda) else None


def sizes_agree(a: Type, b: Type) -> Iterator[Constraint]:
    """The conditions under which two types have the same sizes.

    TypeRefused if no sizes could make them the same type.
    """
    pairs = same_shape(a, b)
    if pairs is None:
        message = f"{a} and {b} are different types"
        raise TypeRefused(message)
    for x, y in pairs:
        if x != y:
            yield Equal(x, y)


@cache
def nat_fields(cls: type) -> tuple[str, ...]:
    """The names of the fields of a primitive that are naturals, index functions among them."""
    return tuple(f.name for f in fields(cls) if f.type in {"Nat", Nat, "IndexFunction"})


@cache
def index_fields(cls: type) -> tuple[str, ...]:
    """The names of the fields of a primitive that are naturals over the index `i`."""
    return tuple(f.name for f in fields(cls) if f.type == "IndexFunction")


@dataclass(frozen=True)
class Get(Layout):
    """Selects a component of a tuple.

    get(i) : (a_0, ..., a_k) -> a_i
    """

    name: ClassVar[str] = "get"
    unconditional: ClassVar[str] = "the type determines the components"
    adjoint_by_definition: ClassVar[str] = "the tuple with the component, and 0 for all others"
    index: int

    def type_of(self, pair: Type) -> Type:
        if not isinstance(pair, TupleType) or not 0 <= self.index < len(pair.elements):
            last = len(pair.elements) - 1 if isinstance(pair, TupleType) else None
            has = f": its components are .0 to .{last}" if last is not None else ""
            message = (
                f"get({self.index}) needs a tuple of at least "
                f"{plural(self.index + 1, 'component')}, got {pair}{has}"
            )
            raise TypeRefused(message)
        return pair.elements[self.index]

    def meaning(self, read: Reader, pair: Value) -> Value:
        return pair[self.index]

    def reference(self, pair: tuple[Any, ...]) -> Any:
        return pair[self.index]


@dataclass(frozen=True)
class ScalarOp(Primitive):
    """An operator of the scalar language, on scalars of one type.

    `select(c, a, b)` is `a` if `c` holds and `b` otherwise, without rounding. Integers wrap around.
    `a / b` on integers rounds towards zero, and `a % b` is the remainder with the sign of `a`, also
    on floats. On integers, `a / 0` is 0, so `a % 0` is `a`. A conversion from a float to an integer
    drops the fraction and clamps to the range of the type; NaN becomes 0. A conversion from an
    integer to a smaller one wraps around. `bool(a)` is `a != 0`, and true converts to 1.

    `bitAnd`, `bitOr`, `bitXor` and `bitNot` combine the bits of integers in two's complement.
    `shiftLeft(a, n)` is `a * 2^n`, which wraps around, and `shiftRight(a, n)` is `a / 2^n` rounded
    down. `n` is taken modulo the number of bits of its type.
    """

    name: ClassVar[str] = "operator"
    op: str

    def type_of(self, *args: Type) -> Type:
        return type_of_operator(self.op, args)

    def meaning(self, read: Reader, *args: Value) -> Value:
        return read.operate(self.op, args)

    def reference(self, *args: Any) -> Any:
        return OPERATORS[self.op].reference(*args)

    def __str__(self) -> str:
        return self.op
