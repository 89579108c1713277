"""The two dialects, and the border between them.

An algorithmic program says what is computed; a lowered one also by which loops, parallel levels and
kernels. Layouts, `let` and scalars are of both. `map`, `reduce`, `scan` and `iterate` have lowered
forms, which are no subclasses of them: `isinstance(fun, Map)` is true of the algorithmic one alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr, FunCall, Primitive, Program, UserFun
from liftpy.ir.place import asker
from liftpy.ir.walk import children, top_down
from liftpy.primitives import PRIMITIVES, Generate, Iterate, Layout, Map, Reduce, Scan, ToGlobal

#: What has lowered forms. A `map` that only moves elements needs none: it is a layout.
Algorithmic: TypeAlias = Map | Reduce | Scan | Iterate


@dataclass(frozen=True, repr=False)
class LoweredProgram(Program):
    """A program in which all that computes has a loop or a parallel level.

    Making one is the check: TypeRefused where something has neither.
    """

    def __post_init__(self) -> None:
        for path, part in top_down(self.body.body):
            if not isinstance(part, FunCall) or not isinstance(part.fun, Algorithmic):
                continue
            if not isinstance(part.fun, Map) or works(part.fun.f.body):
                who, forms = asker(self, path), lowered_forms(part.fun)
                raise TypeRefused(f"{who} has no loop or parallel level: lower it to {forms}")

    @classmethod
    def of(cls, program: Program) -> LoweredProgram:
        """A program as a lowered one, once it is seen to be lowered."""
        return cls(program.name, program.body, program.constants, program.spans)


def works(expr: Expr) -> bool:
    """Whether an expression computes something where it stands: `toGlobal` has its own kernel."""
    if isinstance(expr, FunCall):
        match expr.fun:
            case ToGlobal():
                return False
            case UserFun():
                return True
            case Primitive() as p if not isinstance(p, Layout | Map | Generate):
                return True
            case _:
                pass
    return any(map(works, children(expr)))


def lowered_forms(fun: Algorithmic) -> str:
    """The lowered forms of a primitive, which have its base, in words."""
    kin = (k for k in PRIMITIVES.values() if issubclass(k, type(fun).__bases__))
    *others, last = (k.name for k in kin if not isinstance(fun, k))
    return f"{', '.join(others)} or {last}" if others else last
