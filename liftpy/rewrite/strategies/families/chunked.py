"""`chunked`: a scan that makes the result, in three kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.chunked import in_chunks, scanned
from liftpy.rewrite.strategies.families.form import Choices, Family
from liftpy.rewrite.strategies.shapes import array_type
from liftpy.rewrite.strategy import Strategy


@dataclass(frozen=True)
class Chunked:
    """A scan of this length."""

    length: int

    def choices(self) -> Iterator[Choices]:
        """One skeleton, without choices."""
        yield ()

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The number of elements per chunk."""
        return (Parameter("chunk", 1, self.length, "elements that a work-item scans"),)

    def strategy(self, _choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`in_chunks`."""
        return in_chunks(sizes["chunk"].nat)


def match(program: Program) -> Chunked | str:
    """The length of the scan that makes the result."""
    body = program.body.body
    if scanned(body) is None:
        return "no scan makes the result"
    return Chunked(int(array_type(body).length))


CHUNKED = Family(
    "chunked",
    "a scan in three kernels: totals of chunks in parallel, their scan, and a scan of each chunk",
    match,
)
