"""A lowered program as a chain of kernels, and the buffers between them.

Each `toGlobal` outside every parallel map ends a kernel, and so does the result. If its value
depends on a variable of a function inside a kernel, each work-item has its own value, in a buffer
with room for the values of all work-items. Kernels that depend only on constant parameters belong
to the prepare phase. All sizes are symbolic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall, substitute
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ONE, ZERO, Nat
from liftpy.ir.types import Type, size_bytes
from liftpy.ir.walk import bound_names
from liftpy.kernels.cutting import Cutter, HostLoop, host_loop_of, is_not_stored, unstored
from liftpy.kernels.images import images_of
from liftpy.kernels.launch import Demand, demand
from liftpy.primitives.dialects import LoweredProgram

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

    With an `output_view`, the buffer that it writes holds a larger array, of the type of the
    view's parameter, and the elements of the value are those that the view reads from this array.

    A kernel in a `loop` of the host is launched for each element of the loop's array. All kernels
    of a loop are adjacent, and the last one stores a part of the loop's result.
    """

    name: str
    body: Expr
    reads: tuple[Param, ...]
    writes: Param
    phase: Phase
    demand: Demand
    scratch: tuple[tuple[FunCall, Param], ...] = ()
    images: frozenset[Param] = frozenset()
    output_view: Lambda | None = None
    loop: HostLoop | None = None

    @property
    def fills_again(self) -> bool:
        """Whether each iteration of a loop of the host fills the whole buffer."""
        return self.loop is not None and host_loop_of(self.body) is None

    @property
    def of_all(self) -> Expr:
        """The value; if each iteration of a loop fills the buffer, the array of all its values."""
        if self.loop is None or not self.fills_again:
            return self.body
        return self.loop.over(self.body)

    @property
    def repeats(self) -> Nat:
        """The number of its launches in a run, or in the prepare phase."""
        return ONE if self.loop is None else self.loop.length

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

    A buffer that is live during the whole run (inputs, weights) has the whole span; one that only
    the prepare phase needs has none. An output is live from the first kernel that writes it: until
    then its memory may hold temporaries. With an `output_view`, an output holds a larger array,
    whose other elements the run must not change, so it is live during the whole run.
    """

    param: Param
    role: Role
    span: tuple[int, int] | None
    output_view: Lambda | None = None

    @property
    def type(self) -> Type:
        """The type of the stored array."""
        return self.param.type if self.output_view is None else self.output_view.params[0].type

    @property
    def bytes(self) -> Nat:
        """Its size in bytes."""
        return size_bytes(self.type)


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

        Inputs in `temporary` are live only until their last read: in a program of several stages,
        no later stage reads them.
        """
        totals: list[Nat] = []
        spans = [used(b, self.run) if b.param in temporary else b.span for b in self.buffers]
        for step in range(len(self.run)):
            total = ZERO
            for buffer, span in zip(self.buffers, spans, strict=True):
                if span is not None and span[0] <= step <= span[1]:
                    total = total + buffer.bytes
            totals.append(total)
        return totals


def used(buffer: GlobalBuffer, run: Sequence[Kernel]) -> tuple[int, int] | None:
    """The span of an input up to its last read."""
    reads = [end_of(k, run) for k, kernel in enumerate(run) if buffer.param in kernel.reads]
    return (0, max(reads)) if reads else None


def is_one_loop(one: HostLoop | None, other: HostLoop | None) -> bool:
    """Whether two kernels are in the same loop of the host."""
    return one is not None and other is not None and one.name == other.name


def launch_order(kernels: Sequence[Kernel]) -> Iterator[tuple[int, int]]:
    """The numbers of kernels in the order of their launches, each with the iteration of its loop.

    The lengths of loops must be numbers.
    """
    step = 0
    while step < len(kernels):
        end = end_of(step, kernels) + 1
        for iteration in range(int(kernels[step].repeats)):
            yield from ((number, iteration) for number in range(step, end))
        step = end


def begin_of(step: int, run: Sequence[Kernel]) -> int:
    """The number of the first kernel in the same loop; of the kernel itself if it is in none."""
    while step and is_one_loop(run[step - 1].loop, run[step].loop):
        step -= 1
    return step


def end_of(step: int, run: Sequence[Kernel]) -> int:
    """The number of the last kernel in the same loop; of the kernel itself if it is in none."""
    while step + 1 < len(run) and is_one_loop(run[step].loop, run[step + 1].loop):
        step += 1
    return step


OUTPUT = "output"
"""The name of a result."""


def chain(
    program: LoweredProgram, result: str = OUTPUT, output_view: Lambda | None = None
) -> Chain:
    """Cut a lowered program into kernels; `result` is the stem of the result buffer's name.

    With an `output_view`, a function from a larger array to the result, that array is stored; the
    kernels write the elements that the view reads, and no others.
    """
    body = unstored(program.body.body)
    cutter = Cutter({p.name for p in program.params} | bound_names(body))
    tail = cutter.tail(body)
    made, tails = _results(tail, result, cutter)
    results = {out for out, _ in tails}
    produced = _in_results([*cutter.cuts, *tails], cutter.partial, tails)
    produced = list(_by_loops(produced, cutter.loops))
    ends = {loop.name: out for out, body in produced if (loop := host_loop_of(body))}

    def stored(out: Param) -> Param:
        """The result of the loop in which a buffer is filled; the buffer itself outside loops."""
        return ends[cutter.loops[out].name] if out in cutter.loops else out

    prepared = {p for p in program.params if p.name in program.constants}
    phases: dict[Param, Phase] = {}
    needed: dict[Param, frozenset[Param]] = {}
    for out, body in produced:  # several kernels may update one buffer, or be in one loop
        read = _read(body, cutter.loops.get(out)) - {out}
        known = needed.get(stored(out), frozenset[Param]())
        needed[stored(out)] = known | {p for p in read if p not in cutter.loops}
    for out in dict.fromkeys(map(stored, needed)):
        constant = out not in results and needed[out] <= prepared
        phases[out] = "prepare" if constant else "run"
        if constant:
            prepared.add(out)
    ordered = sorted(produced, key=lambda pair: phases[stored(pair[0])] == "run")
    kernels: list[Kernel] = []
    for number, (out, body) in enumerate(ordered):
        loop = cutter.loops.get(out) or host_loop_of(body)
        reads = tuple(sorted(_read(body, loop) - {out}, key=lambda p: p.name))
        whole = loop.over(body) if loop is not None and out in cutter.loops else body
        asked = demand(whole)
        scratch = tuple((e, cutter.for_each(e.type, asked.items)) for e in asked.scratch)
        name = f"k{number}_{out.name}"
        images = images_of(whole, frozenset(reads))
        view = output_view if out in results else None
        kernels.append(
            Kernel(name, body, reads, out, phases[stored(out)], asked, scratch, images, view, loop)
        )
    return Chain(tuple(kernels), tuple(_buffers(program, kernels, results)), made, cutter.lets)


def _read(body: Expr, loop: HostLoop | None) -> frozenset[Param]:
    """The buffers that a kernel reads; for the element of its loop, those of the loop's array."""
    if loop is None or loop.element not in body.free:
        return body.free
    return (body.free - {loop.element}) | loop.array.free


def _by_loops(
    produced: Iterable[tuple[Param, Expr]], loops: Mapping[Param, HostLoop]
) -> Iterator[tuple[Param, Expr]]:
    """The kernels, in an order in which those of a loop are adjacent and its result is last."""
    waiting: dict[str, list[tuple[Param, Expr]]] = {}
    for out, body in produced:
        if out in loops:
            waiting.setdefault(loops[out].name, []).append((out, body))
            continue
        loop = host_loop_of(body)
        if loop is not None:
            yield from waiting.pop(loop.name, ())
        yield out, body
    if waiting:  # no kernel stores the result of a loop
        raise is_not_stored()


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


def _results(tail: Expr, name: str, cutter: Cutter) -> tuple[Result, list[tuple[Param, Expr]]]:
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
    """Every buffer with its role and lifetime.

    A buffer that a kernel in a loop of the host reads or writes is live during the whole loop. (A
    buffer that each iteration fills again need not be, but a checked run tells the buffers of one
    allocation apart by their first kernels.)
    """
    run = [k for k in kernels if k.phase == "run"]
    whole = (0, len(run) - 1)
    reads: dict[Param, list[int]] = {}
    for step, kernel in enumerate(run):
        for p in kernel.reads:
            reads.setdefault(p, []).append(end_of(step, run))
    buffers: list[GlobalBuffer] = []
    for p in program.params:
        constant = p.name in program.constants
        live = whole if p in reads or not constant else None
        buffers.append(GlobalBuffer(p, "constant" if constant else "input", live))
    written: set[Param] = set()
    for kernel in kernels:
        out = kernel.writes
        if out in results and out not in written:
            wrote = min(begin_of(k, run) for k, other in enumerate(run) if other.writes == out)
            live = whole if kernel.output_view is not None else (wrote, len(run) - 1)
            buffers.append(GlobalBuffer(out, "output", live, kernel.output_view))
        elif kernel.phase == "prepare" and out not in written:
            buffers.append(GlobalBuffer(out, "packed", whole if out in reads else None))
        elif out not in written:
            steps = [k for k, other in enumerate(run) if other.writes == out]
            last = max((*(end_of(k, run) for k in steps), *reads.get(out, ())))
            steps = [begin_of(k, run) for k in steps]
            buffers.append(GlobalBuffer(out, "temporary", (steps[0], last)))
        written.add(out)
        for _, param in kernel.scratch:
            step = run.index(kernel) if kernel.phase == "run" else None
            span = None if step is None else (begin_of(step, run), end_of(step, run))
            buffers.append(GlobalBuffer(param, "temporary", span))
    return buffers
