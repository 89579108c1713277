"""Types: scalars, vectors, tuples, and arrays with symbolic lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import is_

from liftpy.ir.lazy import lazy
from liftpy.ir.nat import Nat, NatLike, nat
from liftpy.ir.scalar_types import RECORDS


@dataclass(frozen=True)
class Type:
    """The base class of all types.

    >>> import liftpy as lp
    >>> program = lp.parse("size n: 1..64 def p(xs: [n]f32) = xs |> map(x => x * x)")
    >>> print(program.type, isinstance(program.type, lp.Type))
    [n]f32 True
    """

    def substitute(self, by: Mapping[str, NatLike]) -> Type:
        """The type with size variables replaced; itself if it has none of them."""
        return self

    def lengths(self) -> Iterator[Nat]:
        """Every length in the type, outermost first."""
        return iter(())


@dataclass(frozen=True)
class ScalarType(Type):
    """A machine scalar.

    A float `f16`, `f32`, `f64`, an integer `i8`, `i32`, `i64`, `bool`, or a storage type such as
    `bf16`, whose values are computed in another type.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OpenType(ScalarType):
    """The type of a number that is written without a type, until that is decided (`Holes`)."""

    number: int

    def __str__(self) -> str:
        return "a number without a type"


@dataclass(frozen=True)
class TypeVar(Type):
    """An unknown type, in rules only; if `scalar`, it matches scalars and tuples of scalars."""

    name: str
    scalar: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class VectorType(Type):
    """A vector: `width` lanes of scalars, or of tuples of scalars, computed in lockstep."""

    element: Type
    width: Nat

    def substitute(self, by: Mapping[str, NatLike]) -> Type:
        element, width = self.element.substitute(by), self.width.substitute(by)
        same = element is self.element and width is self.width
        return self if same else VectorType(element, width)

    def lengths(self) -> Iterator[Nat]:
        yield self.width
        yield from self.element.lengths()

    def __str__(self) -> str:
        return f"<{self.width}>{self.element}"


@dataclass(frozen=True)
class TupleType(Type):
    """A tuple of two or more values."""

    elements: tuple[Type, ...]

    def substitute(self, by: Mapping[str, NatLike]) -> Type:
        elements = tuple(e.substitute(by) for e in self.elements)
        return self if all(map(is_, elements, self.elements)) else TupleType(elements)

    def lengths(self) -> Iterator[Nat]:
        for element in self.elements:
            yield from element.lengths()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


@dataclass(frozen=True)
class ArrayType(Type):
    """An array of `length` elements of one type."""

    element: Type
    length: Nat

    def substitute(self, by: Mapping[str, NatLike]) -> Type:
        element, length = self.element.substitute(by), self.length.substitute(by)
        same = element is self.element and length is self.length
        return self if same else ArrayType(element, length)

    def lengths(self) -> Iterator[Nat]:
        yield self.length
        yield from self.element.lengths()

    @lazy
    def shape(self) -> tuple[Nat, ...]:
        """The lengths of the nested arrays, outermost first."""
        return (
            (self.length, *self.element.shape)
            if isinstance(self.element, ArrayType)
            else (self.length,)
        )

    def __str__(self) -> str:
        return f"[{self.length}]{self.element}"


SCALARS = {name: ScalarType(name) for name in RECORDS}
F16, F32, F64 = FLOATS = tuple(SCALARS[r.name] for r in RECORDS.values() if r.kind == "float")
INTEGERS = tuple(SCALARS[r.name] for r in RECORDS.values() if r.kind == "integer")
I8, I16, I32, I64, U8, U16, U32, U64 = INTEGERS
BOOL = SCALARS["bool"]
#: The storage types, each with the type in which its values are computed.
STORAGE = {SCALARS[n]: SCALARS[r.base] for n, r in RECORDS.items() if r.kind == "storage"}
(
    BF16,
    BINARY16,
    FLYTE24,
    FLYTE24_NEAREST,
    FLYTE16,
    FLYTE8,
    FLYTE56,
    FLYTE56_NEAREST,
    FLYTE48,
    FLYTE48_NEAREST,
    FLYTE40,
    FLYTE40_NEAREST,
    FLYTE32,
    FLYTE32_NEAREST,
    FLYTE24_F64,
    FLYTE24_F64_NEAREST,
    FLYTE16_F64,
    FLYTE16_F64_NEAREST,
) = STORAGE
SCALAR_BYTES = {name: record.bytes for name, record in RECORDS.items()}
#: The OpenCL extension that a device needs for a type that is optional.
EXTENSIONS = {SCALARS[n]: r.extension for n, r in RECORDS.items() if r.extension is not None}

#: The OpenCL extensions with dot products of four 8-bit integers in i32; either is enough.
#: Arm's has no dot product of a signed and an unsigned vector.
INTEGER_DOTS = ("cl_khr_integer_dot_product", "cl_arm_integer_dot_product_int8")

#: Not an extension: a processor that adds four products of a u8 and an i8 to each of 16 lanes.
VNNI = "x86_avx512_vnni"

#: The OpenCL extensions with subgroups, and the feature of OpenCL C 3; one of them is enough.
SUBGROUPS = ("cl_khr_subgroups", "cl_intel_subgroups", "__opencl_c_subgroups")


def integer_range(t: ScalarType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type; arithmetic wraps around."""
    record = RECORDS[t.name]
    half = 1 << (record.bits - 1)
    return (-half, half - 1) if record.signed else (0, 2 * half - 1)


def with_article(t: ScalarType) -> str:
    """The name of a scalar type after "a" or "an", as it is said: "an f32", "a u8", "a bf16"."""
    letter, *rest = t.name
    return f"{'an' if letter in 'fi' and rest[0].isdigit() else 'a'} {t.name}"


def scalars(t: Type) -> tuple[ScalarType, ...]:
    """The scalar types in a type, in order; empty for a type variable."""
    match t:
        case ArrayType(element) | VectorType(element):
            return scalars(element)
        case TupleType(elements):
            return tuple(s for e in elements for s in scalars(e))
        case ScalarType():
            return (t,)
        case _:
            return ()


@dataclass(frozen=True)
class Component:
    """One of the arrays of scalars that store a value: its position in tuples, and its shape.

    The lanes of vectors are the last dimension.
    """

    path: tuple[int, ...]
    scalar: ScalarType
    shape: tuple[Nat, ...]

    @property
    def type(self) -> Type:
        """The type of the array."""
        return array(self.scalar, *self.shape) if self.shape else self.scalar


def components(t: Type, outer: tuple[Nat, ...] = ()) -> tuple[Component, ...]:
    """The arrays that store a value, in order: one for each component of its tuples."""
    match t:
        case ArrayType(element, length):
            return components(element, (*outer, length))
        case VectorType(element, width):
            return components(element, (*outer, width))
        case TupleType(elements):
            return tuple(
                Component((k, *part.path), part.scalar, part.shape)
                for k, e in enumerate(elements)
                for part in components(e, outer)
            )
        case ScalarType():
            return (Component((), t, outer),)
        case _:
            message = f"{t} cannot be stored in memory"
            raise TypeError(message)


def array(element: Type, *lengths: NatLike) -> ArrayType:
    """`array(F32, 2, 3)` is `[2][3]f32`."""
    result = element
    for length in reversed(lengths):
        result = ArrayType(result, nat(length))
    if not isinstance(result, ArrayType):
        message = "an array type needs at least one length"
        raise TypeError(message)
    return result


def base(t: Type) -> Type:
    """The innermost element type of an array, inside vectors too."""
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    return t


def count(t: Type) -> Nat:
    """The number of scalars in a value of the type, in all components of tuples."""
    if isinstance(t, ArrayType):
        return t.length * count(t.element)
    if isinstance(t, VectorType):
        return t.width * count(t.element)
    if isinstance(t, TupleType):
        total = nat(0)
        for element in t.elements:
            total = total + count(element)
        return total
    return nat(1)


def size_bytes(t: Type) -> Nat:
    """The size of a value in bytes, without padding between elements."""
    if isinstance(t, ArrayType):
        return t.length * size_bytes(t.element)
    if isinstance(t, VectorType):
        return t.width * size_bytes(t.element)
    if isinstance(t, TupleType):
        total = nat(0)
        for element in t.elements:
            total = total + size_bytes(element)
        return total
    return nat(SCALAR_BYTES[str(t)])


def same_shape(a: Type, b: Type) -> list[tuple[Nat, Nat]] | None:
    """The pairs of lengths that must be equal for two types to be equal; None if they never are."""
    match a, b:
        case ArrayType(), ArrayType():
            inner = same_shape(a.element, b.element)
            return None if inner is None else [(a.length, b.length), *inner]
        case VectorType(), VectorType():
            inner = same_shape(a.element, b.element)
            return None if inner is None else [(a.width, b.width), *inner]
        case TupleType(), TupleType() if len(a.elements) == len(b.elements):
            pairs: list[tuple[Nat, Nat]] = []
            for x, y in zip(a.elements, b.elements, strict=True):
                inner = same_shape(x, y)
                if inner is None:
                    return None
                pairs += inner
            return pairs
        case _:
            return [] if a == b else None
