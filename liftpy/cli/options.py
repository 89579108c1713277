"""The options that commands share, and parsers of their values: settings, sizes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from liftpy.explore.space.settings import Settings

Word = TypeVar("Word", bound=str)


def one_of(known: Iterable[Word], what: str) -> Callable[[str], Word]:
    """A parser for an option whose value is one of the known words.

    A usage error names the unknown word, the known ones, and the most similar one.
    """
    words = {str(word): word for word in known}

    def parse(text: str) -> Word:
        if text not in words:
            near = difflib.get_close_matches(text, words, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            there = ", ".join(words)
            raise typer.BadParameter(f"no {what} is named '{text}'{hint} Choose one of {there}.")
        return words[text]

    return parse


class SamplerName(StrEnum):
    """The samplers: `constraints.draw.Sampler` as words of the command line."""

    UNIFORM = "uniform"
    INCREMENTAL = "incremental"


PROGRAMS = (
    "A .lift file, file.py:name, or a built-in workload such as vgg16/7; or a node of an ONNX "
    "model, model.onnx:NODE"
)
ProgramName = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help=f"{PROGRAMS}.",
    ),
]
ProgramOrModel = Annotated[
    str,
    typer.Argument(metavar="PROGRAM", help=f"{PROGRAMS}; or a whole model, model.onnx."),
]
ProgramModelOrPlan = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help=f"{PROGRAMS}; or a whole model, model.onnx; or the plan of one, FILE.plan.",
    ),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="D",
        help="Number or part of the name of a device; by default the first.",
    ),
]
LimitsName = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="D",
        help="Number or part of the name of a device, or profile:NAME for one that is not "
        "attached; by default the first device.",
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
        help="A condition on sizes, such as 'kappa*sigma <= 64'; may be repeated.",
    ),
]
MemoryLimit = Annotated[
    int | None, typer.Option("--memory-limit", metavar="BYTES", min=1, help="Limit on `peak`.")
]


def not_negative(value: float | None) -> float | None:
    """The callback of `--max-error`; NaN is refused, too."""
    if value is not None and not value >= 0:
        raise typer.BadParameter(f"{value} is not a number such as 1e-5")
    return value


MaxError = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="E",
        callback=not_negative,
        help="Only candidates whose result has at most this error, relative to its largest value.",
    ),
]
BoundLimit = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="E",
        callback=not_negative,
        help="Leave out forms by F(m, r), and those with narrower storage, whose error bound, "
        "relative to the largest possible result, is larger.",
    ),
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="NAME=TYPE,...",
        help="Storage types or quantised formats in which a parameter or a named value may be "
        "stored, with the error that this causes; may be repeated.",
    ),
]
WinogradPoints = Annotated[
    list[str] | None,
    typer.Option(
        "--winograd-points",
        metavar="P,...",
        help="Points of the forms by F(m, r): 'bound' (the default), 'measured' for the smallest "
        "measured error, or points such as 0,1,-1,1/2,-2; may be repeated.",
    ),
]
SizeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--size", metavar="NAME=NUMBER", help="A number for an open size; may be repeated."
    ),
]
ChannelsOption = Annotated[
    bool | None,
    typer.Option(
        "--channels-last/--declared-order",
        help="The order in which images are stored between the operations of a model: channels "
        "last (the default), or as the model declares them (docs/networks.md).",
    ),
]
ChooseOrdersFlag = Annotated[
    bool,
    typer.Option(
        "--choose-orders",
        help="Choose the order of each image of a model, as declared or channels last, by "
        "measured times (docs/networks.md).",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the random draws.")]
SamplerOption = Annotated[
    SamplerName,
    typer.Option(
        "--sampler",
        metavar="HOW",
        parser=one_of(SamplerName, "sampler"),
        help="uniform: all valid points are equally likely. incremental: draws one size after "
        "another, without counting points.",
    ),
]
EnergyCostsOption = Annotated[
    str | None,
    typer.Option(
        "--energy-costs",
        metavar="FILE.json",
        help="The costs of the energy proxy, in a file or by name; 45nm by default.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Database = Annotated[Path, typer.Argument(metavar="FILE", help="A campaign database.")]
CandidateId = Annotated[
    str, typer.Argument(metavar="CANDIDATE", help="The id of a candidate, or a prefix of it.")
]


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


def storage_types(given: Sequence[str] | None) -> dict[str, str]:
    """The types of `--storage` options by value. A usage error if one is not NAME=TYPE,..."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, types = (part.strip() for part in text.partition("="))
        if not name or not types:
            raise typer.BadParameter(f"'{text}' is not NAME=TYPE,...", param_hint="--storage")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--storage")
        found[name] = types
    return found


def settings(given: Sequence[str] | None) -> Settings:
    """The settings of `--set` options, each with one value.

    A usage error if one is not NAME=VALUE.
    """
    chosen, listed = settings_and_lists(given)
    for name, values in listed.items():
        raise typer.BadParameter(
            f"{name} has {len(values)} values; a candidate has one", param_hint="--set"
        )
    return chosen


def settings_and_lists(
    given: Sequence[str] | None,
) -> tuple[Settings, dict[str, tuple[str | int, ...]]]:
    """The settings of `--set` options: those with one value, and those with a list of values.

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
    """The value of a setting: a number if it looks like one, otherwise a word."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def refuse(options: Mapping[str, Any], why: str) -> None:
    """A usage error for the first option that is given."""
    for option, value in options.items():
        if value:
            raise typer.BadParameter(why, param_hint=option)
