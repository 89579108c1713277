"""Definition of programs and user functions from Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from liftpy.errors import LiftError, TypeRefused, plural
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda, Law, UserFun
from liftpy.ir.nat import Nat, NatLike, nat, var
from liftpy.ir.program import Program
from liftpy.ir.provided import TRACE
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import (
    FLOATS,
    INTEGERS,
    STORAGE,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    same_shape,
)
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.functions import bind, closed, result
from liftpy.language.embedded.operations import agreeing, has_arrays
from liftpy.language.embedded.sharing import placeholder, plain_name
from liftpy.language.embedded.trace import traced
from liftpy.language.given import misfit_of, shown
from liftpy.language.printing.spelling import show_type
from liftpy.source.caller import beginning, locate


@word()
def fun(
    name: str, params: Mapping[str, Type], body: Callable[..., Any], laws: tuple[Law, ...] = ()
) -> UserFun:
    """Defines a user function with named, typed parameters, and laws that rules may use.

    A call of a function that uses arrays is replaced by its body.

    `body` computes the result from the parameters; it may use nothing else. Declared laws
    (`lp.ASSOCIATIVE`, `lp.COMMUTATIVE`, `lp.neutral(0)`) are trusted, not checked.

    >>> sq = lp.fun("sq", {"x": lp.i32}, lambda x: x * x)
    >>> lp.evaluate(lp.iota(4) >> lp.map(sq)).tolist()
    [0, 1, 4, 9]
    """
    given: Any = params
    if not isinstance(given, Mapping) or not all(isinstance(p, str) for p in given):
        what = f"`params` of lp.fun must be a dictionary of names and types, got {shown(params)}"
        raise TypeRefused(f"{what}\n  parameters have names and types\n  {FUN}")
    if not callable(body) or isinstance(body, Expr):
        what = f"`body` of lp.fun must be a function, got {shown(body)}"
        raise TypeRefused(f"{what}\n  it is applied to the parameters\n  {FUN}")
    if (why := misfit_of(body, len(params))) is not None:
        what = f"the function of lp.fun({name!r}) does not take {plural(len(params), 'argument')}"
        names = ", ".join(params)
        raise TypeRefused(f"{what}\n  {why}\n  write lambda {names}: ..., as in `params`")
    if not name or not params:
        what = f"lp.fun needs a name and at least one parameter, got {name!r} and {len(params)}"
        raise TypeRefused(f"{what}\n  a user function is called by its name, on values\n  {FUN}")
    params = {p: as_type(t) for p, t in params.items()}
    around = TRACE.set(None)
    try:
        made = bind(list(params), list(params.values()), body)
    finally:
        TRACE.reset(around)
    outer = made.free
    if outer:
        names = ", ".join(sorted(p.name.partition(" ")[2] or p.name for p in outer))
        message = (
            f"the user function {name} uses {names} from outside\n"
            "  a user function can use only its own parameters\n  add a parameter to it"
        )
        raise TypeRefused(message)
    found = UserFun(name, made.params, made.body, laws_of(laws))
    check_laws(found)
    return found


FUN = 'write lp.fun("larger", {"x": lp.f32, "y": lp.f32}, lambda x, y: np.maximum(x, y))'
LAWS = "write laws=(lp.ASSOCIATIVE, lp.COMMUTATIVE, lp.neutral(0)), or some of these"


def laws_of(laws: Any) -> tuple[Law, ...]:
    """The argument `laws` of `lp.fun` as a tuple; TypeRefused if it contains anything else."""
    found: tuple[Any, ...] = (laws,)
    if isinstance(laws, Iterable) and not isinstance(laws, str):
        found = tuple(cast("Iterable[Any]", laws))
    for law in found:
        if not isinstance(law, Law):
            what = f"{shown(law)} is not a law"
            raise TypeRefused(f"{what}\n  rules use the laws that are declared\n  {LAWS}")
    return found


def check_laws(made: UserFun) -> None:
    """Refuse laws of a function that uses arrays or is not a binary operation on one type."""
    types = {str(t) for t in (*(p.type for p in made.params), made.body.type)}
    if made.laws and (len(made.params) != 2 or len(types) != 1 or has_arrays(made)):
        given = ", ".join(str(p.type) for p in made.params)
        what = f"{made.name} cannot be {made.laws[0]}"
        why = f"it is a function from {given} to {made.body.type}"
        why += ", and its body uses arrays" if has_arrays(made) else ""
        suggestion = (
            "a function has laws only if it takes two values of one type, returns that type, and "
            "uses no arrays"
        )
        raise TypeRefused(f"{what}\n  {why}\n  {suggestion}")


@word()
def size(name: str, low: int | None = 0, high: int | None = None) -> Nat:
    """A symbolic size, for a length in `lp.array` or an argument of a word.

    `low` and `high` bound its value, inclusively; None means no bound. Sizes support the arithmetic
    operators `+ - * // %`.

    >>> n = lp.size("n", 1, 64)
    >>> str(lp.array(lp.f32, 2 * n))
    '[2*n]f32'
    """
    if not name.isidentifier():
        suggestion = 'write a name such as lp.size("n")'
        if name.isdecimal():
            suggestion = f"write the number itself: {name}"
        elif any(c in name for c in "+-*/%"):
            suggestion = 'write arithmetic in Python: 2 * lp.size("n")'
        what = f"{name!r} is not the name of a size"
        raise TypeRefused(f"{what}\n  a name is made of letters, digits and _\n  {suggestion}")
    if low is not None and high is not None and low > high:
        what = f"the range of the size {name} is empty"
        raise TypeRefused(f"{what}\n  {low} is above {high}\n  write the smaller bound first")
    return var(name, low, high)


class Constant:
    """Marks the type of a parameter whose value does not change between runs."""

    def __init__(self, type: Type) -> None:  # noqa: A002  the language's own word
        self.type = type


@word()
def const(t: Type, *lengths: NatLike) -> Constant:
    """The type of a constant parameter: one that does not change between runs, such as weights.

    With lengths, it is an array type as `lp.array(t, *lengths)`. What depends only on constants is
    computed once, when the kernel is loaded.

    >>> str(lp.const(lp.f32, 3, 3).type)
    '[3][3]f32'
    """
    return Constant(array_type(t, *lengths) if lengths else as_type(t))


#: The types of the language by their names in Python and NumPy.
NAMESAKES: Mapping[str, str] = {
    "float": "lp.f32 or lp.f64",
    "int": "lp.i32 or lp.i64",
    "bool": "lp.boolean",
    "bool_": "lp.boolean",
    **{t.name: f"lp.{t.name}" for t in (*FLOATS, *INTEGERS, *STORAGE)},
    **{f"float{t.name[1:]}": f"lp.{t.name}" for t in FLOATS},
    **{RECORDS[t.name].numpy: f"lp.{t.name}" for t in INTEGERS},
}


def as_type(t: Any) -> Type:
    """`t` as a type; a tuple of types becomes a tuple type. TypeRefused for anything else."""
    if isinstance(t, Type):
        return t
    if isinstance(t, tuple) and len(t) > 1:
        return TupleType(tuple(map(as_type, t)))
    own = NAMESAKES.get(getattr(t, "__name__", str(t)))
    suggestion = f"write {own}" if own else "write a type such as lp.f32 or lp.i32"
    given = f"the constant type {t.type}" if isinstance(t, Constant) else shown(t)
    message = (
        f"{given} is not a type of the language\n"
        f"  types are scalars, arrays and tuples of these\n  {suggestion}"
    )
    raise TypeRefused(message)


@word(called="array")
def array_type(t: Any, *lengths: NatLike) -> Type:
    """An array type: `lp.array(lp.f32, 2, 3)` is `[2][3]f32`, two rows of three elements.

    A length is a number or a size such as `lp.size("n")`. `t` is a type, or a tuple of types for
    arrays of tuples: `lp.array((lp.i32, lp.f32), 8)`.

    >>> str(lp.array(lp.f32, 2, 3))
    '[2][3]f32'
    """
    found = as_type(t)
    if not lengths:
        message = (
            f"lp.array({t}) has no length\n  an array has one length or more\n"
            f"  write lp.array(lp.{t}, 8), or lp.{t} for a number"
            if isinstance(t, ScalarType)
            else "lp.array needs a length\n  an array has one length or more\n"
            "  write lp.array(lp.f32, 8)"
        )
        raise TypeRefused(message)
    for length in reversed(lengths):
        size = nat(length)
        if size.constant is not None and size.constant < 1:
            message = (
                f"{size} is not a length\n  a length is at least 1\n  write lp.array(lp.f32, 8)"
            )
            raise TypeRefused(message)
        found = ArrayType(found, size)
    return found


def at_function(f: Callable[..., Any], message: str) -> TypeRefused:
    """The refusal of a whole function, placed where the function begins."""
    error = TypeRefused(message)
    locate_function(error, f)
    return error


def locate_function(error: LiftError, f: Callable[..., Any]) -> None:
    """Place a refusal where the function begins, unless it has a more exact place."""
    locate(error, beginning(f))


def annotated(f: Callable[..., Any]) -> tuple[list[Param], frozenset[str], Type | None]:
    """The parameters of a program, the names of constant ones, and the declared result type."""
    try:
        hints = inspect.get_annotations(f, eval_str=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        message = (
            f"the types of {f.__name__} cannot be read: {error}\n"
            "  types in quotes, or under `from __future__ import annotations`, are read at the top "
            "of the file\n  write them without quotes, or define what they name there"
        )
        raise at_function(f, message) from error
    params: list[Param] = []
    constants: set[str] = set()
    for name, parameter in inspect.signature(f).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}:
            message = (
                f"{f.__name__} has the {parameter.kind.description} parameter {name}\n"
                "  a program takes a fixed number of positional arguments\n"
                f"  write {name} as a plain parameter, before any *"
            )
            raise at_function(f, message)
        if parameter.default is not parameter.empty:
            message = (
                f"parameter {name} of {f.__name__} has a default value\n"
                "  every argument of a program must be passed when it runs\n"
                f"  remove `= {shown(parameter.default)}`, or write the value where it is used"
            )
            raise at_function(f, message)
        hint = hints.get(name)
        if isinstance(hint, Constant):
            constants.add(name)
            hint = hint.type
        if isinstance(hint, tuple):
            hint = as_type(hint)
        if hint is not None and not isinstance(hint, Type):
            given, own = shown(hint), NAMESAKES.get(getattr(hint, "__name__", str(hint)))
            message = (
                f"the type of parameter {name} of {f.__name__} is {given}\n"
                "  this is not a type of the language\n"
                f"  write {name}: {own or 'lp.array(lp.f32, 100)'}"
            )
            raise at_function(f, message)
        if hint is None:
            message = (
                f"parameter {name} of {f.__name__} needs a type\n"
                "  kernels are generated for the types of the parameters\n"
                f"  write {name}: lp.array(lp.f32, 100), or {name}: lp.f32 for a number"
            )
            raise at_function(f, message)
        params.append(Param(name, hint))
    declared = hints.get("return")
    if isinstance(declared, tuple):
        declared = as_type(declared)
    if declared is not None and not isinstance(declared, Type):
        own = NAMESAKES.get(getattr(declared, "__name__", str(declared)))
        message = (
            f"the result of {f.__name__} is declared as {shown(declared)}\n"
            "  this is not a type of the language\n"
            f"  write -> {own or 'lp.array(lp.f32, 100), -> lp.f32 for a number'}, or nothing"
        )
        raise at_function(f, message)
    return params, frozenset(constants), declared


def program(f: Callable[..., Any] | None = None) -> Program:
    """Makes a program of a Python function whose parameters have types.

    The function is called once, with expressions for its parameters. It returns an expression, a
    number, or a tuple of these. A value that it uses more than once is computed once. A declared
    result type (`-> lp.array(lp.f32, 8)`) is checked, and plain numbers take their types from it.

    The program can be called with arrays: `dot(x, y)` computes its meaning in NumPy, as
    `lp.evaluate` does. `lp.compile(dot)` returns a kernel.

    >>> @lp.program
    ... def dot(xs: lp.array(lp.f32, 3), ys: lp.array(lp.f32, 3)):
    ...     return lp.zip(xs, ys) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)
    >>> ones = np.ones(3, np.float32)
    >>> dot(ones, ones).item()
    3.0
    """
    if isinstance(f, Program):
        message = f"{f.name} is a program already\n  `@lp.program` makes a function a program\n"
        raise TypeRefused(message + "  remove this `@lp.program`")
    if not callable(f) or isinstance(f, type) or not hasattr(f, "__name__"):
        message = (
            f"lp.program needs a function, got {shown(f)}\n  a program is a function of arrays\n"
        )
        raise TypeRefused(message + "  write @lp.program above a def")
    params, constants, declared = annotated(f)

    def body(*own: Expr) -> Expr:
        found = result(f, f(*own))
        if declared is not None:
            (found,) = agreeing((found,), (declared,))
            check_result(f, declared, found.type)
        return found

    try:
        made = traced_alone(params, body)
        check_scopes(f, made)
    except LiftError as error:
        locate_function(error, f)
        raise
    return Program(f.__name__, made, constants)


def traced_alone(params: Sequence[Param], body: Callable[..., Expr]) -> Lambda:
    """A function of these parameters that is traced by itself, not as part of another."""
    around = TRACE.set(None)
    try:
        with traced() as (trace, _):
            own = [Param(placeholder(0, p.name), p.type) for p in params]
            return closed(Lambda(tuple(own), body(*own)), trace)
    finally:
        TRACE.reset(around)


def check_scopes(f: Callable[..., Any], made: Lambda) -> None:
    """Refuse a body that uses a parameter outside the function that defines the parameter."""
    if made.free:
        names = sorted(plain_name(p.name) for p in made.free)
        message = (
            f"{f.__name__} uses {', '.join(names)} outside the function that defines "
            f"{'it' if len(names) == 1 else 'them'}\n"
            "  a parameter is defined only inside its own function\n"
            "  use it there, or return what is needed from there"
        )
        raise at_function(f, message)


def check_result(f: Callable[..., Any], declared: Type, given: Type) -> None:
    """Refuse a result whose type differs from the declared one."""
    if same_shape(declared, given) is None or str(declared) != str(given):
        message = (
            f"{f.__name__} returns {show_type(given)}\n"
            f"  its declared result is {show_type(declared)}\n"
            "  declare the type that it returns, or convert the result with lp.convert"
        )
        raise at_function(f, message)
