"""`tree`: folds and scans that the work-items of a group make together, through local memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import at, children, has_call
from liftpy.primitives import AnyIterate, AnyReduce, AnyScan, Map, Slide
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import block_of
from liftpy.rewrite.strategies.chunked import scanned
from liftpy.rewrite.strategies.families.common import with_epilogues
from liftpy.rewrite.strategies.families.direct import INWARD
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.partial import results_reduced
from liftpy.rewrite.strategies.rows import folds_of, named_values
from liftpy.rewrite.strategies.shapes import array_type, body_of, is_reduce, nests
from liftpy.rewrite.strategies.share import stages
from liftpy.rewrite.strategies.tree import (
    Tree,
    can_hold,
    folded,
    is_scalar,
    maps_around,
    of_results,
    of_rows,
    row_of,
)
from liftpy.rewrite.strategies.tree_scan import of_scan
from liftpy.rewrite.strategy import Result, Strategy, Success, seq

FEWEST, MOST = 4, 8
"""The numbers of halvings that are tried: groups have from 9 to 256 work-items."""
OF_ONE_ITEM = "the folded array is in registers of one work-item, which its group cannot read"
MOST_EACH = 64
"""The most elements that a work-item folds, if a result is made by many groups."""


@dataclass(frozen=True)
class Trees:
    """Folds or a scan that groups can make, of which the shortest has `shortest` elements.

    `made` is what they make: `rows`, the `result`, or a result that is a `scan`. `strided` lists
    the orders of elements that the laws of the operators permit. `arrays` says whether a row's
    function names arrays that may be held.
    """

    made: Literal["rows", "result", "scan"]
    shortest: int
    strided: tuple[str, ...] = ("yes", "no")
    arrays: bool = False

    def choices(self) -> Iterator[Choices]:
        """The number of halvings, and the elements that a work-item folds: adjacent or strided.

        Arrays that are named in the function of a row may be held in local memory. The results of
        groups that make one result are folded by a work-item or by one more group.
        """
        steps = (str(k) for k in range(FEWEST, MOST + 1) if fewest_items(k) <= self.shortest)
        words = {"arrays": ("again", "local")} if self.arrays else {}
        if self.made == "result":
            words = {"last": ("item", "group")}
        yield from product(steps=tuple(steps), strided=self.strided, **words)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """Yield no choices: this form takes several work-items."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The work-items of a group and, without rows, the elements of each of them."""
        steps = int(choices["steps"])
        fewest, most = fewest_items(steps), 2**steps
        items = Parameter("group", fewest, most, "work-items that fold an array together")
        if self.made == "rows":
            return (items,)
        each = min(-(-self.shortest // most), MOST_EACH)
        return items, Parameter("chunk", 1, each, "elements that a work-item folds or scans")

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`of_rows`, `of_results` or `of_scan`."""
        tree = Tree(sizes["group"].nat, int(choices["steps"]), choices["strided"] == "yes")
        if self.made == "rows":
            return seq(INWARD, of_rows(tree, held=choices.get("arrays") == "local"))
        chunk = sizes["chunk"].nat
        if self.made == "scan":
            return of_scan(tree, chunk)
        return seq(INWARD, of_results(tree, chunk, again=choices["last"] == "group"))

    def tried(self, body: Expr, strided: str) -> Result:
        """The body after the strategy with the fewest halvings, for elements in an order."""
        words = dict(next(replace(self, strided=(strided,)).choices()))
        return self.strategy(words, {p.name: p for p in self.parameters(words)})(body)


def fewest_items(steps: int) -> int:
    """The fewest work-items whose results take this number of halvings."""
    return 2 ** (steps - 1) + 1


def match(program: Program) -> Trees | str:
    """The scan or the folds that make the result or each of its rows, or why there are none."""
    body = program.body.body
    if scanned(body) is None:
        found = folds_in(with_epilogues(body))
    else:
        found = Trees("scan", int(array_type(body).length))
    if isinstance(found, str):
        return found
    if found.shortest < fewest_items(FEWEST):
        return f"a group has at least {fewest_items(FEWEST)} items for {found.shortest} elements"
    tried = {word: found.tried(body, word) for word in found.strided}
    strided = tuple(word for word, result in tried.items() if isinstance(result, Success))
    if not strided:
        return f"its folds cannot be divided ({tried['no']})"
    return replace(found, strided=strided)


def folds_in(body: Expr) -> Trees | str:
    """The folds that groups may make, or why there are none; operators are not examined."""
    if next(stages(body), None) is not None:
        return "a map of folds is not read element by element"
    parts = body.elements if isinstance(body, Tuple) else (body,)
    results = results_reduced(body)
    if len(results) == len(parts):
        if any(is_held_by_one(part) for path in results for part in children(at(body, path))[:-1]):
            return OF_ONE_ITEM
        return Trees("result", min(folded(body)))
    row = row_of(body)
    if row is None:
        return "no fold makes the result or a part of each row"
    if has_call(body, Slide):
        return "windows are folded, whose elements a work-item reuses"
    if has_call(body, AnyScan, AnyIterate):
        return "a scan or an iteration of a row is made by one work-item"
    if block_of(body) is not None:
        return "the folds of a row read the same for each element"
    around = maps_around(body, row)
    if any(len(paths) > 1 for paths in around):
        return "several maps next to each other make the result"
    if len(around) > len(DIMENSIONS):
        return f"rows in more than {len(DIMENSIONS)} dimensions"
    made = body_of(at(body, row))
    if not is_scalar(made) and not nests(made, inside=True):
        return "a part of each row is made by no map"
    folds = [at(made, path) for path in folds_of(made)]
    read = [part for fold in folds for part in children(fold)[:2]]
    if any(map(is_held_by_one, (*read, *(value for _, value in named_values(made))))):
        return OF_ONE_ITEM
    return Trees("rows", min(folded(body)), arrays=can_hold(made))


def is_held_by_one(expr: Expr) -> bool:
    """Whether an element is read from an array that folds make in registers of one work-item.

    What a map's function or the step of a fold computes is a value of the work-item that needs it.
    """
    if is_reduce(expr) and isinstance(expr.type, ArrayType):
        return True
    applies = isinstance(expr, FunCall) and isinstance(expr.fun, Map | AnyReduce)
    return any(map(is_held_by_one, children(expr)[:-1] if applies else children(expr)))


TREE = Family(
    "tree",
    "folds and scans that a work-group makes together, in a tree through local memory",
    match,
    for_groups=True,
)
