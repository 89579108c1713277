"""Expressions: immutable trees that are typed as they are built.

    Param(name, type)            a variable
    Literal(value, type)         a scalar constant
    Tuple(elements)
    FunCall(fun, args)           fun is a Primitive, a UserFun, a Lambda or (in rules) a FunVar

A `Lambda` is a function, not an expression: it stands in a primitive (`Map(f)`), or in a call,
which is `let`. Two expressions are equal when they are built alike, names of bound variables
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from typing import Any, ClassVar, Protocol

from liftpy.errors import TypeRefused, Unsatisfiable
from liftpy.ir.constraint import Constraint, Equal
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Reader, Value
from liftpy.ir.scalars import REFERENCE_OPERATORS, cast_literal, type_of_operator
from liftpy.ir.source import Spans
from liftpy.ir.types import BOOL, F32, INTEGERS, TupleType, Type, same_shape

NO_PARAMS: frozenset[Param] = frozenset()


class Expr:
    """A typed expression. `free` are the variables it does not bind."""

    type: Type
    free: frozenset[Param]

    def __rshift__(self, function: Callable[[Expr], Expr]) -> Expr:
        """`xs >> f` is `f(xs)`."""
        return function(self)

    def __getitem__(self, index: int) -> Expr:
        """Component `index` of a tuple."""
        return FunCall(Get(index), (self,))

    def __iter__(self) -> Iterator[Expr]:
        """The components of a tuple, so that `x, y = pair` works in embedded programs."""
        if not isinstance(self.type, TupleType):
            message = f"only a tuple can be taken apart, this is {self.type}"
            raise TypeRefused(message)
        return iter([self[i] for i in range(len(self.type.elements))])

    def __bool__(self) -> bool:
        message = "an expression has no truth value in Python: use select, minimum or maximum"
        raise TypeRefused(message)

    def __add__(self, other: Expr | float) -> Expr:
        return operate("+", self, other)

    def __radd__(self, other: float) -> Expr:
        return operate("+", constant_like(other, self), self)

    def __sub__(self, other: Expr | float) -> Expr:
        return operate("-", self, other)

    def __rsub__(self, other: float) -> Expr:
        return operate("-", constant_like(other, self), self)

    def __mul__(self, other: Expr | float) -> Expr:
        return operate("*", self, other)

    def __rmul__(self, other: float) -> Expr:
        return operate("*", constant_like(other, self), self)

    def __truediv__(self, other: Expr | float) -> Expr:
        return operate("/", self, other)

    def __rtruediv__(self, other: float) -> Expr:
        return operate("/", constant_like(other, self), self)

    def __mod__(self, other: Expr | float) -> Expr:
        return operate("%", self, other)

    def __rmod__(self, other: float) -> Expr:
        return operate("%", constant_like(other, self), self)

    def __and__(self, other: Expr | bool) -> Expr:
        return operate("and", self, other)

    def __or__(self, other: Expr | bool) -> Expr:
        return operate("or", self, other)

    def __invert__(self) -> Expr:
        return operate("not", self)

    def __neg__(self) -> Expr:
        return operate("neg", self)

    def __lt__(self, other: Expr | float) -> Expr:
        return operate("<", self, other)

    def __le__(self, other: Expr | float) -> Expr:
        return operate("<=", self, other)

    def __gt__(self, other: Expr | float) -> Expr:
        return operate("<", constant_like(other, self), self)

    def __ge__(self, other: Expr | float) -> Expr:
        return operate("<=", constant_like(other, self), self)


@lru_cache(maxsize=1 << 12)
def interned(t: Type) -> Type:
    """One object for equal types: comparing variables then seldom compares types."""
    return t


@dataclass(frozen=True)
class Param(Expr):
    """A variable."""

    name: str
    type: Type
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", interned(self.type))
        object.__setattr__(self, "hashed", hash((self.name, self.type)))
        object.__setattr__(self, "free", frozenset((self,)))

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True)
class Literal(Expr):
    """A scalar constant."""

    value: float | bool
    type: Type
    free: frozenset[Param] = field(init=False, compare=False, repr=False, default=NO_PARAMS)


@dataclass(frozen=True)
class Tuple(Expr):
    """A tuple of expressions."""

    elements: tuple[Expr, ...]
    type: Type = field(init=False, compare=False, repr=False)
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", TupleType(tuple(e.type for e in self.elements)))
        object.__setattr__(self, "free", union(self.elements))
        object.__setattr__(self, "hashed", hash(self.elements))

    def __hash__(self) -> int:
        return self.hashed


class Function(Protocol):
    """What a call can call."""

    def result(self, *args: Type) -> Type:
        """The type of a call; raises TypeRefused."""
        ...

    @property
    def free(self) -> frozenset[Param]:
        """Variables that the function takes from its surroundings."""
        ...


@dataclass(frozen=True)
class FunCall(Expr):
    """A function applied to arguments."""

    fun: Function
    args: tuple[Expr, ...]
    type: Type = field(init=False, compare=False, repr=False)
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", self.fun.result(*(a.type for a in self.args)))
        free = union(self.args)
        object.__setattr__(self, "free", free | self.fun.free if self.fun.free else free)
        object.__setattr__(self, "hashed", hash((self.fun, self.args)))

    def __hash__(self) -> int:
        return self.hashed


def union(exprs: tuple[Expr, ...]) -> frozenset[Param]:
    """The free variables of several expressions."""
    if len(exprs) == 1:
        return exprs[0].free
    return NO_PARAMS.union(*(e.free for e in exprs))


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
        """The body's type, once the arguments fit the parameters."""
        check_arguments("let", tuple(p.type for p in self.params), args)
        return self.body.type


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
class Law:
    """A declared property of a user function: `associative`, `commutative`, `neutral` (a value)."""

    name: str
    value: float | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name} {self.value:g}"


@dataclass(frozen=True)
class UserFun:
    """A named scalar function with declared laws.

    Laws over floats hold up to rounding: a derivation that uses one is marked as reassociating.
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

    def __call__(self, *args: Expr) -> Expr:
        return FunCall(self, args)


def check_arguments(what: str, expected: tuple[Type, ...], got: tuple[Type, ...]) -> None:
    """Refuse arguments whose types can never be the expected ones; sizes may still be open."""
    if len(expected) != len(got):
        message = f"{what} takes {len(expected)} argument(s), got {len(got)}"
        raise TypeRefused(message)
    for position, (e, g) in enumerate(zip(expected, got, strict=True)):
        if e is g:
            continue
        pairs = same_shape(e, g)
        if pairs is None or any(Equal(a, b).known() is False for a, b in pairs):
            message = f"{what} cannot be applied to {g}: argument {position + 1} must be {e}"
            raise TypeRefused(message)


# --- primitives ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Primitive:
    """The base of every primitive: one class says what it is.

    A subclass gives `type_of`, `requires`, `meaning` and `reference`; `f`, where it has one, is the
    function it applies. `inverse` is the layout that undoes it, for primitives that can be written
    through.
    """

    name: ClassVar[str] = ""
    #: Whether it is written `word(xs, ys)`, not `ys |> word(xs)`: where no array is the main one.
    called: ClassVar[bool] = False
    #: Why `requires` asks for nothing, where it does not.
    unconditional: ClassVar[str] = ""
    #: Clauses of `requires` that say what the primitive is, which no proof needs; and why.
    by_definition: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        """Caches; subclasses add nothing."""

    # what it is

    def parameter_types(self, *args: Any, **kwargs: Any) -> tuple[Type, ...]:
        """The types of the parameters of `f`, given the arguments."""
        raise NotImplementedError

    def type_of(self, *args: Any, **kwargs: Any) -> Type:
        """The type of a call."""
        raise NotImplementedError

    def requires(self, *args: Any, **kwargs: Any) -> Iterator[Constraint]:
        """The conditions under which a call means something."""
        return iter(())

    def meaning(self, read: Reader, *args: Any, **kwargs: Any) -> Value:
        """The value of a call, as pull arrays. `f`, where there is one, comes first: a closure."""
        raise NotImplementedError

    def reference(self, *args: Any, **kwargs: Any) -> Any:
        """The same law on Python lists, written another way. `f` comes first, as in `meaning`."""
        raise NotImplementedError

    def inverse(self, *args: Any, **kwargs: Any) -> Primitive | None:
        """The layout that undoes this one on arguments of these types; None if there is none."""
        return None

    # how it is handled

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
        """The type of a call, every evident size condition checked."""
        t = self.type_of(*args)
        for condition in self.conditions(*args):
            if condition.known() is False:
                raise Unsatisfiable(self.refusal(args, condition))
        return t

    def conditions(self, *args: Type) -> Iterator[Constraint]:
        """`requires`, and that the function's parameters have the sizes of what it is given."""
        yield from self.requires(*args)
        function = self.function
        if function is not None:
            for param, t in zip(function.params, self.parameter_types(*args), strict=True):
                if param.type is not t:
                    yield from sizes_agree(param.type, t)

    def refusal(self, args: tuple[Type, ...], condition: Constraint) -> str:
        """The sentence for a broken condition."""
        given = f"cannot be applied to {', '.join(map(str, args))}" if args else "cannot be made"
        return f"{self} {given}: it asks that {condition}"

    def numbers(self) -> dict[str, Nat]:
        """The size parameters by field name."""
        return {n: getattr(self, n) for n in nat_fields(type(self))}

    def fit(self, *args: Type) -> Primitive:
        """The primitive with the parameters of `f` retyped to what they will be given."""
        function = self.function
        if function is None:
            return self
        wanted = self.parameter_types(*args)
        if all(p.type == t for p, t in zip(function.params, wanted, strict=True)):
            return self
        return replace(self, f=retype(function, wanted))

    def __str__(self) -> str:
        shown = [str(getattr(self, f.name)) for f in fields(self) if f.name != "f" and f.init]
        if self.function is not None:
            shown.append("...")
        return f"{self.name}({', '.join(shown)})" if shown else self.name


def sizes_agree(a: Type, b: Type) -> Iterator[Constraint]:
    """That two types have the same sizes; TypeRefused if they can never be the same type."""
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


def retype(function: Lambda, types: tuple[Type, ...]) -> Lambda:
    """The function with parameters of other sizes; the body is typed again."""
    new = tuple(Param(p.name, t) for p, t in zip(function.params, types, strict=True))
    by: dict[Param, Expr] = {p: q for p, q in zip(function.params, new, strict=True) if p != q}
    return Lambda(new, substitute(function.body, by))


def call(fun: Function, *args: Expr) -> FunCall:
    """A call, the function's parameters fitted to the arguments' sizes."""
    if isinstance(fun, Primitive):
        return FunCall(fun.fit(*(a.type for a in args)), args)
    if isinstance(fun, Lambda) and any(
        p.type != a.type for p, a in zip(fun.params, args, strict=True)
    ):
        check_arguments("let", tuple(p.type for p in fun.params), tuple(a.type for a in args))
        return FunCall(retype(fun, tuple(a.type for a in args)), args)
    return FunCall(fun, args)


def fresh(name: str, avoid: frozenset[str] | set[str]) -> str:
    """A name like `name` that is not in `avoid`; the same question has the same answer."""
    if name not in avoid:
        return name
    stem = name.rstrip("0123456789") or "x"
    number = 1
    while f"{stem}{number}" in avoid:
        number += 1
    return f"{stem}{number}"


def substitute(expr: Expr, by: dict[Param, Expr]) -> Expr:
    """Replace free variables; bound variables are renamed where they would capture."""
    by = {p: e for p, e in by.items() if e != p}
    if not by or expr.free.isdisjoint(by):
        return expr
    match expr:
        case Param():
            return by.get(expr, expr)
        case Tuple(elements):
            return Tuple(tuple(substitute(e, by) for e in elements))
        case FunCall(fun, args):
            new = tuple(substitute(a, by) for a in args)
            if isinstance(fun, Lambda):
                return call(substitute_lambda(fun, by), *new)
            if (
                isinstance(fun, Primitive)
                and fun.function is not None
                and not fun.free.isdisjoint(by)
            ):
                fun = replace(fun, f=substitute_lambda(fun.function, by))
            return call(fun, *new)
        case _:
            return expr


def substitute_lambda(function: Lambda, by: dict[Param, Expr]) -> Lambda:
    """`substitute` under a binder."""
    by = {p: e for p, e in by.items() if p in function.free}
    if not by:
        return function
    entering = union(tuple(by.values()))
    taken = {p.name for p in entering}
    if any(p.name in taken for p in function.params):
        avoid = taken | {p.name for p in function.body.free}
        params: list[Param] = []
        for p in function.params:
            renamed = Param(fresh(p.name, avoid), p.type) if p.name in taken else p
            avoid.add(renamed.name)
            params.append(renamed)
        renaming: dict[Param, Expr] = {
            p: q for p, q in zip(function.params, params, strict=True) if p != q
        }
        return Lambda(tuple(params), substitute(function.body, {**renaming, **by}))
    return Lambda(function.params, substitute(function.body, by))


def apply(function: Lambda, *args: Expr) -> Expr:
    """The body with the arguments in place of the parameters."""
    return substitute(function.body, dict(zip(function.params, args, strict=True)))


# --- tuples and scalars, which expressions themselves need ---------------------------------------


@dataclass(frozen=True)
class Get(Primitive):
    """A component of a tuple.

    get(i) : (a_0, ..., a_k) -> a_i
    """

    name: ClassVar[str] = "get"
    unconditional: ClassVar[str] = "the type says which components there are"
    index: int

    def type_of(self, pair: Type) -> Type:
        if not isinstance(pair, TupleType) or not 0 <= self.index < len(pair.elements):
            last = len(pair.elements) - 1 if isinstance(pair, TupleType) else None
            has = f": its components are .0 to .{last}" if last is not None else ""
            message = (
                f"get({self.index}) needs a tuple of {self.index + 1} values or more, got {pair}"
                f"{has}"
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

    `select(c, a, b)` is `a` where `c` holds and `b` elsewhere: one of the two, unrounded. Integers
    wrap around. `a / b` of integers is rounded towards zero, and `a % b` is the rest, with the sign
    of `a`, of floats too; for integers `a / 0` is 0, so that `a % 0` is `a`. A conversion to an
    integer cuts the fraction off and takes the nearest number there is, 0 for NaN; from one integer
    to a smaller one it wraps around. `bool(a)` is `a != 0`, and true becomes 1.
    """

    name: ClassVar[str] = "operator"
    op: str

    def type_of(self, *args: Type) -> Type:
        return type_of_operator(self.op, args)

    def meaning(self, read: Reader, *args: Value) -> Value:
        return read.operate(self.op, args)

    def reference(self, *args: Any) -> Any:
        return REFERENCE_OPERATORS[self.op](*args)

    def __str__(self) -> str:
        return self.op


def constant_like(value: Expr | float, other: Expr) -> Expr:
    """A number as a literal of another expression's type."""
    return (
        value if isinstance(value, Expr) else Literal(cast_literal(value, other.type), other.type)
    )


def check_divisor(op: str, args: tuple[Expr, ...]) -> None:
    """Refuse a whole number divided by a zero that is written there."""
    if op in {"/", "%"} and args[-1].type in INTEGERS:
        divisor = args[-1]
        if isinstance(divisor, Literal) and divisor.value == 0:
            message = f"`{op}` divides by {divisor.value}: write another divisor, or leave it out"
            raise TypeRefused(message)


def operate(op: str, *args: Expr | float) -> Expr:
    """A scalar operator applied; Python numbers take the type of the first expression, else f32."""
    like = next(
        (
            a
            for a in args
            if (isinstance(a, Expr) and a.type != BOOL) or (isinstance(a, Expr) and op != "select")
        ),
        Literal(0.0, F32),
    )
    operands = tuple(constant_like(a, like) for a in args)
    check_divisor(op, operands)
    return FunCall(ScalarOp(op), operands)


@dataclass(frozen=True, repr=False)
class Program:
    """A closed function from named arrays to an array: what is compiled.

    `constants` names the parameters that stay the same from run to run (weights): what depends on
    them alone is prepared once. `spans` says where the parts stand in the text that the program was
    read from; it is no part of what the program is.
    """

    name: str
    body: Lambda
    constants: frozenset[str] = frozenset()
    spans: Spans | None = field(default=None, compare=False, repr=False)

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters in order."""
        return self.body.params

    @property
    def type(self) -> Type:
        """The result type."""
        return self.body.body.type

    def __repr__(self) -> str:
        params = ", ".join(f"{p.name}: {p.type}" for p in self.params)
        return f"<Program {self.name}({params}) -> {self.type}>"

    def __str__(self) -> str:
        return self.name
