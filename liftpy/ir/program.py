"""Programs: closed functions from named arrays to an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from liftpy.errors import ArgumentRefused
from liftpy.ir.expr import Expr, Param
from liftpy.ir.formats import Format
from liftpy.ir.function import Lambda
from liftpy.ir.provided import Evaluation
from liftpy.ir.types import Type
from liftpy.source.caller import refusal
from liftpy.source.spans import Spans


@dataclass(frozen=True, repr=False)
class Program:
    """A closed function from named arrays to an array, which can be compiled.

    Called with arrays, it is evaluated by NumPy (`lp.evaluate`).

    >>> squares = lp.parse("def squares(xs: [3]f32) = xs |> map(x => x * x)")
    >>> squares(np.float32([1, 2, 3])).tolist()
    [1.0, 4.0, 9.0]

    `constants` names the parameters that do not change between runs, such as weights: what depends
    only on them is prepared once. `spans` has the places of the parts in the program's text; it
    does not affect equality. `storage` has the formats in which candidates may store a value, by
    its name (`ir/storing.py`).
    """

    name: str
    body: Lambda
    constants: frozenset[str] = frozenset()
    spans: Spans | None = field(default=None, compare=False, repr=False)
    storage: tuple[tuple[str, tuple[Format, ...]], ...] = ()

    def noun(self) -> str:
        return f"the program {self.name}"

    def __call__(self, *arrays: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Any:
        """The result of the program for arrays: its meaning, computed in NumPy (`lp.evaluate`)."""
        if any(isinstance(a, Expr) for a in (*arrays, *named.values())):
            raise refusal(
                f"the program {self.name} is called with an expression",
                "a program takes arrays and computes its result immediately",
                "move the shared code to a Python function without @lp.program",
            )
        if named:
            order = ", ".join(p.name for p in self.params)
            what = f"the program {self.name} takes no keyword arguments, got {', '.join(named)}"
            raise ArgumentRefused(f"{what}\n  write {self.name}({order})")
        return Evaluation.evaluate(self, *arrays, sizes=sizes)

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters in order."""
        return self.body.params

    @property
    def type(self) -> Type:
        """The result type."""
        return self.body.body.type

    def __repr__(self) -> str:
        params = ", ".join(f"{p.name}: {p.type}" for p in self.params)
        return f"<Program {self.name}({params}) -> {self.type}>"

    def __str__(self) -> str:
        return self.name
