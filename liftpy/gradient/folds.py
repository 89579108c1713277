"""Cotangents through folds: `reduce`, `scan` and `iterate`.

The cotangent of the accumulator before a step is that after it, times the derivative of the step.
So the cotangents of all accumulators are the states of a fold over the steps in reverse order,
which reads the accumulators that the program's own fold had before each step. If the derivative of
a step with respect to the accumulator is 1, as in a sum, all cotangents are equal and no fold is
needed. In a reduction to the largest or the smallest element, the cotangent goes to one element: to
the first of those that are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from liftpy.errors import InternalError
from liftpy.gradient.cotangent import (
    Cotangent,
    Leaf,
    at_leaf,
    dense,
    element_types,
    elements_of,
    float_leaves,
    from_leaves,
    got,
    leaves,
    mapped,
    plus,
)
from liftpy.gradient.derivatives import number, where
from liftpy.gradient.elements import (
    element_map,
    function,
    last_state,
    of_elements,
    read,
    states_before,
)
from liftpy.gradient.layouts import indices
from liftpy.gradient.scope import Pull, Scope, function_scope
from liftpy.ir.call import FunCall, apply, call, fresh
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Primitive, ScalarOp
from liftpy.ir.types import I32, Type
from liftpy.language.embedded.functions import bind
from liftpy.language.embedded.operations import operate
from liftpy.primitives import ExclusiveScan, Iterate, Map, Reduce, Scan, Zip
from liftpy.primitives.border import backwards
from liftpy.primitives.map import array_of

Sources: TypeAlias = tuple[Cotangent, Cotangent]
"""The cotangents of the initial state and of the array of a fold."""


@dataclass(frozen=True)
class ProgramFold:
    """A fold in the program: its step, and the values of its initial state and its array."""

    pull: Pull
    f: Lambda
    init: Expr
    xs: Expr
    scope: Scope

    @property
    def acc(self) -> Param:
        """The parameter of the step for the accumulator."""
        return self.f.params[0]

    @property
    def states(self) -> list[tuple[Leaf, Type]]:
        """The components of the cotangent of an accumulator: their positions and types."""
        return list(float_leaves(self.acc.type))

    def before(self) -> Expr:
        """The accumulators before each step."""

        def step(*args: Expr) -> Expr:
            values = dict(zip(self.f.params, args, strict=True))
            return Scope(self.scope, values).value(self.f.body)

        types = [self.init.type, *element_types([self.xs])]
        return states_before(bind(["acc", "x"], types, step), self.init, self.xs)

    def through(
        self, variable: Param, at: Iterable[Leaf], ct: Cotangent, acc: Expr, x: Expr
    ) -> Cotangent:
        """The cotangent of components of a variable, in a step whose result has that of `ct`."""
        inner = function_scope(self.f, (acc, x), {variable: frozenset(at)}, self.scope)
        self.pull(self.f.body, ct, inner)
        return inner.found.get(variable)

    def flat(self, ct: Cotangent) -> Expr:
        """The cotangent of an accumulator as one expression."""
        values = [
            found if (found := at_leaf(ct, leaf)) is not None else dense(None, t)
            for leaf, t in self.states
        ]
        return values[0] if len(values) == 1 else Tuple(tuple(values))

    def unflat(self, state: Expr) -> Cotangent:
        """The inverse of `flat`."""
        values = [state] if len(self.states) == 1 else list(elements_of(state))
        return from_leaves(
            self.acc.type, zip((leaf for leaf, _ in self.states), values, strict=True)
        )


def pull_back(
    fold: ProgramFold,
    after: Expr,
    given: Sequence[tuple[Leaf, Expr]],
    wanted: Sequence[tuple[Leaf, Type]],
    *,
    exclusive: bool = False,
) -> Sources:
    """The cotangents of a fold's initial state and array; those of outer variables are added.

    after: the cotangent of the last accumulator, as one expression.
    given: the cotangents of a scan's elements, as arrays. The elements are the accumulators before
        each step if the scan is `exclusive`, else those after it.
    wanted: the components of the cotangent of the array that are wanted.
    """
    positions, every = [leaf for leaf, _ in given], [leaf for leaf, _ in fold.states]
    arrays = [fold.xs, fold.before(), *(value for _, value in given)]

    def own(cts: Sequence[Expr]) -> Cotangent:
        return from_leaves(fold.acc.type, zip(positions, cts, strict=True))

    def total(state: Expr, cts: Sequence[Expr]) -> Cotangent:
        """The cotangent of the accumulator after a step."""
        found = fold.unflat(state)
        return found if exclusive else plus(found, own(cts))

    def carried(state: Expr, x: Expr, acc: Expr, *cts: Expr) -> Expr:
        passed = fold.through(fold.acc, every, total(state, cts), acc, x)
        return fold.flat(plus(passed, own(cts)) if exclusive else passed)

    names = ["x", "acc", *("d" for _ in given)]

    def reversed_step() -> tuple[Lambda, list[int]]:
        """A new function for each fold, since two folds may not share the variables inside it."""
        made = function(carried, names, element_types(arrays), after.type)
        if made is None:
            message = "a cotangent of an accumulator is missing, though `flat` fills it with 0"
            raise InternalError(message)
        return made

    step, used = reversed_step()
    states: list[Expr] = []
    begun = after
    if given or step.body != fold.flat(fold.unflat(step.params[0])):
        back = backwards(read(arrays, used))
        states = [backwards(states_before(step, after, back))]
        begun = last_state(reversed_step()[0], after, back)

    def of(variable: Param, leaf: Leaf) -> Expr | None:
        def body(x: Expr, acc: Expr, *cts: Expr) -> Expr | None:
            state = cts[-1] if states else after
            ct = total(state, cts[: len(given)])
            return at_leaf(fold.through(variable, [leaf], ct, acc, x), leaf)

        return element_map(body, [*names, *("d" for _ in states)], [*arrays, *states])

    return fold.unflat(begun), of_elements(fold.f, of, fold.scope, wanted)


def pull_fold(pull: Pull, expr: FunCall, ct: Cotangent, scope: Scope) -> None:
    """Pass on the cotangent of a reduction or a scan."""
    init, xs = expr.args
    if isinstance(expr.fun, Reduce) and pull_extreme(pull, expr.fun.f, init, xs, ct, scope):
        return
    if not isinstance(expr.fun, Reduce | Scan | ExclusiveScan):
        message = f"{expr.fun} is not a fold"
        raise InternalError(message)
    fold = ProgramFold(pull, expr.fun.f, scope.value(init), scope.value(xs), scope)
    last, given = (ct, []) if isinstance(expr.fun, Reduce) else (None, list(leaves(ct)))
    exclusive = isinstance(expr.fun, ExclusiveScan)
    wanted = scope.leaves(xs)
    ends, elements = pull_back(fold, fold.flat(last), given, wanted, exclusive=exclusive)
    pull(init, ends, scope)
    pull(xs, elements, scope)


def pull_iterate(pull: Pull, expr: FunCall, ct: Cotangent, scope: Scope) -> None:
    """Pass on the cotangent of an iteration: a fold whose step does not read the array."""
    fun, (init,) = expr.fun, expr.args
    if not isinstance(fun, Iterate):
        message = f"{fun} is not an iteration"
        raise InternalError(message)
    if fun.times == 0:
        pull(init, ct, scope)
        return
    names = {p.name for p in (*fun.f.params, *fun.f.body.free)}
    step = Lambda((*fun.f.params, Param(fresh("step", names), I32)), fun.f.body)
    fold = ProgramFold(pull, step, scope.value(init), indices(fun.times), scope)
    pull(init, pull_back(fold, fold.flat(ct), [], [])[0], scope)


FOLDS: Mapping[type[Primitive], Callable[[Pull, FunCall, Cotangent, Scope], None]] = {
    Reduce: pull_fold,
    Scan: pull_fold,
    ExclusiveScan: pull_fold,
    Iterate: pull_iterate,
}


# --- the largest and the smallest element ---------------------------------------------------------


def extreme(f: Lambda) -> tuple[str, Expr] | None:
    """`min` or `max` and an operand, if a step returns that of the operand and the accumulator."""
    acc, body = f.params[0], f.body
    if isinstance(body, FunCall) and isinstance(body.fun, UserFun):
        body = apply(Lambda(body.fun.params, body.fun.body), *body.args)
    if not (isinstance(body, FunCall) and isinstance(body.fun, ScalarOp)):
        return None
    others = [a for a in body.args if a != acc]
    if body.fun.op not in {"min", "max"} or len(others) != 1 or acc in others[0].free:
        return None
    return body.fun.op, others[0]


def pull_extreme(pull: Pull, f: Lambda, init: Expr, xs: Expr, ct: Cotangent, scope: Scope) -> bool:
    """Pass on the cotangent of a reduction to the largest or smallest element, if this is one."""
    found = extreme(f)
    if found is None or not isinstance(ct, Expr):
        return False
    op, operand = found
    each = call(Map(Lambda(f.params[1:], operand)), xs)
    values = scope.value(each)
    places = indices(array_of("reduce", values.type).length)

    def step(best: Expr, x: Expr) -> Expr:
        (value, place), (one, here) = elements_of(best), elements_of(x)
        better = operate("<", value, one) if op == "max" else operate("<", one, value)
        return Tuple((where(better, one, value), where(better, here, place)))

    none = Literal(-1, I32)
    start = Tuple((scope.value(init), none))
    pairs = call(Zip(), values, places)
    reduction = Reduce(bind(["best", "x"], [start.type, *element_types([pairs])], step))
    place = got(1, call(reduction, start, pairs))
    zero = number(0.0, ct)
    pull(each, mapped(lambda i: where(operate("==", i, place), ct, zero), places), scope)
    pull(init, where(operate("==", place, none), ct, zero), scope)
    return True
