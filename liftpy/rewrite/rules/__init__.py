"""The catalogue of rules, one module per family."""

from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import (
    border,
    correlation,
    cover,
    fusion,
    interchange,
    lowering,
    memory,
    pad,
    parts,
    reduce,
    scalar,
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
    interchange,
    vector,
    correlation,
    scalar,
    memory,
    lowering,
)

RULES: dict[str, Rule] = {rule.name: rule for family in FAMILIES for rule in family.RULES}

__all__ = ["FAMILIES", "RULES"]
