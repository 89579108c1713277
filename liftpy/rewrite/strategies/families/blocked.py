"""`blocked` and `banded`: values held while a block of their reader's result is computed.

In `blocked`, a work-item or a group holds the values of a block. In `banded`, a block is a band of
the result: all work-items compute it by several kernels, which the host launches once for each
band. The values of a band are in global memory, and those of the next band overwrite them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ZERO, NatLike
from liftpy.ir.program import Program
from liftpy.ir.types import size_bytes
from liftpy.ir.walk import Path, at
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import block_of, store_padding
from liftpy.rewrite.strategies.blocked import into_blocks, outer_maps, parts
from liftpy.rewrite.strategies.families.common import least_width, paddings, stored_so, stores
from liftpy.rewrite.strategies.families.direct import DIRECT
from liftpy.rewrite.strategies.families.form import (
    OF_ALL,
    OF_GROUP,
    OF_ONE,
    Choices,
    Family,
    Form,
    product,
)
from liftpy.rewrite.strategies.families.plain import PLAIN
from liftpy.rewrite.strategies.families.rows import ROWS
from liftpy.rewrite.strategies.families.small import SMALL
from liftpy.rewrite.strategies.families.tiled import TILED
from liftpy.rewrite.strategies.lower import sequential
from liftpy.rewrite.strategies.operand import Place, input_of, stored_in_columns
from liftpy.rewrite.strategies.shapes import array_type, lets, longest, parameter
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    identity,
    rule,
    seq,
    where,
)

FORM = "form"  # the choice of the family of a part
WIDTH = "v"  # the size of vectors
COLUMNS = "rows"  # the choice to store an input in columns before all blocks
LEVELS = {"local": "wrg", "private": "glb", "global": "wrg"}
"""For each memory that may hold values, the level of blocks: groups, or single work-items."""
ITEMS = {"local": ("one", "many"), "private": ("one",), "global": ("one",)}
"""For each memory, how many work-items may make a block."""
BANDS = {"global": ("all",)}
"""The `ITEMS` of `banded`."""
WORDS = {"one": OF_ONE, "many": OF_GROUP, "all": OF_ALL}
"""The common choices of the values of a block, by the work-items that make it."""
MOST_BANDS = 64
"""The most bands of a result: each takes a launch of every kernel."""
ROW = {"local": "local", "private": "private", "global": "local"}
"""For each memory of a block, where a work-item may hold a row that it needs for an element."""
MOST = {"local": 2**20, "private": 2**11, "global": 2**24}
"""For each memory, the most bytes of values in the smallest block for which it is offered."""
MOST_COMBINED = 36
"""With more combinations of choices than this, parts of a block of the same family share theirs."""
TURNS = "turns"  # the number of blocks in a chunk; a work-item holds one of them at a time

Known: TypeAlias = tuple[Choices, tuple[Parameter, ...]]
"""The choices and the sizes of a value."""


@dataclass(frozen=True)
class BlockValue:
    """A value of a block, as a program, and its possible forms, by family.

    `name` is the prefix of the names of its choices and sizes. `path` is its path in the program;
    `rows` is the place of the input, if any, that is better read in columns.
    """

    name: str
    path: Path
    value: Expr
    forms: tuple[tuple[str, Form], ...]
    rows: Place | None
    lowered: dict[Known, Result] = field(default_factory=dict[Known, Result], compare=False)

    def named(self, choice: str) -> str:
        """The full name of one of its choices or sizes."""
        return f"{self.name}.{choice}"

    def choices(self, memory: str) -> Iterator[Choices]:
        """How the work-items of a block make the value, the family first."""
        for family, form in self.forms:
            for made in form.inside(memory):
                words = (*((self.named(n), w) for n, w in ((FORM, family), *made)),)
                yield words
                if self.rows is not None:
                    yield (*words, (self.named(COLUMNS), "columns"))

    def own(self, choices: dict[str, str]) -> tuple[Form, dict[str, str]]:
        """The chosen form, and its choices."""
        before = self.named("")
        mine = {n.removeprefix(before): w for n, w in choices.items() if n.startswith(before)}
        form = dict(self.forms)[mine.pop(FORM)]
        mine.pop(COLUMNS, None)
        return form, WORDS[choices["items"]] | mine

    def parameters(self, choices: dict[str, str], around: str) -> Iterator[Parameter]:
        """The open sizes, with a prefix for their names."""
        form, mine = self.own(choices)
        yield from (replace(p, name=around + p.name) for p in form.parameters(mine))

    def outside(self, choices: dict[str, str]) -> Strategy:
        """Store the input in columns if it lies outside the blocks."""
        return self.columns(choices, within=False)

    def columns(self, choices: dict[str, str], *, within: bool) -> Strategy:
        """Store the input in columns, if chosen, inside (`within`) or outside the value."""
        if self.rows is None or self.named(COLUMNS) not in choices:
            return identity
        path, depth = self.rows
        if within != (path[: len(self.path)] == self.path):
            return identity
        return stored_in_columns((path[len(self.path) if within else 0 :], depth))

    def strategy(
        self, choices: dict[str, str], sizes: dict[str, Parameter], around: str
    ) -> Strategy:
        """The strategy that lowers the value, derived once for all choices of other parts.

        The names of its sizes in `sizes` begin with `around`.
        """
        form, mine = self.own(choices)
        family, columns = choices[self.named(FORM)], choices.get(self.named(COLUMNS), "")
        words = ((FORM, family), (COLUMNS, columns), *mine.items())
        known = words, (*(p for name, p in sizes.items() if name.startswith(around)),)
        if known not in self.lowered:
            own = {p.name: sizes[around + p.name] for p in form.parameters(mine)}
            steps = seq(self.columns(choices, within=True), form.strategy(mine, own))
            self.lowered[known] = steps(self.value)
        return where(lambda e: e == self.value, lambda _: self.lowered[known], "this value")


@dataclass(frozen=True)
class Depth:
    """The form in blocks of the map inside `depth` others, its parts, and memories to hold them."""

    depth: int
    block: Parameter
    turns: Parameter
    blocks: Success
    parts: tuple[BlockValue, ...]
    memories: tuple[str, ...]

    @property
    def band(self) -> Parameter:
        """The size of a band: a result has 2 to `MOST_BANDS` bands."""
        length = self.block.high or 1
        return replace(self.block, low=-(-length // MOST_BANDS), high=max(1, length // 2))

    @property
    def straight(self) -> bool:
        """Whether straight-line code makes a value.

        Such code takes long to derive, so fewer choices are offered: those that differ most.
        """
        return any(dict(part.forms).keys() == {SMALL.name} for part in self.parts)

    def inside(self, memory: str) -> list[tuple[Choices, ...]]:
        """The choices of each part: every combination of them.

        If the parts are `alike`, only the combinations in which parts of the same family agree.
        """
        every = itertools.product(*self.each[memory])
        return [made for made in every if self.agree(made) or not self.alike(memory)]

    def agree(self, made: Iterable[Choices]) -> bool:
        """Whether parts lowered by the same family make the same choices."""
        known: dict[tuple[str, str], str] = {}
        for part, words in zip(self.parts, made, strict=True):
            own = {name.rpartition(".")[2]: word for name, word in words}
            if part.rows is not None:
                own.setdefault(COLUMNS, "")
            if any(known.setdefault((own[FORM], n), word) != word for n, word in own.items()):
                return False
        return True

    def alike(self, memory: str) -> bool:
        """Whether all parts lowered by the same family share their choices and sizes.

        They do if there are more than `MOST_COMBINED` combinations. The number of combinations, and
        of their points, grows exponentially with the number of parts.
        """
        return math.prod(map(len, self.each[memory])) > MOST_COMBINED

    def around(self, choices: dict[str, str]) -> dict[str, str]:
        """For each part, the prefix of the names of its sizes: its name, or the family's."""
        alike = self.alike(rows_in(choices["hold"], choices["items"]))
        return {p.name: f"{choices[p.named(FORM)]}." if alike else p.named("") for p in self.parts}

    @cached_property
    def each(self) -> dict[str, list[list[Choices]]]:
        """For each memory that may hold a row, the choices of each part."""
        return {m: [[*part.choices(m)] for part in self.parts] for m in ("local", "private")}


@dataclass(frozen=True)
class Blocked:
    """Values read in succession, each by the map that makes the next.

    `items` has the memories that may hold them, each with the work-items that may make a block.
    """

    program: Program
    depths: tuple[Depth, ...]
    items: Mapping[str, tuple[str, ...]]

    @cached_property
    def at(self) -> dict[str, Depth]:
        """The forms by the word of the choice `inside`."""
        return {str(form.depth): form for form in self.depths}

    def choices(self) -> Iterator[Choices]:
        """The map that is cut into blocks, the memory that holds values, and the form of each."""
        for word, form in self.at.items():
            pads = paddings(self.program.body.body)
            around = {"pad": pads[:: len(pads) - 1 or 1] if form.straight else pads}
            around |= stores(self.program)
            for hold in form.memories:
                offered = self.items.get(hold, ())
                for items in offered[-1:] if form.straight else offered:
                    outside = product(inside=(word,), hold=(hold,), items=(items,), **around)
                    own = rows_in(hold, items)
                    inside = form.inside(own)
                    for mine, others in itertools.product(outside, inside):
                        if least_width(dict(mine)) == 1 or has_vectors(dict(others[-1])):
                            yield (*mine, *itertools.chain(*others))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: blocks inside blocks are not supported."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The size of a block, and the sizes of its values."""
        form = self.at[choices["inside"]]
        around = form.around(choices)
        *held, result = form.parts
        sizes = [p for part in held for p in part.parameters(choices, around[part.name])]
        least = {around[result.name] + WIDTH: least_width(choices)}
        sizes += (
            replace(p, low=max(p.low, least.get(p.name, p.low)))
            for p in result.parameters(choices, around[result.name])
        )
        if choices["items"] == "all":
            return (form.band, *common(sizes))
        turns = [form.turns] if choices["hold"] == "global" else []
        return (form.block, *turns, *common(sizes))

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`into_blocks`, with each value of a block lowered by its form, and held in memory.

        In global memory a work-item computes one block after another (`in_turn`), so that fewer
        buffers than blocks are needed. With bands, the host does so.
        """
        form, hold = self.at[choices["inside"]], choices["hold"]
        around = form.around(choices)
        over = over_blocks(LEVELS[hold], form.depth + 1)
        if choices["items"] == "all":
            over = over_bands
        turns = in_turn(sizes[TURNS].nat, form.depth + 1) if TURNS in sizes else identity
        return seq(
            lambda _: form.blocks,
            *(part.outside(choices) for part in form.parts),
            *(
                at_path(part.path, part.strategy(choices, sizes, around[part.name]))
                for part in reversed(form.parts)
            ),
            *(at_path(part.path, rule(f"to_{hold}")) for part in form.parts[:-1]),
            turns,
            over,
            sequential(),
            store_padding(choices["pad"]),
            stored_so(choices),
        )


def rows_in(hold: str, items: str) -> str:
    """Where a work-item may hold a row that it needs for an element of a block."""
    return ROW[hold] if items == "one" else "private"


def common(sizes: Iterable[Parameter]) -> Iterator[Parameter]:
    """One size for each name, with the intersection of the ranges of all sizes of that name."""
    known: dict[str, Parameter] = {}
    for p in sizes:
        same = known.setdefault(p.name, p)
        known[p.name] = replace(same, low=max(same.low, p.low), high=min(same.high, p.high))
    yield from known.values()


def has_vectors(words: dict[str, str]) -> bool:
    """Whether the chosen form of a result stores vectors."""
    named = {name.rpartition(".")[2]: word for name, word in words.items()}
    return named[FORM] in {DIRECT.name, ROWS.name} or named.get("vector") == "yes"


def in_turn(size: NatLike, count: int) -> Strategy:
    """Cut the innermost of the `count` maps around a block into chunks of `size` blocks."""

    def run(expr: Expr) -> Result:
        *_, path = outer_maps(expr, count)
        return at_path(path, rule("split_join", m=size))(expr)

    return run


def over_bands(expr: Expr) -> Result:
    """Leave the map around the values of a band to the host."""
    (path,) = outer_maps(expr, 1)
    return at_path(path, rule("map_to_host"))(expr)


def over_blocks(level: str, count: int) -> Strategy:
    """Assign ids of a level to the maps around the values of a block."""

    def run(expr: Expr) -> Result:
        maps = outer_maps(expr, count)
        dims = range(count) if level == "wrg" else reversed(range(count))
        pairs = zip(maps, dims, strict=True)
        return seq(*(at_path(p, rule(f"map_to_{level}_{dim}")) for p, dim in pairs))(expr)

    return run


def forms_of(value: Program) -> Iterator[tuple[str, Form]]:
    """The forms of a value inside a group: straight-line code, else blocks and rows, and so on."""
    for families in ((SMALL,), (DIRECT, ROWS), (TILED,), (PLAIN,)):
        found = False
        for family in families:
            form = family.match(value)
            if not isinstance(form, str) and any(True for _ in form.inside("local")):
                yield family.name, form
                found = True
        if found:
            return


def depth_of(program: Program, depth: int) -> Depth | str:
    """The form in blocks of the map inside `depth` others, or why there is none."""
    body = program.body.body
    single = into_blocks(1, depth)(body)
    if isinstance(single, Failure):
        return str(single)
    *_, path = outer_maps(single.expr, depth + 1)
    length = longest(array_type(at(single.expr, (*path, 0))))
    block = Parameter("block", 1, length, "elements of the result that are computed together")
    turns = Parameter(TURNS, 1, length, "blocks that a work-item makes one after another")
    result = into_blocks(block.nat, depth)(body)
    if isinstance(result, Failure):
        return str(result)
    names = [*(parameter(let).name for let in lets(body)), "result"]
    places = parts(result.expr, depth)
    if len(places) > len(names):
        return "the function of a map around the block has a let of its own"
    made = [part_of(program, result.expr, *pair) for pair in zip(names, places, strict=True)]
    least = ZERO
    for place in parts(single.expr, depth)[:-1]:
        least = least + size_bytes(at(single.expr, place).type)
    memories = (*(name for name, most in MOST.items() if int(least) <= most),)
    if not memories:
        return f"values of {least} bytes would have to be held for each element"
    return Depth(depth, block, turns, result, (*made,), memories)


def part_of(program: Program, expr: Expr, name: str, path: Path) -> BlockValue:
    """The value at a path of a program's form in blocks."""
    value = at(expr, path)
    params = tuple(sorted(value.free, key=lambda p: p.name))
    constants = frozenset(p.name for p in params if p in program.params) & program.constants
    forms = (*forms_of(Program(name, Lambda(params, value), constants)),)
    block = block_of(value)
    rows = None if block is None else input_of(expr, (*path, *block))
    constant = rows is not None and {p.name for p in at(expr, rows[0]).free} <= program.constants
    return BlockValue(name, path, value, forms, None if constant else rows)


@lru_cache(maxsize=64)
def depths_of(program: Program) -> tuple[tuple[Depth, ...], str]:
    """The forms in blocks, by the number of maps around them; if there is none, why."""
    if next(lets(program.body.body), None) is None:
        return (), "no value is held"
    made = [depth_of(program, depth) for depth in range(len(DIMENSIONS) - 1)]
    return tuple(form for form in made if not isinstance(form, str)), str(made[0])


def match(program: Program) -> Blocked | str:
    """The values, if each is read by the map that makes the next."""
    found, why = depths_of(program)
    return Blocked(program, found, ITEMS) if found else why


def match_bands(program: Program) -> Blocked | str:
    """`match`, for the outermost map only, which must have more than one element."""
    found, why = depths_of(program)
    outermost = tuple(form for form in found if form.depth == 0 and (form.block.high or 0) > 1)
    if found and not outermost:
        why = "the outermost map makes a single element, or does not read the values in blocks"
    return Blocked(program, outermost, BANDS) if outermost else why


BLOCKED = Family("blocked", "values held while a block of their reader's result is computed", match)
BANDED = Family(
    "banded",
    "values stored for one band of the result after the other",
    match_bands,
    for_gpus=True,  # on a CPU, `blocked` holds the values of a block in a cache
)
HOLDING = frozenset({BLOCKED.name, BANDED.name})
"""The families of stages that hold values."""
