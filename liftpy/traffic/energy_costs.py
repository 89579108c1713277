"""The costs of the energy proxy: a JSON file in which each figure has a source, or is assumed."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from liftpy.errors import StoreRefused
from liftpy.files.reading import MIB, read_text
from liftpy.ir.operators import OPERATORS
from liftpy.ir.scalar_types import RECORDS

FOLDER = Path(__file__).with_name("energy_costs")
"""The tables that come with liftpy, by name."""

DEFAULT = "45nm"

Kind: TypeAlias = Literal["f16", "f32", "f64", "i8", "i16", "i32", "i64"]
KINDS: tuple[Kind, ...] = ("f16", "f32", "f64", "i8", "i16", "i32", "i64")

Picojoules = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Source = Annotated[str, Field(min_length=1)]


class Figure(BaseModel):
    """A cost and its source; the source of an assumed cost begins with `assumed`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: Picojoules
    source: Source


class CacheFigure(Figure):
    """The cost of a byte that a cache of `bytes` bytes serves."""

    bytes: Annotated[int, Field(ge=1, le=1 << 50)]


class EnergyCosts(BaseModel):
    """Costs in pJ: of an operation on each type, and of a byte that each level serves.

    `add` is the cost of additions, comparisons and all that is as cheap, `multiply` that of
    multiplications; other operators cost as many multiplications as multiply-adds in the model of
    time (`ir/operators.py`). `caches` ascend in size; between two of them, the cost is a power of
    the size, and beyond them, the power is `growth`. `memory` is the cost of a byte that memory
    serves or takes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    unit: Literal["pJ"]
    add: dict[Kind, Figure]
    multiply: dict[Kind, Figure]
    caches: Annotated[list[CacheFigure], Field(min_length=1)]
    growth: Figure
    memory: Figure

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name, costs in (("add", self.add), ("multiply", self.multiply)):
            if missing := [kind for kind in KINDS if kind not in costs]:
                raise ValueError(f"{name} has no cost for {', '.join(missing)}")
        for small, large in pairwise(self.caches):
            if small.bytes >= large.bytes:
                raise ValueError(f"a cache of {large.bytes} bytes follows one of {small.bytes}")
        return self

    def operation(self, op: str, scalar: str) -> float:
        """The pJ of an operator on values of a scalar type.

        >>> costs = energy_costs()
        >>> costs.operation("*", "f32"), costs.operation("+", "u8"), costs.operation("/", "f16")
        (3.7, 0.03, 8.8)
        """
        kind, slots = kind_of(scalar), OPERATORS[op].cost
        if op != "*" and slots == 1:
            return self.add[kind].value
        return slots * self.multiply[kind].value

    def cache(self, size: int) -> float:
        """The pJ of a byte that a cache of `size` bytes serves.

        >>> costs = energy_costs()
        >>> [round(costs.cache(size), 2) for size in (2048, 8192, 32768, 181019, 1048576, 4194304)]
        [0.62, 1.25, 2.5, 5.53, 12.5, 25.0]
        """
        for small, large in pairwise(self.caches):
            if small.bytes <= size <= large.bytes and small.value > 0 and large.value > 0:
                power = math.log(large.value / small.value) / math.log(large.bytes / small.bytes)
                return small.value * (size / small.bytes) ** power
        near = self.caches[0] if size < self.caches[0].bytes else self.caches[-1]
        return near.value * (size / near.bytes) ** self.growth.value

    @property
    def assumed(self) -> list[str]:
        """The figures that are assumed."""
        named = {f"add {k}": f for k, f in self.add.items()}
        named |= {f"multiply {k}": f for k, f in self.multiply.items()}
        named |= {f"cache of {f.bytes} bytes": f for f in self.caches}
        named |= {"growth": self.growth, "memory": self.memory}
        return [name for name, figure in named.items() if figure.source.startswith("assumed")]


def kind_of(scalar: str) -> Kind:
    """The type whose costs a scalar type has: itself, or an integer with its or its base's bits.

    >>> [kind_of(name) for name in ("f32", "u16", "bool", "bf16", "flyte40")]
    ['f32', 'i16', 'i8', 'i32', 'i64']
    """
    record = RECORDS[scalar]
    bits = RECORDS[record.base].bits if record.kind == "storage" else max(8, record.bits)
    name = scalar if record.kind == "float" else f"i{bits}"
    return next(kind for kind in KINDS if kind == name)


def energy_costs(name: str | Path = DEFAULT) -> EnergyCosts:
    """The costs in a JSON file, or of a table that comes with liftpy, by its name.

    Raises StoreRefused for a file that is no such table.
    """
    known = sorted(path.stem for path in FOLDER.glob("*.json"))
    path = FOLDER / f"{name}.json" if str(name) in known else Path(name)
    text = read_text(path, MIB, StoreRefused)
    try:
        return EnergyCosts.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the table"
        why = first["msg"].removeprefix("Value error, ")
        example = json.dumps({"value": 3.7, "source": "assumed"})
        raise StoreRefused(
            f"{path} is no table of energy costs: {where}: {why}\n"
            f"  wanted: the keys of {FOLDER.name}/{DEFAULT}.json (docs/choosing.md), each figure as"
            f" {example}\n"
            f"  or one of: {', '.join(known)}"
        ) from error
