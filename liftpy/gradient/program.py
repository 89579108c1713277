"""`lp.gradient`: the gradient of a program, as a program."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from liftpy.errors import TypeRefused, UnknownName
from liftpy.gradient.cotangent import Cotangent, dense, float_leaves, from_leaves, has_floats
from liftpy.gradient.refusal import NoDerivative
from liftpy.gradient.reverse import pull
from liftpy.gradient.scope import Scope
from liftpy.gradient.simplify import simplified
from liftpy.ir.call import FunCall, fresh
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.place import named
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.types import FLOATS, ArrayType, TupleType, Type, VectorType, scalars
from liftpy.ir.walk import Path, at, top_down
from liftpy.language.embedded.defining import traced_alone
from liftpy.language.entry import entry
from liftpy.language.given import shown

RESULT = "result"
"""What messages and the names of cotangents call the result of a program."""


@entry("lp.gradient")
def gradient(
    program: Program,
    wrt: Sequence[str] | str | None = None,
    of: int | None = None,
    *,
    value: bool = False,
) -> Program:
    """The gradient of a program with respect to its parameters, as a program (reverse mode).

    wrt: the names of the parameters, in the order of the gradients in the result. By default, all
        parameters that are floating-point numbers or arrays of these.
    of: the component that is differentiated, for a program whose result is a tuple; by default all.
    value: whether the result begins with the result of `program`.

    If the result is one floating-point number, the gradient has the parameters of the program.
    Otherwise it has further parameters, `dresult`, which is of the type of the result: the
    derivatives of some number with respect to each element of the result. The gradient then has the
    derivatives of that number. (For a tuple, there is one such parameter for each component:
    `dresult_0`, `dresult_1`.) The result is the gradient with respect to the parameter, in the type
    of the parameter, or a tuple of these for several.

    The gradient is a program like any other: it can be shown, differentiated, explored and
    compiled. It computes the values that it needs of the program again, or stores them: that is a
    choice of its space. At a point without a derivative, a one-sided derivative is chosen
    (docs/gradients.md). TypeRefused if there is none, UnknownName for an unknown parameter.

    >>> @lp.program
    ... def loss(xs: lp.array(lp.f32, 3), ys: lp.array(lp.f32, 3)):
    ...     return lp.zip(xs, ys) >> lp.map(lambda x, y: (x - y) ** 2) >> lp.reduce(lp.add, 0)
    >>> back = lp.gradient(loss, wrt="xs")
    >>> back(np.float32([3, 4, 5]), np.float32([1, 1, 1])).tolist()
    [4.0, 6.0, 8.0]
    """
    wanted = variables(program, wrt)

    def body(*own: Expr) -> Expr:
        given, cts = own[: len(program.params)], own[len(program.params) :]
        active = {p: frozenset(leaf for leaf, _ in float_leaves(p.type)) for p in wanted}
        scope = Scope(None, dict(zip(program.params, given, strict=True)), active)
        pull(program.body.body, cotangent(program, of, cts), scope)
        found = [dense(scope.found.get(p), p.type) for p in wanted]
        if value:
            found.insert(0, scope.value(program.body.body))
        return found[0] if len(found) == 1 else Tuple(tuple(found))

    try:
        check_vectors(program)
        seeds = cotangent_parameters(program, chosen(program, of))
        made = traced_alone([*program.params, *seeds], body)
    except NoDerivative as error:
        raise TypeRefused(refusal(program, wanted, error)) from None
    simple = Lambda(made.params, simplified(made.body))
    return Program(f"{program.name}_gradient", simple, program.constants)


def variables(program: Program, wrt: Sequence[str] | str | None) -> list[Param]:
    """The parameters with respect to which a program is differentiated."""
    known = {p.name: p for p in program.params}
    if wrt is None:
        found = [p for p in program.params if only_floats(p.type)]
        if not found:
            what = f"{program.name} has no gradient: no parameter is made of floating-point numbers"
            types = ", ".join(f"{p.name} is {p.type}" for p in program.params) or "it has none"
            raise TypeRefused(f"{what}\n  {types}\n  declare a parameter as f32 or f64")
        return found
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        what = f"the gradient of {program.name} needs a parameter, got none"
        why = "it is taken with respect to parameters"
        floats = [n for n, p in known.items() if only_floats(p.type)]
        instead = f"name {any_of(floats)}" if floats else "declare a parameter as f32 or f64"
        raise TypeRefused(f"{what}\n  {why}\n  {instead}")
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            what = f"{program.name} has no parameter {shown(name)}"
            why = f"its parameters are {', '.join(known)}" if known else "it has none"
            instead = f"name {any_of(known)}" if known else "declare it as f32 or f64"
            raise UnknownName(f"{what}\n  {why}\n  {hint}{instead}")
        if not only_floats(known[name].type):
            what = f"there is no gradient with respect to {name}"
            why = f"its type {known[name].type} does not consist of floating-point numbers"
            others = [n for n, p in known.items() if only_floats(p.type)]
            instead = f"name {any_of(others)}" if others else "declare a parameter as f32 or f64"
            raise TypeRefused(f"{what}\n  {why}\n  {instead}")
    return [known[name] for name in names]


def only_floats(t: Type) -> bool:
    """Whether every scalar of a type is a floating-point number."""
    return all(s in FLOATS for s in scalars(t))


def any_of(names: Iterable[str]) -> str:
    """Names as alternatives: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def check_vectors(program: Program) -> None:
    """Raises NoDerivative if a part of a program is a vector or consists of vectors."""
    for _, part in top_down(program.body.body):
        if has_vectors(part.type):
            why = f"gradients are made of numbers and arrays, and this is of type {part.type}"
            raise NoDerivative(part, why, "leave the vectors to a search, which chooses them")


def has_vectors(t: Type) -> bool:
    """Whether a type is a vector or has vectors as components or elements."""
    match t:
        case VectorType():
            return True
        case ArrayType(element, _):
            return has_vectors(element)
        case TupleType(elements):
            return any(map(has_vectors, elements))
        case _:
            return False


def chosen(program: Program, of: int | None) -> Type:
    """The type of what is differentiated; TypeRefused if it is not a value of the result."""
    t = program.type
    if of is not None:
        if not isinstance(t, TupleType) or not 0 <= of < len(t.elements):
            what = f"the {RESULT} of {program.name} has no component {of}"
            count = len(t.elements) if isinstance(t, TupleType) else 0
            instead = f"give a number from 0 to {count - 1}" if count else "leave `of` out"
            raise TypeRefused(f"{what}\n  its type is {t}\n  {instead}")
        t = t.elements[of]
    if not has_floats(t):
        what = f"{program.name} has no gradient"
        why = f"its result {t} contains no floating-point number"
        raise TypeRefused(f"{what}\n  {why}\n  return what the result is computed from")
    return t


def cotangent_parameters(program: Program, t: Type) -> Iterator[Param]:
    """The parameters for the cotangents of what is differentiated, unless it is one number."""
    if t in FLOATS:
        return
    taken = {p.name for p in program.params}
    for leaf, own in float_leaves(t):
        name = fresh("".join((f"d{RESULT}", *(f"_{k}" for k in leaf))), taken)
        taken.add(name)
        yield Param(name, own)


def cotangent(program: Program, of: int | None, given: Sequence[Expr]) -> Cotangent:
    """The cotangent of a program's result, from the values of the further parameters."""
    t = chosen(program, of)
    values = given or (Literal(1.0, t),)
    leaves = [leaf for leaf, _ in float_leaves(t)]
    ct = from_leaves(t, zip(leaves, values, strict=True))
    if of is None or not isinstance(program.type, TupleType):
        return ct
    return tuple(ct if k == of else None for k in range(len(program.type.elements)))


def refusal(program: Program, wanted: Sequence[Param], error: NoDerivative) -> str:
    """The message for a part of a program without a derivative."""
    names = ", ".join(p.name for p in wanted)
    path = next((p for p, part in top_down(program.body.body) if part is error.part), None)
    where = "" if path is None else " at {}{}".format(*place(program, path))
    what = f"{program.name} has no gradient with respect to {names}{where}"
    return f"{what}\n  {error.why}\n  {error.instead}"


def place(program: Program, path: Path) -> tuple[str, str]:
    """The word at a path, and where it is."""
    name, where = named(program, path)
    part = at(program.body.body, path)
    if program.spans is None and isinstance(part, FunCall) and isinstance(part.fun, ScalarOp):
        name = part.fun.op
    return name, where
