"""The programs and arrays that the user names."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from types import ModuleType
from typing import Any

import typer
from numpy.lib import format as npy
from numpy.typing import NDArray

from liftpy.cli.loading import load
from liftpy.cli.options import sizes, storage_types
from liftpy.errors import ArgumentRefused, LiftError, UnknownName
from liftpy.files.reading import MIB, opened, read_text
from liftpy.ir.program import Program
from liftpy.memory import available
from liftpy.semantics.sizes import at_sizes, parse
from liftpy.semantics.storage import with_storage
from liftpy.workloads import workload


class UserCode:
    """The user's Python file that is being executed, if any: its exceptions are the user's."""

    path: str | None = None


user_code = UserCode()


def load_program(
    name: str, given: Sequence[str] | None = None, stored: Sequence[str] | None = None
) -> Program:
    """The program that PROGRAM names, with the options `--size` and `--storage`.

    LiftError or UnknownName if there is none.
    """
    program, numbers = program_and_sizes(name, given)
    return with_storage(at_sizes(program, numbers), storage_types(stored))


def program_and_sizes(
    name: str, given: Sequence[str] | None = None
) -> tuple[Program, dict[str, int]]:
    """The program that PROGRAM names, and the numbers of its open sizes.

    The sizes of a model are those of its dynamic dimensions, so its programs have none.
    """
    model, colon, node = name.partition(MODEL + ":")
    if colon or name.endswith(MODEL):
        file = model + MODEL if colon else name
        return load("networks").program_of_node(file, node, sizes(given)), {}
    return named_program(name), sizes(given)


def named_program(name: str) -> Program:
    """The program that PROGRAM names, with its sizes as declared."""
    if name.endswith(".lift"):
        return parse(read_text(Path(name), TEXT_MOST))
    if name.endswith(".py"):
        known = ", ".join(programs_of(python_module(Path(name)))) or NO_PROGRAM
        raise UnknownName(
            f"{name} is a Python file: name one of its programs, as in {name}:NAME; "
            f"its programs are: {known}"
        )
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        return from_python(Path(file), attribute)
    if Path(name).suffix and Path(name).is_file():
        raise UnknownName(
            f"{name} is not a program: a program is a .lift file, file.py:NAME, model.onnx:NODE, "
            "or a built-in name (`liftpy workloads`)"
        )
    return workload(name)


def from_python(path: Path, name: str) -> Program:
    """A program in a Python file."""
    module = python_module(path)
    found = getattr(module, name, None)
    if not isinstance(found, Program):
        what = f"is of type {type(found).__name__}" if found is not None else "does not exist"
        known = ", ".join(programs_of(module)) or NO_PROGRAM
        raise UnknownName(f"{name} in {path} {what}; its programs are: {known}")
    return found


BROKEN = (ValueError, EOFError, SyntaxError, TypeError, RecursionError, MemoryError, TokenError)
"""The exceptions of NumPy for an invalid header, which it reads as a Python literal."""

NUMBERS, STRINGS = "biuf", "U"
"""The kinds of NumPy's types that `--input` reads: strings for models and plans only."""

PLAN = ".plan"
"""The suffix of a file with a plan."""

MODEL = ".onnx"
"""The suffix of a file with a model."""

TEXT_MOST = 4 * MIB
"""The largest size of a program's text in bytes, including comments."""

NO_PROGRAM = "none; decorate a function with @lp.program"


def programs_of(module: ModuleType) -> list[str]:
    """The names of the programs in a module."""
    return [n for n, value in vars(module).items() if isinstance(value, Program)]


def python_module(path: Path) -> ModuleType:
    """Executes a Python file, and returns its module."""
    if not path.is_file():
        raise LiftError(f"{path} cannot be read: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LiftError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    user_code.path = str(path)
    spec.loader.exec_module(module)
    user_code.path = None
    return module


def arrays(given: Sequence[str] | None, kinds: str = NUMBERS) -> dict[str, NDArray[Any]]:
    """The arrays of `--input` options. ArgumentRefused if a file is not an array of these kinds."""
    found: dict[str, NDArray[Any]] = {}
    for text in given or ():
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise typer.BadParameter(f"'{text}' is not NAME=FILE.npy", param_hint="--input")
        found[name] = read_array(name, Path(file), kinds)
    return found


def read_array(name: str, path: Path, kinds: str = NUMBERS) -> NDArray[Any]:
    """The array in a file, for a parameter. ArgumentRefused if it is no array or incomplete."""
    with opened(path, available(), ArgumentRefused, f"the array for '{name}' ({path})") as file:
        try:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, t = header(file)
            needed = file.tell() + math.prod(shape) * t.itemsize
        except BROKEN as error:
            raise no_array(name, path, "it is not a .npy file of numbers") from error
        if t.kind not in kinds:
            wanted = "numbers" if kinds == NUMBERS else "numbers or strings of NumPy's type `str_`"
            raise no_array(name, path, f"its elements are {t}, not {wanted}")
        if (length := os.fstat(file.fileno()).st_size) != needed:
            raise no_array(
                name, path, f"an array {t}{list(shape)} needs {needed} bytes, the file has {length}"
            )
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)


def no_array(name: str, path: Path, why: str) -> ArgumentRefused:
    """The error for a file that cannot be read as an array."""
    return ArgumentRefused(
        f"the array for '{name}' ({path}) cannot be read: {why}; write it with np.save"
    )
