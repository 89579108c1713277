"""The families of derivations that a campaign explores, with the sizes and choices of each.

A family applies to every program that has the shape it looks for; `skeletons_of` says of one that
does not apply why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from liftpy.errors import RuleRefused
from liftpy.ir.expr import Expr, FunCall, Lambda, Program, Tuple
from liftpy.ir.types import ArrayType, size_bytes
from liftpy.ir.walk import at, top_down
from liftpy.primitives import Map, Reduce, Slide
from liftpy.primitives.dialects import LoweredProgram
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter, Skeleton, key_of
from liftpy.rewrite.strategies.block import (
    blockable,
    blocked_stage,
    cut_of,
    in_their_stage,
    is_indivisible,
    register_blocks,
    store_padding,
)
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.lower import exposed, plain
from liftpy.rewrite.strategies.mapping import mapped, mappings, read_mapping, show_mapping
from liftpy.rewrite.strategies.partial import (
    partial_results,
    reduced_lengths,
    results_reduced,
)
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.repeated import store_repeated
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_one_kernel,
    is_padding,
    is_window_map,
    is_windows,
    makes_array,
)
from liftpy.rewrite.strategies.share import stages, store_stages
from liftpy.rewrite.strategies.stage import Sizes, four_stages
from liftpy.rewrite.strategies.tile import (
    flat,
    fused,
    in_vectors,
    tile,
    tiled_lengths,
    windows_in_local,
)
from liftpy.rewrite.strategy import Derivation, Failure, Strategy, identity, rule, seq

Choices = tuple[tuple[str, str], ...]
STREAMED_BYTES = 2**18  # a smaller result may stay in a core's caches until somebody reads it
MAX_EXTRA = 32  # rows and columns of optimisational padding (specs: lift-convolution, section 6)


@dataclass(frozen=True)
class Family:
    """A named set of skeletons: which structural choices there are, and the strategy for each.

    applies: whether a program has the shape that the family looks for.
    """

    name: str
    summary: str
    applies: Callable[[Program], bool]
    choices: Callable[[Program], Iterator[Choices]]
    parameters: Callable[[Program, dict[str, str]], tuple[Parameter, ...]]
    strategy: Callable[[Program, dict[str, str], dict[str, Parameter]], Strategy]


def product(**words: tuple[str, ...]) -> Iterator[Choices]:
    """Every combination of choices."""
    combinations: list[Choices] = [()]
    for name, options in words.items():
        combinations = [(*c, (name, word)) for c in combinations for word in options]
    yield from combinations


def paddings(program: Program) -> tuple[str, ...]:
    """What may be stored of the padded input."""
    body = program.body.body
    padded = [e for _, e in top_down(body) if is_padding(e) and e.free <= body.free]
    if not padded:
        return ("fused",)
    first = padded[0]
    both = isinstance(first, FunCall) and isinstance(first.fun, Map) and is_padding(first.args[0])
    return ("fused", "columns", "copy") if both else ("fused", "copy")


def stored_views(program: Program) -> tuple[str, ...]:
    """`paddings`, and the windows where there are some."""
    body = program.body.body
    windows = any(is_windows(e) and e.free <= body.free for _, e in top_down(body))
    return (*paddings(program), "windows") if windows else paddings(program)


def apart(program: Program) -> dict[str, tuple[str, ...]]:
    """The choice of what becomes of stages before the result; none where there are none.

    `fused` folds again at each reading, `stored` has kernels of its own, as has what a `let` names.
    """
    body = program.body.body
    readers = [at(body, path[:-1]) for path in stages(body)]
    named = [isinstance(e, FunCall) and isinstance(e.fun, Lambda) for e in readers]
    return {} if all(named) else {"stages": ("fused", "stored")}


def stages_of(choices: dict[str, str]) -> str:
    """What is chosen of `apart`."""
    return choices.get("stages", "fused")


def stored_apart(stored: str) -> Strategy:
    """The stages as chosen."""
    return store_stages(plain()) if stored == "stored" else identity


def stores(program: Program) -> dict[str, tuple[str, ...]]:
    """The choice of how a large result is stored, in vectors; none for a small one.

    `cached` reads a line before it is overwritten, and leaves it in the caches; `streamed` does
    neither.
    """
    t = program.body.body.type
    if not isinstance(t, ArrayType) or int(size_bytes(t)) < STREAMED_BYTES:
        return {}
    if int(t.shape[-1]) % 2:  # no vector would be at a multiple of its length
        return {}
    return {"stores": ("cached", "streamed")}


def stored_so(choices: dict[str, str]) -> Strategy:
    """The result as chosen of `stores`."""
    return rule("to_streamed") if choices.get("stores") == "streamed" else identity


def outer_length(expr: Expr) -> int:
    """The length of an array of known length."""
    return int(array_type(expr).length)


def block_lengths(program: Program) -> tuple[int, int]:
    """The lengths of the inner and the outer map of the maps of reductions that make a stage."""
    body = program.body.body
    stage = blocked_stage(body)
    if stage is None:
        message = "no map of a map of reductions makes a stage"
        raise RuleRefused(message)
    whole = at(body, stage)
    block = at(whole, next(blockable(whole)))
    return outer_length(body_of(block)), outer_length(block)


def cuts(program: Program, tail: str) -> tuple[str, str]:
    """How the inner and the outer map of a block are cut (`block.CUTS`)."""
    inner, outer = (cut_of(n, tail) for n in block_lengths(program))
    return inner, outer


def tails(lengths: Iterable[int]) -> dict[str, tuple[str, ...]]:
    """The choice of the last block where a length is `is_indivisible`; none where none is.

    With `none` all blocks are of a size that divides the length, with `overlap` the last one begins
    early.
    """
    return {"tail": ("none", "overlap")} if any(map(is_indivisible, lengths)) else {}


def plain_choices(program: Program) -> Iterator[Choices]:
    """What of the padding and of stages is stored, and every legal mapping."""
    for words in product(**apart(program)):
        result = seq(stored_apart(stages_of(dict(words))), exposed())(program.body.body)
        if not isinstance(result, Failure):
            maps = tuple(map(show_mapping, mappings(result.expr)))
            yield from ((*words, *rest) for rest in product(pad=paddings(program), map=maps))


def plain_strategy(
    _program: Program, choices: dict[str, str], _sizes: dict[str, Parameter]
) -> Strategy:
    """`exposed` maps at the levels of a mapping."""
    return seq(
        stored_apart(stages_of(choices)),
        exposed(),
        mapped(read_mapping(choices["map"])),
        store_padding(choices["pad"]),
    )


def least_width(choices: dict[str, str]) -> int:
    """The shortest vectors: what is streamed is in vectors."""
    return 2 if choices.get("stores") == "streamed" else 1


def direct_parameters(program: Program, choices: dict[str, str]) -> tuple[Parameter, ...]:
    """kappa, sigma and v of a block."""
    inner, outer = block_lengths(program)
    return (
        Parameter("kappa", 1, inner, "results of the inner map per work-item (kernels)"),
        Parameter("sigma", 1, outer, "results of the outer map per work-item (windows of a row)"),
        Parameter("v", least_width(choices), MAX_LANES, "vector width over the inner map"),
    )


def direct_choices(program: Program) -> Iterator[Choices]:
    """What of the padding is stored, the level, the last block, and what reads the blocks."""
    body = program.body.body
    both = bool(blocked_stage(body)) and blocked_stage(with_epilogues(body)) == ()
    apart = {"stages": ("fused", "stored")} if both else {}
    last = tails(block_lengths(program))
    words = {"pad": stored_views(program), "level": ("glb", "wrg")}
    yield from product(**apart, **words, **last, **stores(program))


def with_epilogues(expr: Expr) -> Expr:
    """`fused_inward` where it applies."""
    result = fused_inward(expr)
    return expr if isinstance(result, Failure) else result.expr


def direct_strategy(
    program: Program, choices: dict[str, str], sizes: dict[str, Parameter]
) -> Strategy:
    """`register_blocks`, with the padded input stored, in part, or not."""
    kappa, sigma, width = (sizes[n].nat for n in ("kappa", "sigma", "v"))
    blocks = register_blocks(
        program.constants,
        kappa,
        sigma,
        width,
        level=choices["level"],
        cuts=cuts(program, choices.get("tail", "none")),
    )
    inward = fused_inward if choices.get("stages") == "fused" else identity
    padding = store_padding(choices["pad"])
    return seq(inward, in_their_stage(blocks), padding, stored_so(choices))


def staged_parameters(program: Program, _choices: dict[str, str]) -> tuple[Parameter, ...]:
    """theta, rho, kappa, sigma, omega and v of the four-stage form."""
    size, padded = first_slide(program)
    inner, _ = block_lengths(program)
    elements = next(
        outer_length(e.args[1])
        for _, e in top_down(program.body.body)
        if isinstance(e, FunCall) and isinstance(e.fun, Reduce)
    )
    most = padded + MAX_EXTRA
    return (
        Parameter("theta", size, most, "side of an input tile"),
        Parameter("rho", 0, MAX_EXTRA, "rows and columns of optimisational padding"),
        Parameter("kappa", 1, inner, "kernels per work-group"),
        Parameter("sigma", 1, (most - size + 1) ** 2, "windows per work-item"),
        Parameter("omega", 1, elements, "elements that a work-item reduces"),
        Parameter("v", 1, MAX_LANES, "vector width over the elements"),
    )


def staged_strategy(
    _program: Program, choices: dict[str, str], sizes: dict[str, Parameter]
) -> Strategy:
    """`four_stages`."""
    theta, rho, kappa, sigma, omega, width = (
        sizes[n].nat for n in ("theta", "rho", "kappa", "sigma", "omega", "v")
    )
    return four_stages(
        Sizes(theta, rho, kappa, sigma, omega, width),
        coalesced=choices["coalesce"] == "yes",
        unroll=choices["unroll"] == "yes",
    )


def exposed_body(program: Program) -> Expr:
    """The program's body with the maps in sight that make its result."""
    result = exposed()(program.body.body)
    return program.body.body if isinstance(result, Failure) else result.expr


def tiled_parameters(program: Program, choices: dict[str, str]) -> tuple[Parameter, ...]:
    """A tile for each map that is cut, and the width of vectors."""
    result = tiled_maps(stages_of(choices), choices["flat"])(program.body.body)
    maps = () if isinstance(result, Failure) else tiled_lengths(result.expr)
    words = ("the innermost", "the next")
    tiles = tuple(
        Parameter(f"tile{k}", 1, length, f"results of {which} map in a tile")
        for k, (length, which) in enumerate(zip(maps, words, strict=False))
    )
    width = Parameter("v", least_width(choices), MAX_LANES, "vector width over the innermost map")
    return (*tiles, width) if choices["vector"] == "yes" else tiles


@lru_cache(maxsize=8)
def tiled_maps(stored: str, flattened: str) -> Strategy:
    """The maps that are cut: those that make the result, and the last two `flat` where chosen."""
    one_of_two = flat() if flattened == "yes" else identity
    return remembered(seq(stored_apart(stored), exposed(), fused(), one_of_two))


@lru_cache(maxsize=8)
def tile_steps(
    stored: str, flattened: str, vector: str, tail: str, sizes: tuple[Parameter, ...]
) -> Strategy:
    """`tile`, of one map where two are made one, and in vectors where these are chosen."""
    tiles = tuple(p.nat for p in sizes if p.name != "v")
    vectors = [in_vectors(p.nat) for p in sizes if p.name == "v" and vector == "yes"]
    return remembered(seq(tiled_maps(stored, flattened), tile(tiles, tail), *vectors))


def tiles_of(choices: dict[str, str], sizes: tuple[Parameter, ...]) -> Strategy:
    """`tile_steps` as chosen."""
    tail = choices.get("tail", "none")
    return tile_steps(stages_of(choices), choices["flat"], choices["vector"], tail, sizes)


def tilings(program: Program) -> Iterator[Choices]:
    """How tiles are made: of one map of two, in vectors, and what the last tile is."""
    for made in product(**apart(program), flat=("no", "yes"), vector=("no", "yes")):
        lengths = [p.high for p in tiled_parameters(program, dict(made)) if p.name != "v"]
        yield from ((*made, *rest) for rest in product(**tails(lengths)))


def tiled_choices(program: Program) -> Iterator[Choices]:
    """One map of two and vectors where they can be, and each legal mapping with inner ids last."""
    for made in tilings(program):
        choices = dict(made)
        sizes = tiled_parameters(program, choices)
        result = tiles_of(choices, sizes)(program.body.body)
        if not isinstance(result, Failure):
            words = tuple(map(show_mapping, mappings(result.expr, ordered=True)))
            streamed = stores(program) if choices["vector"] == "yes" else {}
            rest = product(pad=paddings(program), map=words, **streamed)
            yield from ((*made, *more) for more in rest)


def tiled_strategy(
    _program: Program, choices: dict[str, str], sizes: dict[str, Parameter]
) -> Strategy:
    """`tile`, at the levels of a mapping, with the padded input stored, in part, or not."""
    tiles = tiles_of(choices, tuple(sizes.values()))
    padding = store_padding(choices["pad"])
    return seq(tiles, mapped(read_mapping(choices["map"])), padding, stored_so(choices))


def is_tileable(program: Program) -> bool:
    """Whether maps make the result, and no form with register blocks does it better."""
    body = exposed_body(program)
    return makes_array(body) and not is_blockable(program) and bool(list(tiled_lengths(body)))


def has_local_windows(program: Program) -> bool:
    """Whether a map over windows makes the result."""
    body = program.body.body
    return is_one_kernel(body) and any(
        isinstance(e, FunCall) and isinstance(e.fun, Slide) for _, e in top_down(body)
    )


def is_reduction(program: Program) -> bool:
    """Whether a reduction makes the result, or each of its components."""
    body = program.body.body
    parts = body.elements if isinstance(body, Tuple) else (body,)
    return len(results_reduced(body)) == len(parts)


def local_parameters(program: Program, _choices: dict[str, str]) -> tuple[Parameter, ...]:
    """The side of a tile."""
    size, length = first_slide(program)
    return (Parameter("theta", size, length, "side of an input tile"),)


def first_slide(program: Program) -> tuple[int, int]:
    """The size of the outermost windows, and the length of what they are of."""
    for _, e in top_down(program.body.body):
        if isinstance(e, FunCall) and isinstance(e.fun, Slide):
            return int(e.fun.size), outer_length(e.args[0])
    message = "no slide"
    raise RuleRefused(message)


def partial_parameters(program: Program, _choices: dict[str, str]) -> tuple[Parameter, ...]:
    """The chunk of a partial result."""
    most = min(reduced_lengths(program.body.body))
    return (Parameter("chunk", 1, most, "elements that a work-item reduces"),)


def partial_strategy(
    _program: Program, choices: dict[str, str], sizes: dict[str, Parameter]
) -> Strategy:
    """`partial_results`."""
    return partial_results(sizes["chunk"].nat, strided=choices["strided"] == "yes")


def is_blockable(program: Program) -> bool:
    """Whether a map of a map of reductions that can be cut into blocks makes a stage of it."""
    return blocked_stage(program.body.body) is not None


def has_windows(program: Program) -> bool:
    """Whether it is one stage, which reduces the windows of a padded parameter in blocks."""
    body = with_epilogues(program.body.body)
    parts = [e for _, e in top_down(body)]
    return (
        blocked_stage(body) is not None
        and not list(stages(body))
        and any(is_padding(e) and e.free <= body.free for e in parts)
        and any(is_window_map(e) for e in parts)
    )


FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        Family(
            "plain",
            "the maps that make the result over ids, by every legal mapping",
            lambda _: True,
            plain_choices,
            lambda _program, _choices: (),
            plain_strategy,
        ),
        Family(
            "direct",
            "register blocks: a work-item computes sigma x kappa results by one reduction",
            is_blockable,
            direct_choices,
            direct_parameters,
            direct_strategy,
        ),
        Family(
            "partial",
            "a reduction in two kernels: partial results in parallel, then their fold",
            is_reduction,
            lambda _: product(strided=("no", "yes")),
            partial_parameters,
            partial_strategy,
        ),
        Family(
            "tiled",
            "the maps that make the result in tiles, by every legal mapping",
            is_tileable,
            tiled_choices,
            tiled_parameters,
            tiled_strategy,
        ),
        Family(
            "local",
            "windows tile by tile: a work-group copies its tile to local memory",
            has_local_windows,
            lambda _: product(stage=("tile",)),
            local_parameters,
            lambda _program, _choices, sizes: windows_in_local(sizes["theta"].nat),
        ),
        Family(
            "staged",
            "the published four stages: pad, partial results, sum, crop",
            has_windows,
            lambda _: product(coalesce=("no", "yes"), unroll=("no", "yes")),
            staged_parameters,
            staged_strategy,
        ),
    )
}


def skeletons(program: Program, families: tuple[str, ...] | None = None) -> tuple[Skeleton, ...]:
    """Every derivation of a program by the families that apply to it."""
    found: list[Skeleton] = []
    for name in families or tuple(FAMILIES):
        made = skeletons_of(FAMILIES[name], program)
        if not isinstance(made, str):
            found += made
    return tuple(found)


def skeletons_of(family: Family, program: Program) -> list[Skeleton] | str:
    """The skeletons of one family, or why it does not apply."""
    shape = shape_of(program)
    if not family.applies(shape):
        return f"the program does not have the shape of the family {family.name}"
    found: list[Skeleton] = []
    for choices in family.choices(shape):
        made = derived(family, program, choices)
        if isinstance(made, Failure):
            return f"{family.name}: {made}"
        found.append(made)
    return found


def skeleton(program: Program, key: str) -> Skeleton | None:
    """The skeleton of this key, derived alone; None if the program has none such."""
    family = FAMILIES.get(key.partition("(")[0])
    shape = shape_of(program)
    if family is None or not family.applies(shape):
        return None
    for choices in family.choices(shape):
        if key_of(family.name, choices) == key:
            made = derived(family, program, choices)
            return None if isinstance(made, Failure) else made
    return None


_START = remembered(store_repeated(plain()))


def shape_of(program: Program) -> Program:
    """What the families look at: the program with kernels for what is read over and over.

    Most programs have nothing such, and are given back.
    """
    result = _START(program.body.body)
    if isinstance(result, Failure) or not result.steps:
        return program
    return Program(program.name, Lambda(program.params, result.expr), program.constants)


def derived(family: Family, program: Program, choices: Choices) -> Skeleton | Failure:
    """The skeleton of some choices; the sizes that its derivation uses are open."""
    shape = shape_of(program)
    parameters = family.parameters(shape, dict(choices))
    strategy = family.strategy(shape, dict(choices), {p.name: p for p in parameters})
    result = (strategy if shape is program else seq(_START, strategy))(program.body.body)
    if isinstance(result, Failure):
        return result
    derivation = Derivation(program.body.body, result.steps, result.expr)
    function = Lambda(program.params, result.expr)
    lowered = LoweredProgram(program.name, function, program.constants)
    given = {name for step in result.steps for _, size in step.sizes for name in size.names()}
    open_sizes = tuple(p for p in parameters if p.name in given)
    return Skeleton(family.name, choices, lowered, derivation, open_sizes)
