"""A lowered program as a chain of kernels, and the buffers between them.

Each `toGlobal` outside every parallel map ends a kernel, and so does the result. What depends on
constant parameters alone belongs to the prepare phase. All sizes are symbolic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from liftpy.ir.expr import Expr, FunCall, Lambda, Param, Program, call, substitute_lambda
from liftpy.ir.nat import ZERO, Nat
from liftpy.ir.types import Type, size_bytes
from liftpy.ir.walk import bound_names, children, function_of, lambda_of, top_down, with_child
from liftpy.kernels.launch import Demand, demand
from liftpy.primitives import ToGlobal
from liftpy.primitives.work import computes

Role = Literal["input", "constant", "packed", "temporary", "output"]
Phase = Literal["prepare", "run"]


@dataclass(frozen=True)
class Kernel:
    """One kernel: the buffer it writes, the expression it computes, the buffers it reads."""

    name: str
    body: Expr
    reads: tuple[Param, ...]
    writes: Param
    phase: Phase
    demand: Demand


@dataclass(frozen=True)
class GlobalBuffer:
    """A buffer and the span of run-phase kernels in which it is live, first and last included.

    What is live through the whole run (inputs, outputs, weights) has the whole span; a buffer that
    only the prepare phase needs has none.
    """

    param: Param
    role: Role
    span: tuple[int, int] | None

    @property
    def type(self) -> Type:
        """The type stored."""
        return self.param.type

    @property
    def bytes(self) -> Nat:
        """Its size in bytes."""
        return size_bytes(self.param.type)


@dataclass(frozen=True)
class Chain:
    """The kernels in launch order, prepare phase first, and every buffer."""

    kernels: tuple[Kernel, ...]
    buffers: tuple[GlobalBuffer, ...]
    result: Param

    @property
    def run(self) -> tuple[Kernel, ...]:
        """The kernels of the run phase."""
        return tuple(k for k in self.kernels if k.phase == "run")

    def live_bytes(self) -> list[Nat]:
        """For each run-phase kernel, the bytes of the buffers that are live while it runs."""
        totals: list[Nat] = []
        for step in range(len(self.run)):
            total = ZERO
            for b in self.buffers:
                if b.span is not None and b.span[0] <= step <= b.span[1]:
                    total = total + b.bytes
            totals.append(total)
        return totals


def chain(program: Program) -> Chain:
    """Cut a lowered program into kernels."""
    body = program.body.body
    while isinstance(body, FunCall) and isinstance(body.fun, ToGlobal):
        (body,) = body.args  # the result goes to global memory anyway
    cutter = _Cutter({p.name for p in program.params} | bound_names(body))
    tail = cutter.cut(body)
    produced: list[tuple[Param, Expr]] = [*cutter.cuts]
    result = Param(cutter.fresh("output"), tail.type)
    produced.append((result, tail))

    prepared = {p for p in program.params if p.name in program.constants}
    phases: dict[Param, Phase] = {}
    for out, body in produced:
        constant = out != result and body.free <= prepared
        phases[out] = "prepare" if constant else "run"
        if constant:
            prepared.add(out)
    ordered = sorted(produced, key=lambda pair: phases[pair[0]] == "run")
    kernels: list[Kernel] = []
    for number, (out, body) in enumerate(ordered):
        reads = tuple(sorted(body.free, key=lambda p: p.name))
        kernels.append(Kernel(f"k{number}_{out.name}", body, reads, out, phases[out], demand(body)))
    return Chain(tuple(kernels), tuple(_buffers(program, kernels, result)), result)


def _buffers(program: Program, kernels: list[Kernel], result: Param) -> list[GlobalBuffer]:
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
    for kernel in kernels:
        out = kernel.writes
        if out == result:
            buffers.append(GlobalBuffer(out, "output", whole))
        elif kernel.phase == "prepare":
            buffers.append(GlobalBuffer(out, "packed", whole if out in reads else None))
        else:
            first = run.index(kernel)
            buffers.append(GlobalBuffer(out, "temporary", (first, max(reads.get(out, [first])))))
    return buffers


def is_stored(param: Param, function: Lambda) -> bool:
    """Whether something that a kernel of its own stores depends on a parameter."""
    parts = (part for _, part in top_down(function.body))
    return any(
        isinstance(p, FunCall) and isinstance(p.fun, ToGlobal) and param in p.free for p in parts
    )


class _Cutter:
    """Replaces each host-level `toGlobal` by a variable for its buffer."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.cuts: list[tuple[Param, Expr]] = []
        self.known: dict[Expr, Param] = {}

    def fresh(self, stem: str) -> str:
        """A buffer name not used yet."""
        name, number = stem, 1
        while name in self.names:
            name, number = f"{stem}{number}", number + 1
        self.names.add(name)
        return name

    def cut(self, expr: Expr) -> Expr:
        """The expression over buffers; the kernels that fill them are noted in order."""
        if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
            bound = [self.cut(a) for a in expr.args]
            named = [self.named(p.name, b) for p, b in zip(expr.fun.params, bound, strict=True)]
            values = dict(zip(expr.fun.params, named, strict=True))
            # What is computed stays bound, and is computed once, unless another kernel reads it.
            kept = {p: v for p, v in values.items() if computes(v) and not is_stored(p, expr.fun)}
            others: dict[Param, Expr] = {p: v for p, v in values.items() if p not in kept}
            inner = substitute_lambda(Lambda(tuple(kept), expr.fun.body), others)
            body = self.cut(inner.body)
            return call(Lambda(inner.params, body), *kept.values()) if kept else body
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

    def cut_inside(self, expr: FunCall, body: Expr) -> Expr:
        """Cut what is materialised inside a function but does not depend on its parameters."""
        bound = frozenset(lambda_of(expr.fun).params)
        changed = self.hoist(body, bound)
        return expr if changed is body else with_child(expr, len(expr.args), changed)

    def hoist(self, expr: Expr, bound: frozenset[Param]) -> Expr:
        """Cut `toGlobal`s that no bound variable reaches; refuse those that one does."""
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
        """The buffer that holds a materialised expression; a view stays an expression."""
        if not (isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)):
            return expr
        body = expr.args[0]
        if body in self.known:
            return self.known[body]
        out = Param(self.fresh(stem), body.type)
        self.known[body] = out
        self.cuts.append((out, body))
        return out
