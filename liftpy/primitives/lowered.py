"""Lowered primitives, which specify a loop or a memory; `parallel` has the parallel levels.

Each has the meaning of its algorithmic form, so lowering is sound by definition.
`liftpy.kernels` checks where each may be used; `liftpy.constraints` limits what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least, at_most
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import F16, F32, ArrayType, Type, VectorType, components, size_bytes
from liftpy.primitives.data_index import AnyReduceByIndex
from liftpy.primitives.iterate import AnyIterate
from liftpy.primitives.map import AnyMap, array_of
from liftpy.primitives.reduce import AnyReduce
from liftpy.primitives.scan import AnyExclusiveScan, AnyInclusiveScan
from liftpy.primitives.slide import Slide


@dataclass(frozen=True)
class MapSeq(AnyMap):
    """Runs `map` as a loop of one work-item."""

    name: ClassVar[str] = "mapSeq"


@dataclass(frozen=True)
class MapSeqUnroll(MapSeq):
    """Runs `map` as straight-line code of one work-item."""

    name: ClassVar[str] = "mapSeqUnroll"


@dataclass(frozen=True)
class MapSeqAhead(MapSeq):
    """Runs `map` as a loop of one work-item that prefetches the data of its next iteration.

    Prefetching is a hint: if the device's compiler does not support it, this is `mapSeq`.
    """

    name: ClassVar[str] = "mapSeqAhead"


@dataclass(frozen=True)
class MapHost(AnyMap):
    """Runs `map` as a loop of the host, which launches the function's kernels for each element.

    Each iteration overwrites the buffers of the values that the function stores with `toGlobal`, so
    a buffer has room for the value of one element. A stored value that does not depend on the
    element is computed once. A `mapHost` must be outside all other maps that compute.
    """

    name: ClassVar[str] = "mapHost"


@dataclass(frozen=True)
class ReduceSeq(AnyReduce):
    """Runs `reduce` as a loop of one work-item; the accumulator is private."""

    name: ClassVar[str] = "reduceSeq"


@dataclass(frozen=True)
class ReduceSeqUnroll(AnyReduce):
    """Runs `reduce` as straight-line code of one work-item."""

    name: ClassVar[str] = "reduceSeqUnroll"


@dataclass(frozen=True)
class ReduceInPlace(AnyReduce):
    """Runs `reduce` in passes over its accumulator, which stays in the memory of the result.

    Each pass stores the accumulator's elements again; the first stores them without reading. For an
    element, a pass may read only the old value of this element. If the function contains parallel
    maps and is outside every other one, each pass is a kernel. Otherwise passes are a loop in a
    kernel. The result is in global or local memory, never in registers.
    """

    name: ClassVar[str] = "reduceInPlace"


@dataclass(frozen=True)
class ScanSeq(AnyInclusiveScan):
    """Runs `scan` as a loop of one work-item; the accumulator is private."""

    name: ClassVar[str] = "scanSeq"


@dataclass(frozen=True)
class ExclusiveScanSeq(AnyExclusiveScan):
    """Runs `exclusiveScan` as a loop of one work-item; the accumulator is private."""

    name: ClassVar[str] = "exclusiveScanSeq"


@dataclass(frozen=True)
class ReduceByIndexSeq(AnyReduceByIndex):
    """Runs `reduceByIndex` as a loop of one work-item over the pairs, which updates bins in place.

    The bins are in global memory or in registers, never in local memory.
    """

    name: ClassVar[str] = "reduceByIndexSeq"

    def type_of(self, init: Type, pairs: Type) -> Type:
        bins, _ = self.parts(init, pairs)
        if any(True for _ in bins.element.lengths()):
            message = (
                f"{self.name} updates bins of scalars or tuples, not of {bins.element}: "
                "use reduceByIndex, or map over the columns of bins and values"
            )
            raise TypeRefused(message)
        return bins


@dataclass(frozen=True)
class ReduceByIndexAtomic(AnyReduceByIndex):
    """Runs `reduceByIndex` over the ids of a launch: each pair updates its bin atomically.

    `mapGlb(0)` makes the pairs, and an earlier kernel stores the initial values. The device chooses
    the order of the updates. So the function is an operator on i32 or u32 whose results do not
    depend on it: addition, min, max, bitAnd, bitOr or bitXor. The meaning has the opposite order of
    `reduceByIndex`, so that the two are equal only for associative and commutative functions.

    reduceByIndexAtomic(f) : ([b]m, [(i32, a)]n) -> [b]m
        element j is the fold by f, from init[j], of the values with index j, the last one first
    """

    name: ClassVar[str] = "reduceByIndexAtomic"

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Pull, pairs: Pull
    ) -> Value:
        last = pairs.length - 1
        return super().meaning(read, f, init, Pull(pairs.length, lambda k: pairs[last - k]))

    def reference(
        self, f: Callable[[Any, Any], Any], init: list[Any], pairs: list[tuple[Any, Any]]
    ) -> list[Any]:
        return super().reference(f, init, pairs[::-1])


@dataclass(frozen=True)
class IterateSeq(AnyIterate):
    """Runs `iterate` as a loop.

    If the function contains parallel maps and is outside every other one, the loop launches
    kernels. Otherwise it is a loop of one work-item on private memory.
    """

    name: ClassVar[str] = "iterateSeq"


@dataclass(frozen=True)
class SlideSeq(Primitive):
    """Applies a function to overlapping windows in a loop that keeps the window in registers.

    slideSeq(size, step, f) : [a]n -> [b]w        element i is f(window i)
                        w = (n - size) / step + 1;  n >= size >= step
    """

    name: ClassVar[str] = "slideSeq"
    by_definition: ClassVar[Mapping[str, str]] = {
        "1 <= size": "a window has at least one element",
        "step <= size": "registers keep the elements that consecutive windows share",
    }
    f: Lambda
    size: Nat
    step: Nat

    def parameter_types(self, xs: Type) -> tuple[Type, ...]:
        return (ArrayType(array_of(self.name, xs).element, self.size),)

    def type_of(self, xs: Type) -> Type:
        windows = Slide(self.size, self.step).windows(array_of(self.name, xs).length)
        return ArrayType(self.f.body.type, windows)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield from Slide(self.size, self.step).requires(xs)
        yield at_most(self.step, self.size)

    def meaning(self, read: Reader, f: Callable[[Value], Value], xs: Pull) -> Value:
        windows = Slide(self.size, self.step).meaning(read, xs)
        return Pull(windows.length, lambda i: f(windows[i]))

    def reference(self, f: Callable[[Any], Any], xs: list[Any]) -> list[Any]:
        size, step = int(self.size), int(self.step)
        window, rest = xs[:size], xs[size:]
        results = [f(window)]
        while len(rest) >= step:
            window, rest = window[step:] + rest[:step], rest[step:]
            results.append(f(window))
        return results


def vector_of(name: str, t: Type) -> VectorType:
    """`t` as a vector type. TypeRefused, naming the primitive, if it is not one."""
    if not isinstance(t, VectorType):
        message = f"{name} needs a vector, got {t}"
        raise TypeRefused(message)
    return t


@dataclass(frozen=True)
class MapVec(Primitive):
    """Applies a scalar function to all lanes of a vector in one operation.

    mapVec(f) : <v>a -> <v>b        lane l is f(x at lane l)
    """

    name: ClassVar[str] = "mapVec"
    unconditional: ClassVar[str] = "the primitive that makes the vector checks its width"
    f: Lambda

    def parameter_types(self, xs: Type) -> tuple[Type, ...]:
        return (vector_of(self.name, xs).element,)

    def type_of(self, xs: Type) -> Type:
        if isinstance(self.f.body.type, ArrayType | VectorType):
            message = (
                f"mapVec needs a function that returns scalars; this one returns {self.f.body.type}"
            )
            raise TypeRefused(message)
        return VectorType(self.f.body.type, vector_of(self.name, xs).width)

    def meaning(self, read: Reader, f: Callable[[Value], Value], xs: Pull) -> Value:
        return Pull(xs.length, lambda lane: f(xs[lane]))

    def reference(self, f: Callable[[Any], Any], xs: list[Any]) -> list[Any]:
        return [f(x) for x in xs]


@dataclass(frozen=True)
class ReduceVec(Primitive):
    """Folds the lanes of a vector from the left.

    reduceVec(f) : (b, <v>a) -> b
    """

    name: ClassVar[str] = "reduceVec"
    unconditional: ClassVar[str] = "the primitive that makes the vector checks its width"
    f: Lambda

    def parameter_types(self, init: Type, xs: Type) -> tuple[Type, ...]:
        return init, vector_of(self.name, xs).element

    def type_of(self, init: Type, xs: Type) -> Type:
        vector_of(self.name, xs)
        return init

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Value, xs: Pull
    ) -> Value:
        return read.fold(xs.length, init, lambda lane, acc: f(acc, xs[lane]))

    def reference(self, f: Callable[[Any, Any], Any], init: Any, xs: list[Any]) -> Any:
        for lane in xs:
            init = f(init, lane)
        return init


@dataclass(frozen=True)
class MemoryPrimitive(Primitive):
    """Stores a value in a memory; the value is the result.

    toGlobal, toStreamed, toLocal, toPrivate : a -> a
    """

    unconditional: ClassVar[str] = "the value does not change"

    def type_of(self, x: Type) -> Type:
        return x

    def meaning(self, read: Reader, x: Value) -> Value:
        return x

    def reference(self, x: Any) -> Any:
        return x


@dataclass(frozen=True)
class ToGlobal(MemoryPrimitive):
    """Stores the value in global memory; outside every parallel map, this ends a kernel.

    If the value depends on a variable of a function inside a kernel, each work-item stores its own
    value, and the buffer has an element for each work-item.
    """

    name: ClassVar[str] = "toGlobal"


@dataclass(frozen=True)
class ToStreamed(ToGlobal):
    """Stores the value in global memory with non-temporal stores, if the device has them.

    Such stores bypass the caches: they do not read the lines that they overwrite, and they leave
    the caches to data that is read soon. Only whole vectors at indices that their length divides
    are stored so.
    """

    name: ClassVar[str] = "toStreamed"


@dataclass(frozen=True)
class ToLocal(MemoryPrimitive):
    """Stores the value in the local memory of the work-group."""

    name: ClassVar[str] = "toLocal"

    def stored_bytes(self, t: Type) -> Nat:
        """The bytes of local memory for a value of type `t`."""
        return size_bytes(t)


@dataclass(frozen=True)
class ToLocalPadded(ToLocal):
    """Stores an array in local memory with `gap` unused scalars behind each of its elements.

    toLocalPadded(gap) : [a]n -> [a]n

    Elements of the same index in adjacent rows then are in different banks.
    """

    name: ClassVar[str] = "toLocalPadded"
    unconditional: ClassVar[str] = ""
    by_definition: ClassVar[Mapping[str, str]] = {"0 <= gap": "no memory has fewer elements"}
    gap: Nat

    def type_of(self, x: Type) -> Type:
        return array_of(self.name, x)

    def requires(self, x: Type) -> Iterator[Constraint]:
        yield at_least(0, self.gap)

    def stored_bytes(self, t: Type) -> Nat:
        rows = array_of(self.name, t).length
        gaps = (size_bytes(part.scalar) * self.gap * rows for part in components(t))
        return sum(gaps, super().stored_bytes(t))


@dataclass(frozen=True)
class ToPrivate(MemoryPrimitive):
    """Stores the value in registers of the work-item."""

    name: ClassVar[str] = "toPrivate"


@dataclass(frozen=True)
class ToSubgroup(MemoryPrimitive):
    """Holds an array in the registers of each subgroup: a work-item has an element of each row.

    toSubgroup : [a]n -> [a]n

    The innermost dimension is divided among the work-items of a subgroup, each of which loads its
    own element; the others read it by a broadcast. All work-items read the same element at a time.
    A subgroup of fewer work-items than a row has elements reads the array itself. The array is in
    buffers that its kernel only reads.
    """

    name: ClassVar[str] = "toSubgroup"

    def type_of(self, x: Type) -> Type:
        return array_of(self.name, x)


TEXEL = 4
"""The scalars of a texel, the element of an image."""

TEXEL_SCALARS = (F32, F16)
"""The types of the scalars of texels."""


@dataclass(frozen=True)
class AsImage(Layout):
    """The array itself. A kernel reads it through an image, in texels of four scalars.

    asImage : [a]n -> [a]n        element i is xs[i]

    The array is a parameter of the program, or a value that `toGlobal` stores outside all parallel
    maps; no kernel that reads it so writes it. Its scalars are f32 or f16, and their number is a
    multiple of 4.
    """

    name: ClassVar[str] = "asImage"
    unconditional: ClassVar[str] = "it changes nothing"

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(known.element, known.length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(xs.length, lambda i: xs[i])

    def reference(self, xs: list[Any]) -> list[Any]:
        return list(xs)

    def inverse(self, xs: Type) -> Primitive | None:
        return AsImage()
