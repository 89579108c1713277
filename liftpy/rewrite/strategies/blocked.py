"""Values held while a block of their reader's result is computed.

The expected shape is a sequence of values, each made by a map and read by the next:

    let s = map(f)(xs) in let w = map(g)(s) in map(h)(w)

One map replaces all of them. Its function has the values for one element, or for a block of
elements:

    map(x -> let s = f(x) in let w = g(s) in h(w))(xs)
    join(map(block -> let s = map(f)(block) in let w = map(g)(s) in map(h)(w))(split(xs)))

A value then never exists as a whole, and the part that is live at one time fits in fast memory.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import at_most
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Map, PadClamp, PadMirror, PadWrap, Slide, Split, Transpose, Zip
from liftpy.primitives.border import PadInside
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.epilogue import ZIP_OF_MAP, computed, met, tuples_fused
from liftpy.rewrite.strategies.shapes import body_of, is_let, lets, maker, working_map
from liftpy.rewrite.strategies.share import has_fold_in
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    choose,
    identity,
    rule,
    seq,
)

OF_MAP: dict[type[PadInside], str] = {
    PadClamp: "pad_clamp_of_map",
    PadMirror: "pad_mirror_of_map",
    PadWrap: "pad_wrap_of_map",
}
"""For each border, the law that exchanges it with a map: `pad(map(f, x)) = map(f, pad(x))`."""

MARK = rule("let_introduction", {"v": ()})  # `let s = e in s` marks that `e` will be held


def is_mark(expr: Expr) -> bool:
    """Whether an expression is a mark: `let s = e in s`."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Lambda)):
        return False
    return (expr.fun.body,) == expr.fun.params


def marks(expr: Expr) -> list[Path]:
    """The paths of all marks."""
    return [path for path, part in top_down(expr) if is_mark(part)]


def into_map(expr: Expr) -> Result:
    """Move a value into the function of its reader: `map(x -> let s = f(x) in h(s))(xs)`.

    It comes from `let s = map(f)(xs) in map(h)(s)`, where `h` may also read other arrays, and s in
    groups or windows. If `h` reads only one element of s, just that element is held.
    """
    if not is_let(expr):
        return Failure("into_map", "nothing is named")
    inner = at(expr, (1,))
    if is_let(inner):
        return seq(at_path((1,), into_map), into_map)(expr)

    def fused(inlined: Expr) -> Result:
        place = maker(inlined)
        if not working_map(at(inlined, place)):
            return Failure("into_map", "the result is not made by a map")
        source = seq(at_path((0,), outward), tuples_fused())
        return at_path(place, seq(source, at_path((1,), held)))(inlined)

    return seq(rule("let_inline"), fused)(expr)


def outward(expr: Expr) -> Result:
    """Turn what a map reads into a map of a view, `map(f)(view)`, with a mark at the value."""
    if not computes(expr):
        return Failure("into_map", "the map that makes the result does not read the held value")
    match expr:
        case FunCall(Map(), (array,)) if not computes(array):
            return at_path((1,), MARK)(expr)
        case FunCall(Map() as fun, _):
            if has_fold_in(fun.f.body):
                return Failure("into_map", "there is a fold between a value and its reader")
            if computes(fun.f.body):  # element by element: hold its result instead of the value
                return seq(choose(met, rule("map_fusion")), outward)(expr)
            return seq(at_path((0,), outward), rule("map_fusion"))(expr)
        case FunCall(Zip(), args) if len(args) == 2:
            part = computed(expr)
            return seq(at_path((part,), outward), rule(ZIP_OF_MAP[part]))(expr)
        case FunCall(Split(), (FunCall(Transpose()),)):
            blocks = seq(rule("split_of_transpose"), at_path((0,), across), rule("map_fusion"))
            return blocks(expr)
        case FunCall(Split(), (FunCall(Zip()),)):
            blocks = seq(rule("split_of_zip"), outward)
            return choose(behind("split_of_map"), blocks)(expr)
        case FunCall(Split(), _):
            return choose(with_halo, behind("split_of_map"))(expr)
        case FunCall(PadInside() as layout, _):
            law = OF_MAP.get(type(layout))
            if law is None:
                return Failure("into_map", f"no law exchanges {layout.name} and the value's map")
            return seq(at_path((0,), outward), rule(law))(expr)
        case FunCall(Slide(), _):
            return choose(with_halo, behind("slide_of_map"))(expr)
        case FunCall(Transpose(), _):
            return across(expr)
        case _:
            return Failure("into_map", "a layout before the reader does not keep elements whole")
    return behind(law)(expr)


def with_halo(expr: Expr) -> Result:
    """Turn groups of windows over the result of a map into a map over groups, with a mark in it.

    The windows of a group become views of one marked value, in which they overlap. The elements
    that a group reads besides its own, which its neighbours also compute, are its halo.
    """
    match expr:
        case FunCall(Split() | Slide() as groups, (FunCall(Slide() as windows, _),)):
            if at_most(windows.size, windows.step).known() is not False:
                return Failure("into_map", "the windows of the reader do not overlap")
            law, inside = f"{groups.name}_of_slide", outward
        case FunCall(Split() | Slide() as groups, (FunCall(Map() as fun, (array,)),)) if computes(
            array
        ) and not computes(fun.f.body):
            law, inside = f"{groups.name}_of_map", with_halo
        case _:
            return Failure("into_map", "the reader has no windows")
    return seq(rule(law), at_path((0,), inside), rule("map_fusion"))(expr)


def behind(law: str) -> Strategy:
    """Turn a layout of what a map makes into a map of layouts, by a law, with marks at values."""
    return seq(at_path((0,), outward), rule(law), at_path((1,), whole))


def across(expr: Expr) -> Result:
    """Turn blocks of columns of a value into a map, with a mark at the value of each block.

    The blocks are `transpose(map(split)(value))`. A value made by maps over rows, or whose columns
    are made by a map, is held in the order that it has as a whole.
    """
    of_rows = seq(
        at_path(
            (0,),
            seq(
                rule("map_fusion"),
                at_path((1,), rule("split_of_map")),
                rule("map_fission_first", {"g": (0,)}),
            ),
        ),
        rule("transpose_of_maps_of_zip"),
        at_path((1,), MARK),
    )
    of_columns = seq(
        rule("transpose_of_map_split"),
        at_path((0,), seq(at_path((0,), rule("transpose_twice")), outward)),
        rule("map_fusion"),
        at_path((1,), seq(at_path((0,), rule("let_inline")), MARK)),
    )
    return choose(of_rows, of_columns)(expr)


def whole(expr: Expr) -> Result:
    """Turn a map of values of single elements into one value, with the mark around the map."""
    found = marks(body_of(expr))
    if found == [()]:
        return seq(at_path((1,), rule("let_inline")), MARK)(expr)
    # Name a value that is read more than once before the fission; inline its name afterwards.
    place = (0,) if len(found) > 1 else found[0]
    bare = at_path((1,), held) if len(found) > 1 else at_path((1, *place), rule("let_inline"))
    names = at_path((1,), attempt(rule("let_inline"))) if len(found) > 1 else identity
    apart = choose(rule("map_fission", {"g": place}), rule("map_fission_zip", {"g": place}))

    def marked(split: Expr) -> Result:
        value = next(p for p in ((0,), (0, 1)) if working_map(at(split, p)))
        return at_path(value, MARK)(split)

    return seq(bare, apart, marked, names)(expr)


def held(expr: Expr) -> Result:
    """Put the marked value of a function's result into a `let` around it."""
    found = marks(expr)
    if not found:
        return Failure("into_map", "the value is not read")
    named = rule("let_introduction", {"v": (*found[0], 0)})

    def without(let: Expr) -> Result:
        rest = [p for p in marks(let) if p]
        return seq(*(at_path(p, rule("let_inline")) for p in reversed(rest)))(let)

    return seq(named, without)(expr)


def into_blocks(size: NatLike, depth: int = 0) -> Strategy:
    """Apply `into_map` to a block of `size` elements of the map that makes the result.

    This is the map inside `depth` others, each of which takes the values into its function.
    """

    def here(expr: Expr) -> Result:
        last = (1,) * sum(1 for _ in lets(expr))
        place = (*last, *maker(at(expr, last)))
        return seq(at_path(place, rule("split_join", m=size)), into_map)(expr)

    def run(expr: Expr) -> Result:
        if depth == 0:
            return here(expr)
        inner = into_blocks(size, depth - 1)
        return seq(into_map, lambda e: at_path((*maker(e), 1), inner)(e))(expr)

    return run


def outer_maps(expr: Expr, count: int) -> list[Path]:
    """The paths of the outermost `count` maps that make the result."""
    found: list[Path] = []
    path = maker(expr)
    for _ in range(count):
        found.append(path)
        path = (*path, 1, *maker(at(expr, (*path, 1))))
    return found


def parts(expr: Expr, depth: int) -> list[Path]:
    """The paths of the values of a block after `into_blocks`, the result's last."""
    (*_, path) = outer_maps(expr, depth + 1)
    block = (*path, 1)
    count = sum(1 for _ in lets(at(expr, block)))
    return [*((*block, *(1,) * k, 0) for k in range(count)), (*block, *(1,) * count)]
