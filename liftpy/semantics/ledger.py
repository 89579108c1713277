"""Proving for use: a proved rule is admitted, and the catalogue's proofs ship with liftpy."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import z3

from liftpy.errors import RuleRefused
from liftpy.rewrite.ledger import LEDGER, admit, fingerprint, recorded
from liftpy.rewrite.rule import Rule
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved, Verdict


def certify(rule: Rule) -> Verdict:
    """Prove a rule; if it is proved, it may be applied in this process."""
    verdict = prove(rule)
    if isinstance(verdict, Proved):
        admit(rule)
    return verdict


def entry(rule: Rule) -> dict[str, Any]:
    """The record of a rule's proof; RuleRefused if there is none."""
    start = time.perf_counter()
    verdict = prove(rule)
    if not isinstance(verdict, Proved):
        message = f"rule {rule.name} is not proved: {verdict}"
        raise RuleRefused(message)
    return {
        "fingerprint": fingerprint(rule),
        "verdict": str(verdict),
        "obligations": len(verdict.obligations),
        "seconds": round(time.perf_counter() - start, 2),
        "z3": z3.get_version_string(),
    }


def record(rules: Iterable[Rule]) -> Path:
    """Prove rules and write the ledger that ships with liftpy."""
    ledger = {rule.name: entry(rule) for rule in rules}
    path = Path(str(resources.files("liftpy.rewrite").joinpath(LEDGER)))
    path.write_text(json.dumps(ledger, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    recorded.cache_clear()
    return path
