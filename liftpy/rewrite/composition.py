"""Skeletons of a program, composed of the skeletons of its stages.

Each stage is derived separately, and stages that are equal up to names are derived once; `composed`
joins their skeletons into one of the whole program.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

from liftpy.ir.call import FunCall, call, substitute
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, var
from liftpy.ir.program import Program
from liftpy.ir.walk import substitute_sizes
from liftpy.primitives import ToGlobal
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.bank import Bank, Prove, nothing_proved
from liftpy.rewrite.cuts import RESULT
from liftpy.rewrite.forms import in_turn, partitions
from liftpy.rewrite.partition import GIVEN_POINTS, Partition
from liftpy.rewrite.rules.correlation import PointsOf, points_of_word
from liftpy.rewrite.skeleton import FAMILY, Lowered, Skeleton, key_of
from liftpy.rewrite.stages import Stage
from liftpy.rewrite.strategies.families import (
    FAMILIES,
    choices_of,
    derived,
    has_its_images,
    shape_of,
    skeletons_of,
)
from liftpy.rewrite.strategies.families.form import Choices, Form
from liftpy.rewrite.strategies.families.plain import PLAIN
from liftpy.rewrite.strategies.shapes import lets, parameter
from liftpy.rewrite.strategy import Derivation, Failure, Step

STAGES = "stages"  # the family of a skeleton of several stages


def prefixed(stage: str, name: str) -> str:
    """The name of a stage's setting in a program of several stages."""
    return f"{stage}.{name}"


@lru_cache(maxsize=512)
def derived_once(
    stage: str, family: str, program: Derived, *, images: bool = False
) -> tuple[Skeleton, ...]:
    """The skeletons that a family has for a stage with this text."""
    del stage
    made = skeletons_of(FAMILIES[family], program.program, images=images)
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
    found = FAMILIES[family].match(shape_of(family, program.program)) if family in FAMILIES else ""
    return None if isinstance(found, str) else (found, program.program)


@lru_cache(maxsize=512)
def derived_alone(stage: str, family: str, choices: Choices, program: Derived) -> Skeleton | None:
    """The skeleton of a family with these choices, for a stage with this text.

    None if there is none.
    """
    found = form_once(stage, family, program)
    made = None if found is None else derived(family, *found, choices)
    return None if isinstance(made, Failure) else made


def every_choice(stage: Stage, family: str, *, images: bool = False) -> Iterator[Choices]:
    """The choices of each skeleton that a family has for a stage; none is derived."""
    found = form_once(stage.key, family, Derived(stage.canonical)) if stage.is_for(family) else None
    return iter(()) if found is None else choices_of(FAMILIES[family], *found, images=images)


def stage_skeletons(
    partition: Partition,
    stage: Stage,
    families: Iterable[str] | None = None,
    *,
    images: bool = False,
) -> Iterator[Skeleton]:
    """The skeletons of a stage, derived once for all stages that differ only in names.

    `images` adds those that read arrays through images. `families`, by default the `usual` ones, do
    not restrict stages that only `plain` makes.
    """
    if stage.converts and stage.runs_once:  # one form is enough: its time does not count
        anything = skeletons_with(partition, stage, [PLAIN.name], lambda _: True)
        yield from itertools.islice(anything, 1)
        return
    for family in [PLAIN.name] if stage.only_plain else families or usual():
        if not stage.is_for(family):
            continue
        whole = partition if partition.is_whole else None
        yield from of_family(stage.key, family, stage, whole, images=images)


def skeletons_with(
    partition: Partition,
    stage: Stage,
    families: Iterable[str],
    fits: Callable[[Choices], bool],
    *,
    images: bool = False,
) -> Iterator[Skeleton]:
    """Those of `stage_skeletons` whose choices fit, each derived when it is reached.

    They are the same ones because all choices of a form can be derived, or none (`Form.choices`).
    """
    for family in families:
        for choices in filter(fits, every_choice(stage, family, images=images)):
            made = derived_alone(stage.key, family, choices, Derived(stage.canonical))
            if made is None:
                break
            if not has_its_images(made, choices):
                continue
            yield of_stage(made, partition, stage)


@lru_cache(maxsize=512)
def of_family(
    text: str, family: str, stage: Stage, whole: Partition | None, *, images: bool = False
) -> tuple[Skeleton, ...]:
    """The skeletons of a family for a stage with this text, for all partitions that have the stage.

    `whole` is the partition if the stage is the whole program.
    """
    made = derived_once(text, family, Derived(stage.canonical), images=images)
    if whole is not None:
        return tuple(in_whole(one, whole) for one in made)
    renaming = Renaming(stage)
    return tuple(renaming.in_part(one) for one in made)


def skeletons(program: Program, families: Iterable[str] | None = None) -> tuple[Skeleton, ...]:
    """The skeletons of a program as one stage; none if the program has to be cut."""
    return tuple(
        skeleton
        for partition in partitions(program)
        if partition.is_whole
        for skeleton in stage_skeletons(partition, partition.stages[0], families)
    )


def usual(named: Iterable[str] = ()) -> tuple[str, ...]:
    """The families that need not be named, nor special instructions, and those that are named."""
    named = {*named}
    return tuple(
        name for name, f in FAMILIES.items() if name in named or not (f.if_named or f.instructions)
    )


def examples(program: Program, named: Iterable[str] = ()) -> Iterator[Skeleton]:
    """Skeletons of a program that together contain every skeleton of each stage.

    A partition into several stages has as many as its stage with the most skeletons. `named` are
    families beside the `usual` ones.
    """
    families = usual(named)
    for partition in partitions(program):
        made = [[*stage_skeletons(partition, stage, families)] for stage in partition.stages]
        for k in range(max(map(len, made)) if all(made) else 0):
            yield composed(partition, [group[k % len(group)] for group in made])


def skeleton_named(program: Program, key: str, prove: Prove = nothing_proved) -> Skeleton | None:
    """The skeleton of a program with this key, derived separately; None if there is none.

    `prove` proves the rules from given points, which the key contains.
    """
    keys = keys_of_stages(key)
    for partition in in_turn(program, Bank(points_of_key(key), prove)):
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

    def is_named(choices: Choices) -> bool:
        return key_of(family, choices) == f"{family}({own}"

    return next(skeletons_with(partition, stage, (family,), is_named, images=True), None)


def points_of_key(key: str) -> PointsOf:
    """The points of F(m, r) in the key of a skeleton; none if they are the usual ones.

    >>> points_of_key("inputs=small(winograd=4, winograd_points=2.2_0_1/2); result=plain(map=glb0)")
    (((2, 2), (Fraction(0, 1), Fraction(1, 2))),)
    """
    found = re.search(rf"\b{GIVEN_POINTS}=([^,)]+)", key)
    return points_of_word(found[1]) if found else ()


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
            if stage.param is not None:  # the stages that read it use its own lengths
                body = FunCall(Lambda((stage.param,), body), (value,))
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

        Each has the type with which the stages were derived. The value that it names may have the
        same lengths, written with sizes of its own stage.
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


def of_stage(made: Skeleton, partition: Partition, stage: Stage) -> Skeleton:
    """Transfer a skeleton of the canonical stage to this stage of a partition."""
    return in_whole(made, partition) if partition.is_whole else Renaming(stage).in_part(made)


def in_whole(made: Skeleton, partition: Partition) -> Skeleton:
    """Transfer a skeleton of the only stage of a partition to the program."""
    (stage,) = partition.stages
    program = partition.program
    own = made.program.body.body
    lowered = LoweredProgram(program.name, Lambda(program.params, own), program.constants)
    steps = (*partition.steps, *made.derivation.steps)
    derivation = Derivation(program.body.body, steps, made.derivation.result)
    return replace(
        made,
        choices=(*stage.within, *made.choices),
        cuts=len(stage.within),
        lowering=Lowered(lowered, derivation),
    )


Sizes: TypeAlias = tuple[tuple[str, Nat], ...]


@dataclass(frozen=True)
class Renaming:
    """Transfers skeletons of the canonical stage to one of the stages of a program.

    The stage's name becomes a prefix of the names of its sizes. Skeletons that share parts still do
    afterwards: `seen` are those whose parts were renamed, and the other two have the results.
    """

    stage: Stage
    seen: list[Skeleton] = field(default_factory=list[Skeleton])
    variables: dict[int, Expr] = field(default_factory=dict[int, Expr])
    sizes: dict[Sizes, dict[int, Expr]] = field(default_factory=dict[Sizes, dict[int, Expr]])

    def in_part(self, made: Skeleton) -> Skeleton:
        """The skeleton in the stage."""
        stage, own = self.stage, made.program
        self.seen.append(made)
        by: dict[Param, Expr] = {
            p: mine for p, mine in zip(own.params, stage.program.params, strict=True) if p != mine
        }
        sizes = {p.name: var(prefixed(stage.name, p.name), p.low, p.high) for p in made.parameters}
        body = substitute(own.body.body, by, self.variables) if by else own.body.body
        steps = made.derivation.steps
        if sizes:
            body = substitute_sizes(body, sizes, self.sizes.setdefault(tuple(sizes.items()), {}))
            steps = tuple(step.renamed(sizes) for step in steps)
        lowered = LoweredProgram(
            stage.program.name, Lambda(stage.program.params, body), stage.program.constants
        )
        return Skeleton(
            made.family,
            (*stage.within, *made.choices),
            Lowered(lowered, Derivation(stage.program.body.body, steps, body)),
            tuple(replace(p, name=prefixed(stage.name, p.name)) for p in made.parameters),
            len(stage.within),
        )
