"""Small skeletons: derived by rules as strategies do it, or lowered by hand to test one limit."""

from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import add, array_type, map, program, reduce, slide
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.composition import of_key, stage_skeletons
from liftpy.rewrite.proof_cache import admit
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.skeleton import Lowered, Parameter, Skeleton
from liftpy.rewrite.strategies.lower import sequential
from liftpy.rewrite.strategy import Derivation, derive, derived, outermost, rule, seq
from tests.staged import by_definition


def apply(name, **given):
    """A rule by name, taken as proved."""
    admit(RULES[name])
    return rule(name, **given)


def skeleton(source, strategy, *parameters):
    """A program lowered by a strategy."""
    derivation = derive(source.body.body, strategy)
    lowered = LoweredProgram.of(derived(source, derivation))
    return Skeleton("example", (), Lowered(lowered, derivation), parameters)


def by_hand(lowered, *parameters):
    """A program written in lowered form."""
    derivation = Derivation(lowered.body.body, (), lowered.body.body)
    return Skeleton("by hand", (), Lowered(LoweredProgram.of(lowered), derivation), parameters)


def doubling(length=96, low=1):
    """Twice a vector: chunks of `chunk` elements to work-groups, elements to work-items."""
    chunk = Parameter("chunk", low, length, "elements of a work-group")

    @program
    def twice(xs: array_type(F32, length)):
        return xs >> map(lambda x: x + x)

    strategy = seq(
        apply("split_join", m=chunk.nat),
        outermost(apply("map_to_wrg_0")),
        outermost(apply("map_to_lcl_0")),
    )
    return skeleton(twice, strategy, chunk)


def window_sums(length=48):
    """Sums of windows of three: windows in chunks, and in overlapping tiles."""
    tile = Parameter("tile", 3, length, "elements of a tile")
    chunk = Parameter("chunk", 1, 64, "windows of a work-item")

    @program
    def sums(xs: array_type(F32, length)):
        return xs >> slide(3, 1) >> map(reduce(add, 0))

    strategy = seq(
        apply("split_join", m=chunk.nat),
        outermost(apply("slide_tiling", tile=tile.nat)),
        sequential(),
    )
    return skeleton(sums, strategy, tile, chunk)


def skeletons_by_definition(program: Program) -> tuple[Skeleton, ...]:
    """The skeletons of a program as one stage, without those that compute by F(m, r)."""
    whole = (partition for partition in by_definition(program) if partition.is_whole)
    return tuple(s for p in whole for s in stage_skeletons(p, p.stages[0]))


def skeleton_by_definition(program: Program, key: str) -> Skeleton:
    """The skeleton of `skeletons_by_definition` with this key; the others are not derived."""
    whole = (partition for partition in by_definition(program) if partition.is_whole)
    return next(s for p in whole if (s := of_key(p, p.stages[0], key)) is not None)
