"""Scalar operators and user functions, applied to expressions and to plain numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from liftpy.errors import TypeRefused, plural
from liftpy.ir.call import FunCall, fresh, substitute
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun, check_arguments
from liftpy.ir.nat import INDEX, Nat, Var
from liftpy.ir.operators import OPERATORS, SHIFTS
from liftpy.ir.primitive import Get, Primitive, ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.scalars import cast_literal
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    INTEGERS,
    SCALARS,
    STORAGE,
    ArrayType,
    OpenType,
    TupleType,
    Type,
    VectorType,
)
from liftpy.ir.walk import bound_names, height, substitute_function, top_down
from liftpy.language.embedded.no_operand import NoOperand
from liftpy.language.embedded.trace import TRACED, current
from liftpy.language.given import is_number, plain, shown
from liftpy.language.inference import note_guess, typed
from liftpy.source.caller import here

#: The type of plain numbers without a typed operand beside them, by what an operator takes.
USUAL_TYPES = {"floats": F32, "integers": I32}


def size_as_value(size: Nat) -> str:
    """The refusal of a size where a value is needed."""
    suggestion = "write a number, or add a parameter to the program"
    if size.noun().startswith("the index"):
        suggestion = "lp.generate(n, f) gives its function the index as a value"
    what = f"{size.noun()} cannot be used as a value"
    return f"{what}\n  sizes exist in types, not in kernels\n  {suggestion}"


def constant_like(value: Any, other: Expr) -> Expr:
    """A number as a literal of another expression's type."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Nat):
        raise TypeRefused(size_as_value(value))
    if not is_number(value):
        suggestion = "write an expression or a number"
        if isinstance(value, NoOperand | UserFun | Program):
            suggestion = "apply it first: (xs >> f) is its result"
        elif isinstance(value, list | tuple) or hasattr(value, "dtype"):
            suggestion = "arrays must be parameters of the program"
        raise TypeRefused(f"{shown(value)} is neither an expression nor a number: {suggestion}")
    if isinstance(plain(value), bool):
        return Literal(plain(value), BOOL)
    t = scalar_of(other.type)
    return Literal(cast_literal(plain(value), t), t)


def scalar_of(t: Type) -> Type:
    """The type of a number beside a value of type `t`, which may not be a scalar."""
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    return F32 if isinstance(t, TupleType) else t


def open_literal(value: float) -> Literal:
    """A number without a typed operand: its uses decide its type; without any, it is an f32."""
    trace = current()
    if isinstance(value, bool):
        return Literal(value, BOOL)
    if trace is None:
        return Literal(cast_literal(value, F32), F32)
    return Literal(value, trace.holes.open(here()))


def check_constant(op: str, args: tuple[Expr, ...]) -> None:
    """Refuse the division of an integer by a literal zero, and a shift by a count out of range."""
    last = args[-1]
    if not isinstance(last, Literal) or (t := last.type) not in INTEGERS:
        return
    if op in {"/", "%"} and last.value == 0:
        message = f"`{op}` divides by {last.value}: use another divisor, or remove the division"
        raise TypeRefused(message)
    most = RECORDS[str(t)].bits - 1
    if op in SHIFTS and not 0 <= last.value <= most:
        message = f"`{op}` shifts {t} by {last.value} bits: write a count from 0 to {most}"
        raise TypeRefused(message)


def operate(op: str, *args: Any) -> Expr:
    """A scalar operator applied; plain numbers take the type of the operands with a type."""
    beside = args[1:] if op == "select" else args
    like = next((a for a in beside if isinstance(a, Expr)), None)
    if like is None and op in SCALARS:
        like = Literal(0, STORAGE.get(SCALARS[op], SCALARS[op]))
    if like is None and beside and is_number(beside[0]):
        like = open_literal(plain(beside[0]))
    usual = USUAL_TYPES.get(OPERATORS[op].operands)
    if like is None or (isinstance(like.type, OpenType) and usual is not None):
        like = Literal(0, F32 if usual is None else usual)
    if op == "select" and isinstance(args[0], bool):
        message = f"the condition of `select` is the constant {args[0]}: use Python's `if` instead"
        raise TypeRefused(message)
    operands = tuple(constant_like(a, like) for a in args)
    values = operands[-len(beside) :]
    operands = (*operands[: -len(beside)], *agreeing(values, [like.type] * len(values)))
    trace = current()
    if trace is not None and op == "select":
        note_guess(trace.holes, operands)
    check_constant(op, operands)
    return FunCall(ScalarOp(op), operands)


def agreeing(values: Sequence[Expr], types: Sequence[Type]) -> tuple[Expr, ...]:
    """Values unified with these types, which decides open types in both."""
    trace = current()
    if trace is None or not trace.holes.places:
        return tuple(values)
    for value, t in zip(values, types, strict=False):
        trace.holes.unify(value.type, t)
    return tuple(typed(v, trace.holes) for v in values)


def call_of(f: UserFun, *args: Any) -> Expr:
    """A call of a user function, whose refusal gets no place."""
    types = [p.type for p in f.params]
    if len(args) != len(types):
        names = ", ".join(f"{p.name}: {p.type}" for p in f.params)
        message = (
            f"{f.name} takes {plural(len(types), 'argument')}, got {len(args)}\n"
            f"  it is defined as {f.name}({names})\n  give one value for each parameter"
        )
        raise TypeRefused(message)
    values = [constant_like(a, Literal(0, t)) for a, t in zip(args, types, strict=True)]
    return user_call(f, agreeing(values, types))


MOST_COPIED = 10_000
"""The most parts of a body that replaces a call."""


def user_call(f: UserFun, args: Sequence[Expr]) -> Expr:
    """A call of a user function, or the body of one that uses arrays.

    Functions in kernels take only scalars. In the body, an argument that is computed is bound by a
    `let`, so that it is computed once. The body has the sizes of the arguments. Each call has a
    copy of its own: to a trace, an object that is used twice is a value that is shared.
    """
    if not has_arrays(f):
        return FunCall(f, tuple(args))
    types = tuple(a.type for a in args)
    sizes = dict(sizes_given(f, args))
    own = substitute_function(Lambda(f.params, f.body), sizes)
    for number, (p, inner, a) in enumerate(zip(f.params, own.params, args, strict=True), 1):
        wanted, given = [*inner.type.lengths()], [*a.type.lengths()]
        if len(wanted) == len(given) and wanted != given:
            where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise TypeRefused(
                f"{f.name} cannot be applied to {', '.join(map(str, types))}\n"
                f"  argument {number} must be {p.type}{where and f', where {where}'}\n"
                "  each size of a function must be the whole length of a parameter, in the range "
                "of the size, and the same wherever it occurs"
            )
    check_arguments(f.name, tuple(p.type for p in own.params), types)
    taken = {p.name for a in args for p in a.free}.union(*map(bound_names, args))
    by: dict[Param, Expr] = {}
    named: list[tuple[Param, Expr]] = []
    for p, a in zip(own.params, args, strict=True):
        if costs_nothing(a):
            by[p] = a
            continue
        fitting = Param(fresh(p.name, taken), p.type)
        taken.add(fitting.name)
        named.append((fitting, a))
        by[p] = fitting
    made = substitute(copied(own.body), by)
    if named:
        made = FunCall(Lambda(tuple(p for p, _ in named), made), tuple(a for _, a in named))
    if height(made) > TRACED:
        raise TypeRefused(
            f"a call of {f.name}, replaced by its body, has more than {TRACED} nested levels\n"
            "  calls in the body and in the arguments are replaced by bodies, too\n"
            "  name an argument with `let`, or make the function shorter"
        )
    return made


def copied(expr: Expr) -> Expr:
    """A copy of an expression, which inside a trace consists of new objects.

    Raises TypeRefused if it has more than `MOST_COPIED` parts.
    """
    if sum(1 for _ in itertools.islice(top_down(expr), MOST_COPIED + 1)) > MOST_COPIED:
        raise TypeRefused(
            f"the body of a function of arrays has more than {MOST_COPIED} parts\n"
            "  each call of such a function is replaced by its body\n"
            "  name a result that is used more than once with `let` instead of calling again"
        )
    return copy_of(expr)


def copy_of(expr: Expr) -> Expr:
    """`copied` without a limit on the number of parts."""
    match expr:
        case Tuple(elements):
            return Tuple((*map(copy_of, elements),))
        case FunCall(Lambda(params, body), args):
            return FunCall(Lambda(params, copy_of(body)), (*map(copy_of, args),))
        case FunCall(fun, args):
            if isinstance(fun, Primitive) and (function := fun.function) is not None:
                fun = replace(fun, f=Lambda(function.params, copy_of(function.body)))
            return FunCall(fun, (*map(copy_of, args),))
        case _:
            return expr


def sizes_given(f: UserFun, args: Sequence[Expr]) -> Iterator[tuple[str, Nat]]:
    """The value of each size that is the whole length of a parameter, from its first occurrence.

    Leaves out a size if the length of the argument is not known to be in its range, or if the
    length mentions a size with the name of the index of index functions (`INDEX`).
    """
    known: set[str] = set()
    for p, a in zip(f.params, args, strict=True):
        for size, length in zip(p.type.lengths(), a.type.lengths(), strict=False):
            match [*size.terms.items()]:
                case [(((Var(name=name) as own, 1),), 1)] if name not in known:
                    known.add(name)
                    if INDEX not in length.names() and is_within(length, own):
                        yield name, length
                case _:
                    pass


def is_within(length: Nat, size: Var) -> bool:
    """Whether a length is known to be in the range of a size."""
    low, high = length.bounds
    above = size.low is None or (low is not None and low >= size.low)
    return above and (size.high is None or (high is not None and high <= size.high))


def costs_nothing(expr: Expr) -> bool:
    """Whether an expression is a number, a variable, or a component of a variable."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Get):
        return costs_nothing(expr.args[0])
    return isinstance(expr, Literal | Param)


def has_arrays(f: UserFun) -> bool:
    """Whether a parameter of a function, or anything that it computes, is an array."""
    parts = (*f.params, *(part for _, part in top_down(f.body)))
    return any(isinstance(t, ArrayType) for part in parts for t in single_types(part.type))


def single_types(t: Type) -> Iterator[Type]:
    """The components of nested tuples; any other type itself."""
    if isinstance(t, TupleType):
        for element in t.elements:
            yield from single_types(element)
    else:
        yield t
