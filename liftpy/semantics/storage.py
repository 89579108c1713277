"""Values of storage types as NumPy arrays: of their bits, and of numbers in their base type.

In memory, a number of a storage type is an unsigned integer: the leading bits of a float, its base.
The meaning of a program has the floats themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import ArgumentRefused
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import STORAGE, ScalarType
from liftpy.language.entry import entry

WORDS = {32: np.uint32, 64: np.uint64}
"""The unsigned integers with as many bits as a base type."""


@entry("lp.to_storage")
def to_storage(numbers: Any, t: ScalarType) -> NDArray[Any]:
    """An array of numbers in a storage type: its bits, as programs take and return them.

    `bf16` rounds to nearest, ties to even; the flyte types truncate. Numbers are first converted to
    the base of the type (`f32`; `f64` for `flyte32`).

    >>> import liftpy as lp
    >>> lp.to_storage([1.0, -2.5], lp.bf16)
    array([16256, 49184], dtype=uint16)
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
    word = WORDS[base.bits]
    bits, dropped = values.view(word), word(base.bits - record.bits)
    kept = bits >> dropped
    if record.nearest:
        up = word((1 << (int(dropped) - 1)) - 1)
        rounded = (bits + up + (kept & word(1))) >> dropped
        kept = np.where(np.isnan(values), kept | word(record.quiet), rounded)
    return kept.astype(record.numpy)


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
    word = WORDS[base.bits]
    wide = given.astype(word) << word(base.bits - record.bits)
    return wide.view(base.numpy)


def how_stored(name: str, given: NDArray[Any], t: ScalarType) -> str:
    """How to make an array, which has another type, the bits of a storage type."""
    if given.dtype.kind in "iu":
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
    sign = 1 << (RECORDS[t.name].bits - 1)
    size = (bits & bits.dtype.type(sign - 1)).astype(np.int64)
    return np.where(bits & bits.dtype.type(sign), -size, size)


def as_stored(numbers: Any, t: ScalarType) -> Any:
    """Numbers rounded to a storage type, in the type that they have."""
    given = np.asarray(numbers)
    return from_storage(to_storage(given, t), t).astype(given.dtype)[()]
