"""The inputs of a model at import: lengths of dynamic dimensions, and values of constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import ArgumentRefused, NetworkRefused, UnknownName
from liftpy.networks import onnx_library as library
from liftpy.networks.onnx_parts import graphs_of, inputs_of

Array = NDArray[Any]


def given_values(model: library.Model, name: str, given: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays for inputs that become constants, of the types that the model declares.

    Numbers and lists of Python are converted, if the type has their values; an array must have the
    type. ArgumentRefused if it has another type or shape, UnknownName if there is no such input.
    """
    declared = {value.name: value for value in inputs_of(model)}
    if unknown := sorted(given.keys() - declared.keys()):
        own = {tensor.name for tensor in model.graph.initializer} & {*unknown}
        why = f"; {', '.join(sorted(own))} has its value in the model" if own else ""
        raise UnknownName(
            f"{name} has no input {', '.join(unknown)}{why}\n"
            f"  its inputs are: {', '.join(declared) or 'none'}"
        )
    return {n: converted(n, declared[n].type, value) for n, value in given.items()}


def converted(name: str, t: library.TypeProto, given: Any) -> Array:
    """A given value as an array of a declared type."""
    wanted = library.number_type(t)
    try:
        found = np.asarray(given)
    except ValueError as error:
        raise ArgumentRefused(f"the value of {name} is no array: {error}") from error
    if wanted is None or found.dtype == wanted:
        array = found
    else:
        with np.errstate(all="ignore"):
            plain = not hasattr(given, "dtype") and found.dtype.kind in "biuf"
            array = found.astype(wanted) if plain else found
        if not plain or (wanted.kind in "biu" and not np.array_equal(array, found)):
            raise ArgumentRefused(
                f"the value of {name} needs {wanted} numbers, got {found.dtype}: {given!r:.60}"
            )
    dims = t.tensor_type.shape.dim
    fits = len(dims) == array.ndim and all(
        not fixed(dim) or dim.dim_value == n for dim, n in zip(dims, array.shape, strict=True)
    )
    if t.tensor_type.HasField("shape") and not fits:
        wanted_shape = [d.dim_value if fixed(d) else d.dim_param or "?" for d in dims]
        raise ArgumentRefused(
            f"the value of {name} needs the shape [{', '.join(map(str, wanted_shape))}], "
            f"got {[*array.shape]}"
        )
    return array


def fixed(dim: Any) -> bool:
    """Whether a dimension has a length; some exporters write -1 for a dynamic one."""
    return dim.HasField("dim_value") and dim.dim_value >= 0


def nameless(dim: Any) -> bool:
    """Whether a dimension has no name; some exporters write `?` for that."""
    return dim.dim_param in {"", "?"}


def dynamic(model: library.Model, first: Iterable[str] = ()) -> list[tuple[str, int, str, Any]]:
    """The dynamic dimensions of inputs: input, position, name, declaration; `first` come first.

    The name of a dimension is the one that the model declares, or `INPUT.K` if it declares none.
    `?` is no name: some exporters write it for every unknown length, and two of these may differ.
    """
    first = {*first}
    return [
        (value.name, k, f"{value.name}.{k}" if nameless(dim) else dim.dim_param, dim)
        for value in sorted(inputs_of(model), key=lambda value: value.name not in first)
        if value.type.HasField("tensor_type")
        for k, dim in enumerate(value.type.tensor_type.shape.dim)
        if not fixed(dim)
    ]


def lengths_of(model: library.Model, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The lengths that arrays for the inputs give to dynamic dimensions, by name."""
    found: dict[str, int] = {}
    for owner, k, called, _ in dynamic(model):
        if owner in arrays and k < arrays[owner].ndim:
            found.setdefault(called, arrays[owner].shape[k])
    return found


def fix_sizes(
    model: library.Model, name: str, given: Mapping[str, int], values: Mapping[str, Array]
) -> dict[str, int]:
    """Gives each dynamic dimension of an input its length; returns the lengths by name.

    A length that is not given is that of the input's value, if that is given; the first dimension
    of an input is taken for the batch, whose default is 1.
    """
    found: dict[str, int] = {}
    missing: list[str] = []
    for owner, k, called, dim in dynamic(model, values):
        own = values[owner].shape[k] if owner in values else None
        default = own if own is not None else 1 if k == 0 else None
        length = found.get(called, given.get(called, default))
        if length is None:
            missing.append(called)
            continue
        if not isinstance(length, int | np.integer) or (length < 1 and own is None):
            raise NetworkRefused(
                f"{name}: the size {called} is {length}: it is a whole number, at least 1"
            )
        if own is not None and own != length:
            raise ArgumentRefused(
                f"the value of {owner} has {own} elements in dimension {k}, and the size {called} "
                f"is {length}"
            )
        found[called] = int(length)
        dim.dim_value = int(length)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise NetworkRefused(
            f"{name} has inputs of unknown shape: {names}\n  programs are made for given lengths\n"
            f"  pass sizes={{'{missing[0]}': 224}}, or --size {missing[0]}=224"
        )
    if unknown := sorted(given.keys() - found.keys()):
        raise UnknownName(
            f"{name} has no size {', '.join(unknown)}\n"
            f"  its sizes are: {', '.join(found) or 'none'}"
        )
    write_sizes(model, found)
    return found


def write_sizes(model: library.Model, found: Mapping[str, int]) -> None:
    """Writes the lengths of named dimensions into all declarations; negative ones are removed."""
    for graph in graphs_of(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in found:
                    dim.dim_value = found[dim.dim_param]
                elif dim.dim_value < 0:
                    dim.ClearField("dim_value")
                elif nameless(dim):
                    dim.ClearField("dim_param")
