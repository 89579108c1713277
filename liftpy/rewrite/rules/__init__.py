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
    by_index,
    memory,
    lowering,
)


def rules_of(family: ModuleType) -> tuple[Rule, ...]:
    """The rules of a family."""
    if family is correlation:
        return tuple(map(correlation.made, correlation.NAMES))
    return family.RULES


class Catalogue(Mapping[str, Rule]):
    """All rules by name. Those of `correlation` are long: each is made when it is first read."""

    def __init__(self) -> None:
        short = (rules_of(family) for family in FAMILIES if family is not correlation)
        self._made = {rule.name: rule for rules in short for rule in rules}

    def __getitem__(self, name: str) -> Rule:
        return self._made[name] if name in self._made else correlation.made(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._made
        yield from correlation.NAMES

    def __len__(self) -> int:
        return len(self._made) + len(correlation.NAMES)


RULES = Catalogue()

__all__ = ["FAMILIES", "RULES", "rules_of"]
