"""Devices that are not attached: their limits from readable files, each limit with its source.

profile:mali-g72        a file of the folder `profiles` next to this module
profile:./board.toml    a file of the user
profile:./board.json    the same keys and tables as JSON
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeAlias, cast, get_args

from liftpy.constraints.device import PROFILE, Device, Kind
from liftpy.constraints.hardware import (
    EACH_CACHE,
    EXAMPLES,
    FIGURES,
    is_count,
    is_figure,
    wanted_figure,
)
from liftpy.errors import SyntaxRefused, UnknownName
from liftpy.files.reading import MIB, read_text, toml
from liftpy.source.spans import Source, Span

FOLDER = Path(__file__).with_name("profiles")
SUFFIX, JSON = ".toml", ".json"

TEXTS = ("name", "vendor", "type", "opencl_c")
"""The keys of a profile that are not limits: `key = "text"`."""

SIMILAR = "similar"
"""The optional key of a list of words; the name of a similar device contains one of them."""

NUMBERS = (
    "compute_units",
    "max_work_group_size",
    "local_memory",
    "largest_buffer",
    "global_memory",
    "private_memory",
    "vector_width",
)
SIZES, EXTENSIONS = "max_work_item_sizes", "extensions"
LIMITS = (*NUMBERS, SIZES, EXTENSIONS)
"""The limits: each is a table with a `value` and its `source`.

So is each figure of the hardware (`FIGURES`), all of which are optional.
"""

OPTIONAL = ("image_texels",)
"""The limits that a profile may leave out: without them, the device has no images."""

ASSUMED = "assumed"
"""The beginning of the source of a limit that no document states."""

MOST = MIB
"""The most bytes of a profile that are read; those that ship with liftpy have about a thousand."""

Problem: TypeAlias = tuple[Span, str, str]


@dataclass(frozen=True)
class Profile:
    """The limits of a device, each with its source. `name` is what follows `profile:`.

    `figures` are those of the hardware that the profile states. A device that has no profile and
    whose name has one of the words `similar` is modelled by these figures (`traffic/machine.py`).
    """

    name: str
    device: Device
    sources: Mapping[str, str]
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])
    similar: tuple[str, ...] = ()

    @property
    def assumed(self) -> list[str]:
        """The limits that no document states."""
        return [key for key, text in self.sources.items() if text.startswith(ASSUMED)]

    def to_json(self) -> dict[str, Any]:
        """The profile as JSON data."""
        return {
            "profile": self.name,
            **self.device.to_json(),
            **self.figures,
            "sources": dict(self.sources),
        }


def profiles() -> tuple[Profile, ...]:
    """The profiles that ship with liftpy, sorted by name."""
    return tuple(profile(path.stem) for path in sorted(FOLDER.glob(f"*{SUFFIX}")))


def profile(name: str) -> Profile:
    """The profile of a name, or in a file.

    Raises UnknownName if there is none, LiftError if the file cannot be read, and SyntaxRefused,
    with the line, if it is not a profile.
    """
    if name.endswith((SUFFIX, JSON)) or "/" in name:
        path = Path(name)
    else:
        path = FOLDER / f"{name.casefold()}{SUFFIX}"
        if not path.is_file():
            known = [p.stem for p in sorted(FOLDER.glob(f"*{SUFFIX}"))]
            near = difflib.get_close_matches(name.casefold(), known, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UnknownName(
                f"no profile is named '{name}'{hint}\n  known profiles: {', '.join(known)}; "
                f"name a file of your own by its path, as in {PROFILE}./board{SUFFIX}"
            )
    text = read_text(path, MOST, what=f"the profile {path}")
    return read(text, path.stem if path.parent == FOLDER else name)


def read(text: str, name: str) -> Profile:
    """The profile in a text."""
    source = Source(text)
    kind = "JSON" if name.endswith(JSON) else "TOML"
    try:
        data = loaded(text, kind, f"the profile {name}")
    except tomllib.TOMLDecodeError as error:
        reason, at = located(source, str(error))
        what = f"the profile {name} is not a TOML file"
        raise source.refusal(SyntaxRefused, what, at, reason) from error
    except json.JSONDecodeError as error:
        what, at = f"the profile {name} is not a JSON file", Span(error.pos, error.pos + 1)
        raise source.refusal(SyntaxRefused, what, at, error.msg) from error
    except (RecursionError, ValueError) as error:  # brackets in brackets, a number of 5000 digits
        what = (
            f"the profile {name} cannot be read: it is nested too deeply, or has too long a number"
        )
        why = (
            f"a limit is a table with a `value` and a `source`, such as `value = {example(SIZES)}`"
        )
        raise source.refusal(SyntaxRefused, what, Span(0, 1), why) from error
    for at, what, why in problems(source, data):
        raise source.refusal(SyntaxRefused, f"the profile {name}: {what}", at, why)
    stated = (*LIMITS, *(key for key in OPTIONAL if key in data))
    limits = {key: data[key]["value"] for key in stated}
    limits |= {key: tuple(limits[key]) for key in (SIZES, EXTENSIONS)}
    texts = {key: data[key] for key in TEXTS}
    device = Device(platform="profile", driver_version="", profile=name, **texts, **limits)
    figures = {key: data[key]["value"] for key in FIGURES if key in data}
    sources = {k: data[k]["source"] for k in (*stated, *figures)}
    return Profile(name, device, sources, figures, tuple(data.get(SIMILAR, ())))


def loaded(text: str, kind: str, what: str) -> dict[str, Any]:
    """The data of a text. A JSON text that is not an object has no keys, which `problems` names."""
    data = json.loads(text) if kind == "JSON" else toml(text, what, SyntaxRefused)
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def located(source: Source, message: str) -> tuple[str, Span]:
    """The reason in a message of the TOML reader, and the position that it names."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if found is None:
        return message.removesuffix(" (at end of document)"), end_of(source)
    line, column = int(found[2]), int(found[3])
    start = sum(len(part) for part in source.text.splitlines(keepends=True)[: line - 1])
    return found[1], Span(start + column - 1, start + column)


def problems(source: Source, data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with a profile: where, what, and how to fix it."""
    for key in data:
        if key not in (*TEXTS, SIMILAR, *LIMITS, *OPTIONAL, *FIGURES):
            near = difflib.get_close_matches(key, (*TEXTS, *LIMITS, *OPTIONAL, *FIGURES), n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known limits: {', '.join(LIMITS)}"
            yield place_of(source, key), f"no limit is named `{key}`", hint
    for key in TEXTS:
        if key not in data:
            yield Span(0, 1), f"it has no `{key}`", f'write `{key} = "..."` at its beginning'
        elif not isinstance(data[key], str):
            yield place_of(source, key), f"`{key}` is not a string", f'write `{key} = "..."`'
    if SIMILAR in data and not (fits(EXTENSIONS, data[SIMILAR]) and all(data[SIMILAR])):
        why = f'write `{SIMILAR} = ["..."]`, with words in the names of similar devices'
        yield place_of(source, SIMILAR), f"`{SIMILAR}` is not a list of words", why
    if "type" in data and data["type"] not in get_args(Kind):
        what = f"`{data['type']}` is not a device type"
        yield place_of(source, "type"), what, f"it is one of {', '.join(get_args(Kind))}"
    for key in LIMITS:
        if key not in data:
            why = f"write a table [{key}] with a `value` and its `source`"
            yield end_of(source), f"it has no limit `{key}`", why
        else:
            yield from problems_of_limit(source, key, data[key])
    figures = [key for key in FIGURES if key in data]
    for key in (*(key for key in OPTIONAL if key in data), *figures):
        yield from problems_of_limit(source, key, data[key])
    yield from problems_of_caches(source, data, [key for key in EACH_CACHE if key in figures])


def problems_of_caches(
    source: Source, data: Mapping[str, Any], keys: list[str]
) -> Iterator[Problem]:
    """Yield the figures that do not have a value for each cache. The others are valid."""
    counts = {key: len(data[key]["value"]) for key in keys if is_valid(key, data[key])}
    many = counts.get("cache_sizes")
    for key, count in counts.items():
        if many is None:
            what = f"it has `{key}` and no `cache_sizes`"
            why = f"write a table [cache_sizes] with {count} values"
            yield place_of(source, key), what, why
        elif count != many:
            what = f"`{key}` has {count} values, and there are {many} caches in `cache_sizes`"
            yield place_of(source, key, "value"), what, "write one value for each cache"


def is_valid(key: str, table: Any) -> bool:
    """Whether a table has a valid value of a figure."""
    return isinstance(table, dict) and fits(key, cast("dict[str, Any]", table).get("value"))


def problems_of_limit(source: Source, key: str, table: Any) -> Iterator[Problem]:
    """Yield what is wrong with one limit."""
    shape = f'[{key}]: `value = {example(key)}` and `source = "..."`'
    if not isinstance(table, dict):
        yield place_of(source, key), f"the limit `{key}` has no source", f"write it as {shape}"
        return
    parts = cast("dict[str, Any]", table)
    for part in ("value", "source"):
        if part not in parts:
            yield place_of(source, key), f"the limit `{key}` has no `{part}`", f"write {shape}"
    for part in parts:
        if part not in {"value", "source"}:
            yield place_of(source, key, part), f"a limit has no `{part}`", f"write {shape}"
    if "value" in parts and not fits(key, parts["value"]):
        what = f"the value of `{key}` cannot be {short(parts['value'])}"
        yield place_of(source, key, "value"), what, f"write {wanted(key)}, such as {example(key)}"
    if "source" in parts and not (isinstance(parts["source"], str) and parts["source"].strip()):
        why = 'name the document it is from; if there is none, write `source = "assumed: ..."`'
        yield place_of(source, key, "source"), f"the limit `{key}` has an empty source", why


def fits(key: str, value: Any) -> bool:
    """Whether a value is valid for a limit or a figure."""
    if key in FIGURES:
        return is_figure(key, value)
    if key == EXTENSIONS:
        return isinstance(value, list) and all(type(v) is str for v in cast("list[Any]", value))
    if key == SIZES:
        sizes = cast("list[Any]", value)
        return isinstance(value, list) and len(sizes) == 3 and all(map(is_count, sizes))
    return is_count(value)


def wanted(key: str) -> str:
    """A description of the values of a limit or a figure."""
    if key in FIGURES:
        return wanted_figure(key)
    if key == EXTENSIONS:
        return "a list of its extensions"
    return f"{'three whole numbers' if key == SIZES else 'a whole number'} from 1 to 2^63 - 1"


def example(key: str) -> str:
    """An example value of a limit or a figure."""
    known = {EXTENSIONS: '["cl_khr_fp16"]', SIZES: "[256, 256, 256]", **EXAMPLES}
    return known.get(key, "256")


def place_of(source: Source, key: str, part: str | None = None) -> Span:
    """The position of a key, or of a part of its table; the end of the text if not found."""
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    found = re.search(
        rf"^[ \t]*(\[[ \t]*)?{quoted}(?=[ \t]*[\].=:])[^\n#]*", source.text, re.MULTILINE
    )
    if found is not None and part is not None:
        inner = re.compile(rf"^[ \t]*[\"']?{re.escape(part)}[\"']?[ \t]*[=:][^\n]*", re.MULTILINE)
        found = inner.search(source.text, found.end()) or found
    if found is None:
        return end_of(source)
    start = found.end() - len(found[0].lstrip())
    return Span(start, found.start() + len(found[0].rstrip()))


def end_of(source: Source) -> Span:
    """The end of a text."""
    end = len(source.text.rstrip())
    return Span(end, end + 1)
