"""Where liftpy makes errors, found in its source, and which of these places an error came from."""

import ast
import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from liftpy import errors
from liftpy.errors import LiftError
from tests.trees import PACKAGE, trees

#: The exceptions that a user is told of.
REFUSALS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, LiftError)
} | {"BuildRefused"}
#: What makes one and gives it back to be raised.
MAKERS = {"refusal", "refuse", "unknown"}


BUILTIN = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


@cache
def others() -> set[str]:
    """What other statements raise: also the usage errors of typer."""
    return BUILTIN | own_exceptions() | {"BadParameter", "Exit"}


def own_exceptions() -> set[str]:
    """The exceptions of liftpy that are no `LiftError`: defects, and what is caught inside."""
    classes = [
        node
        for tree in trees().values()
        for node in statements(tree)
        if isinstance(node, ast.ClassDef) and node.name not in REFUSALS
    ]
    found: set[str] = set()
    while more := {
        c.name
        for c in classes
        if c.name not in found
        and c.bases
        and all(isinstance(base, ast.Name) and base.id in BUILTIN | found for base in c.bases)
    }:
        found |= more
    return found


@dataclass(frozen=True)
class Site:
    """A statement that raises or returns a new error: its file, function, and lines.

    `number` tells the sites of one function apart, from 1.
    """

    file: str
    function: str
    number: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.function}:{self.number}"


def called(node: ast.AST) -> set[str]:
    """The names of everything called in a statement."""
    functions = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in functions}


def makes_an_error(node: ast.AST) -> bool:
    """Whether a statement makes an error for the user."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        return bool(called(node.exc) - others()) and not called(node.exc) & others()
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in (REFUSALS - {"BuildFailed"}) | {"refusal"}  # that is an outcome, too
    return False


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node that are statements or contain some; expressions contain none."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        children = getattr(node, name, ())
        if isinstance(children, list):  # the body of a lambda is an expression
            yield from children


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement of a file, each before those inside it."""
    for child in inside(tree):
        yield child
        yield from statements(child)


def functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every function and class body with its name, statements of inner functions left to those."""
    for child in inside(tree):
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name = f"{outer}.{child.name}" if outer else child.name
            yield name, child
            yield from functions(child, name)
        else:
            yield from functions(child, outer)


def own_statements(function: ast.AST) -> Iterator[ast.AST]:
    """The statements of a function that are in no inner function, in the order of the text."""
    for child in inside(function):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield child
            yield from own_statements(child)


@cache
def sites() -> list[Site]:
    """Every place in liftpy's source that makes an error for the user."""
    found: list[Site] = []
    for file, tree in trees().items():
        for name, node in functions(tree):
            made = sorted(filter(makes_an_error, own_statements(node)), key=lambda n: n.lineno)
            found += [
                Site(file, name, number, n.lineno, n.end_lineno) for number, n in enumerate(made, 1)
            ]
    return found


@cache
def file_of(name: str) -> str | None:
    """The file of liftpy that a path names; None for others."""
    path = Path(name)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


@contextmanager
def traced():
    """Every error that is made in here remembers the lines under way, as `lines_of` reads them."""
    own = LiftError.__dict__.get("__new__")

    def remember(cls, *args, **kwargs):
        error = Exception.__new__(cls, *args, **kwargs)
        frame, lines = sys._getframe(1), set()
        while frame is not None:
            if (file := file_of(frame.f_code.co_filename)) is not None:
                lines.add((file, frame.f_lineno))
            frame = frame.f_back
        error.made_at = lines
        error.made_by = f"{sys._getframe(1).f_code.co_filename}:{sys._getframe(1).f_lineno}"
        return error

    LiftError.__new__ = remember
    try:
        yield
    finally:
        if own is None:
            del LiftError.__new__
        else:
            LiftError.__new__ = own


def lines_of(error: BaseException | None) -> set[tuple[str, int]]:
    """The lines at which an error, and those that it is raised from, were made."""
    lines: set[tuple[str, int]] = set()
    while error is not None:
        lines |= getattr(error, "made_at", set())
        error = error.__cause__
    return lines


@cache
def sites_in() -> dict[str, list[Site]]:
    """The sites of each file."""
    found: dict[str, list[Site]] = {}
    for site in sites():
        found.setdefault(site.file, []).append(site)
    return found


def came_from(error: BaseException) -> set[str]:
    """The sites that an error came from, by name."""
    return {
        str(site)
        for file, line in lines_of(error)
        for site in sites_in().get(file, [])
        if site.first <= line <= site.last
    }
