"""The catalogue of rules as a page: docs/rules.md."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.expr import Expr
from liftpy.primitives.text import show_expr
from liftpy.rewrite.proof_cache import is_proved, recorded
from liftpy.rewrite.rule import Rule, hints_of
from liftpy.rewrite.rules import FAMILIES, RULES

WIDTH = 96
HEAD = """# Rules

Written by `make docs` from the rules themselves: do not edit. A law is read from left to right;
`f`, `g`, ... stand for any function of what they are applied to, sizes for any natural numbers.
A condition is one beyond what the primitives of the left side require anyway. A size that a rule
*tunes* is chosen when it is applied. How proofs work: `liftpy/rewrite/rule.py`; `liftpy prove`
proves all of them again.
"""


def rules_page() -> str:
    """The page, family by family."""
    lines = [HEAD, *summary()]
    for family in FAMILIES:
        lines += [f"## {title(family)}", ""]
        if family.__doc__:
            lines += [family.__doc__.strip(), ""]
        for rule in family.RULES:
            lines += entry(rule)
    return "\n".join(lines)


def title(family: object) -> str:
    """A family's name, as its rules have it."""
    rules: tuple[Rule, ...] = vars(family)["RULES"]
    return rules[0].family.capitalize()


def summary() -> Iterator[str]:
    """How many rules there are, and how many are proved."""
    proved = sum(is_proved(rule) for rule in RULES.values())
    yield f"{len(RULES)} rules in {len(FAMILIES)} families, {proved} proved."
    yield ""


def entry(rule: Rule) -> Iterator[str]:
    """A rule: law, conditions, proof."""
    yield f"### {rule.name}"
    yield ""
    yield "```"
    yield from law(rule)
    yield "```"
    yield ""
    if rule.tunes:
        yield f"- tunes: {', '.join(f'`{name}`' for name in rule.tunes)}"
    if hints := hints_of(rule):
        yield f"- needs a hint, the path of {' and of '.join(f'`{name}`' for name in hints)}"
    if rule.where:
        yield f"- if: {'; '.join(f'`{condition}`' for condition in rule.where)}"
    if rule.assuming:
        yield f"- assuming: {', '.join(f'`{law}`' for law in rule.assuming)}"
        yield from (f"  - `{law}`: `{law.equation}`" for law in rule.assuming if law.equation)
    known = recorded().get(rule.name, {})
    obligations = f", {known['obligations']} obligations" if is_proved(rule) else ""
    verdict = "proved" if is_proved(rule) else "no valid proof"
    yield f"- {verdict} ({rule.proof}{obligations})"
    yield ""


def law(rule: Rule) -> Iterator[str]:
    """The law: types of the arrays that it speaks of, then the equation."""
    for p in sorted(rule.left.free | rule.right.free, key=lambda p: p.name):
        yield f"{p.name}: {p.type}"
    left, right = text(rule.left), text(rule.right)
    if len(left) + len(right) + 3 <= WIDTH and "\n" not in left + right:
        yield f"{left} = {right}"
    else:
        yield left
        yield f"  = {right.replace(chr(10), chr(10) + '    ')}"


def text(side: Expr) -> str:
    """A side of a law."""
    return show_expr(side, WIDTH)
