"""Parallel mapping: which loop or parallel level runs each map that makes a program's result.

A mapping is a choice of a skeleton, so it is counted, drawn and explained together with the sizes:
a mapping that a device refuses (for its local size or its extents) has no points. The mappings of
an expression are all those that satisfy the rules of `primitives.levels`, with

    (7) the same levels around everything that is stored,
    (4, 5) work-groups and work-items in the same dimensions,

and whose dimensions are numbered from 0 (Mogers et al. 2022, section 5).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from liftpy.ir.expr import Expr
from liftpy.primitives.levels import Level, Parallel, misplaced
from liftpy.primitives.parallel import DIMENSIONS, MapGlb, MapLcl, MapWrg
from liftpy.rewrite.strategies.lower import over_ids, sequential
from liftpy.rewrite.strategies.shapes import MapNest, nests, paths_of, result_maps
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, identity, rule, seq

#: The level of each map that makes the result, outermost first; None is a loop.
Mapping = tuple[Level | None, ...]
SHORT: dict[type[Parallel], str] = {MapGlb: "glb", MapWrg: "wrg", MapLcl: "lcl"}
SEQUENTIAL, NO_MAPS = "seq", "none"
INSIDE = {"loops": "seq", "items": "lcl", "ids": "glb"}


def wanted() -> Iterator[frozenset[Level]]:
    """The sets of levels that a kernel may be stored over: global ids, or groups and work-items."""
    for kinds in ((MapGlb,), (MapWrg, MapLcl)):
        for dims in range(len(DIMENSIONS), 0, -1):
            yield frozenset((kind, d) for kind in kinds for d in DIMENSIONS[:dims])


def mappings(expr: Expr, *, ordered: bool = False) -> list[Mapping]:
    """The legal mappings of an expression, those with the most levels first.

    `ordered` keeps only those whose dimensions decrease inwards, so that the innermost is dimension
    0. An expression that no map makes has one without levels, too: one work-item copies it, which
    takes the least time for a few elements.
    """
    trees = result_maps(expr)
    made = [m for levels in wanted() for m in _forest(trees, levels, (), ordered=ordered)]
    return made if nests(expr) else [*(made if trees else ()), ()]


def _forest(
    trees: tuple[MapNest, ...], todo: frozenset[Level], above: tuple[Level, ...], *, ordered: bool
) -> Iterator[Mapping]:
    """The mappings of nests at the same depth, each over all of `todo`."""
    each = [list(_tree(t, todo, above, ordered=ordered)) for t in trees]
    for parts in itertools.product(*each):
        yield tuple(level for part in parts for level in part)


def _tree(
    nest: MapNest, todo: frozenset[Level], above: tuple[Level, ...], *, ordered: bool
) -> Iterator[Mapping]:
    """The mappings of one nest over all of `todo`."""
    for level in sorted(todo, key=lambda level: (SHORT[level[0]], -level[1])):
        if misplaced(level, above) is None and (not ordered or _falls(level, above)):
            rest = todo - {level}
            if nest.inner:
                inner = _forest(nest.inner, rest, (*above, level), ordered=ordered)
                yield from ((level, *m) for m in inner)
            elif not rest:
                yield (level,)
    if nest.inner:
        yield from ((None, *m) for m in _forest(nest.inner, todo, above, ordered=ordered))
    elif not todo:
        yield (None,)


def _falls(level: Level, above: tuple[Level, ...]) -> bool:
    """Whether a level's dimension is lower than those of its kind around it."""
    return all(level[1] < dim for kind, dim in above if kind is level[0])


def show_mapping(mapping: Mapping) -> str:
    """A mapping as the word of a choice: `glb1.seq.glb0`; without maps it is `none`."""
    words = (SEQUENTIAL if m is None else f"{SHORT[m[0]]}{m[1]}" for m in mapping)
    return ".".join(words) or NO_MAPS


def read_mapping(text: str) -> Mapping:
    """The mapping that `show_mapping` prints as `text`."""
    kinds = {short: kind for kind, short in SHORT.items()}
    words = text.split(".") if text != NO_MAPS else []
    return tuple(None if w == SEQUENTIAL else (kinds[w[:-1]], int(w[-1])) for w in words)


def mapped(word: str, inside: Strategy = identity) -> Strategy:
    """Assign the levels of a mapping to the maps that make the result; all else becomes loops.

    `word` is a result of `show_mapping`. Inside a group, `items` assigns work-items to the
    outermost map, and `loops` assigns no level; `ids` assigns global ids to the outermost maps.
    `inside` is applied first: it lowers part of what each work-item runs.
    """
    if word in INSIDE:
        return seq(inside, over_ids(INSIDE[word]), sequential())
    mapping = read_mapping(word)

    def run(expr: Expr) -> Result:
        paths = tuple(paths_of(result_maps(expr)))
        if mapping and len(paths) != len(mapping):
            return Failure("mapped", f"{len(mapping)} levels for {len(paths)} maps")
        steps = [
            at_path(path, rule(f"map_to_{SHORT[level[0]]}_{level[1]}"))
            for path, level in zip(paths, mapping, strict=bool(mapping))
            if level is not None
        ]
        return seq(inside, *steps, sequential())(expr)

    return run
