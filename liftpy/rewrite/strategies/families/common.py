"""Choices that several families share: stored padding, the last block, streamed stores."""

from __future__ import annotations

from collections.abc import Sequence

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, size_bytes
from liftpy.ir.walk import every_part
from liftpy.primitives import Map, Slide
from liftpy.rewrite.strategies.block import columns_first, is_border, is_indivisible
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.lower import exposed
from liftpy.rewrite.strategies.shapes import array_type, is_padding, is_windows, longest
from liftpy.rewrite.strategy import Failure, Strategy, identity, rule

LANES = "lanes"  # the choice of the map whose results are the lanes of vectors
STREAMED_BYTES = 2**18  # a smaller result may stay in a core's caches until it is read


def paddings(body: Expr) -> tuple[str, ...]:
    """The words of the choice `pad`: the part of the padded input of a stage that is stored."""
    padded = [e for e in every_part(body) if is_padding(e) and e.free <= body.free]
    if not padded:
        return ("fused",)
    first = padded[0]
    both = isinstance(first, FunCall) and isinstance(first.fun, Map) and is_padding(first.args[0])
    columns = both and not isinstance(columns_first()(first), Failure)
    if first == body and both:  # the result itself is the padded or cropped input
        return ("fused",)
    return ("fused", "columns", "copy") if columns else ("fused", "copy")


def fused_or_stored(body: Expr) -> tuple[str, ...]:
    """`paddings`, with `classes` after `fused` if the code has guards of padding.

    A kernel with `classes` has a version for each class of border.
    """
    fused, *stored = paddings(body)
    return (
        (fused, "classes", *stored) if any(map(is_border, every_part(body))) else (fused, *stored)
    )


def stored_views(body: Expr) -> tuple[str, ...]:
    """`paddings`, and `windows` if the body has any."""
    windows = any(is_windows(e) and e.free <= body.free for e in every_part(body))
    return (*paddings(body), "windows") if windows else paddings(body)


def stores(program: Program) -> dict[str, tuple[str, ...]]:
    """The choice of how a large result is stored in vectors; no choice for a small result.

    `cached` reads a cache line before it is overwritten, and leaves it in the caches; `streamed`
    does neither.
    """
    t = program.body.body.type
    if not isinstance(t, ArrayType) or int(size_bytes(t)) < STREAMED_BYTES:
        return {}
    if int(t.shape[-1]) % 2:  # no vector would be aligned to a multiple of its length
        return {}
    return {"stores": ("cached", "streamed")}


def stored_so(choices: dict[str, str]) -> Strategy:
    """Apply the choice `stores` to the result."""
    return rule("to_streamed") if choices.get("stores") == "streamed" else identity


def least_width(choices: dict[str, str]) -> int:
    """The shortest vectors allowed: a streamed result is stored in vectors."""
    return 2 if choices.get("stores") == "streamed" else 1


def tails(lengths: Sequence[int], *, lanes: bool = False) -> dict[str, tuple[str, ...]]:
    """The choice of the last block if a length is `is_indivisible`; otherwise no choice.

    The first length is that of adjacent results, the `lanes` of vectors, if that is chosen.
    With `none`, all blocks have a size that divides the length; with `overlap`, the last one begins
    early.
    """
    uneven = (is_indivisible(n, lanes=lanes and k == 0) for k, n in enumerate(lengths))
    return {"tail": ("none", "overlap")} if any(uneven) else {}


def outer_length(expr: Expr) -> int:
    """The length of an array; if it is open, its upper bound."""
    return longest(array_type(expr))


def slides(program: Program) -> list[FunCall]:
    """The slides of a program, outermost first."""
    parts = (e for e in every_part(program.body.body))
    return [e for e in parts if isinstance(e, FunCall) and isinstance(e.fun, Slide)]


def window_and_length(slide: FunCall) -> tuple[int, int]:
    """The size of windows, and the length of the array that they are taken from."""
    return int(getattr(slide.fun, "size")), outer_length(slide.args[0])  # noqa: B009


def with_epilogues(expr: Expr) -> Expr:
    """The result of `folds_inward`; the expression itself if that fails."""
    result = folds_inward(expr)
    return expr if isinstance(result, Failure) else result.expr


def exposed_body(program: Program) -> Expr:
    """The program's body after `exposed`, which reveals the maps that make its result."""
    result = exposed()(program.body.body)
    return program.body.body if isinstance(result, Failure) else result.expr
