"""Prove rules so that they may be applied, and record the proofs that ship with liftpy."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import z3

from liftpy.errors import RuleRefused
from liftpy.language import entry as entries
from liftpy.rewrite.proof_cache import (
    PROOFS,
    admit,
    grounds,
    is_recorded,
    is_unchanged,
    law_of,
    proof_cache,
    recorded,
)
from liftpy.rewrite.rule import Rule
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved, Verdict


@dataclass(frozen=True)
class Noted:
    """A new proof cache: its file, the number of proofs kept, and the new verdicts by rule."""

    path: Path
    kept: int
    verdicts: dict[str, Verdict]
    seconds: dict[str, float]


@entries.entry("lp.prove")
def certify(rule: Rule) -> Verdict:
    """Proves a rule; if it is proved, it may be applied in this process.

    >>> str(lp.prove(lp.rules["map_fusion"]))
    'proved'
    """
    verdict = prove(rule)
    if isinstance(verdict, Proved):
        admit(rule)
    return verdict


def entry(rule: Rule) -> dict[str, Any]:
    """Proves a rule and returns the record of the proof; raises RuleRefused if it is not proved."""
    start = time.perf_counter()
    verdict = prove(rule)
    if not isinstance(verdict, Proved):
        message = f"rule {rule.name} is not proved: {verdict}"
        raise RuleRefused(message)
    return noted(rule, verdict, time.perf_counter() - start)


def noted(rule: Rule, verdict: Proved, seconds: float) -> dict[str, Any]:
    """The record of a proof."""
    return {
        "law": law_of(rule),
        "rests_on": grounds().of(rule).digest,
        "verdict": str(verdict),
        "obligations": len(verdict.obligations),
        "seconds": round(seconds, 2),
        "z3": z3.get_version_string(),
    }


def record(rules: Iterable[Rule], path: Path | None = None) -> Noted:
    """Write the proof cache that ships with liftpy: keep valid proofs, and redo the others.

    A rule that cannot be proved is left out, and may not be applied.
    """
    entries: dict[str, Any] = {}
    verdicts: dict[str, Verdict] = {}
    seconds: dict[str, float] = {}
    for rule in rules:
        if is_recorded(rule, parsed=True):
            entries[rule.name] = recorded()[rule.name]
            continue
        start = time.perf_counter()
        verdict = verdicts[rule.name] = prove(rule)
        seconds[rule.name] = time.perf_counter() - start
        if isinstance(verdict, Proved):
            entries[rule.name] = noted(rule, verdict, seconds[rule.name])
    path = path or Path(str(resources.files("liftpy.rewrite").joinpath(PROOFS)))
    data = {"files": grounds().files(), "rules": entries}
    path.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    proof_cache.cache_clear()
    is_unchanged.cache_clear()
    return Noted(path, len(entries) - len(verdicts.keys() & entries.keys()), verdicts, seconds)
