"""An accelerator as e-PlaNNer's JSON file describes it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from liftpy.errors import StoreRefused
from liftpy.files.reading import MIB, read_text
from liftpy.networks.offchip.nest import WORD, Nest

LoopName: TypeAlias = Literal["G", "N", "OH", "OW", "OC", "IC", "KH", "KW"]
"""The loops that may be mapped onto the array of processing elements."""

Positive = Annotated[int, Field(ge=1, le=1 << 40)]
Rate = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Pair = Annotated[list[Positive], Field(min_length=2, max_length=2)]
Triple = Annotated[list[Positive], Field(min_length=3, max_length=3)]
Mapped = Annotated[list[list[LoopName]], Field(min_length=2, max_length=2)]

FOLDER = Path(__file__).with_name("accelerators")
"""The accelerators that come with liftpy, by name."""


class Accelerator(BaseModel):
    """A chip with memories for input, weight and output, and an array of processing elements.

    `bandwidth` is that of off-chip memory in GB/s, `frequency` the clock frequency in GHz,
    `mem_size` the sizes of the memories for input, weight and output in KB of 1024 bytes, `pe_len`
    the numbers of columns and rows of the array, and `pe_mapping` the loops that run across its
    columns and across its rows.

    >>> chip = Accelerator(bandwidth=1.6, frequency=1.2, mem_size=[368, 288, 144],
    ...                    pe_len=[32, 32], pe_mapping=[["IC"], ["OC"]])
    >>> chip.capacities
    (376832, 294912, 147456)
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    bandwidth: Rate
    frequency: Rate
    mem_size: Triple
    pe_len: Pair
    pe_mapping: Mapped

    @property
    def capacities(self) -> tuple[int, int, int]:
        """The sizes in bytes of the memories for input, weight and output."""
        a, b, c = (1024 * size for size in self.mem_size)
        return a, b, c

    @property
    def elements(self) -> int:
        """The number of processing elements."""
        return math.prod(self.pe_len)

    def parallel(self, nest: Nest) -> Mapping[str, int]:
        """How many iterations of each loop run at once; 1 for loops that are not mapped.

        Several loops that are mapped onto one side share it: the first takes as much as it can use.

        >>> import liftpy as lp
        >>> from liftpy.networks.offchip.meaning import nest_of
        >>> chip = accelerator("sample")
        >>> dict(chip.parallel(nest_of(lp.workload("matmul/64x48x80")).nest))
        {'OH': 1, 'OC': 32, 'IC': 32}
        """
        found = dict.fromkeys(nest.extents, 1)
        for length, names in zip(self.pe_len, self.pe_mapping, strict=True):
            left = length
            for name in names:
                if name in found:
                    found[name] = min(left, nest.extents[name])
                    left //= found[name]
        return found

    def with_memory(self, *sizes: int) -> Self:
        """The same accelerator with other memories, in KB."""
        return self.model_copy(update={"mem_size": [*sizes]})


def accelerator(name: str | Path) -> Accelerator:
    """An accelerator from a JSON file, or one that comes with liftpy, by its name.

    StoreRefused for a file that is not such a description.

    >>> accelerator("sample").pe_mapping
    [['IC'], ['OC']]
    """
    known = sorted(path.stem for path in FOLDER.glob("*.json"))
    path = FOLDER / f"{name}.json" if str(name) in known else Path(name)
    if not path.exists():
        raise StoreRefused(
            f"there is no accelerator {name}: no file has this name\n"
            f"  liftpy comes with: {', '.join(known)}\n"
            "  or give a JSON file with such a description"
        )
    text = read_text(path, MIB, StoreRefused)
    try:
        return Accelerator.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise StoreRefused(
            f"{path} describes no accelerator: {where}: {first['msg']}\n"
            f"  wanted: {json.dumps(accelerator('sample').model_dump())}\n"
            f"  or one of: {', '.join(known)}"
        ) from error


def fits(nest: Nest, tiles: Mapping[str, int], capacities: tuple[int, int, int]) -> bool:
    """Whether a tile of each array is at most as large as its memory."""
    return all(
        WORD * array.largest(tiles) <= room
        for array, room in zip(nest.arrays, capacities, strict=True)
    )
