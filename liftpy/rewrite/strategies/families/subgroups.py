"""`subgroups`: folds that a group, or each of its subgroups, computes by subgroup functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from liftpy.errors import plural
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import SUBGROUPS
from liftpy.ir.walk import at
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.chunked import scanned
from liftpy.rewrite.strategies.families.common import with_epilogues
from liftpy.rewrite.strategies.families.direct import INWARD
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.families.tree import MOST_EACH, folds_in
from liftpy.rewrite.strategies.shapes import array_type, longest
from liftpy.rewrite.strategies.subgroups import Subgroups, of_rows_of_subgroups
from liftpy.rewrite.strategies.tree import of_results, of_rows, row_of
from liftpy.rewrite.strategy import Failure, Result, Strategy, seq

LEAST, MOST = 2, 256
"""The fewest work-items that fold an array together, and the most work-items of a group."""


@dataclass(frozen=True)
class FoldsOfSubgroups:
    """Folds that groups can compute by subgroups; the shortest has `shortest` elements.

    `made` is what they make: `rows`, or the `result`. `arrays` says whether a row's function names
    arrays that may be held. `rows` is the number of rows that single subgroups can compute; 0 if
    they cannot.
    """

    made: Literal["rows", "result"]
    shortest: int
    arrays: bool = False
    rows: int = 0

    def choices(self) -> Iterator[Choices]:
        """The elements that a work-item folds: adjacent or strided; the others as for `tree`.

        Or each subgroup computes rows by itself; its work-items fold strided elements.
        """
        words = {"arrays": ("again", "local")} if self.arrays else {}
        if self.made == "result":
            words = {"last": ("item", "group")}
        yield from product(strided=("yes", "no"), **words)
        if self.rows:
            yield from product(level=("subgroup",))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """Yield no choices: this form takes several work-items."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The work-items of a group and, without rows, the elements of each of them.

        If subgroups compute rows, the work-items and the rows of a group.
        """
        if "level" in choices:
            items = Parameter("group", 1, MOST, "work-items of a group, in subgroups")
            return items, Parameter("sigma", 1, self.rows, "rows of a group, for its subgroups")
        most = min(MOST, self.shortest)
        items = Parameter("group", LEAST, most, "work-items that fold an array together")
        if self.made == "rows":
            return (items,)
        each = min(-(-self.shortest // most), MOST_EACH)
        return items, Parameter("chunk", 1, each, "elements that a work-item folds")

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`of_rows_of_subgroups`, or `of_rows` or `of_results` with folds by subgroups."""
        if "level" in choices:
            rows = of_rows_of_subgroups(sizes["sigma"].nat, sizes["group"].nat)
            return seq(INWARD, rows)
        folds = Subgroups(sizes["group"].nat, choices["strided"] == "yes")
        if self.made == "rows":
            return seq(INWARD, of_rows(folds, held=choices.get("arrays") == "local"))
        again = choices["last"] == "group"
        return seq(INWARD, of_results(folds, sizes["chunk"].nat, again=again))

    def tried(self, body: Expr, words: dict[str, str]) -> Result:
        """The body after the strategy with these choices."""
        return self.strategy(words, {p.name: p for p in self.parameters(words)})(body)


def match(program: Program) -> FoldsOfSubgroups | str:
    """The folds that make the result or each of its rows, or why subgroups cannot fold them."""
    body = program.body.body
    if scanned(body) is not None:
        return "a scan makes the result, and subgroups only fold"
    found = folds_in(with_epilogues(body))
    if isinstance(found, str):
        return found
    if found.shortest < LEAST:
        return f"a group has at least {LEAST} items for {plural(found.shortest, 'element')}"
    made = "rows" if found.made == "rows" else "result"
    form = FoldsOfSubgroups(made, found.shortest, found.arrays)
    tried = form.tried(body, dict(next(form.choices())))
    if isinstance(tried, Failure):
        return f"subgroups cannot compute its folds ({tried})"
    return replace(form, rows=rows_of_subgroups(form, body))


def rows_of_subgroups(form: FoldsOfSubgroups, body: Expr) -> int:
    """The length of the innermost map over rows that single subgroups can compute; 0 if none."""
    if form.made == "result" or (path := row_of(body)) is None:
        return 0
    rows = longest(array_type(at(body, path)))
    tried = replace(form, rows=rows).tried(body, {"level": "subgroup"})
    return 0 if isinstance(tried, Failure) else rows


BY_SUBGROUPS = Family(
    "subgroups",
    "folds that a work-group computes together, by subgroup functions",
    match,
    for_groups=True,
    instructions=SUBGROUPS,
)
