"""How a lowered expression is cut into the expressions of its kernels.

The cutter replaces each `toGlobal` outside every parallel map by the variable of a buffer, and
records what the buffer holds. An iteration of kernels becomes a kernel for each iteration, a fold
in place over parallel maps a kernel for each pass, and atomic updates become two kernels. The
kernels in the function of a `mapHost` are launched again for each element. `chain` makes the
kernels from the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall, apply, call, substitute, substitute_lambda
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, nat
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.types import I32, ArrayType, Type
from liftpy.ir.walk import children, every_part, has_call, lambda_of, with_child
from liftpy.kernels.launch import check_in_place
from liftpy.primitives import (
    Drop,
    Generate,
    IterateSeq,
    Join,
    MapHost,
    ReduceByIndexAtomic,
    ReduceInPlace,
    Take,
    ToGlobal,
    ToStreamed,
)
from liftpy.primitives.levels import has_levels
from liftpy.primitives.map import array_of
from liftpy.primitives.work import computes, is_layout, writable

HOST_ID = "hid0"
"""The name of the argument by which a kernel gets the number of the iteration of its loop."""


@dataclass(frozen=True)
class HostLoop:
    """A loop of the host over the elements of an array, each named `element` in its kernels.

    No other loop of a program has an element of this name.
    """

    element: Param
    array: Expr

    @property
    def name(self) -> str:
        """A name that no other loop of the program has."""
        return self.element.name

    @property
    def length(self) -> Nat:
        """The number of iterations."""
        return array_of(MapHost.name, self.array.type).length

    def over(self, body: Expr) -> FunCall:
        """The values of all iterations.

        If `body` does not read the element, the loop is over numbers, so that the kernel does not
        have the array as an argument.
        """
        if self.element in body.free:
            return call(MapHost(Lambda((self.element,), body)), self.array)
        number = Param(self.name, I32)
        numbers = call(Generate(self.length, Lambda((number,), number)))
        return call(MapHost(Lambda((number,), body)), numbers)


MOST_STEPS = 1000
"""The most kernels into which an iteration may be expanded, and the most iterations of the host."""


def is_iteration(expr: Expr) -> bool:
    """Whether an expression iterates kernels: the iterated function has parallel maps."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, IterateSeq) and has_levels(expr.fun.f)


def is_in_passes(expr: Expr) -> bool:
    """Whether several kernels in turn update one buffer.

    These are a fold in place whose function has parallel maps, and atomic updates of bins.
    """
    if not isinstance(expr, FunCall):
        return False
    passes = isinstance(expr.fun, ReduceInPlace) and has_levels(expr.fun.f)
    return passes or isinstance(expr.fun, ReduceByIndexAtomic)


def unstored(expr: Expr) -> Expr:
    """A result without the `toGlobal`s around it: it goes to global memory anyway.

    One `toStreamed` is kept, because it determines how the result is stored.
    """
    streamed = False
    while isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal):
        streamed = streamed or isinstance(expr.fun, ToStreamed)
        (expr,) = expr.args
    if isinstance(expr, Tuple):
        parts = (call(ToStreamed(), e) if streamed else e for e in expr.elements)
        return Tuple(tuple(map(unstored, parts)))
    return call(ToStreamed(), expr) if streamed else expr


def is_stored(param: Param, function: Lambda) -> bool:
    """Whether kernels of their own read a parameter, to store a value or to iterate."""
    parts = (part for part in every_part(function.body))
    return any(
        isinstance(p, FunCall)
        and param in p.free
        and (isinstance(p.fun, ToGlobal) or is_iteration(p) or is_in_passes(p))
        for p in parts
    )


def number_of_passes(t: Type) -> int:
    """The number of kernels of a fold in place over an array of this type."""
    length = t.length.constant if isinstance(t, ArrayType) else None
    if length is None or not 1 <= length <= MOST_STEPS:
        message = (
            f"{ReduceInPlace.name} over {t} needs a kernel for each element: "
            f"give its array a length from 1 to {MOST_STEPS}"
        )
        raise TypeRefused(message)
    return length


def element_of(xs: Expr, k: int) -> Expr:
    """Element `k` of an array of arrays."""
    if not isinstance(xs.type, ArrayType) or not isinstance(xs.type.element, ArrayType):
        message = (
            f"{ReduceInPlace.name} over {xs.type} cannot be a kernel for each element: "
            "fold arrays of arrays, or put it inside a parallel map"
        )
        raise TypeRefused(message)
    return call(Join(), call(Take(nat(1)), call(Drop(nat(k)), xs)))


CUT = (ToGlobal, IterateSeq, ReduceInPlace, ReduceByIndexAtomic, MapHost, Lambda)
"""The functions whose calls the cutter changes."""


def loop_call(body: Expr) -> FunCall | None:
    """The `mapHost` that makes the value of a kernel, if any.

    Raises TypeRefused if it is inside another map, or something other than layouts reads it.
    """
    if not has_call(body, MapHost):
        return None
    match body:
        case FunCall(MapHost()):
            return body
        case FunCall(ToStreamed(), (arg,)):
            return loop_call(arg)
        case FunCall(Primitive() as fun, (arg,)) if is_layout(fun) and writable(fun, (arg,)):
            return loop_call(arg)
        case _:
            raise is_not_stored()


def is_not_stored() -> TypeRefused:
    """The error for a `mapHost` whose result is read in the kernel that computes it."""
    return TypeRefused(
        f"{MapHost.name} must be outside all other maps that compute, and a kernel that computes "
        "more than layouts cannot read its result: store it with toGlobal first"
    )


def host_loop_of(body: Expr) -> HostLoop | None:
    """The loop of the host that makes the value of a kernel, if any."""
    made = loop_call(body)
    if made is None:
        return None
    (element,), (xs,) = lambda_of(made.fun).params, made.args
    return HostLoop(element, xs)


class Cutter:
    """Replaces each host-level `toGlobal` by the variable of its buffer."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.cuts: list[tuple[Param, Expr]] = []
        self.known: dict[Expr, Param] = {}
        self.lets: dict[Param, Param] = {}
        self.partial: set[Param] = set()
        self.loops: dict[Param, HostLoop] = {}
        """The loop of each buffer that every iteration of a `mapHost` fills again."""
        self.elements: set[str] = set()
        """The names of the elements of loops whose functions are over buffers already."""

    def fresh(self, stem: str) -> str:
        """An unused buffer name."""
        name, number = stem, 1
        while name in self.names:
            name, number = f"{stem}{number}", number + 1
        self.names.add(name)
        return name

    def for_each(self, t: Type, items: Nat) -> Param:
        """A buffer with a value of this type for each work-item."""
        return Param(self.fresh("scratch"), ArrayType(t, items))

    def tail(self, expr: Expr) -> Expr:
        """`cut` for an expression that a result buffer will hold."""
        if isinstance(expr, Tuple):
            return Tuple(tuple(map(self.tail, expr.elements)))
        if isinstance(expr, FunCall) and isinstance(expr.fun, ToStreamed):
            return call(expr.fun, self.tail(expr.args[0]))
        if is_iteration(expr):
            return self.steps(expr, stored=False)
        if is_in_passes(expr):
            *before, (out, last) = self.passes(expr, Param(self.fresh("partial"), expr.type))
            self.cuts += before
            self.partial.add(out)
            return last
        if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
            return self.let(expr, lambda body: self.tail(unstored(body)))
        return self.cut(expr)

    def steps(self, expr: Expr, *, stored: bool) -> Expr:
        """Expand an iteration into kernels; `stored` says whether the last one ends in a buffer."""
        if not isinstance(expr, FunCall) or not isinstance(expr.fun, IterateSeq):
            message = "no iteration"
            raise InternalError(message)
        times = expr.fun.times.constant
        if times is None or times > MOST_STEPS:
            message = (
                f"iterateSeq({expr.fun.times}) needs a kernel for each iteration: "
                f"give a number from 0 to {MOST_STEPS}"
            )
            raise TypeRefused(message)
        value = self.cut(expr.args[0])
        for left in reversed(range(times)):
            value = unstored(apply(expr.fun.f, value))
            if left or stored:
                already = isinstance(value, FunCall) and isinstance(value.fun, ToGlobal)
                value = self.cut(value if already else call(ToGlobal(), value))
            else:
                value = self.tail(value)
        return value

    def passes(self, expr: Expr, out: Param) -> list[tuple[Param, Expr]]:
        """The kernels of a fold in place: each updates `out`, which the first one fills.

        The first kernel of atomic updates stores the initial values.
        """
        if isinstance(expr, FunCall) and isinstance(expr.fun, ReduceByIndexAtomic):
            init, pairs = expr.args
            first = self.one_kernel(unstored(init), out)
            return [(out, first), (out, call(expr.fun, out, self.cut(pairs)))]
        if not isinstance(expr, FunCall) or not isinstance(expr.fun, ReduceInPlace):
            return [(out, self.one_kernel(unstored(expr), out))]
        check_in_place(expr.fun)
        if has_call(expr.fun.f.body, MapHost):
            raise TypeRefused(
                f"a pass of {ReduceInPlace.name} cannot be a loop of the host: an iteration would "
                f"read elements of the accumulator that those before it have updated\n"
                f"  leave out {MapHost.name}, or use iterateSeq, which stores each step"
            )
        acc, xs = map(self.cut, expr.args)
        found: list[tuple[Param, Expr]] = []
        for k in range(number_of_passes(xs.type)):
            found += self.passes(apply(expr.fun.f, acc, element_of(xs, k)), out)
            if len(found) > MOST_STEPS:
                raise TypeRefused(
                    f"{ReduceInPlace.name} over {xs.type} needs a kernel for each pass of each of "
                    f"its folds: give them at most {MOST_STEPS} passes in all"
                )
            acc = out
        return found

    def one_kernel(self, expr: Expr, out: Param) -> Expr:
        """`cut` for a pass that updates `out`: no other kernel may read `out` before it."""
        count = len(self.cuts)
        made = self.cut(expr)
        if any(out in value.free for _, value in self.cuts[count:]):
            raise TypeRefused(
                f"a pass of {ReduceInPlace.name} cannot store a value that depends on its "
                "accumulator: the kernel of the value would run before all passes\n"
                "  leave out the toGlobal, or use iterateSeq, which stores each step"
            )
        return made

    def cut(self, expr: Expr) -> Expr:
        """The expression over buffers; the kernels that fill them are recorded in order."""
        if not has_call(expr, *CUT):
            return expr
        if isinstance(expr, FunCall) and isinstance(expr.fun, MapHost):
            return self.host_loop(expr.fun, expr.args[0])
        if is_iteration(expr):
            return self.steps(expr, stored=True)
        if is_in_passes(expr):
            if expr not in self.known:
                self.known[expr] = out = Param(self.fresh("t"), expr.type)
                self.cuts += self.passes(expr, out)
            return self.known[expr]
        if (
            isinstance(expr, FunCall)
            and isinstance(expr.fun, ToGlobal)
            and is_in_passes(expr.args[0])
        ):
            return self.cut(expr.args[0])
        if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
            return self.let(expr, self.cut)
        count = len(expr.args) if isinstance(expr, FunCall) else len(children(expr))
        for position, child in enumerate(children(expr)):
            if position < count:
                if (new := self.cut(child)) is not child:
                    expr = with_child(expr, position, new)
            elif isinstance(expr, FunCall):
                expr = self.cut_inside(expr, child)
        if isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal):
            return self.stored(expr)
        return expr

    def stored(self, expr: FunCall) -> Expr:
        """The buffers of a stored value; components that are buffers already are not copied."""
        (value,) = expr.args
        parts = value.elements if isinstance(value, Tuple) else ()
        rest = [part for part in parts if not isinstance(part, Param)]
        if len(rest) == len(parts):
            return self.named("t", expr)
        made = iter([self.named("t", call(expr.fun, part)) for part in rest])
        return Tuple(tuple(part if isinstance(part, Param) else next(made) for part in parts))

    def let(self, expr: FunCall, rest: Callable[[Expr], Expr]) -> Expr:
        """A let whose values are over buffers, with `rest` applied to its body."""
        if not isinstance(expr.fun, Lambda):
            message = "no let"
            raise InternalError(message)
        pairs = zip(expr.fun.params, expr.args, strict=True)
        bound = [self.with_lengths(self.cut(a), p.type) for p, a in pairs]
        named = [self.named(p.name, b) for p, b in zip(expr.fun.params, bound, strict=True)]
        values = dict(zip(expr.fun.params, named, strict=True))
        self.lets |= {p: v for p, v in values.items() if isinstance(v, Param)}
        # A computed value stays bound, and is computed once, unless another kernel reads it.
        kept = {
            p: v
            for p, v in values.items()
            if computes(v) and not is_stored(p, expr.fun) and not has_call(v, MapHost)
        }
        others: dict[Param, Expr] = {p: v for p, v in values.items() if p not in kept}
        inner = substitute_lambda(Lambda(tuple(kept), expr.fun.body), others)
        body = rest(inner.body)
        return call(Lambda(inner.params, body), *kept.values()) if kept else body

    def with_lengths(self, expr: Expr, t: Type) -> Expr:
        """A stored value with the type `t`; any other expression is returned unchanged.

        `t` writes the same lengths differently: they are equal for all sizes that the space admits.
        """
        if not isinstance(expr, Param) or expr.type == t or expr in self.loops:
            return expr
        if all(p != expr for p, _ in self.cuts):
            return expr
        out = Param(expr.name, t)
        by: dict[Param, Expr] = {expr: out}
        self.cuts = [(out if p == expr else p, substitute(v, by)) for p, v in self.cuts]
        pairs = self.known.items()
        self.known = {substitute(v, by): out if p == expr else p for v, p in pairs}
        self.partial = {out if p == expr else p for p in self.partial}
        self.lets = {p: out if v == expr else v for p, v in self.lets.items()}
        return out

    def host_loop(self, fun: MapHost, xs: Expr) -> Expr:
        """A `mapHost` whose function is over buffers; their kernels are in its loop.

        The kernels of values that do not depend on the element come before the loop.
        """
        (own,) = fun.f.params
        if own.name in self.elements:
            return call(fun, xs)
        if has_call(fun.f.body, MapHost):
            raise TypeRefused(
                f"{MapHost.name} is inside another {MapHost.name}: join the two maps into one, or "
                "run the inner one as a loop of each work-item, with mapSeq"
            )
        source = self.cut(xs)
        loop = HostLoop(Param(self.fresh(own.name), own.type), source)
        self.elements.add(loop.name)
        most = loop.length.constant
        if most is not None and most > MOST_STEPS:
            raise TypeRefused(
                f"{MapHost.name} over {most} elements launches its kernels as often: give it an "
                f"array of at most {MOST_STEPS}, of larger parts"
            )
        before, lets = len(self.cuts), dict(self.lets)
        body = self.each_iteration(substitute(fun.f.body, {own: loop.element}))
        self.lets = lets  # those inside hold the value of one iteration
        inside: dict[Param, Expr] = {}
        for out, value in self.cuts[before:]:
            if out in inside or not value.free.isdisjoint({loop.element, *inside}):
                inside[out] = value
        again = [pair for pair in self.cuts[before:] if pair[0] in inside]
        once = [pair for pair in self.cuts[before:] if pair[0] not in inside]
        self.cuts[before:] = [*once, *again]
        self.loops |= dict.fromkeys(inside, loop)
        return loop.over(body)

    def each_iteration(self, expr: Expr) -> Expr:
        """`cut` for the value of an iteration, which is stored in a part of the loop's result."""
        expr = unstored(expr)
        if isinstance(expr, FunCall) and isinstance(expr.fun, ToStreamed):
            return call(expr.fun, self.each_iteration(expr.args[0]))
        if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
            return self.let(expr, self.each_iteration)
        return self.cut(expr)

    def cut_inside(self, expr: FunCall, body: Expr) -> Expr:
        """Cut values that are stored inside a function but do not depend on its parameters."""
        bound = frozenset(lambda_of(expr.fun).params)
        changed = self.hoist(body, bound)
        return expr if changed is body else with_child(expr, len(expr.args), changed)

    def hoist(self, expr: Expr, bound: frozenset[Param]) -> Expr:
        """Cut `toGlobal`s that depend on no bound variable; the others stay in their kernel."""
        if not has_call(expr, ToGlobal):
            return expr
        if (
            isinstance(expr, FunCall)
            and isinstance(expr.fun, ToGlobal)
            and expr.free.isdisjoint(bound)
        ):
            return self.cut(expr)
        inner = bound
        count = len(children(expr))
        if isinstance(expr, FunCall):
            count = len(expr.args)
            function = function_of(expr.fun)
            if function is not None:
                inner = bound | frozenset(function.params)
        for position, child in enumerate(children(expr)):
            new = self.hoist(child, inner if position >= count else bound)
            if new is not child:
                expr = with_child(expr, position, new)
        return expr

    def named(self, stem: str, expr: Expr) -> Expr:
        """The buffer that holds a stored expression; a view stays an expression."""
        if not (isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)):
            return expr
        body = expr if isinstance(expr.fun, ToStreamed) else expr.args[0]
        if body in self.known:
            return self.known[body]
        out = Param(self.fresh(stem), body.type)
        self.known[body] = out
        self.cuts.append((out, body))
        return out
