"""The catalogue of rules, one module a family."""

from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import fusion, lowering, reduce, slide, split_join, transpose, vector

RULES: dict[str, Rule] = {
    rule.name: rule
    for family in (fusion, split_join, slide, transpose, reduce, vector, lowering)
    for rule in family.RULES
}

__all__ = ["RULES"]
