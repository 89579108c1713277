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
    computed: its bits are the leading ones of a value of the base. `numpy` and `c` are the unsigned
    integer types that hold these bits. If `nearest`, a conversion to the type rounds to nearest,
    ties to even; otherwise it truncates.
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
        ScalarRecord("flyte16", "storage", 16, "uint16", "ushort", exponent=8, base="f32"),
        ScalarRecord("flyte8", "storage", 8, "uint8", "uchar", exponent=7, base="f32"),
        ScalarRecord("flyte32", "storage", 32, "uint32", "uint", exponent=11, base="f64"),
    )
}
"""The records by name, in the order in which types are listed."""
