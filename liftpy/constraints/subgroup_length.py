"""The statements of folds by subgroups, and of maps over subgroups and their work-items.

They are counted as `loops/subgroups.py` emits them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from liftpy.constraints.blocks import Blocks
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Value
from liftpy.ir.types import Type
from liftpy.ir.walk import has_call
from liftpy.primitives import (
    MapItem,
    MapLcl,
    MapSubgroup,
    ReduceItems,
    ReduceSubgroups,
    ToSubgroup,
)
from liftpy.primitives.map import array_of

Env: TypeAlias = dict[Param, Value]


class SubgroupLength(Blocks):
    """The part of `Length` that counts folds and loops of subgroups."""

    kernel: Expr

    def by_group(
        self,
        fun: ReduceSubgroups,
        init: Expr,
        made: MapLcl,
        xs: Expr,
        env: Env,
        dest: Value,
    ) -> None:
        """A fold by a group: an element, its fold, a guarded store of that, and their fold."""
        source, value = self.view(xs, env), self.memory(made.f.body.type, "private")
        self.loop(
            made,
            array_of(made.name, xs.type).length,
            lambda i: self.generate(made.f.body, self.inner(made.f, env, source[i]), value),
            unroll=True,
        )
        folded = self.variable(self.variable(value))
        guard, store, barriers = 1, 1, 2  # one of which ends a loop around the fold
        self.frame.each = self.frame.each + guard + store + barriers
        given = self.inner(fun.f, env, self.view(init, env), self.variable(folded))
        self.generate(fun.f.body, given, dest)

    def over(self, fun: MapSubgroup | MapItem, xs: Expr, env: Env, dest: Value) -> None:
        """A map: a loop, in which work-items without an element may be guarded."""
        source = self.view(xs, env)
        guarded = isinstance(fun, MapItem) and has_call(self.kernel, ToSubgroup)

        def element(i: Nat) -> None:
            before = self.frame.each
            self.generate(fun.f.body, self.inner(fun.f, env, source[i]), dest[i])
            if guarded:  # at most, each statement is a store of a variable behind a condition
                self.frame.each = 3 * self.frame.each - 2 * before

        self.divided(array_of(fun.name, xs.type).length, element)

    def by_items(
        self,
        fun: ReduceItems,
        init: Expr,
        made: MapItem,
        xs: Expr,
        env: Env,
        dest: Value,
    ) -> None:
        """A fold by a subgroup: a loop in which a work-item folds, and a fold of the results."""
        t = made.f.body.type
        total = self.memory(t, "private")
        self.frame.each = self.frame.each + 1
        source = self.view(xs, env)

        def element(i: Nat) -> None:
            value = self.variable(self.view(made.f.body, self.inner(made.f, env, source[i])))
            self.copy(t, self.read.operate("+", (total, value)), total)

        self.divided(array_of(made.name, xs.type).length, element)
        folded = self.variable(self.variable(total))
        given = self.inner(fun.f, env, self.view(init, env), folded)
        self.generate(fun.f.body, given, dest)

    def divided(self, length: Nat, element: Callable[[Nat], None]) -> None:
        """A loop whose iterations subgroups, or the work-items of one, divide among them."""
        self.open(length, element, looped=True, over_ids=True)

    def view(self, expr: Expr, env: Env) -> Value:
        """The value of an argument."""
        raise NotImplementedError

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Count the code that leaves the value of `expr` in `dest`."""
        raise NotImplementedError

    def inner(self, f: Lambda, env: Env, *values: Value) -> Env:
        """The environment of a function that is emitted here."""
        raise NotImplementedError

    def loop(self, fun: Any, length: Nat, body: Callable[[Nat], None], *, unroll: bool) -> None:
        """The loop of a map."""
        raise NotImplementedError

    def copy(self, t: Type, value: Value, dest: Value) -> None:
        """Store a value whose terms are all that has to be computed."""
        raise NotImplementedError
