"""Maps and folds whose functions read only those arrays that they need.

A derivative is written as a function of all values that it may use. Only those that its result
mentions become parameters of the function of a map or fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from liftpy.errors import InternalError
from liftpy.gradient.cotangent import (
    Cotangent,
    Leaf,
    element_types,
    from_leaves,
    got,
    summed,
)
from liftpy.gradient.scope import Scope, ordered
from liftpy.ir.call import FunCall, apply, call, fresh, substitute
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.types import F32, TupleType, Type
from liftpy.language.embedded.functions import bind
from liftpy.language.embedded.sharing import placeholder
from liftpy.language.embedded.trace import current
from liftpy.primitives import ExclusiveScan, Map, Reduce, Repeat, Zip
from liftpy.primitives.map import array_of

Body: TypeAlias = Callable[..., "Expr | None"]
"""A derivative, of the values that it may use; None if it is 0."""


def function(
    body: Body, names: Sequence[str], types: Sequence[Type], state: Type | None = None
) -> tuple[Lambda, list[int]] | None:
    """A function of those values that `body` uses, and their positions; None if it returns None.

    Several values are the components of one parameter. With the type of a state, the state of a
    fold is the first parameter, and the first argument of `body`. If no value is used, the last
    parameter is one that the function does not mention.
    """
    made: list[tuple[Lambda, list[int]]] = []

    def run(*states: Expr) -> Expr:
        own = variables(names, types)
        found = body(*states, *own)
        if found is None:
            return Literal(0.0, F32)
        used = [k for k, p in enumerate(own) if p in found.free]
        last = own[used[0] if used else 0]
        if len(used) > 1:
            (last,) = variables(["xs"], [TupleType(tuple(types[k] for k in used))])
            found = substitute(found, {own[k]: got(j, last) for j, k in enumerate(used)})
        params = tuple(s for s in states if isinstance(s, Param))
        made.append((Lambda((*params, last), found), used))
        return found

    fixed = [] if state is None else [state]
    bind(["state"] * len(fixed), fixed, run)
    return made[0] if made else None


def variables(names: Sequence[str], types: Sequence[Type]) -> list[Param]:
    """Variables of the function that is being traced."""
    trace = current()
    if trace is None:
        message = "a gradient is built during a trace"
        raise InternalError(message)
    taken, made = set[str](), list[Param]()
    for name, t in zip(names, types, strict=True):
        own = fresh(name, taken)
        taken.add(own)
        made.append(Param(placeholder(trace.scopes[-1], own), t))
    return made


def element_map(body: Body, names: Sequence[str], arrays: Sequence[Expr]) -> Expr | None:
    """The array of `body` of the elements of arrays of equal length; None if `body` returns None.

    `body` gets the value that an array repeats, and a tuple of elements for an array that zips
    others, so that it reads only those arrays that it needs.
    """
    if all(isinstance(xs, FunCall) and isinstance(xs.fun, Repeat) for xs in arrays):
        value = body(*(xs.args[0] for xs in arrays if isinstance(xs, FunCall)))
        return None if value is None else call(Repeat(length_of(arrays[0])), value)
    if any(isinstance(xs, FunCall) and isinstance(xs.fun, Repeat | Zip) for xs in arrays):
        return element_map(*simpler(body, names, arrays))
    made = function(body, names, element_types(arrays))
    if made is None:
        return None
    f, used = made
    if not used:
        return call(Repeat(length_of(arrays[0])), f.body)
    return read(arrays, used) if f.body is f.params[0] else call(Map(f), read(arrays, used))


def of_elements(
    f: Lambda,
    of: Callable[[Param, Leaf], Expr | None],
    scope: Scope,
    wanted: Sequence[tuple[Leaf, Type]],
) -> Cotangent:
    """The wanted components of the cotangent of an array, to each element of which `f` is applied.

    The element is the last parameter of `f`. `of` gives, for a component of a variable, the array
    of its cotangents in all calls. For a variable from outside, their sum is added to the scope.
    """
    for variable in ordered(f.free):
        found = ((leaf, of(variable, leaf)) for leaf in sorted(scope.wanted(variable)))
        sums = [(leaf, summed(value)) for leaf, value in found if value is not None]
        scope.add(variable, from_leaves(variable.type, sums))
    element = f.params[-1]
    own = ((leaf, of(element, leaf)) for leaf, _ in wanted)
    return from_leaves(element.type, [(leaf, value) for leaf, value in own if value is not None])


def read(arrays: Sequence[Expr], used: Sequence[int]) -> Expr:
    """The array of the elements, or of the tuples of elements, that a `function` uses."""
    if len(used) > 1:
        return call(Zip(), *(arrays[k] for k in used))
    return arrays[used[0] if used else 0]


def length_of(xs: Expr) -> Nat:
    """The length of an array."""
    return array_of("map", xs.type).length


def simpler(
    body: Body, names: Sequence[str], arrays: Sequence[Expr]
) -> tuple[Body, list[str], list[Expr]]:
    """The arguments of `element_map` without arrays that repeat a value or zip others."""
    new_names, new_arrays, counts = list[str](), list[Expr](), list[int]()
    for name, xs in zip(names, arrays, strict=True):
        match xs:
            case FunCall(Repeat()):
                counts.append(0)
            case FunCall(Zip(), args):
                counts.append(len(args))
                new_arrays += args
                new_names += [name] * len(args)
            case _:
                counts.append(1)
                new_arrays.append(xs)
                new_names.append(name)

    def whole(*elements: Expr) -> Expr | None:
        rest, given = list(elements), list[Expr]()
        for count, xs in zip(counts, arrays, strict=True):
            own, rest = rest[:count], rest[count:]
            if count == 0 and isinstance(xs, FunCall):
                given.append(xs.args[0])
            else:
                given.append(own[0] if count == 1 else Tuple(tuple(own)))
        return body(*given)

    return whole, new_names, new_arrays


def last_state(step: Lambda, init: Expr, xs: Expr) -> Expr:
    """The state of a fold after its last step."""
    return call(Reduce(step), init, xs)


def states_before(step: Lambda, init: Expr, xs: Expr) -> Expr:
    """The array of the states of a fold before each of its steps."""
    types = [init.type, *element_types([xs])]
    own = bind(["state", "x"], types, lambda state, x: apply(step, state, x))
    return call(ExclusiveScan(own), init, xs)
