"""The ways to cut a program into stages.

A stage is what lies between cuts (`cuts.py`), as a program of its own, whose parameters are those
of the program and the values of earlier stages. A partition says which cuts are stored. Each stage
is derived separately; `composition.py` joins the skeletons of stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache

from liftpy.errors import ConstraintRefused
from liftpy.ir.call import FunCall, substitute
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.open_sizes import show_range, size_ranges
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, VectorType
from liftpy.ir.walk import Path, at, bound_names, every_part
from liftpy.primitives import Map
from liftpy.rewrite.bank import USUAL, Bank, points_in
from liftpy.rewrite.by_tiles import by_tiles
from liftpy.rewrite.cuts import (
    RESULT,
    Cut,
    after,
    cut_form,
    cuts_of,
    taken_further,
    unshadowed,
    uses,
)
from liftpy.rewrite.stages import FUSED, HELD, STORED, WINOGRAD, Stage
from liftpy.rewrite.strategies.blocked import into_blocks, into_map
from liftpy.rewrite.strategies.elementwise import recomputes, to_elements
from liftpy.rewrite.strategies.families.small import is_straight
from liftpy.rewrite.strategies.flat import flattened
from liftpy.rewrite.strategies.hybrid import PARTS
from liftpy.rewrite.strategies.shapes import renamed
from liftpy.rewrite.strategies.share import has_fold, has_fold_in
from liftpy.rewrite.strategies.transformed import NAMED, STARTS
from liftpy.rewrite.strategies.widened import OPERANDS
from liftpy.rewrite.strategy import (
    Failure,
    Step,
    Strategy,
    Success,
    at_path,
    identity,
    rule,
)

GIVEN_POINTS = "winograd_points"
"""The points of the F(m, r) of a form, if they are not the usual ones."""

AXES, APART = "axes", "apart"
"""The choice of a form that folds windows of two dimensions one axis after the other."""

ALGORITHM = (WINOGRAD, GIVEN_POINTS, AXES)
"""The choices of how a form computes; the other choices of a partition select what it stores."""

MOST_OPTIONAL = 6
"""The most optional cuts for which all combinations of fused and stored ones are offered.

With more, a partition differs from the default in at most one cut. The default stores a cut unless
its reader reads it element by element.
"""

MOST_HELD = 3
"""The most cuts for which every set of held ones is offered; with more, one cut or all of them."""


@dataclass(frozen=True)
class Partition:
    """A program cut into stages, in the order in which they run, and the steps to that form.

    `words` has a word for each optional cut. `cut_form` is the program as nested lets, one per
    stage except the last. `storage` has the values that it stores in another type (`forms.py`);
    `program` is then the one with these conversions.
    """

    program: Program
    words: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    cut_form: Expr
    stages: tuple[Stage, ...]
    storage: tuple[tuple[str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the program is one stage."""
        return len(self.stages) == 1

    @property
    def other_algorithm(self) -> bool:
        """Whether the stages compute with another algorithm than the program."""
        return WINOGRAD in dict(self.words)


# --- which cuts are stored ------------------------------------------------------------------------


@lru_cache(maxsize=64)
def direct(program: Program) -> tuple[Partition, ...]:
    """The partitions of a program that computes directly."""
    if opened := size_ranges(program):
        names = ", ".join(show_range(name, *ends) for name, ends in opened.items())
        given = ", ".join(f'"{name}": ...' for name in opened)
        raise ConstraintRefused(
            f"{program.name} has open sizes, but lowering needs numbers: {names}\n"
            f"  give numbers with lp.at_sizes(program, {{{given}}})"
        )
    found = cut_in_stages(program, cut_form(program))
    return tuple(sorted(found, key=lambda made: len(made.stages)))


@lru_cache(maxsize=64)
def other_algorithms(
    program: Program, bank: Bank = USUAL, words: frozenset[str] | None = None
) -> tuple[Partition, ...]:
    """The partitions of a program's forms by the F(m, r) of a bank; with `words`, only of these."""
    found: list[Partition] = []
    forms = [*by_tiles(cut_form(program), bank, words)]
    known = {stage.key for made in direct(program) for stage in made.stages} if forms else set()
    for word, derived in forms:
        given = points_in(derived.steps)
        chosen = ((WINOGRAD, word), *([(GIVEN_POINTS, given)] if given else []))
        flat = taken_further(derived, (), flattened)
        for form, holds in ((flat, False), (derived, True)):
            other, cuts = cuts_in(program, form)
            held = transformed(cuts, program.constants) if holds else frozenset[Param]()
            if holds and not held:
                continue
            finished = read_by_element(cuts, at(other.expr, (1,) * len(cuts)))
            for fused in dict.fromkeys((frozenset[Param](), finished)):
                made = partition(program, other, cuts, (fused, held), to_elements)
                if made is not None:
                    within = (
                        s if s.key in known else replace(s, within=(*chosen, *s.within))
                        for s in made.stages
                    )
                    found.append(replace(made, words=(*chosen, *made.words), stages=tuple(within)))
    return tuple(sorted(found, key=lambda made: len(made.stages)))


def transformed(cuts: Sequence[Cut], constants: AbstractSet[str]) -> frozenset[Param]:
    """The transformed tiles and the products of each correlation in a form by F(m, r).

    Products read the tiles first, then the transformed kernels. Constants are not held.
    """
    known = {*constants}
    found: set[Param] = set()
    straight: list[Cut] = []
    for cut in cuts:
        if {p.name for p in cut.value.free} <= known:
            known.add(cut.param.name)
        elif is_straight(cut.value):
            straight.append(cut)
        elif cut.optional and has_fold_in(cut.value):
            read = (c for c in straight if c.optional and c.param in cut.value.free)
            found |= {p for tiles in itertools.islice(read, 1) for p in (tiles.param, cut.param)}
    return frozenset(found)


def read_by_element(cuts: Sequence[Cut], result: Expr) -> frozenset[Param]:
    """The results of correlations by F(m, r), and values of these, that are read by element.

    Their readers can compute them element by element (`to_elements`).
    """
    found: dict[Param, Expr] = {}

    def whole(value: Expr) -> Expr:
        return substitute(value, {p: e for p, e in found.items() if p in value.free})

    for cut in cuts:
        value = whole(cut.value)
        reader = next(e for e in (*(c.value for c in cuts), result) if cut.param in e.free)
        if cut.optional and is_straight(value) and not has_fold_in(reader):
            joined = substitute(whole(reader), {cut.param: value})
            if isinstance(to_elements(joined), Success):
                found[cut.param] = value
    return frozenset(found)


def cuts_in(program: Program, form: Success) -> tuple[Success, list[Cut]]:
    """A form of a program, which has all cuts, with variables that differ, and its cuts."""
    form = replace(form, expr=unshadowed(form.expr, frozenset(p.name for p in program.params)))
    own = bound_names(program.body.body) | {*NAMED, STARTS, *OPERANDS, *PARTS}
    return form, cuts_of(form.expr, program, own)


def cut_in_stages(
    program: Program, form: Success, joining: Strategy = identity
) -> Iterator[Partition]:
    """Every way to cut one form of a program, which has all cuts, into stages.

    `joining` is applied to each stage into which a cut is fused.
    """
    form, cuts = cuts_in(program, form)
    optional = [cut for cut in cuts if cut.optional]
    regions = Regions(cuts, at(form.expr, (1,) * len(cuts)))
    first = True
    for fused in choices(optional, regions):
        stages = regions.of(fused)
        if stages is None:
            continue
        left = [cut for cut in cuts if cut.param not in fused]
        stages = [after(joining, stage) for stage in stages] if fused else stages
        values = {cut.param: value for cut, value in zip(left, stages, strict=False)}
        holdable = [cut for cut in left if cut.optional and may_be_held(cut.param, values, stages)]
        sets = held_sets([cut.param for cut in holdable])
        for held in sets if len(optional) <= MOST_OPTIONAL or first else [frozenset[Param]()]:
            made = partition(program, form, cuts, (fused, held), joining)
            if made is not None:
                first = False
                yield made


def held_sets(params: Sequence[Param]) -> Iterator[frozenset[Param]]:
    """The sets of cuts to hold: none, then every set of a few cuts, or one or all of many."""
    yield frozenset()
    sizes = range(1, len(params) + 1)
    for size in sizes if len(params) <= MOST_HELD else {1, len(params)}:
        yield from map(frozenset, itertools.combinations(params, size))


def may_be_held(param: Param, values: Mapping[Param, Expr], stages: Sequence[Expr]) -> bool:
    """Whether the map that reads a value can make it a block at a time instead of folding again.

    `values` has the expressions of cuts, and `stages` these and the result, with what is fused into
    them. A value that its reader reads element by element is better fused.
    """
    value = values[param]
    reader = next(e for e in stages if param in e.free)
    fused = substitute(reader, {param: value})
    if not has_fold_in(value) or recomputes(fused) <= recomputes(reader):
        return False
    return isinstance(into_map(FunCall(Lambda((param,), reader), (value,))), Success)


def choices(optional: Sequence[Cut], regions: Regions) -> Iterator[frozenset[Param]]:
    """The sets of cuts to fuse: every set, the largest first, or the default and its neighbours."""
    params = [cut.param for cut in optional]
    if len(params) <= MOST_OPTIONAL:
        for count in reversed(range(len(params) + 1)):
            yield from map(frozenset, itertools.combinations(params, count))
        return
    default: frozenset[Param] = frozenset()
    for param in params:
        both = regions.of(default | {param})
        if both is not None and not any(map(recomputes, both)):
            default |= {param}
    yield default
    yield from (default ^ {param} for param in params)


def has_vectors(expr: Expr) -> bool:
    """Whether an expression makes arrays of vectors."""
    types = (e.type for e in every_part(expr))
    return any(isinstance(t, ArrayType) and isinstance(t.element, VectorType) for t in types)


def makes_folds(expr: Expr) -> bool:
    """Whether a map in an expression folds; lanes can read its result only if it is stored."""
    maps = (e for e in every_part(expr) if isinstance(e, FunCall) and isinstance(e.fun, Map))
    return any(map(has_fold, maps))


class Regions:
    """The expressions of stages, for a given set of fused cuts."""

    def __init__(self, cuts: Sequence[Cut], result: Expr) -> None:
        self.cuts = cuts
        self.result = result
        self.allowed: dict[Expr, bool] = {}

    def of(self, fused: frozenset[Param]) -> list[Expr] | None:
        """The expressions of the stages; None if one recomputes too much or lanes would fold."""
        by: dict[Param, Expr] = {}
        found: list[Expr] = []
        for cut in (*self.cuts, None):
            value = self.result if cut is None else cut.value
            inside = {p: e for p, e in by.items() if p in value.free}
            if has_vectors(value) and any(map(makes_folds, inside.values())):
                return None
            whole = substitute(value, inside)
            if cut is not None and cut.param in fused:
                by[cut.param] = whole
                continue
            if whole not in self.allowed:  # a stage that the user wrote as one is always allowed
                self.allowed[whole] = not inside or recomputes(whole) <= 1 + recomputes(value)
            if not self.allowed[whole]:
                return None
            found.append(whole)
        return found


def partition(
    program: Program,
    form: Success,
    cuts: Sequence[Cut],
    inside: tuple[frozenset[Param], frozenset[Param]],
    joining: Strategy = identity,
) -> Partition | None:
    """The partition with the fused and the held cuts in `inside`; None if these cannot be held.

    `joining` is applied to each stage into which a cut is fused.
    """
    fused, held = inside
    moved = fused | held
    words = {c.param: HELD if c.param in held else FUSED for c in cuts if c.param in moved}
    chosen = tuple((c.name, words.get(c.param, STORED)) for c in cuts if c.optional)
    joined = form
    for depth in reversed(range(len(cuts))):
        if cuts[depth].param in moved:
            joined = taken_further(joined, (1,) * depth, rule("let_inline"))
    stored: list[Cut | None] = [*(cut for cut in cuts if cut.param not in moved), None]
    names = {cut.param: cut.name for cut in cuts}
    result = at(form.expr, (1,) * len(cuts))
    for depth, cut in enumerate(stored):
        value = result if cut is None else cut.value
        place = (1,) * depth if cut is None else (*(1,) * depth, 0)
        for param, path in held_places(value, {c.param: c.value for c in cuts}, moved, held):
            made_let = at_path(place, rule("let_introduction", {"v": path}))(joined.expr)
            if isinstance(made_let, Failure):
                return None
            expr = renamed(made_let.expr, place, names[param])
            joined = Success(expr, (*joined.steps, *made_let.steps))
        if not fused.isdisjoint(value.free):
            finished = at_path(place, joining)(joined.expr)
            if isinstance(finished, Failure):
                return None
            joined = Success(finished.expr, (*joined.steps, *finished.steps))
    body = program.body.body
    begins_with_let = isinstance(body, FunCall) and isinstance(body.fun, Lambda)
    if len(fused) == len(cuts) and not (cuts and begins_with_let):  # nothing has to be moved
        within = tuple((cut.name, FUSED) for cut in cuts)
        only = Stage(RESULT, None, program, within, cut=False)
        return Partition(program, chosen, (), program.body.body, (only,))
    constants = set(program.constants)
    inputs = [*program.params]
    made: list[Stage] = []
    within = words_within(cuts, words, result)
    for depth, cut in enumerate(stored):
        value = at(joined.expr, (1,) * depth if cut is None else (*(1,) * depth, 0))
        name, param = (RESULT, None) if cut is None else (cut.name, cut.param)
        params = tuple(p for p in inputs if p in value.free)
        mine = frozenset(p.name for p in params if p.name in constants)
        whole = Program(f"{program.name}_{name}", Lambda(params, value), mine)
        stage = Stage(name, param, whole, within[param], cut=len(stored) > 1)
        if stage.holds and isinstance(into_blocks(1)(value), Failure):
            return None
        made.append(stage)
        if param is not None:
            inputs.append(param)
            if stage.runs_once:
                constants.add(param.name)
    return Partition(program, chosen, joined.steps, joined.expr, tuple(made))


def held_places(
    value: Expr, inside: Mapping[Param, Expr], moved: AbstractSet[Param], held: AbstractSet[Param]
) -> Iterator[tuple[Param, Path]]:
    """The held values and their paths in a stage, the last first.

    Each path holds after the values before it have been moved into lets, along with their parts.
    """
    places = [*places_within(value, (), inside, moved)]
    while places:
        param, path = places.pop()
        if param in held:
            yield param, path
            places = [(p, moved_along(q, path)) for p, q in places]


def moved_along(path: Path, named: Path) -> Path:
    """A path after the part at path `named` was moved into a `let` around the whole expression."""
    if path[: len(named)] == named:
        return (0, *path[len(named) :])
    return (1, *path)


def places_within(
    value: Expr, path: Path, inside: Mapping[Param, Expr], moved: AbstractSet[Param]
) -> Iterator[tuple[Param, Path]]:
    """The cuts that replace their names in a value, those that others read first."""
    for param in inside:
        for place, _ in uses(value, param) if param in moved else ():
            yield from places_within(inside[param], (*path, *place), inside, moved)
            yield param, (*path, *place)


def words_within(
    cuts: Sequence[Cut], words: Mapping[Param, str], result: Expr
) -> dict[Param | None, tuple[tuple[str, str], ...]]:
    """For each value, by its variable (None for the result), the cuts in it with their words."""
    found: dict[Param | None, tuple[tuple[str, str], ...]] = {}
    for value, param in (*((c.value, c.param) for c in cuts), (result, None)):
        mine = [c for c in cuts if c.param in words and c.param in value.free]
        names = dict(pair for c in mine for pair in ((c.name, words[c.param]), *found[c.param]))
        found[param] = tuple((c.name, names[c.name]) for c in cuts if c.name in names)
    return found
