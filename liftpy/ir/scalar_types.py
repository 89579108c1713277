"""The scalar types: one record each, which every room reads.

A new scalar type is a record here, and a name in `ir/types.py`. What its values are is in
`ir/scalars.py`, what arithmetic on them means in `ir/operators.py`, and what it needs in C in
`opencl/scalars.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ScalarRecord:
    """What a scalar type is called, and how its values are represented.

    `bits` are those of a value in memory. `numpy` and `c` are the types of NumPy and OpenCL C,
    `suffix` ends a literal in C. A floating-point type has `exponent` bits of its exponent, the
    largest finite number, `largest`, as it is printed, and a format of Python's `struct`, `packed`.
    `extension` is the OpenCL extension that a device needs for a type that is optional. An integer
    type that is not `signed` has no negative numbers.

    A value of a *storage* type is stored in fewer bits than its `base` type, in which it is
    computed: its bits are the leading ones of a value of the base, or, if it has a format of its
    own (`packed`), those of this format. If `nearest`, a conversion to the type rounds to nearest,
    ties to even; otherwise it truncates. `c` is the unsigned integer that holds the bits in a
    variable, and `numpy` the type of an element of an array in memory. Where no integer has as many
    bytes, this is a type of bytes without a meaning ("V3").
    """

    name: str
    kind: Literal["float", "integer", "bool", "storage"]
    bits: int
    numpy: str
    c: str
    suffix: str = ""
    exponent: int = 0
    largest: str = ""
    packed: str = ""
    extension: str | None = None
    base: str = ""
    nearest: bool = False
    signed: bool = True

    @property
    def bytes(self) -> int:
        """The bytes of a value in memory."""
        return self.bits // 8

    @property
    def is_whole(self) -> bool:
        """Whether an integer of C has as many bits; otherwise, bytes are loaded and stored."""
        return self.bits in {8, 16, 32, 64}

    @property
    def significand(self) -> int:
        """The bits of a floating-point number's significand, with the one that is not stored.

        >>> RECORDS["f32"].significand
        24
        """
        return self.bits - self.exponent

    @property
    def quiet(self) -> int:
        """The quiet bit of a NaN in a storage type; 0 if the type has no fraction bits.

        >>> RECORDS["bf16"].quiet
        64
        """
        return 1 << (self.significand - 2) if self.significand > 1 else 0


def leading(name: str, bits: int, base: str) -> ScalarRecord:
    """The record of a storage type of the leading bits of `f32` or `f64`; it may end in `nearest`.

    >>> leading("flyte24", 24, "f32").numpy, leading("flyte8", 8, "f32").exponent
    ('V3', 7)
    """
    held = next(n for n in (8, 16, 32, 64) if n >= bits)
    return ScalarRecord(
        name,
        "storage",
        bits,
        f"uint{bits}" if held == bits else f"V{bits // 8}",
        {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}[held],
        exponent=min({"f32": 8, "f64": 11}[base], bits - 1),
        base=base,
        nearest=name.endswith("_nearest"),
    )


RECORDS = {
    record.name: record
    for record in (
        ScalarRecord(
            "f16", "float", 16, "float16", "half", "h", 5, "65504", "<e", extension="cl_khr_fp16"
        ),
        ScalarRecord("f32", "float", 32, "float32", "float", "f", 8, "3.4028235e38", "<f"),
        ScalarRecord(
            "f64",
            "float",
            64,
            "float64",
            "double",
            "",
            11,
            "1.7976931348623157e308",
            "<d",
            extension="cl_khr_fp64",
        ),
        ScalarRecord("i8", "integer", 8, "int8", "char"),
        ScalarRecord("i16", "integer", 16, "int16", "short"),
        ScalarRecord("i32", "integer", 32, "int32", "int"),
        ScalarRecord("i64", "integer", 64, "int64", "long", "L"),
        ScalarRecord("u8", "integer", 8, "uint8", "uchar", signed=False),
        ScalarRecord("u16", "integer", 16, "uint16", "ushort", signed=False),
        ScalarRecord("u32", "integer", 32, "uint32", "uint", "u", signed=False),
        ScalarRecord("u64", "integer", 64, "uint64", "ulong", "UL", signed=False),
        ScalarRecord("bool", "bool", 8, "bool_", "uchar"),
        ScalarRecord(
            "bf16", "storage", 16, "uint16", "ushort", exponent=8, base="f32", nearest=True
        ),
        ScalarRecord(
            "binary16",
            "storage",
            16,
            "uint16",
            "ushort",
            exponent=5,
            packed="<e",
            base="f32",
            nearest=True,
        ),
        leading("flyte24", 24, "f32"),
        leading("flyte24_nearest", 24, "f32"),
        leading("flyte16", 16, "f32"),
        leading("flyte8", 8, "f32"),
        leading("flyte56", 56, "f64"),
        leading("flyte56_nearest", 56, "f64"),
        leading("flyte48", 48, "f64"),
        leading("flyte48_nearest", 48, "f64"),
        leading("flyte40", 40, "f64"),
        leading("flyte40_nearest", 40, "f64"),
        leading("flyte32", 32, "f64"),
        leading("flyte32_nearest", 32, "f64"),
        leading("flyte24_f64", 24, "f64"),
        leading("flyte24_f64_nearest", 24, "f64"),
        leading("flyte16_f64", 16, "f64"),
        leading("flyte16_f64_nearest", 16, "f64"),
    )
}
"""The records by name, in the order in which types are listed."""
