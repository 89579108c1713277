"""`partial`: a reduction that makes the result, in two kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.ir.expr import Tuple
from liftpy.ir.program import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.partial import partial_results, reduced_lengths, results_reduced
from liftpy.rewrite.strategy import Strategy, Success


@dataclass(frozen=True)
class Partial:
    """Reductions that make the result; `shortest` is the length of the shortest one.

    `strided` lists the orders of elements that the laws of the operators permit.
    """

    shortest: int
    strided: tuple[str, ...] = ("no", "yes")

    def choices(self) -> Iterator[Choices]:
        """Whether a work-item reduces adjacent or strided elements."""
        yield from product(strided=self.strided)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The number of elements per partial result."""
        return (Parameter("chunk", 1, self.shortest, "elements that a work-item reduces"),)

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`partial_results`."""
        return partial_results(sizes["chunk"].nat, strided=choices["strided"] == "yes")


def match(program: Program) -> Partial | str:
    """The reductions, if one makes the result, or one makes each of its components."""
    body = program.body.body
    parts = body.elements if isinstance(body, Tuple) else (body,)
    if len(results_reduced(body)) != len(parts):
        return "no reduction makes the result"
    found = Partial(min(reduced_lengths(body)))
    (chunk,) = found.parameters({})
    tried = {
        word: found.strategy({"strided": word}, {chunk.name: chunk})(body) for word in found.strided
    }
    strided = tuple(word for word, result in tried.items() if isinstance(result, Success))
    return replace(found, strided=strided) if strided else str(tried["no"])


PARTIAL = Family(
    "partial",
    "a reduction in two kernels: partial results in parallel, then their fold",
    match,
)
