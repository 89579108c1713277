"""A lowered program as a chain of kernels, and the buffers between them.

Each `toGlobal` outside every parallel map ends a kernel, and so does the result. If its value
depends on a variable of a function inside a kernel, each work-item has its own value, in a buffer
with room for the values of all work-items. Kernels that depend only on constant parameters belong
to the prepare phase. All sizes are symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall, apply, call, substitute, substitute_lambda
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ZERO, Nat, nat
from liftpy.ir.primitive import function_of
from liftpy.ir.types import ArrayType, Type, size_bytes
from liftpy.ir.walk import bound_names, children, every_part, has_call, lambda_of, with_child
from liftpy.kernels.images import images_of
from liftpy.kernels.launch import Demand, check_in_place, demand
from liftpy.primitives import (
    Drop,
    IterateSeq,
    Join,
    ReduceInPlace,
    Take,
    ToGlobal,
    ToStreamed,
)
from liftpy.primitives.dialects import LoweredProgram
from liftpy.primitives.levels import has_levels
from liftpy.primitives.work import computes

Role = Literal["input", "constant", "packed", "temporary", "output"]
Phase = Literal["prepare", "run"]
#: The buffer of a result, or those of a tuple's components.
Result: TypeAlias = "Param | tuple[Result, ...]"


@dataclass(frozen=True)
class Kernel:
    """One kernel: the buffer it writes, the expression it computes, the other buffers it reads.

    A kernel that `updates` reads the buffer that it writes: for each element, the element itself.
    It reads `images`, some of these buffers, through images. `scratch` lists the values that a
    work-item holds in global memory, each with its buffer. The buffer has an element for each
    work-item; dimension 0 varies fastest.
    """

    name: str
    body: Expr
    reads: tuple[Param, ...]
    writes: Param
    phase: Phase
    demand: Demand
    scratch: tuple[tuple[FunCall, Param], ...] = ()
    images: frozenset[Param] = frozenset()

    @property
    def updates(self) -> bool:
        """Whether the kernel reads the buffer that it writes."""
        return self.writes in self.body.free

    @property
    def buffers(self) -> tuple[Param, ...]:
        """The kernel's arguments: the buffers it reads, the one it writes, its scratch."""
        return (*self.reads, self.writes, *(param for _, param in self.scratch))


@dataclass(frozen=True)
class GlobalBuffer:
    """A buffer and the span of run-phase kernels in which it is live, first and last included.

    A buffer that is live during the whole run (inputs, outputs, weights) has the whole span; one
    that only the prepare phase needs has none.
    """

    param: Param
    role: Role
    span: tuple[int, int] | None

    @property
    def type(self) -> Type:
        """The type of the stored value."""
        return self.param.type

    @property
    def bytes(self) -> Nat:
        """Its size in bytes."""
        return size_bytes(self.param.type)


@dataclass(frozen=True)
class Chain:
    """The kernels in launch order, prepare phase first, and every buffer.

    A program that ends in a tuple has a kernel and a buffer for each component. `lets` has the
    buffer of each variable that names a stored value.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[GlobalBuffer, ...]
    result: Result
    lets: Mapping[Param, Param] = field(default_factory=dict[Param, Param])

    @property
    def run(self) -> tuple[Kernel, ...]:
        """The kernels of the run phase."""
        return tuple(k for k in self.kernels if k.phase == "run")

    def live_bytes(self, temporary: frozenset[Param] = frozenset()) -> list[Nat]:
        """For each run-phase kernel, the bytes of the buffers that are live while it runs.

        Inputs and results in `temporary` are live only from their first use to their last: in a
        program of several stages, nothing else needs them.
        """
        totals: list[Nat] = []
        spans = [self._used(b) if b.param in temporary else b.span for b in self.buffers]
        for step in range(len(self.run)):
            total = ZERO
            for buffer, span in zip(self.buffers, spans, strict=True):
                if span is not None and span[0] <= step <= span[1]:
                    total = total + buffer.bytes
            totals.append(total)
        return totals

    def _used(self, buffer: GlobalBuffer) -> tuple[int, int] | None:
        """The span of an input up to its last read, or of an output from its first write."""
        last = len(self.run) - 1
        if buffer.role == "output":
            wrote = [k for k, kernel in enumerate(self.run) if kernel.writes == buffer.param]
            return (min(wrote), last)
        reads = [k for k, kernel in enumerate(self.run) if buffer.param in kernel.reads]
        return (0, max(reads)) if reads else None


OUTPUT = "output"
"""The name of a result."""


def chain(program: LoweredProgram, result: str = OUTPUT) -> Chain:
    """Cut a lowered program into kernels; `result` is the stem of the result buffer's name."""
    body = unstored(program.body.body)
    cutter = _Cutter({p.name for p in program.params} | bound_names(body))
    tail = cutter.tail(body)
    made, tails = _results(tail, result, cutter)
    results = {out for out, _ in tails}
    produced = _in_results([*cutter.cuts, *tails], cutter.partial, tails)

    prepared = {p for p in program.params if p.name in program.constants}
    phases: dict[Param, Phase] = {}
    for out, body in produced:
        constant = out not in results and body.free <= prepared
        phases[out] = "prepare" if constant else "run"
        if constant:
            prepared.add(out)
    ordered = sorted(produced, key=lambda pair: phases[pair[0]] == "run")
    kernels: list[Kernel] = []
    for number, (out, body) in enumerate(ordered):
        reads = tuple(sorted(body.free - {out}, key=lambda p: p.name))
        asked = demand(body)
        scratch = tuple((e, cutter.for_each(e.type, asked.items)) for e in asked.scratch)
        name = f"k{number}_{out.name}"
        images = images_of(body, frozenset(reads))
        kernels.append(Kernel(name, body, reads, out, phases[out], asked, scratch, images))
    return Chain(tuple(kernels), tuple(_buffers(program, kernels, results)), made, cutter.lets)


def chain_of_skeleton(program: LoweredProgram, result: str = "") -> Chain:
    """The chain of a skeleton's program, cut once; without the name of a result, with any one."""
    known = _chains(program)
    if not result and known:
        return next(iter(known.values()))
    name = result or OUTPUT
    if name not in known:
        known[name] = chain(program, name)
    return known[name]


@by_identity(1 << 11)
def _chains(_program: LoweredProgram) -> dict[str, Chain]:
    """The chains of a program by the name of the result."""
    return {}


MOST_STEPS = 1000
"""The most kernels into which an iteration may be expanded."""


def is_iteration(expr: Expr) -> bool:
    """Whether an expression iterates kernels: the iterated function has parallel maps."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, IterateSeq) and has_levels(expr.fun.f)


def is_in_passes(expr: Expr) -> bool:
    """Whether each pass of a fold in place is a kernel: its function has parallel maps."""
    return (
        isinstance(expr, FunCall) and isinstance(expr.fun, ReduceInPlace) and has_levels(expr.fun.f)
    )


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


def _results(tail: Expr, name: str, cutter: _Cutter) -> tuple[Result, list[tuple[Param, Expr]]]:
    """The buffers of a result, and the expression that each holds."""
    if not isinstance(tail, Tuple):
        out = Param(cutter.fresh(name), tail.type)
        return out, [(out, tail)]
    parts = [_results(e, f"{name}_{k}", cutter) for k, e in enumerate(tail.elements)]
    return tuple(part for part, _ in parts), [pair for _, pairs in parts for pair in pairs]


def _in_results(
    produced: list[tuple[Param, Expr]], partial: set[Param], tails: list[tuple[Param, Expr]]
) -> list[tuple[Param, Expr]]:
    """The kernels, in which all passes of a fold that is a result store in the result's buffer."""
    own: dict[Param, Param] = {p: out for out, body in tails for p in body.free & partial}
    by: dict[Param, Expr] = {**own}
    return [(own.get(out, out), substitute(body, by) if own else body) for out, body in produced]


def _buffers(
    program: LoweredProgram, kernels: list[Kernel], results: set[Param]
) -> list[GlobalBuffer]:
    """Every buffer with its role and lifetime."""
    run = [k for k in kernels if k.phase == "run"]
    whole = (0, len(run) - 1)
    reads: dict[Param, list[int]] = {}
    for step, kernel in enumerate(run):
        for p in kernel.reads:
            reads.setdefault(p, []).append(step)
    buffers: list[GlobalBuffer] = []
    for p in program.params:
        constant = p.name in program.constants
        live = whole if p in reads or not constant else None
        buffers.append(GlobalBuffer(p, "constant" if constant else "input", live))
    written: set[Param] = set()
    for kernel in kernels:
        out = kernel.writes
        if out in results and out not in written:
            buffers.append(GlobalBuffer(out, "output", whole))
        elif kernel.phase == "prepare" and out not in written:
            buffers.append(GlobalBuffer(out, "packed", whole if out in reads else None))
        elif out not in written:
            steps = [k for k, other in enumerate(run) if other.writes == out]
            last = max((*steps, *reads.get(out, ())))
            buffers.append(GlobalBuffer(out, "temporary", (steps[0], last)))
        written.add(out)
        for _, own in kernel.scratch:
            step = run.index(kernel) if kernel.phase == "run" else None
            span = None if step is None else (step, step)
            buffers.append(GlobalBuffer(own, "temporary", span))
    return buffers


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


class _Cutter:
    """Replaces each host-level `toGlobal` by the variable of its buffer."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.cuts: list[tuple[Param, Expr]] = []
        self.known: dict[Expr, Param] = {}
        self.lets: dict[Param, Param] = {}
        self.partial: set[Param] = set()

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
        """The kernels of a fold in place: each updates `out`, which the first one fills."""
        if not isinstance(expr, FunCall) or not isinstance(expr.fun, ReduceInPlace):
            return [(out, self.one_kernel(unstored(expr), out))]
        check_in_place(expr.fun)
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
        if not has_call(expr, ToGlobal, IterateSeq, ReduceInPlace, Lambda):
            return expr
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
            return self.named("t", expr)
        return expr

    def let(self, expr: FunCall, rest: Callable[[Expr], Expr]) -> Expr:
        """A let whose values are over buffers, with `rest` applied to its body."""
        if not isinstance(expr.fun, Lambda):
            message = "no let"
            raise InternalError(message)
        bound = [self.cut(a) for a in expr.args]
        named = [self.named(p.name, b) for p, b in zip(expr.fun.params, bound, strict=True)]
        values = dict(zip(expr.fun.params, named, strict=True))
        self.lets |= {p: v for p, v in values.items() if isinstance(v, Param)}
        # A computed value stays bound, and is computed once, unless another kernel reads it.
        kept = {p: v for p, v in values.items() if computes(v) and not is_stored(p, expr.fun)}
        others: dict[Param, Expr] = {p: v for p, v in values.items() if p not in kept}
        inner = substitute_lambda(Lambda(tuple(kept), expr.fun.body), others)
        body = rest(inner.body)
        return call(Lambda(inner.params, body), *kept.values()) if kept else body

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
