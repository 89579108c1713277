"""Modules are neither too long to read nor too short to stand alone, and no two need each other."""

import ast
import re
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import liftpy
from liftpy.cli.application import COMMANDS
from tests.trees import imports, trees

ROOT = Path(liftpy.__file__).parent
MODULES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}

#: Modules that are run or imported by name, and families of rules.
SHORT = {
    "__main__.py": "`python -m liftpy`",
    "cli/workloads.py": "imported when its command is given",
    "explore/measure/building.py": "the main module of a process",
    "explore/measure/starting.py": "the main module of a process",
}
#: Functions that import a module by its name, with what precedes the name.
BY_NAME = {"needing": "", "load": "liftpy.cli.", "by_onnx": "liftpy.networks."}
#: Modules that compute the name of a module that they import: those of `BY_NAME`, the facade, whose
#: names type checkers see too, the driver (pyopencl), and a process that starts with its module.
IMPORTING = {
    "__init__.py",
    "cli/loading.py",
    "explore/measure/starting.py",
    "explore/optional.py",
    "opencl/driver.py",
}
#: Folders of which each file is registered by `__init__.py`: a rule, family or search may be short.
REGISTERED = ("rewrite/rules/", "rewrite/strategies/families/", "explore/search/")


def imported():
    """Every module that a module imports, with the names imported from it, once per importer."""
    for nodes in imports().values():
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                yield from {f"{node.module}.{a.name}" for a in node.names} | {str(node.module)}


def dotted(name):
    return ".".join(("liftpy", *Path(name).with_suffix("").parts)).removesuffix(".__init__")


def needs(nodes, modules):
    """The modules that a module imports: anywhere in it, for type checkers only, or by name."""
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(source)):
                full = {f"{source}.{a.name}" for a in node.names}
                yield from {name if name in modules else source for name in full} & modules
            case ast.Import():
                yield from {a.name for a in node.names} & modules
            case ast.Call(func=ast.Name(called), args=args) if called in BY_NAME:
                given = {a.value for a in args if isinstance(a, ast.Constant)}
                yield from {f"{BY_NAME[called]}{name}" for name in given} & modules
            case _:
                pass


def test_a_module_has_at_most_500_lines():
    lengths = {name: len(text.splitlines()) for name, text in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_a_module_that_only_one_other_imports_is_not_tiny():
    tiny = {
        name
        for name, text in MODULES.items()
        if len(text.splitlines()) < 40 and not name.endswith("__init__.py")
    }
    uses = Counter(imported())
    alone = {name for name in tiny if uses[dotted(name)] < 2 and not name.startswith(REGISTERED)}
    assert alone == set(SHORT)


def test_there_are_no_import_cycles():
    """Not behind `TYPE_CHECKING`, in a function, or in the name of a module (`BY_NAME`) either.

    import-linter sees rooms and those modules that its contracts name; this sees all modules.
    """
    nodes = {dotted(name): found for name, found in imports().items()}
    graph = {name: set(needs(found, nodes.keys())) for name, found in nodes.items()}
    graph["liftpy.cli.application"] |= {f"liftpy.cli.{module}" for module, _ in COMMANDS.values()}
    assert len(graph["liftpy"]) > 20, "what only type checkers see is not read"
    assert "liftpy.explore.report.page" in graph["liftpy.explore.report.tables"]
    assert "liftpy.cli.language" in graph["liftpy.cli.showing"]
    assert "liftpy.networks.joining" in graph["liftpy.networks.network"]
    TopologicalSorter(graph).prepare()  # CycleError has the modules of a cycle


def test_no_other_module_imports_by_name():
    """Such an import would be an edge that the previous test does not see."""
    used = {name for name, text in MODULES.items() if re.search(r"import_module|__import__", text)}
    assert used == IMPORTING


def test_a_cycle_through_type_checking_is_detected():
    first = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from liftpy.b import B\n"
    second = "def f():\n    from liftpy import a\n"
    modules = {"liftpy.a": first, "liftpy.b": second}
    nodes = {name: ast.walk(ast.parse(text)) for name, text in modules.items()}
    graph = {name: set(needs(found, modules.keys())) for name, found in nodes.items()}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_a_class_name_occurs_at_most_twice():
    """A reader who meets a name, in a message or a search, finds few classes of it."""
    homes = defaultdict(list)
    for name, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert {name: found for name, found in homes.items() if len(found) > 2} == {}
