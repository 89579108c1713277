"""The refusal of a part of a program through which no cotangent can be passed."""

from __future__ import annotations

from liftpy.ir.expr import Expr


class NoDerivative(Exception):
    """A part of a program has no derivative: why, and what would have one."""

    def __init__(self, part: Expr, why: str, instead: str) -> None:
        super().__init__(why)
        self.part, self.why, self.instead = part, why, instead
