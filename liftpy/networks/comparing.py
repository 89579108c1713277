"""The largest difference of two results, relative to the largest value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from liftpy.errors import LiftError
from liftpy.ir.types import BOOL, FLOATS, ScalarType
from liftpy.networks.executing import Array
from liftpy.networks.graph import SCALAR_OF, Graph

TOLERANCES = {"f16": 4e-3, "f32": 1e-4, "f64": 1e-10}
"""The largest difference of results, relative to the largest absolute value of the tensor."""


def errors_of(t: ScalarType, got: Array, wanted: Array) -> Array:
    """The difference of each element relative to the largest finite value; 0 where both are NaN.

    Integers and booleans differ by 0 or infinity.
    """
    if t not in FLOATS:
        return np.where(got == wanted, 0.0, np.inf)
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), np.asarray(wanted).astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        errors = np.asarray(np.abs(a - b) / scale)  # NumPy makes a scalar of rank 0
        errors[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        errors[np.isnan(errors)] = np.inf
    return errors


def tolerance_of(t: ScalarType, given: float | None) -> float:
    """The tolerance for results of a type."""
    if t not in FLOATS:
        return 0.0
    return TOLERANCES[t.name] if given is None else given


def largest_error(t: ScalarType, got: Any, wanted: Any) -> float:
    """The largest error of an array, or of the arrays of a sequence; infinite if these differ."""
    if isinstance(wanted, list):
        pairs = list(zip(got, cast("list[Any]", wanted), strict=False))
        fits = isinstance(got, list) and len(pairs) == len(got) == len(wanted)
        return max((largest_error(t, *pair) for pair in pairs), default=0.0) if fits else np.inf
    fits = np.shape(got) == wanted.shape and got.dtype == wanted.dtype
    return float(errors_of(t, got, wanted).max(initial=0.0)) if fits else np.inf


def compared(
    graph: Graph,
    found: Mapping[str, Array],
    wanted: Mapping[str, Array],
    tolerance: float | None = None,
) -> dict[str, float]:
    """The largest error of each output. LiftError if one exceeds the tolerance of its type.

    A node on the host may have an output whose type or shape the graph does not know. Arrays of
    types that the language does not have, such as strings, must be equal.
    """
    errors: dict[str, float] = {}
    for name, array in wanted.items():
        tensor = graph.tensors.get(name)
        one = found[name][0] if isinstance(found[name], list) and len(found[name]) else found[name]
        t = tensor.type if tensor is not None else SCALAR_OF.get(np.asarray(one).dtype, BOOL)
        errors[name] = largest_error(t, found[name], array)
        allowed = tolerance_of(t, tolerance)
        if not errors[name] <= allowed:
            raise LiftError(
                f"output {name} of {graph.name} differs from its meaning by "
                f"{errors[name]:.3g} of its largest value; the tolerance is {allowed:g}"
            )
    return errors
