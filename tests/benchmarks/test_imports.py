"""Every name that the benchmarks import from liftpy exists: CI does not run them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_imported_is_there(script: str) -> None:
    tree = ast.parse((FOLDER / script).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("liftpy"):
            exec(compile(ast.Module([node], []), script, "exec"), {})  # noqa: S102  our own
