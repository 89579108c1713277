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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from liftpy.ir.equality import NESTED, compared, exactly
from liftpy.ir.provided import TRACE
from liftpy.ir.types import TupleType, Type

NO_PARAMS: frozenset[Param] = frozenset()


class Expr:
    """A typed expression. `free` is the set of its free variables.

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

    def __and__(self, other: Any) -> Expr:
        return self.scalar("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return self.scalar("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return self.scalar("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return self.scalar("or", other, self)

    def __invert__(self) -> Expr:
        return self.scalar("not", self)

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

    def __rshift__(self, function: Callable[[Expr], Expr]) -> Expr:
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


@compared
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


NESTED[Tuple] = ("elements",)


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
        """The body's type, after checking that the arguments fit the parameters."""
        check_arguments("let", tuple(p.type for p in self.params), args)
        return self.body.type


NESTED.update({Tuple: ("elements",), FunCall: ("fun", "args"), Lambda: ("params", "body")})


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
    """A named scalar function with declared laws.

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


# --- primitives ----------------------------------------------------------------------------------


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

    def fit(self, *args: Type) -> Primitive:
        """The primitive with the parameters of `f` retyped to the types of their arguments."""
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


def retype(function: Lambda, types: tuple[Type, ...]) -> Lambda:
    """The function with parameters of these types; the body is type-checked again."""
    new = tuple(Param(p.name, t) for p, t in zip(function.params, types, strict=True))
    by: dict[Param, Expr] = {p: q for p, q in zip(function.params, new, strict=True) if p != q}
    return Lambda(new, substitute(function.body, by))


def call(fun: Function, *args: Expr) -> FunCall:
    """A call, in which the function's parameters take the sizes of the arguments."""
    if isinstance(fun, Primitive):
        return FunCall(fun.fit(*(a.type for a in args)), args)
    if isinstance(fun, Lambda) and any(
        p.type != a.type for p, a in zip(fun.params, args, strict=True)
    ):
        check_arguments("let", tuple(p.type for p in fun.params), tuple(a.type for a in args))
        return FunCall(retype(fun, tuple(a.type for a in args)), args)
    return FunCall(fun, args)


def fresh(name: str, avoid: frozenset[str] | set[str]) -> str:
    """A name like `name` that is not in `avoid`; deterministic."""
    if name not in avoid:
        return name
    stem = name.rstrip("0123456789") or "x"
    number = 1
    while f"{stem}{number}" in avoid:
        number += 1
    return f"{stem}{number}"


def substitute(expr: Expr, by: dict[Param, Expr], done: dict[int, Expr] | None = None) -> Expr:
    """The expression with free variables replaced; bound variables are renamed to avoid capture.

    Shared parts stay shared: `done` has the results for the parts visited so far.
    """
    if done is None:
        by, done = {p: e for p, e in by.items() if e != p}, {}
    if not by or expr.free.isdisjoint(by):
        return expr
    if (known := done.get(id(expr))) is not None:
        return known
    new = expr
    match expr:
        case Param():
            new = by.get(expr, expr)
        case Tuple(elements):
            new = Tuple(tuple(substitute(e, by, done) for e in elements))
        case FunCall(fun, args):
            values = tuple(substitute(a, by, done) for a in args)
            if isinstance(fun, Lambda):
                fun = substitute_lambda(fun, by, done)
            elif (
                isinstance(fun, Primitive)
                and fun.function is not None
                and not fun.free.isdisjoint(by)
            ):
                fun = replace(fun, f=substitute_lambda(fun.function, by, done))
            new = expr.with_parts(fun, values)
        case _:
            pass
    done[id(expr)] = new
    return new


def substitute_lambda(
    function: Lambda, by: dict[Param, Expr], done: dict[int, Expr] | None = None
) -> Lambda:
    """`substitute` under a binder; `done` belongs to the surrounding expression."""
    within = {p: e for p, e in by.items() if p in function.free}
    if not within:
        return function
    entering = union(tuple(within.values()))
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
        return Lambda(tuple(params), substitute(function.body, {**renaming, **within}))
    if done is None or not by.keys().isdisjoint(function.params):
        return Lambda(function.params, substitute(function.body, within))
    return Lambda(function.params, substitute(function.body, by, done))


def apply(function: Lambda, *args: Expr) -> Expr:
    """The body with the parameters replaced by the arguments."""
    return substitute(function.body, dict(zip(function.params, args, strict=True)))


# --- tuples and scalars ---------------------------------------------------------------------------


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


@dataclass(frozen=True, repr=False)
class Program:
    """A closed function from named arrays to an array, which can be compiled.

    `constants` names the parameters that do not change between runs, such as weights: what depends
    only on them is prepared once. `spans` has the places of the parts in the program's text; it
    does not affect equality. `storage` has the types in which candidates may store a value, by its
    name (`ir/storing.py`).
    """

    name: str
    body: Lambda
    constants: frozenset[str] = frozenset()
    spans: Spans | None = field(default=None, compare=False, repr=False)
    storage: tuple[tuple[str, tuple[ScalarType, ...]], ...] = ()

    def noun(self) -> str:
        return f"the program {self.name}"

    def __call__(self, *arrays: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Any:
        """The result of the program for arrays: its meaning, computed in NumPy (`lp.evaluate`)."""
        if any(isinstance(a, Expr) for a in (*arrays, *named.values())):
            raise refusal(
                f"the program {self.name} is called with an expression",
                "a program takes arrays and computes its result immediately",
                "move the shared code to a Python function without @lp.program",
            )
        if named:
            order = ", ".join(p.name for p in self.params)
            what = f"the program {self.name} takes no keyword arguments, got {', '.join(named)}"
            raise ArgumentRefused(f"{what}\n  write {self.name}({order})")
        return Evaluation.evaluate(self, *arrays, sizes=sizes)

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
