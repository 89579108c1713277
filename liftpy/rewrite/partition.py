"""The stages of a program, and the ways to cut it into stages.

A *cut* is a value that may be stored in global memory: what a `let` names, or a map of folds that
another part reads. A stage is what lies between cuts, as a program of its own, whose parameters are
those of the program and the values of earlier stages. A partition says which cuts are stored. Each
stage is derived separately; `composed` joins their skeletons into one of the whole program.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from liftpy.errors import ConstraintRefused, InternalError
from liftpy.ir.expr import (
    Expr,
    FunCall,
    Lambda,
    Param,
    Primitive,
    Program,
    Tuple,
    call,
    fresh,
    substitute,
)
from liftpy.ir.nat import var
from liftpy.ir.show import show_range, size_ranges
from liftpy.ir.types import ArrayType, TupleType, VectorType
from liftpy.ir.walk import (
    Path,
    at,
    bound_names,
    children,
    function_of,
    replace_at,
    substitute_sizes,
    top_down,
    with_function,
)
from liftpy.primitives import Map, ToGlobal
from liftpy.primitives.dialects import LoweredProgram
from liftpy.primitives.text import show
from liftpy.primitives.work import computes
from liftpy.rewrite.skeleton import FAMILY, Lowered, Skeleton
from liftpy.rewrite.strategies.blocked import into_blocks, into_map
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.families import (
    FAMILIES,
    SETTINGS,
    shape_of,
    skeleton_of_key,
    skeletons_of,
)
from liftpy.rewrite.strategies.families.blocked import BLOCKED
from liftpy.rewrite.strategies.families.form import Form
from liftpy.rewrite.strategies.shapes import is_let, lets, parameter
from liftpy.rewrite.strategies.share import (
    has_fold,
    has_fold_in,
    invariant,
    outside_functions,
    stages,
)
from liftpy.rewrite.strategy import (
    Derivation,
    Failure,
    Step,
    Strategy,
    Success,
    at_path,
    choose,
    normalize,
    rule,
    seq,
)

STAGES = "stages"  # the family of a skeleton of several stages
RESULT = "result"  # the stage that makes the result
STORED, FUSED, HELD = "stored", "fused", "held"

COMPONENTS = choose(rule("first_of_pair"), rule("second_of_pair"))

APART = choose(rule("let_of_two"), rule("let_of_three"), rule("let_of_four"))
"""Splits the first variable off a `let` of several variables."""

MOST_INLINED = 32
"""The largest scalar, in operators and operands, that its readers compute; larger ones are stored.

Otherwise a chain of scalars, each of which uses the previous one twice, would double at each step.
"""

MOST_OPTIONAL = 6
"""The most optional cuts for which all combinations of fused and stored ones are offered.

With more, a partition differs from the default in at most one cut. The default stores a cut unless
its reader reads it element by element.
"""

MOST_HELD = 3
"""The most cuts for which every set of held ones is offered; with more, one cut or all of them."""


@dataclass(frozen=True)
class Cut:
    """A value of a program that may be stored: its name, variable and expression.

    An optional cut has one reader, which may compute it (`fused`), or whose kernel may make it a
    block at a time (`held`).
    """

    name: str
    param: Param
    value: Expr
    optional: bool


@dataclass(frozen=True)
class Stage:
    """The part of a program between cuts, as a program.

    `param` is the variable for its value; None for the stage that makes the result. `within` lists
    the optional cuts in it that are not stored, each with its word; held cuts are the lets at the
    beginning of the program. `cut` is False for the only stage of a program.
    """

    name: str
    param: Param | None
    program: Program
    within: tuple[tuple[str, str], ...] = ()
    cut: bool = True

    @property
    def holds(self) -> bool:
        """Whether the stage holds values."""
        return any(word == HELD for _, word in self.within)

    def is_for(self, family: str) -> bool:
        """Whether a family may make the stage: `blocked` if it holds values, any other if not."""
        return self.holds == (family == BLOCKED.name)

    @cached_property
    def canonical(self) -> Program:
        """The stage with canonical parameter names: equal for stages that differ only in names.

        This form is derived, so that equal stages are derived once. The only stage of a program
        keeps its names.
        """
        if self.param is None and not self.cut:
            return self.program
        held = {parameter(let).name for let in lets(self.program.body.body)}
        names = (name for k in itertools.count() if (name := f"p{k}") not in held)
        by = {p: Param(name, p.type) for p, name in zip(self.program.params, names, strict=False)}
        body = substitute(self.program.body.body, dict(by))
        constants = frozenset(by[p].name for p in self.program.params if self.is_constant(p))
        return Program("stage", Lambda(tuple(by.values()), body), constants)

    @cached_property
    def text(self) -> str:
        """The text of `canonical`."""
        return show(self.canonical, canonical=True)

    def is_constant(self, param: Param) -> bool:
        """Whether a parameter does not change between runs."""
        return param.name in self.program.constants


@dataclass(frozen=True)
class Partition:
    """A program cut into stages, in the order in which they run, and the steps to that form.

    `words` has a word for each optional cut. `cut_form` is the program as nested lets, one per
    stage except the last.
    """

    program: Program
    words: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    cut_form: Expr
    stages: tuple[Stage, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the program is one stage."""
        return len(self.stages) == 1


def nameless(program: Program) -> str:
    """The text of a program, independent of its names and of the order of its parameters.

    Two programs with the same text are the same expression up to names.
    """
    numbers = itertools.count()

    def numbered(expr: Expr, by: Mapping[Param, Param]) -> Expr:
        match expr:
            case Param():
                return by.get(expr, expr)
            case Tuple(elements):
                return Tuple(tuple(numbered(e, by) for e in elements))
            case FunCall(fun, args):
                parts = tuple(numbered(a, by) for a in args)
                function = function_of(fun)
                if function is not None:
                    own = {p: Param(f"x{next(numbers)}", p.type) for p in function.params}
                    body = numbered(function.body, {**by, **own})
                    fun = with_function(fun, Lambda(tuple(own.values()), body))
                return FunCall(fun, parts)
            case _:
                return expr

    mentioned = (e for _, e in top_down(program.body.body) if isinstance(e, Param))
    params = [p for p in dict.fromkeys((*mentioned, *program.params)) if p in program.params]
    own = {p: Param(f"p{k}", p.type) for k, p in enumerate(params)}
    constants = frozenset(own[p].name for p in params if p.name in program.constants)
    body = numbered(program.body.body, own)
    return show(Program("stage", Lambda(tuple(own.values()), body), constants), canonical=True)


# --- where a program may be cut -------------------------------------------------------------------


def unshadowed(expr: Expr, taken: frozenset[str]) -> Expr:
    """Rename the variables of an expression's first lets: all differ, and none is in `taken`."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Lambda) or len(expr.args) != 1:
        return expr
    (param,), body = expr.fun.params, expr.fun.body
    if param.name in taken:
        own = Param(fresh(param.name, taken | bound_names(body)), param.type)
        body, param = substitute(body, {param: own}), own
    body = unshadowed(body, taken | {param.name})
    return FunCall(Lambda((param,), body), expr.args)


def all_cut(expr: Expr) -> Success:
    """Move every cut of an expression into a `let` at its beginning."""
    form, depth = Success(expr), 0
    while True:
        here = at(form.expr, (1,) * depth)
        named = is_let(here)
        found = moved_out(here) if named else succeeded(APART, here) or introduced(here, ())
        if found is None:
            if not named:
                return without_unused(form)
            depth += 1
            continue
        form = taken_further(form, (1,) * depth, lambda _, found=found: found)


def taken_further(form: Success, path: Path, strategy: Strategy) -> Success:
    """Apply a strategy, which must succeed, to the part of a form at a path."""
    result = at_path(path, strategy)(form.expr)
    if isinstance(result, Failure):
        raise InternalError(str(result))
    return Success(result.expr, (*form.steps, *result.steps))


def without_unused(form: Success) -> Success:
    """Remove those of a form's first lets whose variable is never read."""
    depth = sum(1 for _ in lets(form.expr))
    for k in reversed(range(depth)):
        let = next(itertools.islice(lets(form.expr), k, None))
        if parameter(let) not in at(let, (1,)).free:
            form = taken_further(form, (1,) * k, rule("let_inline"))
    return form


def moved_out(let: Expr) -> Success | None:
    """Move a let, a cheap value or a cut out of a let's value, one step; None if it has none."""
    value = at(let, (0,))
    apart = succeeded(choose(rule("let_of_let"), at_path((0,), APART)), let)
    if apart is not None:
        return apart
    if is_cheap(value):
        return succeeded(seq(rule("let_inline"), normalize(COMPONENTS)), let)
    for path in components(value, (0,)):
        return succeeded(rule("let_introduction", {"v": path}), let)
    return introduced(let, (0,))


def is_cheap(value: Expr) -> bool:
    """Whether a value is not worth a kernel: a view, a few scalar operators, a tuple of these."""
    if not computes(value):
        return True
    if isinstance(value, Tuple):
        return all(map(is_cheap, value.elements))
    parts = [part for _, part in itertools.islice(top_down(value), MOST_INLINED + 1)]
    return len(parts) <= MOST_INLINED and not any(isinstance(e.type, ArrayType) for e in parts)


def components(value: Expr, path: Path) -> Iterator[Path]:
    """The paths of the components of a tuple that compute, so that each is stored separately."""
    for k, part in enumerate(value.elements if isinstance(value, Tuple) else ()):
        if isinstance(part, Tuple):
            yield from components(part, (*path, k))
        elif not is_cheap(part):
            yield (*path, k)


def introduced(expr: Expr, path: Path) -> Success | None:
    """Introduce a `let` for the first cut in the part at a path: a value of a `let`, or a stage."""
    whole = at(expr, path)
    named = (
        (*inner, k)
        for inner, part in outside_functions(whole)
        if isinstance(part, FunCall) and isinstance(part.fun, Lambda)
        for k, value in enumerate(part.args)
        if not is_cheap(value)
    )
    for inner in itertools.chain(named, stages(whole)):
        place = (*path, *inner)
        if at(expr, place).free <= expr.free:
            found = succeeded(rule("let_introduction", {"v": place}), expr)
            # a variable bound around the part may have the same name as a free one
            if found is not None and isinstance(at(found.expr, (1, *place)), Param):
                return found
    return None


def succeeded(strategy: Strategy, expr: Expr) -> Success | None:
    """The result of a strategy; None if it fails."""
    result = strategy(expr)
    return None if isinstance(result, Failure) else result


def uses(
    expr: Expr, param: Param, path: Path = (), *, repeated: bool = False
) -> Iterator[tuple[Path, bool]]:
    """The paths at which a variable is used, each with whether a map or a fold repeats the use."""
    if param not in expr.free:
        return
    if expr == param:
        yield path, repeated
        return
    parts = children(expr)
    inside = len(expr.args) if isinstance(expr, FunCall) else len(parts)
    again = isinstance(expr, FunCall) and isinstance(expr.fun, Primitive)
    function = function_of(expr.fun) if isinstance(expr, FunCall) else None
    if function is not None and param in function.params:  # another variable of the same name
        parts = parts[:inside]
    for k, part in enumerate(parts):
        yield from uses(part, param, (*path, k), repeated=repeated or (again and k >= inside))


def is_unambiguous(name: str) -> bool:
    """Whether a name can serve for a cut: it means nothing else in keys and settings."""
    return name.isidentifier() and name != RESULT and name not in SETTINGS


def cuts_of(form: Expr, given: Iterable[str], own: set[str]) -> list[Cut]:
    """The cuts of a form made by `all_cut`; `own` has the names that the user chose."""
    taken = {*given, *own, RESULT, *(parameter(let).name for let in lets(form))}
    found: list[Cut] = []
    for let in lets(form):
        param = parameter(let)
        name = param.name
        known = name in own and all(cut.name != name for cut in found)
        if not known or not is_unambiguous(name):
            name = next(n for k in itertools.count(1) if (n := f"stage{k}") not in taken)
            taken.add(name)
        readers = list(uses(at(let, (1,)), param))
        tuples = isinstance(param.type, TupleType)
        optional = len(readers) == 1 and not readers[0][1] and not tuples
        found.append(Cut(name, param, let.args[0], optional))
    return found


# --- which cuts are stored ------------------------------------------------------------------------


@lru_cache(maxsize=64)
def partitions(program: Program) -> tuple[Partition, ...]:
    """Every way to cut a program into stages, the one with the fewest stages first.

    At most one of the cuts fused into a stage may have elements that its reader computes more than
    once. ConstraintRefused for a program with open sizes: the choices depend on their numbers.
    """
    if opened := size_ranges(program):
        names = ", ".join(show_range(name, *ends) for name, ends in opened.items())
        given = ", ".join(f'"{name}": ...' for name in opened)
        raise ConstraintRefused(
            f"{program.name} has open sizes, but lowering needs numbers: {names}\n"
            f"  give numbers with lp.at_sizes(program, {{{given}}})"
        )
    body = program.body.body
    form = all_cut(body)
    form = replace(form, expr=unshadowed(form.expr, frozenset(p.name for p in program.params)))
    own = bound_names(body)
    cuts = cuts_of(form.expr, (p.name for p in program.params), own)
    optional = [cut for cut in cuts if cut.optional]
    regions = Regions(cuts, at(form.expr, (1,) * len(cuts)))
    found: list[Partition] = []
    for fused in choices(optional, regions):
        stages = regions.of(fused)
        if stages is None:
            continue
        left = [cut for cut in cuts if cut.param not in fused]
        values = {cut.param: value for cut, value in zip(left, stages, strict=False)}
        holdable = [cut for cut in left if cut.optional and may_be_held(cut.param, values, stages)]
        sets = held_sets([cut.param for cut in holdable])
        for held in sets if len(optional) <= MOST_OPTIONAL or not found else [frozenset()]:
            made = partition(program, form, cuts, (fused, held))
            if made is not None:
                found.append(made)
    return tuple(sorted(found, key=lambda made: len(made.stages)))


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


def recomputes(stage: Expr) -> int:
    """The number of arrays of folds in a stage that are recomputed at each reading."""
    inward = fused_inward(stage)
    if isinstance(inward, Failure):
        return sum(1 for _ in stages(stage)) + sum(1 for _ in invariant(stage))
    return sum(1 for _ in invariant(inward.expr))


def has_vectors(expr: Expr) -> bool:
    """Whether an expression makes arrays of vectors."""
    types = (e.type for _, e in top_down(expr))
    return any(isinstance(t, ArrayType) and isinstance(t.element, VectorType) for t in types)


def makes_folds(expr: Expr) -> bool:
    """Whether a map in an expression folds; lanes can read its result only if it is stored."""
    maps = (e for _, e in top_down(expr) if isinstance(e, FunCall) and isinstance(e.fun, Map))
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
) -> Partition | None:
    """The partition with the fused and the held cuts in `inside`; None if these cannot be held."""
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
            if params and {p.name for p in params} <= constants:
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


def renamed(expr: Expr, path: Path, name: str) -> Expr:
    """Rename the variable of the `let` at a path."""
    let = next(lets(at(expr, path)))
    param = parameter(let)
    own = Param(name, param.type)
    body = substitute(at(let, (1,)), {param: own})
    return replace_at(expr, path, FunCall(Lambda((own,), body), let.args))


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


# --- skeletons of stages, and their composition ---------------------------------------------------


def prefixed(stage: str, name: str) -> str:
    """The name of a stage's setting in a program of several stages."""
    return f"{stage}.{name}"


@lru_cache(maxsize=512)
def derived_once(stage: str, family: str, program: Derived) -> tuple[Skeleton, ...]:
    """The skeletons that a family has for a stage with this text."""
    del stage
    made = skeletons_of(FAMILIES[family], program.program)
    return () if isinstance(made, str) else tuple(made)


@dataclass(frozen=True)
class Derived:
    """A stage's program as a cache key that compares equal to any other; only the text counts."""

    program: Program = field(compare=False, hash=False)


@lru_cache(maxsize=64)
def form_once(stage: str, family: str, program: Derived) -> tuple[Form, Program] | None:
    """The form that a family finds in a stage with this text, and the program with its variables.

    None if the family does not apply.
    """
    del stage
    found = FAMILIES[family].match(shape_of(program.program)) if family in FAMILIES else ""
    return None if isinstance(found, str) else (found, program.program)


@lru_cache(maxsize=512)
def derived_alone(stage: str, family: str, key: str, program: Derived) -> Skeleton | None:
    """The skeleton of a family with this key, for a stage with this text; None if there is none."""
    found = form_once(stage, family, program)
    return None if found is None else skeleton_of_key(family, *found, key)


def stage_skeletons(
    partition: Partition, stage: Stage, families: Iterable[str] | None = None
) -> Iterator[Skeleton]:
    """The skeletons of a stage, derived once for all stages that differ only in names."""
    for family in families or FAMILIES:
        if not stage.is_for(family):
            continue
        for made in derived_once(stage.text, family, Derived(stage.canonical)):
            yield of_stage(made, partition, stage)


def skeletons(program: Program, families: Iterable[str] | None = None) -> tuple[Skeleton, ...]:
    """The skeletons of a program as one stage; none if the program has to be cut."""
    return tuple(
        skeleton
        for partition in partitions(program)
        if partition.is_whole
        for skeleton in stage_skeletons(partition, partition.stages[0], families)
    )


def examples(program: Program) -> Iterator[Skeleton]:
    """Skeletons of a program that together contain every skeleton of each stage.

    A partition into several stages has as many as its stage with the most skeletons.
    """
    for partition in partitions(program):
        made = [[*stage_skeletons(partition, stage)] for stage in partition.stages]
        for k in range(max(map(len, made)) if all(made) else 0):
            yield composed(partition, [group[k % len(group)] for group in made])


def skeleton(program: Program, key: str) -> Skeleton | None:
    """The skeleton of a program with this key, derived separately; None if there is none."""
    keys = keys_of_stages(key)
    for partition in partitions(program):
        if [stage.name for stage in partition.stages] == [*keys]:
            made = [of_key(partition, stage, keys[stage.name]) for stage in partition.stages]
            found = [one for one in made if one is not None]
            if len(found) == len(made):
                return composed(partition, found)
    return None


def of_key(partition: Partition, stage: Stage, key: str) -> Skeleton | None:
    """The skeleton of a stage with this key; None if there is none."""
    family, _, words = key.partition("(")
    within = ", ".join(f"{name}={word}" for name, word in stage.within)
    if not words.startswith(within):
        return None
    own = words.removeprefix(within).removeprefix(", ")
    made = derived_alone(stage.text, family, f"{family}({own}", Derived(stage.canonical))
    return None if made is None else of_stage(made, partition, stage)


def key_of_stages(keys: Iterable[tuple[str, str]]) -> str:
    """The key of the skeleton composed of the skeletons of stages.

    >>> key_of_stages([("scores", "plain(map=glb0)"), ("result", "plain(map=glb0)")])
    'scores=plain(map=glb0); result=plain(map=glb0)'
    """
    return "; ".join(f"{stage}={key}" for stage, key in keys)


def keys_of_stages(key: str) -> dict[str, str]:
    """The key of each stage's skeleton, by the stage's name.

    >>> keys_of_stages("scores=plain(map=glb0); result=plain(map=glb0)")
    {'scores': 'plain(map=glb0)', 'result': 'plain(map=glb0)'}
    >>> keys_of_stages("plain(map=glb0)")
    {'result': 'plain(map=glb0)'}
    """
    if "=" not in key.partition("(")[0]:
        return {RESULT: key}
    parts = (part.partition("=") for part in key.split("; "))
    return {stage: own for stage, _, own in parts}


@dataclass(frozen=True)
class Composition:
    """The lowering of a program, composed of the lowerings of its stages in order.

    It is computed on first use: a draw needs only choices and sizes.
    """

    partition: Partition
    made: tuple[Skeleton, ...]

    @property
    def program(self) -> LoweredProgram:
        """The programs of the stages in nested lets."""
        return self.whole.program

    @property
    def derivation(self) -> Derivation:
        """The steps that cut the program, then those of each stage at its place."""
        return self.whole.derivation

    @cached_property
    def whole(self) -> Lowered:
        """The lowered program and the steps that lead to it."""
        steps = list(self.partition.steps)
        lowered = [own.program.body.body for own in self.made]
        for depth, own in enumerate(self.made):
            last = depth == len(self.made) - 1
            place = (1,) * depth if last else (*(1,) * depth, 0)
            steps += (step.moved(place) for step in own.derivation.steps)
            if not last and not in_global(lowered[depth]):
                steps.append(Step("to_global", place))
                lowered[depth] = call(ToGlobal(), lowered[depth])
        body = lowered[-1]
        for stage, value in zip(self.partition.stages[-2::-1], lowered[-2::-1], strict=True):
            if stage.param is not None:
                body = call(Lambda((stage.param,), body), value)
        of = self.partition.program
        program = LoweredProgram(of.name, Lambda(of.params, body), of.constants)
        return Lowered(program, Derivation(of.body.body, tuple(steps), body))


@dataclass(frozen=True)
class StagedSkeleton(Skeleton):
    """A skeleton composed of the skeletons of stages, by the names of the stages."""

    stages: tuple[tuple[str, Skeleton], ...] = ()

    @property
    def key(self) -> str:
        """A stable name: `scores=direct(pad=fused, level=glb); result=plain(map=glb0)`."""
        return key_of_stages((name, own.key) for name, own in self.stages)

    @property
    def words(self) -> dict[str, str]:
        """The choices of the partition, and those of each stage with its name as a prefix."""
        words = super().words
        for name, own in self.stages:
            words |= stage_words(name, own)
        return words

    @property
    def stored(self) -> tuple[Param, ...]:
        """The variables of the stages' values in its program, except that of the result.

        Their types are those of the values. Lengths in them may be written differently than in the
        stages.
        """
        first = itertools.islice(lets(self.program.body.body), len(self.stages) - 1)
        return tuple(map(parameter, first))


def stage_words(stage: str, skeleton: Skeleton) -> dict[str, str]:
    """The choices of a stage with its name as a prefix; cuts are choices of the partition."""
    words = {FAMILY: skeleton.family, **dict(skeleton.choices[skeleton.cuts :])}
    return {prefixed(stage, name): word for name, word in words.items()}


def composed(partition: Partition, made: Sequence[Skeleton]) -> Skeleton:
    """The skeleton of a program from those of its stages, one per stage, in order."""
    if partition.is_whole:
        return made[0]
    return StagedSkeleton(
        STAGES,
        partition.words,
        Composition(partition, tuple(made)),
        tuple(p for own in made for p in own.parameters),
        stages=tuple((stage.name, own) for stage, own in zip(partition.stages, made, strict=True)),
    )


def in_global(expr: Expr) -> bool:
    """Whether an expression is a `toGlobal`."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)


@lru_cache(maxsize=4096)
def of_stage(made: Skeleton, partition: Partition, stage: Stage) -> Skeleton:
    """Transfer a skeleton of the canonical stage to this stage.

    In a partition of several stages, the stage's name becomes a prefix of the names of its sizes.
    In a partition of one stage, the result is a skeleton of the program.
    """
    choices = (*stage.within, *made.choices)
    own = made.program
    if partition.is_whole:
        program = partition.program
        start, steps = program.body.body, (*partition.steps, *made.derivation.steps)
        lowered = LoweredProgram(
            program.name, Lambda(program.params, own.body.body), program.constants
        )
        derivation = Derivation(start, steps, made.derivation.result)
        return replace(
            made,
            choices=choices,
            cuts=len(stage.within),
            lowering=Lowered(lowered, derivation),
        )
    by: dict[Param, Expr] = {
        p: mine for p, mine in zip(own.params, stage.program.params, strict=True) if p != mine
    }
    sizes = {p.name: var(prefixed(stage.name, p.name), p.low, p.high) for p in made.parameters}
    body = substitute_sizes(substitute(own.body.body, by) if by else own.body.body, sizes)
    steps = tuple(step.renamed(sizes) for step in made.derivation.steps)
    lowered = LoweredProgram(
        stage.program.name, Lambda(stage.program.params, body), stage.program.constants
    )
    return Skeleton(
        made.family,
        choices,
        Lowered(lowered, Derivation(stage.program.body.body, steps, body)),
        tuple(replace(p, name=prefixed(stage.name, p.name)) for p in made.parameters),
        len(stage.within),
    )
