"""The two dialects: algorithmic programs and lowered programs.

An algorithmic program specifies what is computed; a lowered one also by which loops, parallel
levels and kernels. Layouts, `let` and scalars belong to both. `map`, `reduce`, `scan` and `iterate`
have lowered forms, which are not their subclasses: `isinstance(fun, Map)` is true only for the
algorithmic form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.errors import TypeRefused
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import UserFun
from liftpy.ir.place import asker
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.walk import children, top_down
from liftpy.primitives import (
    PRIMITIVES,
    At,
    ExclusiveScan,
    Generate,
    Iterate,
    Layout,
    Map,
    MapHost,
    Reduce,
    ReduceByIndex,
    Scan,
    ToGlobal,
)

#: The primitives with lowered forms. A `map` that only moves elements needs none: it is a layout.
Algorithmic: TypeAlias = Map | Reduce | Scan | ExclusiveScan | Iterate | ReduceByIndex


@dataclass(frozen=True, repr=False)
class LoweredProgram(Program):
    """A program in which everything that computes has a loop or a parallel level.

    The constructor checks this and raises TypeRefused if a part has neither.
    """

    def __post_init__(self) -> None:
        body = self.body.body
        if is_lowered(body):
            return
        path, fun = next((p, fun) for p, part in top_down(body) if (fun := unlowered(part)))
        who, forms = asker(self, path), lowered_forms(fun)
        raise TypeRefused(f"{who} has no loop or parallel level: lower it to {forms}")

    @classmethod
    def of(cls, program: Program) -> LoweredProgram:
        """`program` as a lowered program; TypeRefused if it is not lowered."""
        return cls(program.name, program.body, program.constants, program.spans)


def unlowered(expr: Expr) -> Algorithmic | None:
    """The primitive that an expression calls, if it computes and has neither loop nor level."""
    fun = expr.fun if isinstance(expr, FunCall) else None
    if not isinstance(fun, Algorithmic) or (isinstance(fun, Map) and not works(fun.f.body)):
        return None
    return fun


@by_identity(1 << 15)
def is_lowered(expr: Expr) -> bool:
    """Whether all parts of an expression that compute have a loop or a parallel level."""
    return unlowered(expr) is None and all(map(is_lowered, children(expr)))


@by_identity(1 << 14)
def works(expr: Expr) -> bool:
    """Whether an expression computes something in its own kernel; `toGlobal` has another one."""
    if isinstance(expr, FunCall):
        match expr.fun:
            case ToGlobal():
                return False
            case UserFun():
                return True
            case Primitive() as p if not isinstance(p, Layout | Map | Generate | At):
                return True
            case _:
                pass
    return any(map(works, children(expr)))


def lowered_forms(fun: Algorithmic) -> str:
    """The names of the lowered forms of a primitive, which share its base class, as text."""
    kin = (
        k
        for k in PRIMITIVES.values()
        if issubclass(k, type(fun).__bases__) and k is not MapHost  # it launches kernels
    )
    *others, last = (k.name for k in kin if not isinstance(fun, k))
    return f"{', '.join(others)} or {last}" if others else last
