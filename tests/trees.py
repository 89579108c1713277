"""The modules of liftpy as syntax trees, each parsed once in a process of the tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import liftpy

PACKAGE = Path(liftpy.__file__).parent


@cache
def trees() -> dict[str, ast.Module]:
    """The tree of each file by its path in the package, such as `ir/nat.py`. Do not change it."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def imports() -> dict[str, tuple[ast.Import | ast.ImportFrom | ast.Call, ...]]:
    """The import statements and the calls of each file, at any depth."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return {
        file: tuple(node for node in ast.walk(tree) if isinstance(node, kinds))
        for file, tree in trees().items()
    }
