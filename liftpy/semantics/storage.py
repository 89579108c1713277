"""Values of storage types as NumPy arrays: of their bits, and of numbers in their base type.

In memory, a number of a storage type is an unsigned integer: the leading bits of a float, its base,
or the bits of another format. Where NumPy has no such integer, it is a few bytes, the lowest first.
The meaning of a program has the floats themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import ArgumentRefused, UnknownName
from liftpy.ir.formats import QUANTISED, Format, Quantised
from liftpy.ir.program import Program
from liftpy.ir.scalar_types import RECORDS, ScalarRecord
from liftpy.ir.storing import with_storage as permitted
from liftpy.ir.types import SCALARS, STORAGE, ScalarType
from liftpy.language.entry import entry

StorageTypes: TypeAlias = str | Format | Sequence[str | Format]
StorageLike: TypeAlias = Mapping[str, StorageTypes]
"""Storage formats of values by their names, as a user gives them."""

FORMATS: dict[str, Format] = {**SCALARS, **QUANTISED}
"""Types and quantised formats by name; `ir/storing.py` checks whether one fits a value."""

WORDS = {32: np.uint32, 64: np.uint64}
"""The unsigned integers with as many bits as a base type."""


@entry("lp.to_storage")
def to_storage(numbers: Any, t: ScalarType) -> NDArray[Any]:
    """An array of numbers in a storage type: its bits, as programs take and return them.

    `bf16`, `binary16` and types whose names end in `nearest` round to nearest, ties to even; the
    other types truncate. Numbers are first converted to the base of the type (`f32` or `f64`).

    >>> import liftpy as lp
    >>> lp.to_storage([1.0, -2.5], lp.bf16)
    array([16256, 49184], dtype=uint16)
    >>> lp.to_storage([[1.0, -2.5]], lp.flyte24).tobytes().hex()
    '00803f0020c0'
    """
    record, base = RECORDS[t.name], RECORDS[base_of(t).name]
    try:
        given = np.asarray(numbers)
    except ValueError as error:  # such as rows of different lengths
        message = f"lp.to_storage needs an array of numbers\n  {error}\n  write rows of one length"
        raise ArgumentRefused(message) from error
    if given.dtype.kind not in "biuf":
        message = f"lp.to_storage needs numbers, got {given.dtype}\n  pass an array of floats"
        raise ArgumentRefused(message)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ascontiguousarray(given.astype(base.numpy)).reshape(given.shape)
    if record.packed:
        return formatted(values, record)
    word = WORDS[base.bits]
    bits, dropped = values.view(word), word(base.bits - record.bits)
    kept = bits >> dropped
    if record.nearest:
        up = word((1 << (int(dropped) - 1)) - 1)
        rounded = (bits + up + (kept & word(1))) >> dropped
        kept = np.where(np.isnan(values), kept | word(record.quiet), rounded)
    return in_bytes(kept, record)


def formatted(values: NDArray[Any], record: ScalarRecord) -> NDArray[Any]:
    """The bits of numbers in a format of their own; NaNs become quiet (`ir.scalars.formatted`)."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = values.astype(np.dtype(record.packed)).view(record.numpy)
    return np.where(np.isnan(values), bits | bits.dtype.type(record.quiet), bits)


def in_bytes(words: NDArray[Any], record: ScalarRecord) -> NDArray[Any]:
    """Bits as an array in memory: of integers, or of as many bytes as a number has."""
    if record.is_whole:
        return words.astype(record.numpy)
    each = np.ascontiguousarray(words).reshape(-1).astype("<u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(each[:, : record.bytes]).view(record.numpy).reshape(words.shape)


def in_words(memory: NDArray[Any], record: ScalarRecord) -> NDArray[Any]:
    """The bits of an array in memory as integers."""
    if record.is_whole:
        return memory
    each = np.zeros((memory.size, 8), np.uint8)
    each[:, : record.bytes] = (
        np.ascontiguousarray(memory).reshape(-1).view(np.uint8).reshape(-1, record.bytes)
    )
    return each.view("<u8").reshape(memory.shape)


@entry("lp.from_storage")
def from_storage(bits: Any, t: ScalarType) -> NDArray[Any]:
    """The numbers whose bits an array has, in the base of a storage type; no number is rounded.

    >>> import liftpy as lp
    >>> lp.from_storage(lp.to_storage([21.35], lp.flyte16), lp.flyte16)
    array([21.25], dtype=float32)
    """
    record, base = RECORDS[t.name], RECORDS[base_of(t).name]
    given = np.asarray(bits)
    if given.dtype != np.dtype(record.numpy):
        raise ArgumentRefused(
            f"{t} is stored as {record.numpy}, got {given.dtype}\n  {how_stored('x', given, t)}"
        )
    if record.packed:
        return given.view(np.dtype(record.packed)).astype(base.numpy)
    word = WORDS[base.bits]
    wide = in_words(given, record).astype(word) << word(base.bits - record.bits)
    return wide.view(base.numpy)


@entry("lp.with_storage")
def with_storage(program: Program, storage: StorageLike) -> Program:
    """The program with permission to store values in other formats, which changes its meaning.

    `storage` maps the name of a parameter, or of a value that a `let` names, to one or more
    formats: storage types, their names, or names of quantised formats such as `q8` (parameters of
    f32 only). Which of them a candidate uses, or none, is a choice with the value's name: `w=bf16`,
    `w=f32`. The error of a storage type has a relative bound; that of a quantised format has none,
    since it depends on the numbers. Raises UnknownName or TypeRefused for a value that cannot be
    stored in these formats.

    >>> import liftpy as lp
    >>> program = lp.parse("def f(const w: [8]f32) = w |> map(v => v * 2)")
    >>> print(lp.show(lp.with_storage(program, {"w": "bf16, flyte24"})), end="")
    storage w: bf16, flyte24
    def f(const w: [8]f32) = w |> map(v => v * 2)
    """
    return permitted(program, {name: types_of(given) for name, given in storage.items()})


def types_of(given: StorageTypes) -> list[Format]:
    """The formats that a user gave as types or names; UnknownName for a name of no format."""
    several = given.split(",") if isinstance(given, str) else given
    found: list[Format] = []
    for one in [several] if isinstance(several, ScalarType | Quantised) else several:
        name = str(one).strip()
        if name not in FORMATS:
            types, quantised = ", ".join(map(str, STORAGE)), ", ".join(QUANTISED)
            raise UnknownName(
                f"no storage format is named '{name}'\n  storage types are {types}\n"
                f"  quantised formats are {quantised}"
            )
        found.append(FORMATS[name])
    return found


def how_stored(name: str, given: NDArray[Any], t: ScalarType) -> str:
    """How to make an array, which has another type, the bits of a storage type."""
    if given.dtype.kind in "iu" and RECORDS[t.name].is_whole:
        return f"np.{RECORDS[t.name].numpy}({name}) has the same bits; of numbers, lp.to_storage"
    return f"lp.to_storage({name}, lp.{t}) stores an array of numbers"


def base_of(t: ScalarType) -> ScalarType:
    """The type in which values of a storage type are computed; ArgumentRefused for other types."""
    if t not in STORAGE:
        known = ", ".join(f"lp.{name}" for name in STORAGE)
        raise ArgumentRefused(f"{t} is not a storage type\n  use one of {known}")
    return STORAGE[t]


def are_neighbours(some: Any, others: Any, t: ScalarType) -> NDArray[np.bool_]:
    """Whether numbers of a storage type are equal, or next to one another in the type."""
    one, two = (in_order(to_storage(numbers, t), t) for numbers in (some, others))
    return np.abs(one - two) <= 1


def in_order(bits: NDArray[Any], t: ScalarType) -> NDArray[np.int64]:
    """The bits of a storage type as integers in the order of its numbers; -0 and 0 are equal."""
    words = in_words(bits, RECORDS[t.name])
    sign = 1 << (RECORDS[t.name].bits - 1)
    size = (words & words.dtype.type(sign - 1)).astype(np.int64)
    return np.where(words & words.dtype.type(sign), -size, size)


def as_stored(numbers: Any, t: ScalarType) -> Any:
    """Numbers rounded to a storage type, in the type that they have."""
    given = np.asarray(numbers)
    return from_storage(to_storage(given, t), t).astype(given.dtype)[()]
