"""Every module and name that the benchmarks import exists: CI does not run them.

Pyright checks how the names are used, but takes a module that it does not find for an optional one.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py"))
OPTIONAL = {"openvino", "torch"}


def imports_of(script: str) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.walk(ast.parse((FOLDER / script).read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_imported_from_liftpy_is_there(script: str) -> None:
    for node in imports_of(script):
        if any(name.partition(".")[0] == "liftpy" for name in modules_of(node)):
            exec(compile(ast.Module([node], []), script, "exec"), {})  # noqa: S102  our own


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_module_is_there_or_optional(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    for node in imports_of(script):
        for name in modules_of(node):
            if name.partition(".")[0] not in OPTIONAL:
                assert importlib.util.find_spec(name), name
