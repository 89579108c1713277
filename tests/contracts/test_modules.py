"""Modules are neither too long to read nor too short to stand alone."""

import ast
from collections import Counter
from pathlib import Path

import liftpy

ROOT = Path(liftpy.__file__).parent
MODULES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}

#: Operators of naturals build naturals; calls, functions and substitution are defined by each other:
#: a cut would make an import cycle.
LONG = {"ir/nat.py", "ir/expr.py"}

#: Modules that are run or imported by name, and families of rules.
SHORT = {
    "__main__.py": "`python -m liftpy`",
    "cli/workloads.py": "imported when its command is given",
    "explore/measure/building.py": "the main module of a process",
    "explore/measure/starting.py": "the main module of a process",
    "rewrite/rules/scalar.py": "a family of rules",
}


def imported():
    """Every module that a module imports, with the names imported from it, once per importer."""
    for text in MODULES.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                yield from {f"{node.module}.{a.name}" for a in node.names} | {str(node.module)}


def dotted(name):
    return ".".join(("liftpy", *Path(name).with_suffix("").parts))


def test_a_module_has_at_most_500_lines():
    assert {name for name, text in MODULES.items() if len(text.splitlines()) > 500} == LONG


def test_a_module_that_only_one_other_imports_is_not_tiny():
    tiny = {
        name
        for name, text in MODULES.items()
        if len(text.splitlines()) < 40 and not name.endswith("__init__.py")
    }
    uses = Counter(imported())
    assert {name for name in tiny if uses[dotted(name)] < 2} == set(SHORT)
