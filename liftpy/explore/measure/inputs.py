"""The inputs of a campaign: each process makes them from a seed, so they are never sent."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.deadline import check
from liftpy.errors import LiftError, MemoryRefused
from liftpy.ir.program import Program
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import FLOATS, SCALARS, STORAGE, components
from liftpy.memory import available
from liftpy.opencl.arguments import DTYPES
from liftpy.semantics.storage import to_storage

Array = NDArray[Any]

INPUT_SEED = 20240229
"""The seed of the inputs: every campaign has the same arrays."""

BLOCK = 1 << 20  # elements made, or bytes hashed, between two checks of the deadline
DISTINCT = 1 << 22  # numbers between -1 and 1 that f32 distinguishes, with a margin


@dataclass(frozen=True)
class ParameterArray:
    """An array of a parameter; `path` is its position in the parameter's nested tuples."""

    path: tuple[int, ...]
    scalar: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Inputs:
    """The description of a program's inputs: for each parameter its arrays, and the seed.

    `digest` is the hash of the arrays that the campaign's process made, with `numpy` of that
    version.
    """

    parameters: tuple[tuple[str, tuple[ParameterArray, ...]], ...]
    seed: int = INPUT_SEED
    digest: str = ""
    numpy: str = np.__version__

    @classmethod
    def of(cls, program: Program, seed: int = INPUT_SEED) -> tuple[Inputs, dict[str, Any]]:
        """The inputs of a program, and the arrays themselves.

        The numbers of an array have both signs and are distinct, as far as their type and number
        permit. An array of tuples is a tuple of arrays. A scalar is not 0: it may be a factor.
        Raises MemoryRefused if they do not fit into the memory of this machine.
        """
        require_inputs(program)
        parameters = tuple(
            (
                p.name,
                tuple(
                    ParameterArray(c.path, str(c.scalar), tuple(map(int, c.shape)))
                    for c in components(p.type)
                ),
            )
            for p in program.params
        )
        found = cls(parameters, seed)
        arrays = found._made()
        return replace(found, digest=digest(arrays)), arrays

    def arrays(self) -> dict[str, Any]:
        """The arrays by parameter; raises LiftError if this numpy makes other numbers."""
        arrays = self._made()
        if digest(arrays) != self.digest:
            raise LiftError(
                f"NumPy {np.__version__} makes different inputs from seed {self.seed} than NumPy "
                f"{self.numpy}, which the campaign used: install that version"
            )
        return arrays

    def _made(self) -> dict[str, Any]:
        streams = np.random.SeedSequence(self.seed).spawn(len(self.parameters))
        return {
            name: _nested(parts, np.random.default_rng(stream))
            for (name, parts), stream in zip(self.parameters, streams, strict=True)
        }


def require_inputs(program: Program) -> None:
    """Raises MemoryRefused if a program's inputs and their float64 copies exceed the free memory.

    The meaning is evaluated on these copies; integers are made with 64 bits. Without this check,
    the operating system would grant the memory and kill the process when it is used.
    """
    parts = [part for p in program.params for part in components(p.type)]
    counts = [(math.prod(map(int, part.shape)), part.scalar) for part in parts]
    kept = sum(count * DTYPES[str(scalar)].itemsize for count, scalar in counts)
    copies = sum(8 * count for count, scalar in counts if STORAGE.get(scalar, scalar) in FLOATS)
    making = max((8 * count for count, scalar in counts if scalar not in FLOATS), default=0)
    arrays = ", ".join(f"{p.name}: {p.type}" for p in program.params)
    needed = kept + max(copies, making)
    free = available()
    if needed > free:
        raise MemoryRefused(
            f"evaluating the meaning of {program.name} on inputs ({arrays}) takes "
            f"{in_units(needed)}, and this machine has {in_units(free)} free: use smaller arrays, "
            "or a machine with more memory"
        )


def in_units(number: int) -> str:
    """A number of bytes for a message, in the largest unit that it reaches."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"


def inputs(program: Program, seed: int = INPUT_SEED) -> dict[str, Any]:
    """An array for each parameter, from a seed."""
    return Inputs.of(program, seed)[1]


def digest(arrays: dict[str, Any]) -> str:
    """A hash of the numbers of arrays, in order."""
    found = hashlib.sha256()
    for array in _flat(tuple(arrays.values())):
        numbers = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(numbers), BLOCK):
            check()
            found.update(numbers[start : start + BLOCK].data)
    return found.hexdigest()


def _flat(arrays: Any) -> Iterator[Array]:
    if isinstance(arrays, tuple):
        for part in arrays:
            yield from _flat(part)
    else:
        yield np.atleast_1d(arrays)


def _nested(parts: tuple[ParameterArray, ...], rng: np.random.Generator) -> Any:
    """The arrays of a parameter, nested like its tuples."""
    if len(parts) == 1 and not parts[0].path:
        return _numbers(parts[0].scalar, parts[0].shape, rng)
    within: dict[int, list[ParameterArray]] = {}
    for part in parts:
        within.setdefault(part.path[0], []).append(replace(part, path=part.path[1:]))
    return tuple(_nested(tuple(inner), rng) for inner in within.values())


def _numbers(scalar: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    count = math.prod(shape)
    match RECORDS[scalar].kind:
        case "bool":
            return rng.integers(0, 2, shape).astype(np.bool_)
        case "integer" if not shape:
            return np.asarray(rng.integers(2, 9), DTYPES[scalar])
        case "integer":
            least = -(count // 2) if RECORDS[scalar].signed else 0
            return (rng.permutation(count) + least).astype(DTYPES[scalar]).reshape(shape)
        case "storage":
            t = SCALARS[scalar]
            return to_storage(_numbers(STORAGE[t].name, shape, rng), t)
        case "float":
            dtype = DTYPES[scalar]
            if not shape:
                return np.asarray(rng.uniform(0.5, 1), dtype)
            if count > DISTINCT:
                return _uniform(rng, count, dtype).reshape(shape)
            steps = (2 * rng.permutation(count) + 1 - count) / max(count, 1)
            return (0.75 * steps + 0.25).astype(dtype).reshape(shape)  # a sum is not zero


def _uniform(rng: np.random.Generator, count: int, dtype: Any) -> Array:
    """The numbers of one call of `rng.uniform`, drawn in blocks."""
    found = np.empty(count, dtype)
    for start in range(0, count, BLOCK):
        check()
        block = found[start : start + BLOCK]
        block[:] = rng.uniform(-0.5, 1, len(block))
    return found
