"""The ledger of proved rules: a rule may be applied when its law, as it stands, has been proved.

`proofs.json` holds the fingerprint of each proved rule. A fingerprint covers the law, its
conditions, the ranges of its sizes and the source text of the meanings of every primitive in it:
change one and the proof is void until `liftpy prove --record` has run again. Proving a rule
(`semantics/prove.py`) admits it for the session.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from functools import cache
from importlib import resources
from typing import Any

from liftpy.ir import denote, pull
from liftpy.ir.expr import Primitive
from liftpy.primitives import PRIMITIVES
from liftpy.rewrite.rule import Rule, sizes_of

LEDGER = "proofs.json"
_session: set[str] = set()


@cache
def recorded() -> dict[str, Any]:
    """The proofs that ship with liftpy, by rule name."""
    file = resources.files("liftpy.rewrite").joinpath(LEDGER)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


@cache
def meanings() -> str:
    """The source text of every meaning, type, condition and helper: what all proofs rest on."""
    laws = [
        inspect.getsource(method)
        for p in PRIMITIVES.values()
        for base in p.__mro__
        if issubclass(base, Primitive) and base is not Primitive
        for name, method in vars(base).items()
        if inspect.isfunction(method) and name != "reference" and not name.startswith("__")
    ]
    return "\n".join([*laws, *map(inspect.getsource, (denote, pull))])


@cache
def fingerprint(rule: Rule) -> str:
    """A hash of the law and of every meaning that it rests on."""
    law = repr(
        (rule.name, rule.left, rule.right, rule.where, rule.assuming, rule.tunes, rule.proof)
    )
    parts = [law, str(ranges(rule)), meanings()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def ranges(rule: Rule) -> list[tuple[str, int | None, int | None]]:
    """The sizes of a rule with the ranges that its proof may use."""
    return [(v.name, v.low, v.high) for v in sizes_of(rule)]


def admit(rule: Rule) -> None:
    """Note that the rule has been proved in this process."""
    _session.add(fingerprint(rule))


def is_proved(rule: Rule) -> bool:
    """Whether the rule, exactly as it stands, has a proof."""
    entry = recorded().get(rule.name)
    return fingerprint(rule) in _session or (
        entry is not None and entry["fingerprint"] == fingerprint(rule)
    )
