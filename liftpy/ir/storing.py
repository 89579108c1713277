"""The values of a program that may be stored in fewer bits, by the user's declaration.

A declaration `storage w: bf16` permits a change of meaning: a candidate may round the value `w` to
the type where it stores it. The error has a bound, which depends on the type. Without declarations,
every value is stored as it is computed.

A parameter may also be stored in a quantised format, as 8-bit integers and scales that are computed
from its numbers (`rewrite/quantised.py`); this error has no bound relative to the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from liftpy.errors import TypeRefused, UnknownName
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.formats import GROUP, QUANTISED, Format, Quantised
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, STORAGE, ArrayType, Type

Storage = Mapping[str, Sequence[Format]]
"""The formats in which a value may be stored, by its name."""


def storable(program: Program) -> dict[str, Type]:
    """The values that can have a declaration: parameters, and values that a `let` names.

    A `let` inside a function names a value for each of the function's calls, which is not stored.
    """
    return {p.name: p.type for p in program.params} | dict(named(program.body.body))


def named(expr: Expr) -> Iterator[tuple[str, Type]]:
    """The variables of the lets outside functions, with their types."""
    match expr:
        case Tuple(elements):
            for element in elements:
                yield from named(element)
        case FunCall(fun, args):
            for arg in args:
                yield from named(arg)
            if isinstance(fun, Lambda):
                yield from ((p.name, p.type) for p in fun.params)
                yield from named(fun.body)
        case _:
            return


def with_storage(program: Program, storage: Storage) -> Program:
    """The program with declarations; UnknownName or TypeRefused for an invalid one."""
    known = storable(program)
    for name, types in storage.items():
        if name not in known:
            raise UnknownName(
                f"{program.name} has no value '{name}' to store\n"
                f"  its parameters and named values are {', '.join(known)}"
            )
        check_types(program, name, known[name], types)
    merged = {**dict(program.storage), **{n: tuple(dict.fromkeys(t)) for n, t in storage.items()}}
    kept = tuple((name, types) for name, types in merged.items() if types)
    return replace(program, storage=kept)


def check_types(program: Program, name: str, t: Type, types: Sequence[Format]) -> None:
    """Raise TypeRefused for a format in which the value cannot be stored."""
    scalar = t
    while isinstance(scalar, ArrayType):
        scalar = scalar.element
    fitting = [str(s) for s, base in STORAGE.items() if base == scalar]
    if not isinstance(t, ArrayType) or not fitting:
        raise TypeRefused(
            f"{name} of {program.name} cannot be stored in another type: it is {t}\n"
            "  only arrays of f32 or f64 can\n"
            "  give the storage of another value"
        )
    for wanted in types:
        if isinstance(wanted, Quantised):
            check_quantised(program, name, t, wanted)
        elif STORAGE.get(wanted) != scalar:
            raise TypeRefused(
                f"{name} of {program.name} cannot be stored as {wanted}\n"
                f"  its elements are {scalar}, which {wanted} does not store\n"
                f"  use one of {', '.join((*fitting, *(QUANTISED if scalar == F32 else ())))}"
            )


def check_quantised(program: Program, name: str, t: ArrayType, wanted: Quantised) -> None:
    """Raise TypeRefused unless the value is a parameter of f32 whose rows fill the groups."""
    scalar, length = t.element, t.length
    while isinstance(scalar, ArrayType):
        scalar, length = scalar.element, scalar.length
    what = f"{name} of {program.name} cannot be stored as {wanted}"
    if scalar != F32:
        raise TypeRefused(
            f"{what}\n  its elements are {scalar}\n"
            "  quantise arrays of f32; store this one in a storage type"
        )
    if all(p.name != name for p in program.params):
        raise TypeRefused(
            f"{what}\n  its scales depend on all of its numbers, which would have to be stored "
            "in f32 first\n"
            "  quantise a parameter, or store this value in a storage type such as bf16"
        )
    if wanted.shared == "group" and length.constant is None:
        raise TypeRefused(
            f"{what}\n  the length of its rows, {length}, is open\n"
            f"  give its size first: it must be a multiple of {GROUP}"
        )
    if wanted.shared == "group" and int(length) % GROUP:
        raise TypeRefused(
            f"{what}\n  its rows have {length} numbers, which do not fill groups of {GROUP}\n"
            f"  pad them to a multiple of {GROUP}, or use q8, which has a scale for each row"
        )
