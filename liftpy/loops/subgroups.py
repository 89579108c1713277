"""Folds by subgroups: `reduceSubgroups` in the loop nest.

    let v = subgroup(op, x)                 every work-item; x is its own element
    if slid0 < 1: l[sgid0] = v              the first work-item of each subgroup
    barrier
    result = op(init, subgroups(op, l))     every work-item

The number and the sizes of subgroups, and which work-items belong to each, are known only when the
kernel runs. The code depends on none of these: the memory has room for as many results as there are
work-items, and the last subgroup of a group may be smaller than the others. In a group of one
work-item, the result is its element.
"""

from __future__ import annotations

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import var
from liftpy.ir.pull import Value
from liftpy.loops.nest import Assign
from liftpy.loops.stepping import Stepping
from liftpy.loops.tree import (
    Barrier,
)
from liftpy.loops.values import (
    SUBGROUP_ID,
    SUBGROUP_LOCAL_ID,
)
from liftpy.loops.viewing import Env
from liftpy.primitives import MapLcl, ReduceSubgroups
from liftpy.primitives.subgroups import subgroup_operator
from liftpy.views.terms import Load, OfSubgroup, OfSubgroups, Term


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
