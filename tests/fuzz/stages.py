"""Random programs of two to five stages: products, rows folded and mapped, windows, elements."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from liftpy.ir.program import Program
from liftpy.language.text.program import parse

LENGTHS = (4, 5, 6, 8, 12, 16)
TIMES = "zip(a, b) |> map(mul) |> reduce(add, 0)"


class Chain:
    """Stages that read one another, an array of two dimensions each."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"stages {seed}")
        self.params: list[str] = []
        self.shape = self.length(), self.length()

    def length(self) -> int:
        """A length."""
        return self.random.choice(LENGTHS)

    def param(self, *lengths: int) -> str:
        """A new parameter, perhaps a constant."""
        name = f"x{len(self.params)}"
        shape = "".join(f"[{n}]" for n in lengths)
        const = "const " if self.params and self.random.random() < 0.5 else ""
        self.params.append(f"{const}{name}: {shape}f32")
        return name

    def product(self, xs: str) -> str:
        """A product with a matrix, which has rows or columns."""
        rows, inner = self.shape
        count = self.length()
        self.shape = rows, count
        if self.random.random() < 0.5:
            return f"{xs} |> map(a => {self.param(count, inner)} |> map(b => {TIMES}))"
        other = self.param(inner, count)
        return f"{xs} |> map(a => {other} |> transpose |> map(b => {TIMES}))"

    def rows(self, xs: str) -> str:
        """Rows less their largest number, over their sum."""
        return f"""{xs} |> map(row =>
          let most = (row |> reduce(maximum, -inf)),
              less = (row |> map(x => x - most)),
              sum = (less |> reduce(add, 0))
          in less |> map(x => x * 8 - sum))"""

    def clipped(self, xs: str) -> str:
        """Each number, if it is positive."""
        return f"{xs} |> map(map(x => max(x, -3)))"

    def pooled(self, xs: str) -> str:
        """The largest of neighbours in a row."""
        rows, length = self.shape
        self.shape = rows, length - 1
        return f"{xs} |> map(row => row |> slide(2, 1) |> map(reduce(maximum, -inf)))"

    def windows(self, xs: str) -> str:
        """Windows of each row, weighted."""
        weights = self.param(3)
        return f"""{xs} |> map(row => row |> pad(1, 1, 0) |> slide(3, 1)
          |> map(a => let b = {weights} in {TIMES}))"""

    def exchanged(self, xs: str) -> str:
        """The transposition."""
        self.shape = self.shape[1], self.shape[0]
        return f"{xs} |> transpose"

    def beside(self, xs: str) -> str:
        """The sum with a matrix."""
        other = self.param(*self.shape)
        return f"zip({xs}, {other}) |> map((r, s) => zip(r, s) |> map((x, y) => 2 * x - y))"


STEPS: tuple[Callable[[Chain, str], str], ...] = (
    Chain.product,
    Chain.product,
    Chain.rows,
    Chain.clipped,
    Chain.pooled,
    Chain.windows,
    Chain.exchanged,
    Chain.beside,
)


def chained(seed: int) -> Program:
    """The program of a seed: some of its stages are named."""
    made = Chain(seed)
    value = made.param(*made.shape)
    lets: list[str] = []
    for number in range(made.random.randint(2, 5)):
        value = made.random.choice(STEPS)(made, f"({value})")
        if made.shape[1] < 2:
            break
        if made.random.random() < 0.5:
            lets.append(f"let s{number} = {value} in")
            value = f"s{number}"
    text = "\n  ".join([*lets, value])
    return parse(f"def main({', '.join(made.params)}) =\n  {text}")
