"""`planes`: folds in passes, each over a plane of results that stay in their buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Expr
from liftpy.ir.nat import var
from liftpy.ir.program import Program
from liftpy.ir.types import ScalarType
from liftpy.ir.walk import at, lambda_of
from liftpy.primitives import AnyReduce
from liftpy.primitives.in_place import is_pure, rereads
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.families import direct
from liftpy.rewrite.strategies.families.common import paddings, stored_views
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lanes import lanes_store
from liftpy.rewrite.strategies.lower import chain
from liftpy.rewrite.strategies.planes import (
    MANY,
    NO,
    ONE,
    SOURCE,
    START,
    exposed_folds,
    folds_of,
    in_planes,
    part_with_folds,
    passes,
    planes,
    with_levels,
)
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    folds_arrays,
    is_one_kernel,
    is_windows,
    longest,
    nests,
)
from liftpy.rewrite.strategy import Failure, Strategy, Success, seq

MOST_PASSES = 64
"""Each pass moves all results, so longer folds are left to other families."""

HELD = ((NO, ONE), (NO, MANY), ("local", ONE), ("local", MANY), ("private", ONE))
"""Where the planes of a group or work-item are held, and how many work-items make its results."""


@dataclass(frozen=True)
class Planes:
    """A stage whose result is `depth` maps around a fold, the innermost of the given length.

    `windows` says whether all terms, in the order of the passes, are a view of windows; `kept` has
    the numbers of maps that may be around the passes. Terms that read folds have no `vectors`. In
    a group, `many` work-items make a plane only if no fold makes what another begins with.
    """

    program: Program
    depth: int
    length: int
    windows: bool
    kept: tuple[int, ...]
    vectors: bool
    many: bool

    def choices(self) -> Iterator[Choices]:
        """How many maps are around the passes, and which memory holds the terms of a pass.

        `inside=0` has a kernel for each pass. With `pad=windows`, all windows are stored in the
        order of the passes (im2col). Otherwise the planes of a work-item or group may be copied to
        private or local memory (`hold`).
        """
        for kept in self.kept:
            for hold, items in HELD if kept else HELD[:1]:
                if items == MANY and not self.many:
                    continue
                pads = self.pads(kept) if hold == NO else ("fused",)
                words = {"pad": pads, "vector": ("no", "yes") if self.vectors else ("no",)}
                yield from product(inside=(str(kept),), hold=(hold,), items=(items,), **words)

    def pads(self, kept: int) -> tuple[str, ...]:
        """The words of the choice `pad` with this many maps around the passes."""
        body = self.program.body.body
        if kept:
            return stored_views(body)
        return (*paddings(body), "windows") if self.windows else paddings(body)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: a block is in registers or is stored once."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The width of vectors."""
        if choices["vector"] == "no":
            return ()
        most = min(self.length, MAX_LANES)
        return (Parameter("v", 2, most, "vector width over the innermost map"),)

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`planes`, with the padded input or its windows stored, or not."""
        width = sizes["v"].nat if sizes else None
        made = planes(int(choices["inside"]), choices["hold"], choices["items"], width)
        return seq(made, store_padding(choices["pad"]))


def match(program: Program) -> Planes | str:
    """The maps and folds that make the result, if no register block of `direct` does."""
    if not isinstance(direct.match(program), str):
        return "`direct` applies, which is better"
    if folds_arrays(program.body.body):
        return "it folds arrays"
    result = exposed_folds()(program.body.body)
    path = None if isinstance(result, Failure) else part_with_folds(result.expr)
    if path is None or isinstance(result, Failure):
        return "no map of folds makes the result"
    part = at(result.expr, path)
    if not is_one_kernel(part):
        return "the values that it folds need kernels of their own"
    if passes(part) > MOST_PASSES:
        return f"its folds have more than {MOST_PASSES} steps"
    return form_of(program, part)


def form_of(program: Program, part: Expr) -> Planes | str:
    """The form of a part that maps and folds make."""
    paths = [*chain(nests(part))]
    innermost = at(part, paths[-1])
    if not isinstance(body_of(innermost).type, ScalarType):
        return "its folds make tuples or arrays"
    if any(rereads(lambda_of(f.fun), AnyReduce) for f in folds_of(body_of(innermost))):
        return "a fold in the step of another reads the outer accumulator"
    kept = tuple(k for k in range(len(paths)) if not isinstance(levels(k)(part), Failure))
    whole = in_planes(0)(part)
    if not kept:
        return "its maps and folds cannot be exchanged"
    windows = (
        isinstance(whole, Success)
        and is_windows(at(whole.expr, (SOURCE,)))
        # Windows of a value with a name, which a `let` binds, have no place where they are stored.
        and isinstance(seq(planes(0), store_padding("windows"))(program.body.body), Success)
    )
    lanes = in_planes(kept[0], var("v", 2, MAX_LANES))(part)
    vectors = isinstance(lanes, Success) and not lanes_store(lanes.expr)
    length = longest(array_type(innermost))
    many = all(is_pure(fold.args[START]) for fold in folds_of(body_of(innermost)))
    return Planes(program, len(paths), length, windows, kept, vectors, many)


def levels(kept: int) -> Strategy:
    """The passes of a part, with levels."""
    return seq(in_planes(kept), with_levels(kept, NO, ONE))


PLANES = Family(
    "planes", "folds in passes over planes of results in their buffer", match, if_named=True
)
