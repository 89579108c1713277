"""`reduceByIndex` as a loop of one work-item, or with atomic updates by many work-items.

The index of a pair is clamped to the bins, so that every access is inside the buffer. A pair whose
index was outside stores the bin's own value again. Only this work-item stores to these bins, so the
values of a bin are folded in their order.

Registers have no addresses: bins in registers are all updated for each pair, each if it is its bin.

Over ids, work-items may update one bin at the same time, so each update is atomic. A pair whose
index was outside updates a bin with the operand that changes nothing.
"""

from __future__ import annotations

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, var
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import I32
from liftpy.loops.nest import Assign
from liftpy.loops.stepping import Stepping
from liftpy.loops.viewing import Env
from liftpy.primitives import MapGlb, ReduceByIndexAtomic, ReduceByIndexSeq
from liftpy.primitives.atomics import atomic_operator, unchanging
from liftpy.views.terms import Load, Space, Term


def by_index(
    emitter: Stepping, fun: ReduceByIndexSeq, init: Expr, pairs: Expr, env: Env, dest: Pull
) -> None:
    """The loop over the pairs; the bins are in `dest`."""
    emitter.generate(init, env, dest)
    source = emitter.argument(pairs, env)
    one = any_of(dest)

    def updated(place: Value, here: Term, value: Value) -> None:
        old = in_variables(emitter, place)
        new = emitter.view(fun.f.body, {**env, **emitter.computed(fun.f, old, value)})
        emitter.copy(chosen(emitter, here, new, old), place)

    def at_its_place(k: Nat) -> None:
        index, value = source[k]
        clamped, inside = emitter.read.clamped(index, int(dest.length))
        name = emitter.data_index(clamped)
        updated(dest[var(name, 0, int(dest.length) - 1)], inside, value)

    def in_each(k: Nat) -> None:
        index, value = source[k]
        held = emitter.variable(index)

        def at(j: Nat) -> None:
            number = emitter.read.of_index(j, I32)
            updated(dest[j], emitter.read.operate("==", (held, number)), value)

        emitter.sequential(int(dest.length), at, unroll=True)

    if int(dest.length) == 0:
        return  # there is no bin that a pair could update
    if is_in(one, "global"):
        emitter.sequential(int(source.length), at_its_place)
    elif is_in(one, "private"):
        emitter.sequential(int(source.length), in_each)
    else:
        message = (
            f"{fun.name} updates its bins in place, in global memory or in registers: "
            "store its result with toGlobal or toPrivate first"
        )
        raise TypeRefused(message)


def atomically(
    emitter: Stepping, fun: ReduceByIndexAtomic, pairs: Expr, env: Env, dest: Pull
) -> None:
    """The atomic updates of the bins in `dest`, where an earlier kernel has stored them."""
    op = atomic_operator(fun.f)
    if op is None or not (isinstance(pairs, FunCall) and isinstance(pairs.fun, MapGlb)):
        message = f"{fun.name} of {pairs.type} has not been checked by kernels.launch"
        raise InternalError(message)
    if int(dest.length) == 0:
        return  # there is no bin that a pair could update
    if not is_in(any_of(dest), "global"):
        message = f"the bins of {fun.name} are in no buffer: kernels.cutting has not made one"
        raise InternalError(message)
    made = pairs.fun
    source = emitter.argument(pairs.args[0], env)

    def update(k: Nat) -> None:
        inner = {**env, **emitter.computed(made.f, source[k])}
        index, value = emitter.view(made.f.body, inner)
        clamped, inside = emitter.read.clamped(index, int(dest.length))
        place = dest[var(emitter.data_index(clamped), 0, int(dest.length) - 1)]
        nothing = emitter.read.literal(unchanging(op, place.type), place.type)
        operand = emitter.read.operate("select", (inside, value, nothing))
        emitter.put(Assign(place, operand, op=op))

    emitter.loop(made, int(source.length), update, unroll=False)


def any_of(dest: Pull) -> Value:
    """The place of any bin."""
    return dest[var("any bin", 0, int(dest.length) - 1)]


def is_in(place: Value, space: Space) -> bool:
    """Whether each scalar of a bin has a place in an address space."""
    if isinstance(place, tuple):
        return all(is_in(part, space) for part in place)
    return isinstance(place, Load) and place.memory.space == space


def in_variables(emitter: Stepping, place: Value) -> Value:
    """The present value of a bin, in variables."""
    if isinstance(place, tuple):
        return tuple(in_variables(emitter, part) for part in place)
    return emitter.variable(place)


def chosen(emitter: Stepping, inside: Term, new: Value, old: Value) -> Value:
    """The new value of a bin if the index was inside, else the old one."""
    if isinstance(old, tuple):
        return tuple(chosen(emitter, inside, new[k], part) for k, part in enumerate(old))
    return emitter.read.operate("select", (inside, new, old))
