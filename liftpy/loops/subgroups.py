"""The level of subgroups in the loop nest: its loops, folds and broadcasts.

`reduceSubgroups` folds an element of each work-item of a group:

    let v = subgroup(op, x)                 every work-item; x is its own element
    if slid0 < 1: l[sgid0] = v              the first work-item of each subgroup
    barrier
    result = op(init, subgroups(op, l))     every work-item

The number and the sizes of subgroups, and which work-items belong to each, are known only when the
kernel runs. The code depends on none of these: the memory has room for as many results as there are
work-items, and the last subgroup of a group may be smaller than the others. In a group of one
work-item, the result is its element.

An array `xs` that subgroups hold has a variable for each row, into which each work-item loads its
own element; work-items beyond the end of a row load elements again. Element j is read as

    if sgsz0 >= length then broadcast(v, j) else xs[j]

so the work-items of a subgroup that is smaller than a row read the array itself. The condition has
the same outcome for all work-items of a subgroup, whatever its size. Rows of one element need no
condition.

`mapSubgroup` is a loop from the id of a subgroup, and `mapItem` one from the id in the subgroup:

    for (i = sgid0; i < n; i += sgct0)      sgct0 is the number of subgroups
      for (k = slid0; k < m; k += sgsz0)    sgsz0 is the number of work-items of the subgroup

The work-items of a subgroup compute a broadcast together. So if the function of a `mapItem` reads
an array that subgroups hold, all of them execute the same number of iterations, and those beyond
the end compute an element again:

    for (k = 0; k < m; k += sgsz0)          element (k + slid0) % m, stored if k + slid0 < m

`reduceItems` folds the elements that a work-item takes, beginning with the neutral element of the
operator, and then the results of all work-items of the subgroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import ZERO, Nat, nat, var
from liftpy.ir.pull import Parts, Pull, Value, known
from liftpy.ir.types import ScalarType
from liftpy.loops.nest import Assign, reached
from liftpy.loops.silent import neutral
from liftpy.loops.stepping import Stepping, anywhere
from liftpy.loops.tree import (
    Barrier,
)
from liftpy.loops.values import (
    SUBGROUP_ID,
    SUBGROUP_LOCAL_ID,
    SUBGROUP_SIZE,
)
from liftpy.loops.viewing import Env
from liftpy.primitives import MapItem, MapLcl, ReduceItems, ReduceSubgroups, ToSubgroup
from liftpy.primitives.subgroups import subgroup_operator
from liftpy.views.access import is_known, scalars_of
from liftpy.views.terms import Condition, Load, OfSubgroup, OfSubgroups, OfWorkItem, Term


def by_subgroups(
    emitter: Stepping, fun: ReduceSubgroups, init: Expr, xs: Expr, env: Env, dest: Value
) -> None:
    """The fold of an element of each work-item; `kernels.launch` has checked function and array."""
    if emitter.in_items or emitter.uneven:
        raise TypeRefused(
            f"{fun.name} is computed for each element of a mapLcl, and all work-items of a group "
            "compute it together: name its result with `let` outside of the mapLcl"
        )
    op = subgroup_operator(fun.f)
    if op is None or not (isinstance(xs, FunCall) and isinstance(xs.fun, MapLcl)):
        message = f"{fun.name} of {xs.type} has not been checked by kernels.launch"
        raise InternalError(message)
    size, made = emitter.local_size[0], xs.fun
    source = emitter.view(xs.args[0], env)
    value = emitter.registers("acc", made.f.body.type)
    emitter.loop(
        made,
        size,
        lambda i: emitter.generate(
            made.f.body, {**env, **emitter.computed(made.f, source[i])}, value
        ),
        unroll=True,
    )
    result = value if size == 1 else shared(emitter, op, value, size)
    given = emitter.computed(fun.f, emitter.view(init, env), result)
    emitter.generate(fun.f.body, {**env, **given}, dest)


def shared(emitter: Stepping, op: str, value: Load, size: int) -> Term:
    """The fold of a value of each of `size` work-items of a group, by an operator."""
    folded = emitter.variable(OfSubgroup(op, emitter.variable(value)))
    memory = emitter.new_local(emitter.fresh("l"), value.type, size)
    emitter.ids |= {SUBGROUP_ID, SUBGROUP_LOCAL_ID}
    own = Load(memory, var(SUBGROUP_ID, 0, size - 1))
    first = emitter.read.inside(var(SUBGROUP_LOCAL_ID, 0, size - 1), 1)
    nowhere = emitter.read.literal(0, value.type)
    emitter.put(Assign(emitter.read.either(first, own, nowhere), folded))
    emitter.put(Barrier())
    return emitter.variable(OfSubgroups(op, own))


def over_items(emitter: Stepping, fun: MapItem, xs: Expr, env: Env, dest: Value) -> None:
    """The loop of a map over the work-items of a subgroup."""
    source = emitter.argument(xs, env)

    def element(i: Nat, inside: Condition) -> None:
        place = dest[i] if inside is True else placed(emitter, dest[i], inside)
        emitter.generate(fun.f.body, {**env, **emitter.computed(fun.f, source[i])}, place)

    divided(emitter, int(source.length), element, together=reads_held(emitter, fun, source, env))


def reads_held(emitter: Stepping, fun: MapItem, source: Value, env: Env) -> bool:
    """Whether a function may read an array that subgroups hold.

    It may if elements of a value are computed where they are read: what these read is not known.
    """
    if not emitter.broadcasts:
        return False
    used = (source, *(env[param] for param in fun.f.free))
    if not all(map(is_known, used)):
        return True
    scalars = (scalar for value in used for scalar in scalars_of(value))
    return any(isinstance(part, OfWorkItem) for part in reached(scalars))


def placed(emitter: Stepping, place: Value, inside: Condition) -> Value:
    """A destination in which nothing is stored if a condition fails."""
    match place:
        case Pull():
            return Pull(place.length, lambda i: placed(emitter, place[i], inside))
        case Parts(pairs):
            return Parts(placed(emitter, pairs, inside))
        case tuple():
            return tuple(placed(emitter, part, inside) for part in place)
        case _:
            return emitter.read.choose(inside, place, 0)


def divided(
    emitter: Stepping,
    length: int,
    element: Callable[[Nat, Condition], None],
    *,
    together: bool,
) -> None:
    """The loop in which the work-items of a subgroup divide the elements of an array among them.

    `element` receives an index, and the condition under which the work-item has this element. If
    they go `together`, all of them execute the same number of iterations.
    """
    emitter.ids |= {SUBGROUP_LOCAL_ID, SUBGROUP_SIZE}
    counter = emitter.fresh("i")
    emitter.in_items += 1
    if together:
        own = var(SUBGROUP_LOCAL_ID, 0, emitter.local_size[0] - 1)
        emitter.read_once(
            counter,
            0,
            length,
            SUBGROUP_SIZE,
            lambda k: element((k + own) % length, emitter.read.inside(k + own, length)),
        )
    else:
        emitter.read_once(
            counter, SUBGROUP_LOCAL_ID, length, SUBGROUP_SIZE, lambda k: element(k, True)
        )
    emitter.in_items -= 1


def by_items(
    emitter: Stepping, fun: ReduceItems, init: Expr, xs: Expr, env: Env, dest: Value
) -> None:
    """The fold of an array by a subgroup; `kernels.launch` has checked function and array."""
    op = subgroup_operator(fun.f)
    if op is None or not (isinstance(xs, FunCall) and isinstance(xs.fun, MapItem)):
        message = f"{fun.name} of {xs.type} has not been checked by kernels.launch"
        raise InternalError(message)
    made, t = xs.fun.f, xs.fun.f.body.type
    start = neutral(op, t) if isinstance(t, ScalarType) else None
    if start is None:
        message = f"{op} of {t} has no neutral element"
        raise InternalError(message)
    total = emitter.registers("acc", t)
    emitter.put(Assign(total, emitter.read.literal(start, t)))
    source = emitter.argument(xs.args[0], env)

    def element(i: Nat, inside: Condition) -> None:
        value = emitter.view(made.body, {**env, **emitter.computed(made, source[i])})
        if inside is not True:  # all work-items of the subgroup reach its broadcasts
            value = emitter.variable(value)
        more = emitter.read.operate(op, (total, value))
        emitter.put(Assign(total, emitter.read.either(inside, more, total)))

    together = reads_held(emitter, xs.fun, source, env)
    divided(emitter, int(source.length), element, together=together)
    folded = emitter.variable(OfSubgroup(op, emitter.variable(total)))
    given = emitter.computed(fun.f, emitter.view(init, env), folded)
    emitter.generate(fun.f.body, {**env, **given}, dest)


def in_subgroup(emitter: Stepping, xs: Expr, env: Env) -> Value:
    """An array whose rows are divided among the work-items of each subgroup."""
    if emitter.in_items:
        raise TypeRefused(
            f"{ToSubgroup.name} is computed for each element of a mapLcl or mapItem, and all "
            "work-items of a subgroup load the array together: name it with `let` outside of that "
            "map"
        )
    size, source = emitter.local_size[0], emitter.argument(xs, env)
    *counts, length = (int(n) for n in xs.type.lengths())
    if not anywhere(source).stable:
        raise TypeRefused(
            f"{ToSubgroup.name} holds an array in buffers that its kernel only reads, and not one "
            "that the kernel stores: use toLocal"
        )
    emitter.broadcasts = True
    if length > 1:
        emitter.ids |= {SUBGROUP_LOCAL_ID, SUBGROUP_SIZE}
    own = var(SUBGROUP_LOCAL_ID, 0, size - 1) % length
    held = tuple(emitter.variable(row[own]) for row in rows_of(source, counts))
    suffices = emitter.read.inside(var(SUBGROUP_SIZE, 0, size) - length, size + 1)

    def read(value: Pull, counts: Sequence[int], row: Nat) -> Pull:
        """The rows of an array of arrays of these lengths, numbered from `row` on."""
        if counts:
            count, *inner = counts
            return Pull(count, lambda i: read(value[i], inner, row * count + i))
        own_row = row.recombined()

        def element(j: Nat) -> Value:
            shared = OfWorkItem(held, own_row, nat(j))
            if length == 1:  # every subgroup has at least one work-item
                return shared
            return emitter.read.either(suffices, shared, value[j])

        return Pull(length, element)

    return known(read(source, counts, ZERO))


def rows_of(xs: Pull, counts: Sequence[int]) -> Iterator[Pull]:
    """The rows of an array of arrays of these lengths."""
    if not counts:
        yield xs
        return
    count, *inner = counts
    for k in range(count):
        yield from rows_of(xs[nat(k)], inner)
