"""A stage of a program: what lies between cuts, as a program of its own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from liftpy.ir.call import substitute
from liftpy.ir.expr import Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.language.text.program import show
from liftpy.primitives.counting import operations
from liftpy.rewrite.strategies.families.blocked import HOLDING
from liftpy.rewrite.strategies.families.direct import DIRECT
from liftpy.rewrite.strategies.families.plain import PLAIN
from liftpy.rewrite.strategies.families.small import SMALL, is_straight
from liftpy.rewrite.strategies.shapes import lets, parameter
from liftpy.rewrite.strategies.widened import is_widened

STORED, FUSED, HELD = "stored", "fused", "held"

WINOGRAD = "winograd"
"""The choice of the results per tile; programs that compute directly do not have it."""

WIDENED = "operands"
"""The choice of the type to which operands of sums are converted; other forms do not have it."""

MOST_ONCE = 1 << 24
"""The most operations of a stage of the prepare phase that only `plain` makes."""


@dataclass(frozen=True)
class Stage:
    """The part of a program between cuts, as a program.

    `param` is the variable for its value; None for the stage that makes the result. `within` lists
    the optional cuts in it that are not stored, each with its word; held cuts are the lets at the
    beginning of the program. `cut` is False for the only stage of a program. A `prepared_copy` is a
    constant that is only converted to another type.
    """

    name: str
    param: Param | None
    program: Program
    within: tuple[tuple[str, str], ...] = ()
    cut: bool = True
    prepared_copy: bool = False

    @property
    def holds(self) -> bool:
        """Whether the stage holds values."""
        return any(word == HELD for _, word in self.within)

    def is_for(self, family: str) -> bool:
        """Whether a family may make the stage: one of `HOLDING` if it holds values, else any other.

        In a form by F(m, r), only `small` makes a stage of straight-line code, and `plain` makes
        only stages that `direct` does not fit: a program has many such stages. The prepare phase,
        whose time does not count, makes a short stage by `plain`.
        """
        if self.only_plain:
            return family == PLAIN.name
        if self.holds or family in HOLDING:
            return self.holds and family in HOLDING
        if WINOGRAD not in dict(self.within):
            return True
        if is_straight(self.program.body.body):
            return family == SMALL.name
        return family != PLAIN.name or not self.is_direct

    @cached_property
    def only_plain(self) -> bool:
        """Whether the prepare phase makes the stage in at most `MOST_ONCE` operations.

        Stages that convert the operands of sums are also made by `plain` only: these forms come in
        addition to all others of a program.
        """
        if self.prepared_copy or self.converts:
            return True
        if not self.runs_once or WINOGRAD in dict(self.within):
            return False
        return operations(replace(self.program, constants=frozenset())) <= MOST_ONCE

    @property
    def converts(self) -> bool:
        """Whether the stage converts an operand of sums to f32."""
        return WIDENED in dict(self.within) and is_widened(self.program.body.body)

    @cached_property
    def is_direct(self) -> bool:
        """Whether `direct` fits the stage."""
        return not isinstance(DIRECT.match(self.program), str)

    @cached_property
    def canonical(self) -> Program:
        """The stage with canonical parameter names: equal for stages that differ only in names.

        This form is derived, so that equal stages are derived once. The only stage of a program
        keeps its names.
        """
        if self.param is None and not self.cut:
            return self.program
        held = {parameter(let).name for let in lets(self.program.body.body)}
        names = (name for k in itertools.count() if (name := f"p{k}") not in held)
        by = {p: Param(name, p.type) for p, name in zip(self.program.params, names, strict=False)}
        body = substitute(self.program.body.body, dict(by))
        constants = frozenset(by[p].name for p in self.program.params if self.is_constant(p))
        return Program("stage", Lambda(tuple(by.values()), body), constants)

    @cached_property
    def text(self) -> str:
        """The text of `canonical`."""
        return show(self.canonical, canonical=True)

    @cached_property
    def key(self) -> str:
        """`text` on one line, which takes less time: equal for stages that are derived once."""
        return one_line(self.canonical)

    def is_constant(self, param: Param) -> bool:
        """Whether a parameter does not change between runs."""
        return param.name in self.program.constants

    @property
    def runs_once(self) -> bool:
        """Whether the stage belongs to the prepare phase: it reads constants only, or nothing."""
        return self.param is not None and all(map(self.is_constant, self.program.params))


@lru_cache(maxsize=512)
def one_line(program: Program) -> str:
    """The canonical text of a program on one line; partitions have many stages in common."""
    return show(program, canonical=True, width=None)
