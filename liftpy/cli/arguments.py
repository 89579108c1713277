"""What the user names: programs, settings, arrays, devices."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray

from liftpy.cli.screen import note
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import ArgumentRefused, LiftError, UnknownName
from liftpy.explore.candidate import Settings
from liftpy.explore.exploring import space_of
from liftpy.explore.space import Space
from liftpy.ir.expr import Program
from liftpy.opencl.devices import devices, find_device
from liftpy.semantics.sizes import at_sizes, parse
from liftpy.workloads import workload

Word = TypeVar("Word", bound=str)


def one_of(known: Iterable[Word], what: str) -> Callable[[str], Word]:
    """The parser of an option that takes one of some words.

    A usage error says what was refused, what there is, and what is near it.
    """
    words = {str(word): word for word in known}

    def parse(text: str) -> Word:
        if text not in words:
            near = difflib.get_close_matches(text, words, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            there = ", ".join(words)
            raise typer.BadParameter(f"there is no {what} '{text}'{hint} There are {there}.")
        return words[text]

    return parse


class SamplerName(StrEnum):
    """How sizes are drawn: `constraints.draw.Sampler` as words of the command line."""

    UNIFORM = "uniform"
    INCREMENTAL = "incremental"


ProgramName = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="A .lift file, file.py:name, or a built-in workload such as vgg16/7.",
    ),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device", "-d", metavar="D", help="A device's number or a part of its name; the first."
    ),
]
LimitsName = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="D",
        help="A device's number or a part of its name, or profile:NAME, a device that is not "
        "attached; the first.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A structural choice or a size; may be repeated."
    ),
]
ChoiceOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=WORD", help="A structural choice; may be repeated."),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="A condition on sizes, as 'kappa*sigma <= 64'; may be repeated.",
    ),
]
MemoryLimit = Annotated[
    int | None, typer.Option("--memory-limit", metavar="BYTES", min=1, help="Bounds the peak.")
]
SizeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--size", metavar="NAME=NUMBER", help="A number for an open size; may be repeated."
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="S", help="Decides what is drawn, and in what order.")
]
SamplerOption = Annotated[
    SamplerName,
    typer.Option(
        "--sampler",
        metavar="HOW",
        parser=one_of(SamplerName, "sampler"),
        help="uniform: every valid point is as likely. incremental: one size after another, as "
        "published; it counts nothing.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Database = Annotated[Path, typer.Argument(metavar="FILE", help="A campaign database.")]
CandidateId = Annotated[
    str, typer.Argument(metavar="CANDIDATE", help="The id of a candidate, or how it begins.")
]


class UserCode:
    """The user's Python file that is being executed, if any: its exceptions are not ours."""

    path: str | None = None


user_code = UserCode()


def load_program(name: str, given: Sequence[str] | None = None) -> Program:
    """The program that PROGRAM names, with the numbers of `--size` options.

    LiftError or UnknownName if there is none.
    """
    return at_sizes(named_program(name), sizes(given))


def sizes(given: Sequence[str] | None) -> dict[str, int]:
    """The numbers of `--size` options. A usage error if one is not NAME=NUMBER."""
    found: dict[str, int] = {}
    for text in given or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value.removeprefix("-").isdecimal():
            raise typer.BadParameter(f"'{text}' is not NAME=NUMBER", param_hint="--size")
        if found.setdefault(name, int(value)) != int(value):
            raise typer.BadParameter(
                f"{name} is given twice: {found[name]} and {value}", param_hint="--size"
            )
    return found


def named_program(name: str) -> Program:
    """The program that PROGRAM names, its sizes as they are written."""
    if name.endswith(".lift"):
        return parse(read_text(Path(name)))
    if name.endswith(".py"):
        known = ", ".join(programs_of(python_module(Path(name)))) or NO_PROGRAM
        raise UnknownName(
            f"{name} is a Python file: name one of its programs, as {name}:NAME; "
            f"its programs are: {known}"
        )
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        return from_python(Path(file), attribute)
    if Path(name).suffix and Path(name).is_file():
        raise UnknownName(
            f"{name} is no program: a program is a .lift file, file.py:NAME, or built in "
            "(`liftpy workloads`)"
        )
    return workload(name)


def read_text(path: Path) -> str:
    """The text of a file. LiftError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LiftError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LiftError(f"{path} cannot be read: it is no UTF-8 text ({error.reason})") from error


def from_python(path: Path, name: str) -> Program:
    """A program in a Python file."""
    module = python_module(path)
    found = getattr(module, name, None)
    if not isinstance(found, Program):
        what = f"is of type {type(found).__name__}" if found is not None else "does not exist"
        known = ", ".join(programs_of(module)) or NO_PROGRAM
        raise UnknownName(f"{name} in {path} {what}; its programs are: {known}")
    return found


NO_PROGRAM = "none; decorate a function with @lp.program"


def programs_of(module: ModuleType) -> list[str]:
    """The names of the programs in a module."""
    return [n for n, value in vars(module).items() if isinstance(value, Program)]


def python_module(path: Path) -> ModuleType:
    """A Python file as a module, executed."""
    if not path.is_file():
        raise LiftError(f"{path} cannot be read: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LiftError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    user_code.path = str(path)
    spec.loader.exec_module(module)
    user_code.path = None
    return module


def settings(given: Sequence[str] | None) -> Settings:
    """The settings of `--set` options, each with one value.

    A usage error if one is not NAME=VALUE.
    """
    chosen, listed = settings_and_lists(given)
    for name, values in listed.items():
        raise typer.BadParameter(
            f"{name} has {len(values)} values; one candidate has one", param_hint="--set"
        )
    return chosen


def settings_and_lists(
    given: Sequence[str] | None,
) -> tuple[Settings, dict[str, tuple[str | int, ...]]]:
    """The settings of `--set` options: those with one value, and those with a list of them.

    A usage error if one is not NAME=VALUE or NAME=VALUE,VALUE,...
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not (name and equals and value):
            raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--set")
        if found.setdefault(name, value) != value:
            raise typer.BadParameter(
                f"{name} is given twice: {found[name]} and {value}", param_hint="--set"
            )
        if not all(part.strip() for part in value.split(",")):
            raise typer.BadParameter(f"'{text}' lists an empty value", param_hint="--set")
    values = {
        name: tuple(number_or_word(part.strip()) for part in value.split(","))
        for name, value in found.items()
    }
    single = {name: mine[0] for name, mine in values.items() if len(mine) == 1}
    return single, {name: mine for name, mine in values.items() if len(mine) > 1}


def number_or_word(text: str) -> str | int:
    """A value of a setting."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def arrays(given: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    """The arrays of `--input` options. ArgumentRefused if a file holds none."""
    found: dict[str, NDArray[Any]] = {}
    for text in given or ():
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise typer.BadParameter(f"'{text}' is not NAME=FILE.npy", param_hint="--input")
        try:
            found[name] = np.load(file, allow_pickle=False)
        except OSError as error:
            raise ArgumentRefused(
                f"the array for '{name}' cannot be read from {file}: {error.strerror}"
            ) from error
        except (ValueError, EOFError) as error:
            raise ArgumentRefused(
                f"the array for '{name}' cannot be read from {file}: it is no .npy file of "
                "numbers; np.save writes one"
            ) from error
    return found


def device_or_default(name: str | None) -> Device:
    """The device named; without a name the first one, or the generic one where there is none."""
    return DEFAULT_DEVICE if name is None and not devices() else find_device(name)


def asked_space(
    program: str,
    size: Sequence[str] | None,
    device: str | None,
    set_: Sequence[str] | None,
    where: Sequence[str] | None,
    memory_limit: int | None,
) -> tuple[Space, Settings]:
    """The space that options ask for, and their settings of one value, which are left to apply."""
    chosen, listed = settings_and_lists(set_)
    space = space_of(
        load_program(program, size),
        device_or_default(device),
        memory_limit=memory_limit,
        where=where or (),
        fixed=listed,
    )
    note_unbound(space)
    return space, chosen


def note_unbound(space: Space) -> None:
    """Says which of the user's conditions leave skeletons as they are."""
    for text, count in space.unbound.items():
        note(
            f"note: {text} says nothing of {count} of {len(space.members)} skeletons, which have "
            "no such size; --set family=... chooses among them"
        )
