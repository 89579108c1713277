"""The proof cache: a rule may be applied only if its current law has been proved.

`proofs.json` holds two hashes for each proved rule: of the *law*, with its conditions and the
ranges of its sizes; and of what its proof *rests on*: the source of the meanings of its primitives,
of the prover and of the matcher, with all helpers (`sources`). A change to either voids the proof
until `liftpy prove --record` has run again. Proving a rule (`semantics/prove.py`) admits it for the
session.

The file also holds a hash of each source file that proofs rest on. If all of them are unchanged,
no source is parsed; otherwise the hash of what a proof rests on is recomputed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any

from liftpy.ir.nat import Nat
from liftpy.ir.polynomial import Atom
from liftpy.rewrite.rule import Rule, ValueVar, sizes_of
from liftpy.rewrite.sources import Closure, Item, Sources, Texts

PROOFS = "proofs.json"
PACKAGE = "liftpy"

#: The roots of every proof: the prover, rule application, and insertion of the result.
ROOTS: tuple[Item, ...] = (
    ("liftpy.semantics.prove", "prove"),
    ("liftpy.rewrite.strategy.apply", "rule"),
    ("liftpy.ir.walk", "replace_at"),
)

#: What the roots mention but proofs do not rest on, each with the reason.
BEYOND: dict[str, str] = {
    "liftpy.deadline": "can only stop a computation",
    "liftpy.errors": "formats refusals",
    "liftpy.source.caller": "locates calls in a user's function",
    "liftpy.source.spans": "prints",
    "liftpy.ir.place": "prints",
    "liftpy.rewrite.rules": "each rule is hashed as a value",
    "liftpy.rewrite.proof_cache": "compares hashes; no proof rests on it",
    "liftpy.rewrite.strategy.result": "records applied rules for derivations",
    "liftpy.semantics.refute.refutation": "can only refuse",
    "liftpy.semantics.refute.tried": "can only refuse",
    "liftpy.ir.expr.Expr.__*": "builds users' programs; rules are values",
    "liftpy.ir.function.UserFun.__call__": "builds users' programs; rules are values",
}

#: Modules that determine what a proof rests on: after a change, all sources are parsed again.
READING = ("liftpy.rewrite.proof_cache", "liftpy.rewrite.sources")

#: Modules in which printed forms have a meaning: names of sorts and constants in z3.
PRINTED = ("liftpy.ir.types", "liftpy.rewrite.rule")

_session: set[tuple[str, frozenset[type]]] = set()


# --- what is recorded ----------------------------------------------------------------------------


@cache
def proof_cache() -> dict[str, Any]:
    """The file that ships with liftpy: `files` by name, `rules` by name."""
    file = resources.files("liftpy.rewrite").joinpath(PROOFS)
    if not file.is_file():
        return {"files": {}, "rules": {}}
    return json.loads(file.read_text(encoding="utf-8"))


def recorded() -> dict[str, Any]:
    """The proofs that ship with liftpy, by rule name."""
    return proof_cache()["rules"]


@cache
def is_unchanged() -> bool:
    """Whether every file that proofs rest on has the hash stored in the proof cache."""
    files: dict[str, str] = proof_cache()["files"]
    return bool(files) and all(hash_of_file(name) == known for name, known in files.items())


def hash_of_file(module: str) -> str | None:
    """A hash of a module's file; None if there is no file."""
    text = text_of(module)
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def package_folder() -> Path:
    """Where the package is installed."""
    return Path(str(resources.files(PACKAGE)))


def text_of(module: str, folder: Path | None = None) -> str | None:
    """The text of a module of the package; None for any other module."""
    first, *rest = module.split(".")
    if first != PACKAGE:
        return None
    place = (folder or package_folder()).joinpath(*rest)
    for file in ([place.with_suffix(".py")] if rest else []) + [place / "__init__.py"]:
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


# --- what a proof rests on -----------------------------------------------------------------------


class Grounds:
    """What the proofs of rules rest on, according to the sources that `texts` returns."""

    def __init__(self, texts: Texts = text_of) -> None:
        self.sources = Sources(texts, tuple(BEYOND), PRINTED)
        self.common: Closure | None = None
        self.of_classes: dict[frozenset[type], Closure] = {}

    def of(self, rule: Rule) -> Closure:
        """What the proof of a rule rests on: the common roots and the classes in its law."""
        classes = classes_in(rule)
        if classes not in self.of_classes:
            if self.common is None:
                self.common = self.sources.closure(ROOTS)
            mine = [(c.__module__, c.__qualname__) for c in classes if is_ours(c)]
            found = self.sources.closure(sorted(mine), self.common)
            for other in sorted(classes, key=lambda c: (c.__module__, c.__qualname__)):
                if not is_ours(other):
                    found.items[other.__module__, other.__qualname__] = source_of(other)
            self.of_classes[classes] = found
        return self.of_classes[classes]

    def files(self) -> dict[str, str]:
        """The modules that were read and those in `READING`, each with a hash of its file."""
        read = [name for name, module in self.sources.modules.items() if module]
        names = [*READING, *(name for name in read if name not in BEYOND)]
        hashes = {name: hash_of_file(name) for name in names}
        return {name: h for name, h in sorted(hashes.items()) if h is not None}


@cache
def grounds() -> Grounds:
    """What proofs rest on in the installed package."""
    return Grounds()


def is_ours(cls: type) -> bool:
    """Whether a class belongs to the package."""
    return cls.__module__.partition(".")[0] == PACKAGE


@cache
def has_our_classes(rule: Rule) -> bool:
    """Whether all classes of the values in a rule belong to the package."""
    return all(map(is_ours, classes_in(rule)))


def source_of(cls: type) -> str:
    """The text of a class outside the package; if it has none, a text that matches no other."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return f"no source {id(cls)}"


# --- laws ----------------------------------------------------------------------------------------


@cache
def law_of(rule: Rule) -> str:
    """A hash of a rule's law: both sides, conditions, assumptions, ranges, and kind of proof."""
    sizes = [(v.name, v.low, v.high) for v in sizes_of(rule)]
    text = f"({written(rule)}, {sizes!r})"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Token(str):
    """A piece of a written value."""

    __slots__ = ()


COMMA, OPEN, CLOSE = Token(", "), Token("("), Token(")")


def written(value: Any) -> str:
    """A value as nested tuples of names and numbers, independent of how it prints.

    Without recursion: a program with many names is deep.
    """
    found: list[str] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is Token:
            found.append(part)
        else:
            waiting.extend(reversed(pieces_in(type(part))(part)))
    return "".join(found)


@cache
def pieces_in(cls: type) -> Callable[[Any], Sequence[Any]]:
    """The tokens of `written` for the values of one class, with parts that are not written yet.

    By class, since a rule has thousands of parts, of few classes.
    """
    kind = f"{cls.__module__}.{cls.__qualname__}"
    if issubclass(cls, ValueVar):
        return lambda value: (Token((kind, value.name)),)
    if issubclass(cls, NoneType | bool | int | float | str):
        return lambda value: (Token(repr(value)),)
    if issubclass(cls, tuple | list):
        return in_brackets
    if issubclass(cls, Nat):
        return lambda value: (pieces_of_nat(value),)
    if issubclass(cls, Atom):
        return lambda value: in_brackets((kind, *value.identity))
    if issubclass(cls, Mapping):
        return lambda value: in_brackets((kind, tuple(value.items())))
    if dataclasses.is_dataclass(cls):
        names = [(Token(f", ({name!r}, "), name) for name in given(cls)]
        first, last = Token(f"({kind!r}"), Token(")" if names else ",)")

        def pieces(value: Any) -> Sequence[Any]:
            found: list[Any] = [first]
            for token, name in names:
                found += (token, getattr(value, name), CLOSE)
            return (*found, last)

        return pieces
    return lambda value: (Token((kind, repr(value))),)


def in_brackets(values: Sequence[Any]) -> Sequence[Any]:
    """The tokens of a tuple, with its values."""
    if len(values) == 1:
        return OPEN, values[0], Token(",)")
    found: list[Any] = [OPEN]
    for k, value in enumerate(values):
        found += (COMMA, value) if k else (value,)
    return (*found, CLOSE)


@lru_cache(maxsize=1 << 12)
def pieces_of_nat(number: Nat) -> Token:
    """The token of a natural: the same few sizes are in most types of a rule."""
    terms = sorted(f"({written(m)}, {c!r})" for m, c in number.terms.items())
    listed = f"({terms[0]},)" if len(terms) == 1 else f"({', '.join(terms)})"
    return Token(f"({f'{Nat.__module__}.{Nat.__qualname__}'!r}, {listed})")


@cache
def given(cls: type) -> tuple[str, ...]:
    """The fields that determine a value of a dataclass; the others follow from them."""
    return tuple(f.name for f in dataclasses.fields(cls) if f.compare)


@cache
def classes_in(rule: Rule) -> frozenset[type]:
    """The classes of all values in a rule."""
    return frozenset(kinds(rule))


def kinds(value: Any) -> Iterator[type]:
    """The classes of a value and of its parts."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        counts, parts = parts_in(type(part))
        if counts:
            yield type(part)
        waiting += parts(part)


@cache
def parts_in(cls: type) -> tuple[bool, Callable[[Any], Iterable[Any]]]:
    """Whether `kinds` has a class, and the parts of its values that have classes, too."""
    if issubclass(cls, NoneType | bool | int | str) or cls is float:
        return False, lambda _: ()
    if issubclass(cls, tuple | list):
        return False, lambda value: value
    if issubclass(cls, Nat):
        return True, lambda value: value.atoms()
    if issubclass(cls, Atom):
        return True, lambda value: value.parts()
    if issubclass(cls, Mapping):
        return False, lambda value: (part for pair in value.items() for part in pair)
    if dataclasses.is_dataclass(cls):
        names = given(cls)
        return True, lambda value: (getattr(value, name) for name in names)
    return True, lambda _: ()


# --- admission -----------------------------------------------------------------------------------


def admit(rule: Rule) -> None:
    """Record that the rule has been proved in this process."""
    _session.add((law_of(rule), classes_in(rule)))


def is_proved(rule: Rule) -> bool:
    """Whether the rule, exactly as it is, has a proof."""
    return (law_of(rule), classes_in(rule)) in _session or is_recorded(rule)


def is_recorded(rule: Rule, *, parsed: bool = False) -> bool:
    """Whether the proof cache has a proof of the rule that rests on the current sources.

    With `parsed`, the sources are parsed even if all hashes of files are those recorded: after a
    merge of two records, these may be newer than a proof.
    """
    entry = recorded().get(rule.name)
    if entry is None or entry["law"] != law_of(rule):
        return False
    if not parsed and has_our_classes(rule) and is_unchanged():
        return True
    return entry["rests_on"] == grounds().of(rule).digest
