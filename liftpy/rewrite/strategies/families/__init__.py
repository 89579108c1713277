"""The families of derivations that a campaign explores, each with its sizes and choices.

A family looks at one stage (`liftpy.rewrite.partition`), and applies if the stage has the shape
that it looks for; otherwise `skeletons_of` returns the reason. Each family is a file in this
folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from liftpy.errors import InternalError
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.walk import has_call
from liftpy.primitives import AsImage
from liftpy.primitives.dialects import LoweredProgram
from liftpy.primitives.lowered import TEXEL
from liftpy.rewrite.skeleton import FAMILY, Lowered, Parameter, Skeleton
from liftpy.rewrite.strategies.by_index import reads_at_data
from liftpy.rewrite.strategies.families.blocked import BANDED, BLOCKED, HOLDING
from liftpy.rewrite.strategies.families.broadcast import BROADCAST
from liftpy.rewrite.strategies.families.chunked import CHUNKED
from liftpy.rewrite.strategies.families.cooperative import COOPERATIVE
from liftpy.rewrite.strategies.families.direct import DIRECT
from liftpy.rewrite.strategies.families.dots import DOTS
from liftpy.rewrite.strategies.families.form import Choices, Family, Form
from liftpy.rewrite.strategies.families.local import LOCAL
from liftpy.rewrite.strategies.families.partial import PARTIAL
from liftpy.rewrite.strategies.families.plain import PLAIN
from liftpy.rewrite.strategies.families.planes import PLANES
from liftpy.rewrite.strategies.families.rows import ROWS
from liftpy.rewrite.strategies.families.sliced import SLICED
from liftpy.rewrite.strategies.families.small import SMALL
from liftpy.rewrite.strategies.families.staged import STAGED
from liftpy.rewrite.strategies.families.subgroups import BY_SUBGROUPS
from liftpy.rewrite.strategies.families.tiled import TILED
from liftpy.rewrite.strategies.families.tree import TREE
from liftpy.rewrite.strategies.families.unshared import UNSHARED
from liftpy.rewrite.strategies.images import (
    CONSTANTS,
    IMAGES,
    KINDS,
    image_words,
    through_images,
)
from liftpy.rewrite.strategies.lower import layouts_inlined, plain
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.repeated import store_repeated
from liftpy.rewrite.strategies.results import results_exposed
from liftpy.rewrite.strategy import Derivation, Failure, Strategy, identity, seq


def without_data_indices(family: Family) -> Family:
    """A family that does not apply to stages with data-dependent indices.

    The lanes of a vector cannot read at such indices, and a block cannot hold bins in registers.
    """

    def match(program: Program) -> Form | str:
        if reads_at_data(program.body.body):
            return "a stage with data-dependent indices has no vector or block form"
        return family.match(program)

    return replace(family, match=match)


FAMILIES: dict[str, Family] = {
    f.name: f if f is PLAIN else without_data_indices(f)
    for f in (
        PLAIN,
        DIRECT,
        DOTS,
        PARTIAL,
        CHUNKED,
        ROWS,
        TILED,
        LOCAL,
        STAGED,
        SMALL,
        BLOCKED,
        BANDED,
        COOPERATIVE,
        SLICED,
        PLANES,
        UNSHARED,
        TREE,
        BY_SUBGROUPS,
        BROADCAST,
    )
}

CHOICES = {
    FAMILY: "how the stage is lowered; stages: each stage has a family",
    "bins": "how a reduction by index is computed",
    "pack": "the inputs that each run packs into panels",
    "pad": "what is stored of a padded or windowed input; classes: code for each class of border",
    "level": "whether work-items (glb), work-groups (wrg) or subgroups share the work",
    "lanes": "the map along which vectors or the columns of a tile run",
    "loops": "the order of a reduction's loops",
    "tail": "whether blocks divide the length, or the last two may overlap",
    "stores": "whether stores go through the caches or bypass them",
    "rows": "whether an operand is read as it is, or stored in columns first",
    "map": "the level of each map, the outermost first",
    "flat": "whether two nested maps are joined into one",
    "vector": "whether the innermost map is vectorized",
    "arrays": "the memory that holds named arrays of a row; again: they are recomputed",
    "passes": "whether the two folds of a row take one pass or two",
    "inside": "the number of maps around blocks or passes",
    "hold": "the memory that holds the values or windows of a block",
    "items": "whether one work-item, many or all compute a block; all: by a kernel for each value",
    "form": "the family that computes a value of a block",
    "strided": "whether a work-item folds elements at a stride, not adjacent ones",
    "stage": "what is copied to local memory",
    "coalesce": "whether adjacent work-items read adjacent elements",
    "unroll": "whether innermost reductions are unrolled",
    "sums": "the type in which exact sums of integers are computed",
    "operands": "the type in which operands of exact sums are stored",
    "stationary": "the map, of two, whose elements a work-item keeps for several blocks",
    "sets": "kept: all sets of a reduction for each block; shared: each set for all blocks",
    "winograd": "the results of a tile of F(m, r), and the variant of the algorithm",
    "winograd_points": "the points of F(m, r)",
    "axes": "whether windows are folded one axis after the other",
    "chunks": "whether chunks divide the reduction, or zeros fill the last one",
    "widen": "copy: stored numbers are converted once, as a tile is copied, not at each use",
    "buffers": "the number of buffers to which chunks are copied in turn",
    "parts": "whether reductions are cut into parts, whose results another kernel reduces",
    "steps": "the number of halvings in a tree",
    "last": "whether a work-item or a group folds the results of all groups",
    IMAGES: "the arrays that are read through images",
}
"""The choices of families and forms, with their meanings."""

SIZES = "kappa sigma v chunk strip tile0 tile1 theta rho omega block turns gap part group"
SETTINGS = frozenset({*CHOICES, *SIZES.split()})
"""The names of all choices and sizes of families; a cut may not have one of them."""


def meaning_of(choice: str) -> str:
    """The meaning of a choice; the names of its stage and of a held value may precede its own.

    >>> meaning_of("result.products.level")
    'whether work-items (glb), work-groups (wrg) or subgroups share the work'
    >>> meaning_of("inputs")
    'whether a value is stored (in which type), held for a block or fused with its reader'
    """
    known = CHOICES.get(choice.rpartition(".")[2])
    return known or (
        "whether a value is stored (in which type), held for a block or fused with its reader"
    )


def choices_of(
    family: Family, form: Form, program: Program, *, images: bool = False
) -> Iterator[Choices]:
    """The choices of each skeleton of a family; `images` adds those that read through images."""
    words = image_words(program) if images and family.vectors else ()
    for choices in form.choices():
        yield choices
        if ("vector", "no") not in choices:
            yield from ((*choices, (IMAGES, word)) for word in words)


def in_texels(size: Parameter) -> Parameter:
    """A size; the vectors that a work-item loads from constants have at least a texel.

    (A work-group copies arrays to local memory by elements, and loads vectors from there.)
    """
    return replace(size, low=TEXEL) if size.name == "v" else size


def skeletons_of(family: Family, program: Program, *, images: bool = False) -> list[Skeleton] | str:
    """The skeletons of a family for a stage, or why it does not apply."""
    form = family.match(shape_of(family.name, program))
    if isinstance(form, str):
        return f"{family.name}: {form}"
    found: list[Skeleton] = []
    for choices in choices_of(family, form, program, images=images):
        made = derived(family.name, form, program, choices)
        if isinstance(made, Failure):
            return f"{family.name}: {made}"
        if has_its_images(made, choices):
            found.append(made)
    return found


def has_its_images(made: Skeleton, choices: Choices) -> bool:
    """Whether a skeleton with the choice `images` reads an array through an image.

    It does not if kernels read such arrays only from copies that are not whole texels.
    """
    return IMAGES not in dict(choices) or has_call(made.program.body.body, AsImage)


_START = remembered(seq(results_exposed(), layouts_inlined(), store_repeated(plain())))
_HOLDING = remembered(seq(results_exposed(), layouts_inlined(), store_repeated(plain(), held=True)))


def start_of(family: str) -> Strategy:
    """What precedes the strategy of a family.

    It exposes the maps that make results, inlines lets of layouts, and makes kernels for values
    that are read again and again.
    """
    return _HOLDING if family in HOLDING else _START


def shape_of(family: str, program: Program) -> Program:
    """The program that a family looks at: the stage after `start_of`.

    Most stages have no such lets or values and are returned unchanged.
    """
    result = start_of(family)(program.body.body)
    if isinstance(result, Failure) or not result.steps:
        return program
    return Program(program.name, Lambda(program.params, result.expr), program.constants)


def derived(family: str, form: Form, program: Program, choices: Choices) -> Skeleton | Failure:
    """The skeleton for these choices; the sizes that its derivation uses are open."""
    own = dict(choices)
    word = own.pop(IMAGES, None)
    parameters = form.parameters(own)
    if word is not None and CONSTANTS in KINDS[word] and not FAMILIES[family].for_groups:
        parameters = tuple(map(in_texels, parameters))
    for name in (*(n for n, _ in choices), *(p.name for p in parameters)):
        if name.rpartition(".")[2] not in SETTINGS:
            message = f"{name} of {family} is missing in SETTINGS: a cut could have the same name"
            raise InternalError(message)
    strategy = form.strategy(own, {p.name: p for p in parameters})
    read = identity if word is None else through_images(word, program)
    result = seq(start_of(family), strategy, read)(program.body.body)
    if isinstance(result, Failure):
        return result
    derivation = Derivation(program.body.body, result.steps, result.expr)
    function = Lambda(program.params, result.expr)
    lowered = LoweredProgram(program.name, function, program.constants)
    given = {name for step in result.steps for _, size in step.sizes for name in size.names()}
    open_sizes = tuple(p for p in parameters if p.name in given)
    return Skeleton(family, choices, Lowered(lowered, derivation), open_sizes)
