"""Conversion of Python functions to functions of the language."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from liftpy.errors import TypeRefused, plural
from liftpy.ir.call import FunCall, apply
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import Nat
from liftpy.ir.types import F32, ArrayType, TupleType, Type, VectorType
from liftpy.language.embedded.operations import call_of, open_literal, size_as_value
from liftpy.language.embedded.python_words import OF_NUMBERS, SCALAR_WORDS
from liftpy.language.embedded.sharing import finished, placeholder, shallow
from liftpy.language.embedded.trace import TRACED, Trace, current, traced
from liftpy.language.embedded.words import Section
from liftpy.language.extent import limited
from liftpy.language.given import is_number, is_stage, plain, shown, stage_or
from liftpy.language.inference import Holes, settle, typed
from liftpy.source.caller import Spot, beginning, locate, user_frames

RETURNED = "an embedded function must return an expression"

#: What a word accepts as a function.
Callee: TypeAlias = Callable[..., Any] | Section | UserFun | Lambda


def function(f: Callee, types: tuple[Type, ...]) -> Lambda:
    """`f` as a `Lambda` on parameters of these types.

    The parameters of a Python function keep their names. A function of one tuple may be written
    with a parameter for each component, as in `map(lambda x, y: x * y)` over a `zip`. The parameter
    of a section is named `_`.
    """
    if isinstance(f, Lambda):
        if current() is None:
            return f
        return bind([p.name for p in f.params], types, lambda *values: apply(f, *values))
    if isinstance(f, Section) or is_stage(f):
        return section(stage_or(f), types)
    if (operation := getattr(f, "operation", None)) is not None:
        return user_function(operation.fitting(types), types)
    if isinstance(f, UserFun):
        return user_function(f, types)
    if (refused := of_numbers(f)) is not None:
        raise refused
    names = parameter_names(f, types)
    if len(names) == len(types):
        return bind(names, types, f)
    if len(types) == 1 and isinstance(types[0], TupleType) and len(types[0].elements) == len(names):
        return bind(["".join(names)], types, unpacking(f))
    given = ", ".join(map(str, types))
    message = (
        f"a function of {plural(len(types), 'argument')} is needed here, "
        f"this one takes {len(names)}: {', '.join(names) or 'none'}\n  it is applied to {given}\n"
        f"  write lambda {', '.join('xyz'[: len(types)])}: ..."
    )
    raise TypeRefused(message)


def of_numbers(f: Callable[..., Any]) -> TypeRefused | None:
    """The refusal of a function of Python that needs numbers, such as `math.exp`; None for others.

    `math.floor` and `math.ceil` are not refused: they call methods that expressions have.
    """
    name = getattr(f, "__name__", "")
    if f is getattr(builtins, name, None) and name in OF_NUMBERS:
        title, own = name, f"write {OF_NUMBERS[name]}"
    elif f is getattr(math, name, None) and name not in {"floor", "ceil"}:
        title, word = f"math.{name}", SCALAR_WORDS.get(name)
        words = ", ".join(f"lp.{w}" for w in sorted({*SCALAR_WORDS.values()}))
        own = f"write lp.{word}" if word else f"available functions: {words}"
    else:
        return None
    why = "it is called with expressions, whose values are known only when the program runs"
    return TypeRefused(f"Python's `{title}` is a function of numbers\n  {why}\n  {own}")


def user_function(f: UserFun, types: tuple[Type, ...]) -> Lambda:
    """A user function as a `Lambda`; a refusal suggests what to write."""
    try:
        return eta(f, types)
    except TypeRefused as error:
        if "\n" not in str(error):
            given, names = ", ".join(map(str, types)), ", ".join("xyz"[: len(types)])
            own = ", ".join(f"{p.name}: {p.type}" for p in f.params)
            suggestion = f"it is defined as {f.name}({own})"
            if len(f.params) != len(types):
                suggestion = f"write lambda {names}: ..."
            error.args = (f"{error}\n  it is applied to {given}\n  {suggestion}",)
        raise


def unpacking(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of a tuple that calls `f` on the components; it reports the code of `f`."""

    def whole(pair: Any) -> Any:
        return f(*pair)

    whole.__wrapped__ = f  # pyright: ignore[reportFunctionMemberAccess]
    return whole


def parameter_names(f: Callable[..., Any], types: tuple[Type, ...]) -> list[str]:
    """The names of the parameters that a Python function is called with; generated for builtins."""
    count = len(types)
    one = types[0] if count == 1 else None
    parts = len(one.elements) if isinstance(one, TupleType) else count
    if (arity := getattr(f, "nin", None)) is not None:  # a ufunc of numpy
        return [*"xyz"[:arity]]
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except ValueError:  # a builtin without a signature
        return [f"x{k}" for k in range(count)]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return [f"x{k}" for k in range(count)]
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    needed = [p.name for p in positional if p.default is p.empty]
    names = [p.name for p in positional]
    for wanted in (count, parts):
        if len(needed) <= wanted <= len(names):
            return names[:wanted]
    return needed or names


def bind(names: Sequence[str], types: Sequence[Type], body: Callable[..., Any]) -> Lambda:
    """A function with these parameter names, changed where they would clash with outer names.

    While an outer function is traced, the parameters have names that no program can have.
    """
    with traced() as (trace, outermost):
        note_names(trace)
        number = 0 if outermost else trace.count + 1
        trace.count = max(trace.count, number)
        types = [trace.holes.resolve(t) for t in types]
        params = [Param(placeholder(number, n), t) for n, t in zip_(names, types)]
        trace.scopes.append(number)
        try:
            built = result(body, body(*params))
        finally:
            trace.scopes.pop()
        params = [Param(p.name, trace.holes.resolve(p.type)) for p in params]
        made = Lambda(tuple(params), typed(built, trace.holes))
        return closed(made, trace) if outermost else made


def note_names(trace: Trace) -> None:
    """Record the names of the user's local variables that hold expressions."""
    frame = next(user_frames(), None)
    if frame is not None and frame.f_code.co_name != "<module>":
        for name, value in frame.f_locals.items():
            if isinstance(value, FunCall) and name.isidentifier():
                trace.names.setdefault(id(value), name)


def closed(f: Lambda, trace: Trace) -> Lambda:
    """The outermost function of a trace: numbers typed, shared parts bound, variables named."""
    holes = trace.holes
    if holes.places:
        guess = holes.close(F32)
        if guess is not None:
            raise guessed(holes, guess)
        params = tuple(Param(p.name, holes.resolve(p.type)) for p in f.params)
        f = Lambda(params, settle(f.body, holes))
        for old, new, _ in list(holes.settled.values()):
            creator = trace.creators.get(id(old))
            if creator is not None:
                trace.creators[id(new)] = new, creator[1]
            if id(old) in trace.names:
                trace.names.setdefault(id(new), trace.names[id(old)])
    return finished(f, trace)


def guessed(holes: Holes[Spot | None], number: int) -> TypeRefused:
    """The refusal of a number whose type is ambiguous: an integer type or f32."""
    other = holes.guesses[number]
    error = TypeRefused(
        f"the type of a number is ambiguous: {other} or f32\n"
        f"  both branches are plain numbers, and the condition compares {other}\n"
        f"  write lp.convert(1, lp.{other}), or declare the result: -> lp.array(lp.{other}, n)"
    )
    locate(error, holes.places[number])
    return error


def zip_(xs: Iterable[Any], ys: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Python's built-in `zip`, whose name the language uses."""
    return builtins.zip(xs, ys, strict=True)


def section(f: Callable[[Expr], Expr], types: tuple[Type, ...]) -> Lambda:
    """A section as a function of `_`."""
    if len(types) != 1:
        message = (
            f"a function of {len(types)} arguments is needed here, a section takes one argument\n"
            f"  it is applied to {', '.join(map(str, types))}\n"
            f"  write lambda {', '.join('xyz'[: len(types)])}: ..."
        )
        raise TypeRefused(message)
    return bind(["_"], types, f)


def eta(f: UserFun, types: tuple[Type, ...]) -> Lambda:
    """A user function as a `Lambda` on its parameters, or on one tuple of them."""
    names = [p.name for p in f.params]
    if len(names) == len(types):
        return bind(names, types, functools.partial(call_of, f))
    if len(types) == 1 and isinstance(types[0], TupleType) and len(types[0].elements) == len(names):
        return bind(["_"], types, lambda pair: call_of(f, *pair))
    wanted = plural(len(types), "argument")
    raise TypeRefused(f"a function of {wanted} is needed here, {f.name} takes {len(names)}")


def result(f: Callable[..., Any], value: Any) -> Expr:
    """The value that an embedded function returned, as an expression.

    A refusal is placed where the function begins.
    """
    try:
        return shallow(expression(value, RETURNED), TRACED)
    except TypeRefused as error:
        locate(error, beginning(f))
        raise


def expression(value: Any, place: str = "an expression is needed here") -> Expr:
    """A Python value as an expression: a number becomes a literal, a tuple a tuple expression.

    `place` says in a refusal where the expression is needed.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, tuple | list) and len(value) > 1:
        return limited(Tuple(tuple(expression(v, place) for v in value)))
    if is_number(value):
        return open_literal(plain(value))
    if isinstance(value, Nat):
        raise TypeRefused(size_as_value(value))
    if isinstance(value, tuple | list):
        message = (
            f"{place}, not a {type(value).__name__} of "
            f"{plural(len(value), 'element')}\n  a tuple has two components or more\n"
            "  return the expression itself: return xs"
        )
        raise TypeRefused(message)
    if value is None and place == RETURNED:
        message = (
            "an embedded function returned None\n  a function without `return` returns None\n"
            "  return an expression"
        )
        raise TypeRefused(message)
    message = (
        f"{place}, not {shown(value)}\n"
        "  expressions are parameters, numbers, results of words and operators, and tuples of these"
    )
    raise TypeRefused(message)


def element(xs: Expr) -> tuple[Type, ...]:
    """The element type of an array or vector, as the only parameter type of a mapped function."""
    if isinstance(xs.type, ArrayType | VectorType):
        return (xs.type.element,)
    message = (
        f"an array is needed here, this is {xs.type}\n"
        "  the word is applied to the elements of an array\n"
        "  apply operators and scalar functions, such as lp.exp, to the scalar itself"
    )
    raise TypeRefused(message)
