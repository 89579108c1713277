"""What is claimed about Winograd's algorithms, beside what liftpy computes. No device is needed.

    python benchmarks/winograd_claims.py [--only errors operations ...]

errors           The error of F(m, r) in two dimensions: data of uniform(-1, 1), 16 channels, the
                 usual points, all steps in f32; the largest error of a tile relative to its largest
                 result, as the mean over 100 tiles. Within a factor of 3.
multiplications  How many times fewer multiplications are executed by the kernel of the products
                 than by that of the direct form, counted in the emitted loops, for whole tiles.
layers           The same for F(2, 3) and images of H x H, whose last tiles may be partial.
memory           The bytes of transformed kernels, transformed tiles and products in two dimensions,
                 relative to those along the rows only, from the buffers of compiled candidates.
operations       The additions of the transforms, flat and separable, alone and with shared sums.
borders          The classes of tiles of an image: tiles for which the same guards hold in the
                 emitted kernel that transforms them; and the versions of that kernel's code with
                 `pad=classes`.
depthwise        The operations of F(m, r) for each multiply-add of the direct form, for a depthwise
                 convolution: the products, and the transforms of a tile and of its results. The
                 ratio is at least 1, so the direct form takes the fewest operations.

Prints the claimed number, the one found, and their ratio; exits with 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Store,
    statements_in,
)
from liftpy.loops.unswitch import tests_in
from liftpy.loops.values import (
    Dot,
    Operate,
    Value,
    values_in,
)
from liftpy.pipeline import Compilation, compile_program
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.rules.correlation import SIZES, triple
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import WINOGRAD, Stage
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategies.families.plain import PLAIN
from liftpy.rewrite.strategies.families.small import SMALL
from liftpy.rewrite.strategies.transformed import hybrid_products
from liftpy.winograd.linear import Counts, Form, Sharing
from liftpy.winograd.matrices import Matrix
from liftpy.winograd.measured import measured_error
from liftpy.winograd.sharing import applied
from liftpy.winograd.triple import cook_toom

MOST_PRODUCTS = 12  # in a row, of F(10, 3)

ERRORS = {
    (2, 3): 1.8e-7,
    (3, 3): 6.5e-7,
    (4, 3): 1.1e-6,
    (5, 3): 2.2e-6,
    (6, 3): 3.2e-6,
    (7, 3): 3.9e-5,
    (8, 3): 3.2e-4,
    (9, 3): 4.1e-4,
    (10, 3): 8.6e-4,
    (2, 5): 1.5e-6,
    (3, 5): 1.8e-6,
    (4, 5): 2.7e-6,
    (5, 5): 3.3e-5,
}
FACTOR = 3.0
"""How far a measured error may be from the claimed one: data and points are drawn by others."""

REDUCTIONS = {
    (2, 3): 2.25,
    (3, 3): 3.24,
    (4, 3): 4.0,
    (2, 5): 2.78,
    (3, 5): 4.59,
    (4, 5): 6.25,
}
LAYERS = {
    13: 1.94,
    14: 2.25,
    27: 2.092,
    28: 2.25,
    56: 2.25,
    96: 2.25,
    127: 2.215,
    192: 2.25,
    227: 2.23,
}
ALONG_ROWS = {(2, 3): 1.5, (3, 3): 1.8, (4, 3): 2.0, (2, 5): 1.67, (3, 5): 2.14, (4, 5): 2.5}
LAYERS_ALONG_ROWS = {
    13: 1.393,
    14: 1.5,
    27: 1.446,
    28: 1.5,
    56: 1.5,
    96: 1.5,
    127: 1.488,
    192: 1.5,
    227: 1.493,
}
MEMORY = {
    (2, 3): (Fraction(4, 3), Fraction(2)),
    (4, 3): (Fraction(2), Fraction(3, 2)),
    (2, 5): (Fraction(6, 5), Fraction(3)),
    (4, 5): (Fraction(8, 5), Fraction(2)),
}
"""How much smaller transformed kernels are, and transformed tiles and products."""

ROUNDED = 0.005
"""How far a reduction may be from the claimed one, which is printed with two decimals or three."""

FORMS = {
    "a": (Form.FLAT, Sharing.NONE),
    "b": (Form.FLAT, Sharing.SETS),
    "c": (Form.SEPARABLE, Sharing.NONE),
    "d": (Form.SEPARABLE, Sharing.SETS),
}
ADDITIONS = {
    (2, 3): ((48, 25, 28, 21), (48, 38, 32, 32), (32, 28, 24, 24)),
    (3, 3): ((96, 50, 48, 40), (231, 129, 110, 110), (112, 76, 64, 56)),
    (4, 3): ((160, 81, 72, 63), (448, 306, 192, 192), (308, 148, 140, 110)),
    (6, 3): ((336, 168, 132, 121), (1872, 910, 576, 544), (1408, 467, 448, 336)),
    (2, 5): ((448, 182, 176, 143), (448, 306, 192, 192), (96, 80, 64, 64)),
    (3, 5): ((680, 279, 240, 204), (1107, 817, 378, 378), (280, 173, 140, 120)),
    (4, 5): ((960, 365, 312, 273), (1872, 910, 576, 544), (660, 319, 264, 216)),
}
"""For the kernel, the input and the output, the additions in the forms a, b, c and d."""

CLASSES = {(2, 3): 9, (4, 3): 9, (6, 3): 9}


@dataclass(frozen=True)
class Row:
    """A claimed number and the one found; `holds` if they are near enough."""

    name: str
    expected: float
    found: float
    holds: bool

    @property
    def ratio(self) -> float:
        """The number found, relative to the claimed one."""
        return self.found / self.expected


def near(name: str, expected: float, found: float) -> Row:
    """A row of numbers that differ by rounding."""
    return Row(name, expected, found, abs(found - expected) <= ROUNDED)


# --- errors ---------------------------------------------------------------------------------------


def errors(sizes: Iterable[tuple[int, int]] = ERRORS) -> Iterator[Row]:
    """The measured errors of F(m, r)."""
    for m, r in sizes:
        found = measured_error(cook_toom(m, r, largest=MOST_PRODUCTS))
        claimed = ERRORS[m, r]
        holds = claimed / FACTOR <= found <= claimed * FACTOR
        yield Row(f"F({m}, {r})", claimed, found, holds)


# --- multiplications ------------------------------------------------------------------------------


def convolution(side: int, r: int, channels: int = 1, kernels: int = 1) -> Program:
    """A convolution with side x side results, without padding, so that no product is left out."""
    wide = side + r - 1
    return parse(f"""
    def p(x: [{wide}][{wide}][{channels}]f32, const w: [{kernels}][{r}][{r}][{channels}]f32) =
      x |> slide({r}, 1) |> map(map(slide({r}, 1)) |> transpose)
        |> map(row => row |> map(part => w |> map(k =>
          zip(part |> join |> join, k |> join |> join) |> map(mul) |> reduce(add, 0))))
    """)


def executed(stage: Stage) -> Fraction:
    """The multiplications that the kernels of a stage execute, one result after another."""
    made = skeletons_of(PLAIN, stage.canonical)
    if isinstance(made, str):
        raise ValueError(made)  # noqa: TRY004  why the family does not apply
    kernels = compile_program(made[0].at({})).optimized
    return sum((prod(k.global_size) * in_block(k, k.block) for k in kernels), Fraction(0))


def in_block(kernel: LoopKernel, block: Block) -> Fraction:
    """The multiplications of a block in the average work-item. ValueError if a test decides."""
    total = Fraction(0)
    for s in block:
        match s:
            case For(first=int(first), step=int(step)):
                total += -(-(s.bound - first) // step) * in_block(kernel, s.body)
            case For():  # over ids: all of them together take each iteration once
                total += Fraction(s.bound, kernel.ranges[str(s.first)]) * in_block(kernel, s.body)
            case If():
                if in_block(kernel, s.then) or in_block(kernel, s.otherwise):
                    raise ValueError(f"{kernel.name} multiplies where a test holds")
            case Let() | Store():
                total += sum(map(multiplications_of, values_in(s.value)))
            case _:
                pass
    return total


def multiplications_of(value: Value) -> int:
    """The multiplications of one expression, without its parts."""
    if isinstance(value, Dot):
        return value.parts[0].width
    return value.width if isinstance(value, Operate) and value.op == "*" else 0


def reduction(word: str, r: int, side: int, channels: int = 1, kernels: int = 1) -> float:
    """The multiplications of the direct form of a convolution, relative to those of F(m, r)."""
    forms = partitions(convolution(side, r, channels, kernels))
    direct = next(form for form in forms if form.is_whole)
    other = next(f for f in forms if is_stored(f, word))
    products = next(stage for stage in other.stages if stage.name == "products")
    return float(executed(direct.stages[0]) / executed(products))


def is_stored(form: Partition, word: str) -> bool:
    """Whether a form has a word of the choice `winograd`, and stores every value."""
    words = dict(form.words)
    return words.get(WINOGRAD) == word and "held" not in words.values()


def by_products(m: int, r: int, side: int, dimensions: int) -> float:
    """The reduction of a size without a rule: from the numbers of products in a tile."""
    tiles = -(-side // m)
    return (side * r / (tiles * (m + r - 1))) ** dimensions


def multiplications(sizes: Iterable[tuple[int, int]] = REDUCTIONS) -> Iterator[Row]:
    """The reductions for whole tiles: counted in the kernels if there is a rule."""
    for m, r in sizes:
        for word, claims in ((f"{m}x{m}", REDUCTIONS), (f"1x{m}", ALONG_ROWS)):
            try:
                found, how = reduction(word, r, 3 * m, 3, 2), "counted"
            except StopIteration:
                dimensions = 1 if word.startswith("1x") else 2
                found, how = by_products(m, r, 3 * m, dimensions), "no rule: products of a tile"
            yield near(f"F({m}, {r}), {word}, {how}", claims[m, r], found)


def layers(sides: Iterable[int] = LAYERS) -> Iterator[Row]:
    """The reductions of F(2, 3) for images of some sides."""
    for side in sides:
        for word, claims in (("2x2", LAYERS), ("1x2", LAYERS_ALONG_ROWS)):
            yield near(f"{side} x {side}, {word}", claims[side], reduction(word, 3, side))


# --- memory ---------------------------------------------------------------------------------------


def stored(word: str, r: int, side: int) -> list[int]:
    """The bytes of the values that a form by F(m, r) stores: kernels, tiles, products."""
    program = convolution(side, r, channels=5, kernels=7)
    form = next(f for f in partitions(program) if is_stored(f, word))
    found = {stage.name: result_bytes(stage) for stage in form.stages}
    return [found[name] for name in ("filters", "inputs", "products")]


def result_bytes(stage: Stage) -> int:
    """The bytes of the buffer for the result of a stage's first skeleton, at its smallest sizes."""
    made = (skeletons_of(f, stage.canonical) for f in FAMILIES.values() if stage.is_for(f.name))
    skeleton = next(found[0] for found in made if not isinstance(found, str))
    module = compile_program(skeleton.at({p.name: p.low for p in skeleton.parameters})).module
    return next(buffer.bytes for buffer in module.buffers if buffer.name == module.result)


def memory(sizes: Iterable[tuple[int, int]] = MEMORY) -> Iterator[Row]:
    """How much less is stored along the rows, for whole tiles.

    An image of H rows without padding has r - 1 rows more than its result, which are transformed
    as well.
    """
    for m, r in sizes:
        side = 3 * m
        pairs = zip(stored(f"{m}x{m}", r, side), stored(f"1x{m}", r, side), strict=True)
        kernels, tiles = MEMORY[m, r]
        claimed = (kernels, tiles * side / (side + r - 1), tiles)
        for name, claim, (two, one) in zip(("U", "V", "P"), claimed, pairs, strict=True):
            found = Fraction(two, one)
            yield Row(f"F({m}, {r}), {name}", float(claim), float(found), found == claim)


# --- operations and borders -----------------------------------------------------------------------


def operations(sizes: Iterable[tuple[int, int]] = ADDITIONS) -> Iterator[Row]:
    """The additions of transforms; where sums are shared there may be fewer than claimed."""
    for m, r in sizes:
        triple = cook_toom(m, r)
        matrices = {"kernel": triple.g, "input": triple.bt, "output": triple.at}
        for (name, matrix), claimed in zip(matrices.items(), ADDITIONS[m, r], strict=True):
            for (column, how), expected in zip(FORMS.items(), claimed, strict=True):
                found = applied(matrix, *how).counts.additions
                equal = found == expected if how[1] is Sharing.NONE else found <= expected
                yield Row(f"F({m}, {r}), {name}, {column}", expected, found, equal)


def overhangs(side: int, m: int, r: int) -> set[tuple[int, int]]:
    """How far tiles reach over the two ends of a row of `side` elements with as many results."""
    before = r // 2
    starts = range(-before, side - before, m)
    return {(max(0, -k), max(0, k + m + r - 1 - side)) for k in starts}


def tiles_kernel(side: int, m: int, r: int, pad: str) -> Compilation:
    """The kernel in which a work-item transforms a tile of a padded image of side x side."""
    before, after = r // 2, r - 1 - r // 2
    program = parse(f"""
    def p(x: [{side}][{side}][1]f32, const w: [1][{r}][{r}][1]f32) =
      x |> pad2d({before}, {after}, {before}, {after}, 0)
        |> slide({r}, 1) |> map(map(slide({r}, 1)) |> transpose)
        |> map(row => row |> map(part => w |> map(k =>
          zip(part |> join |> join, k |> join |> join) |> map(mul) |> reduce(add, 0))))
    """)
    form = next(f for f in partitions(program) if is_stored(f, f"{m}x{m}"))
    inputs = next(stage for stage in form.stages if stage.name == "inputs")
    made = skeletons_of(SMALL, inputs.canonical)
    if isinstance(made, str):
        raise ValueError(made)  # noqa: TRY004  why the family does not apply
    skeleton = next(s for s in made if {f"pad={pad}", "map=glb0.seq.seq"} <= {*words_of(s)})
    return compile_program(skeleton.at({}))


def guarded(side: int, m: int, r: int) -> int:
    """The number of classes of tiles; in a class, the same guards of the kernel hold."""
    (kernel,) = tiles_kernel(side, m, r, "fused").optimized
    ((tile, count),) = kernel.ranges.items()
    tests = {*tests_in(kernel.block)}
    return len({tuple(t.room.value({tile: k}) >= 0 for t in tests) for k in range(count)})


def versions(side: int, m: int, r: int) -> int:
    """The number of versions of the code for a tile, in the kernel that has one for each class."""

    def stores(kernel: LoopKernel) -> int:
        every = (s for s in statements_in(kernel.block) if isinstance(s, Store))
        return sum(s.cell.memory.space == "global" for s in every)

    made = tiles_kernel(side, m, r, "classes")
    return stores(made.optimized[0]) // stores(made.loops[0])


def words_of(skeleton: Skeleton) -> list[str]:
    """The choices of a skeleton, as `name=word`."""
    return [f"{name}={word}" for name, word in skeleton.words.items()]


def borders(sizes: Iterable[tuple[int, int]] = CLASSES, side: int = 24) -> Iterator[Row]:
    """The classes of tiles of an image of side x side."""
    for m, r in sizes:
        for name, found in {"": guarded, ", versions": versions}.items():
            counted = found(side, m, r)
            holds = counted == CLASSES[m, r] == len(overhangs(side, m, r)) ** 2
            yield Row(f"F({m}, {r}), {side} x {side}{name}", CLASSES[m, r], counted, holds)


# --- partial tiles --------------------------------------------------------------------------------


def partial(sides: Iterable[int] = (13,), r: int = 3) -> Iterator[Row]:
    """Both forms where m does not divide the results: padded tiles, and a hybrid that saves more.

    The products are those of a channel and a kernel, with the m that takes the fewest.
    """
    for side in sides:
        words = {dict(form.words).get(WINOGRAD, "") for form in partitions(convolution(side, r))}
        sizes = [m for m, known in SIZES if known == r]
        for m in sizes:
            found = int(f"{m}x{m}" in words)
            yield Row(f"{side} x {side}: form {m}x{m}, padded", 1, found, found == 1)
        whole = [int(word.split("x")[0]) for word in words if word.endswith("+direct")]
        yield Row(f"{side} x {side}: hybrid forms", 1, len(whole), len(whole) == 1)
        fewest = min((-(-side // m) * (m + r - 1)) ** 2 for m in sizes)
        for m in whole:
            found = hybrid_products((side, side), m, r)
            yield Row(f"products of {m}x{m}+direct", fewest, found, found < fewest)


# --- depthwise ------------------------------------------------------------------------------------


def depthwise(sizes: Iterable[tuple[int, int]] = SIZES) -> Iterator[Row]:
    """The operations of F(m, r) relative to the direct form's, if no channels are summed."""
    for m, r in sizes:
        f = triple(m, r)
        both = [least_operations((f.bt, f.at), *forms) for forms in ((Form.VECTOR,), IN_TWO)]
        counts = {
            f"{m}x{m}, {r}x{r}": (f.n**2 + both[1], m**2 * r**2),
            f"1x{m}, {r}x{r}": (f.n * r + both[0], m * r**2),  # each row of a tile is used r times
        }
        for name, (found, direct) in counts.items():
            yield Row(name, 1.0, found / direct, found >= direct)


IN_TWO = (Form.SEPARABLE, Form.FLAT)


def least_operations(matrices: Iterable[Matrix], *forms: Form) -> int:
    """The operations of the transforms by some matrices, each in the form that has the fewest."""
    return sum(min(operations_of(applied(a, form).counts) for form in forms) for a in matrices)


def operations_of(counts: Counts) -> int:
    """All operations of a program, changes of sign included."""
    return counts.additions + counts.multiplications + counts.negations


SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "errors": errors,
    "multiplications": multiplications,
    "layers": layers,
    "memory": memory,
    "operations": operations,
    "borders": borders,
    "partial": partial,
    "depthwise": depthwise,
}


def main() -> int:
    """Prints the sections; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=[*SECTIONS])
    wrong = 0
    for name in parser.parse_args().only:
        print(f"\n{name:<32}{'claimed':>10}{'found':>10}{'ratio':>8}")
        for row in SECTIONS[name]():
            wrong += not row.holds
            held = "" if row.holds else "  does not hold"
            numbers = f"{row.expected:>10.4g}{row.found:>10.4g}{row.ratio:>8.2f}"
            print(f"{row.name:<32}{numbers}{held}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
