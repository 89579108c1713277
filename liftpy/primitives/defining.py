"""Programs and user functions from Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from liftpy.errors import LiftError, TypeRefused
from liftpy.ir.caller import beginning, locate
from liftpy.ir.expr import Lambda, Law, Param, Program, UserFun, agreeing
from liftpy.ir.nat import NatLike, nat
from liftpy.ir.operand import shown
from liftpy.ir.show import show_type
from liftpy.ir.trace import TRACE
from liftpy.ir.types import ArrayType, Type, same_shape
from liftpy.primitives.documented import word
from liftpy.primitives.functions import bind, closed, result, traced
from liftpy.primitives.sharing import placeholder, plain_name


@word()
def fun(
    name: str, params: Mapping[str, Type], body: Callable[..., Any], laws: tuple[Law, ...] = ()
) -> UserFun:
    """A user function of named, typed scalars, with laws that rules may use.

    Declared laws (`lp.ASSOCIATIVE`, `lp.COMMUTATIVE`, `lp.neutral(0)`) are believed.

    >>> sq = lp.fun("sq", {"x": lp.i32}, lambda x: x * x)
    >>> lp.evaluate(lp.iota(4) >> lp.map(sq)).tolist()
    [0, 1, 4, 9]
    """
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
    return UserFun(name, made.params, made.body, tuple(laws))


class Constant:
    """Marks a parameter's type as constant: the same from run to run."""

    def __init__(self, type: Type) -> None:  # noqa: A002  the language's own word
        self.type = type


@word()
def const(t: Type, *lengths: NatLike) -> Constant:
    """The type of a constant parameter, such as weights: the same from run to run.

    What depends on constants alone is computed once, when the kernel is loaded.

    >>> str(lp.const(lp.f32, 3, 3).type)
    '[3][3]f32'
    """
    return Constant(array_type(t, *lengths))


@word()
def array_type(t: Any, *lengths: NatLike) -> Type:
    """The type of an array: `lp.array(lp.f32, 2, 3)` is `[2][3]f32`, two rows of three.

    A length is a number or a size, `lp.size("n")`; `t` may be a tuple of types.

    >>> str(lp.array(lp.f32, 2, 3))
    '[2][3]f32'
    """
    if not isinstance(t, Type):
        message = (
            f"{t!r} is not a type\n  elements of an array are scalars, tuples or arrays\n"
            "  write a type such as lp.f32 or lp.i32"
        )
        raise TypeRefused(message)
    found = t
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
    """A refusal of a whole function, placed where it begins."""
    error = TypeRefused(message)
    locate_function(error, f)
    return error


def locate_function(error: LiftError, f: Callable[..., Any]) -> None:
    """Place a refusal that has no nearer place where the function begins."""
    locate(error, beginning(f))


def annotated(f: Callable[..., Any]) -> tuple[list[Param], frozenset[str], Type | None]:
    """The parameters of a program, which of them are constant, and its result's type if it says."""
    hints = inspect.get_annotations(f, eval_str=True)
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
                "  every argument of a program is given when it runs\n"
                f"  remove `= {shown(parameter.default)}`, or write the value where it is used"
            )
            raise at_function(f, message)
        hint = hints.get(name)
        if isinstance(hint, Constant):
            constants.add(name)
            hint = hint.type
        if not isinstance(hint, Type):
            message = (
                f"parameter {name} of {f.__name__} needs a type\n"
                "  kernels are generated for the types of the parameters\n"
                f"  write {name}: lp.array(lp.f32, 100), or {name}: lp.f32 for a number"
            )
            raise at_function(f, message)
        params.append(Param(name, hint))
    declared = hints.get("return")
    if declared is not None and not isinstance(declared, Type):
        message = (
            f"the result of {f.__name__} is declared as {declared!r}\n"
            "  this is not a type of the language\n"
            "  write -> lp.array(lp.f32, 100), -> lp.f32 for a number, or nothing"
        )
        raise at_function(f, message)
    return params, frozenset(constants), declared


def program(f: Callable[..., Any] | None = None) -> Program:
    """A Python function with typed parameters as a program.

    The function is called once, with expressions for its parameters, and returns an expression,
    a number or a tuple of them. What it uses more than once is computed once. A declared result
    type (`-> lp.array(lp.f32, 8)`) is checked, and numbers take their types from it.

    The program can be called with arrays: `dot(x, y)` computes its meaning in numpy, as
    `lp.evaluate` does. `lp.compile(dot)` gives a kernel.

    >>> @lp.program
    ... def dot(xs: lp.array(lp.f32, 3), ys: lp.array(lp.f32, 3)):
    ...     return lp.zip(xs, ys) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)
    >>> ones = np.ones(3, np.float32)
    >>> dot(ones, ones).item()
    3.0
    """
    if not callable(f) or isinstance(f, type):
        message = (
            f"lp.program needs a function, got {shown(f)}\n  a program is a function of arrays\n"
        )
        raise TypeRefused(message + "  write @lp.program above a def")
    params, constants, declared = annotated(f)
    around = TRACE.set(None)
    try:
        with traced() as (trace, _):
            own = [Param(placeholder(0, p.name), p.type) for p in params]
            body = result(f, f(*own))
            if declared is not None:
                (body,) = agreeing((body,), (declared,))
                check_result(f, declared, body.type)
            made = closed(Lambda(tuple(own), body), trace)
            check_scopes(f, made)
    except LiftError as error:
        locate_function(error, f)
        raise
    finally:
        TRACE.reset(around)
    return Program(f.__name__, made, constants)


def check_scopes(f: Callable[..., Any], made: Lambda) -> None:
    """Refuse what Python code has carried out of the function whose parameter it needs."""
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
    """Refuse a result of another type than is declared."""
    if same_shape(declared, given) is None or str(declared) != str(given):
        message = (
            f"{f.__name__} returns {show_type(given)}\n"
            f"  its declared result is {show_type(declared)}\n"
            "  declare the type that it returns, or convert the result with lp.convert"
        )
        raise at_function(f, message)
