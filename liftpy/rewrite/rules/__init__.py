"""The catalogue of rules, one module per family."""

from collections.abc import Iterator, Mapping
from types import ModuleType

from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import (
    border,
    by_index,
    correlation,
    cover,
    fusion,
    integers,
    integral,
    interchange,
    linear,
    lowering,
    memory,
    pad,
    parts,
    products,
    reduce,
    scalar,
    scan,
    simplify,
    slide,
    split_join,
    transpose,
    vector,
    zip_unzip,
)

FAMILIES = (
    fusion,
    simplify,
    split_join,
    cover,
    slide,
    pad,
    border,
    parts,
    transpose,
    zip_unzip,
    reduce,
    scan,
    products,
    interchange,
    linear,
    vector,
    correlation,
    scalar,
    integers,
    integral,
    by_index,
    memory,
    lowering,
)

LONG = (correlation, integral)
"""The families whose rules are long: each is made when it is first read."""


def rules_of(family: ModuleType) -> tuple[Rule, ...]:
    """The rules of a family."""
    return tuple(map(family.made, family.NAMES)) if family in LONG else family.RULES


class Catalogue(Mapping[str, Rule]):
    """All rules by name; long ones are made when they are first read."""

    def __init__(self) -> None:
        short = (rules_of(family) for family in FAMILIES if family not in LONG)
        self._made = {rule.name: rule for rules in short for rule in rules}

    def __getitem__(self, name: str) -> Rule:
        if name in self._made:
            return self._made[name]
        return integral.made(name) if name in integral.NAMES else correlation.made(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._made
        for family in LONG:
            yield from family.NAMES

    def __len__(self) -> int:
        return len(self._made) + sum(len(family.NAMES) for family in LONG)


RULES = Catalogue()

__all__ = ["FAMILIES", "RULES", "rules_of"]
