"""Places in Python files at which the user's code calls liftpy."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from inspect import unwrap
from itertools import islice
from pathlib import PurePath
from types import CodeType, FrameType, TracebackType
from typing import Any

from liftpy.errors import LiftError, TypeRefused
from liftpy.source.spans import clipped

#: Modules whose frames are never those of the user's code.
OURS = frozenset({"liftpy", "numpy"})

#: Packages of liftpy that call words of the language. A refusal of what they write is not placed in
#: the user's code, even if that code called them.
WRITERS = ("liftpy.workloads", "liftpy.networks", "liftpy.cli")


@dataclass(frozen=True, slots=True)
class Spot:
    """An instruction of a Python function; if `offset` is None, the line where it begins."""

    code: CodeType
    offset: int | None

    def extent(self) -> tuple[int, int, int, int]:
        """First and last line, column of the first character and past the last; -1 if unknown."""
        first = self.code.co_firstlineno
        if self.offset is None:  # a decorator's line comes first
            while linecache.getline(self.code.co_filename, first).lstrip().startswith("@"):
                first += 1
            return first, first, -1, -1
        found = next(islice(self.code.co_positions(), self.offset // 2, None), (None,) * 4)
        line, end, column, past = found
        if line is None or end is None or column is None or past is None:
            return line or first, line or first, -1, -1
        return line, end, column, past

    def text(self) -> str:
        """The source text of the place; empty if the file cannot be read."""
        first, last, column, past = self.extent()
        lines = [linecache.getline(self.code.co_filename, n) for n in range(first, last + 1)]
        if column < 0 or not all(lines):
            return ""
        encoded = [line.encode() for line in lines]
        encoded[-1] = encoded[-1][:past]
        encoded[0] = encoded[0][column:]
        return b"".join(encoded).decode()

    def syntax(self) -> ast.expr | None:
        """The expression at the place; None if it is not an expression."""
        try:
            return ast.parse(f"({self.text()})", mode="eval").body
        except SyntaxError:  # a statement, such as `for x in xs`
            return None

    def shown(self) -> list[str]:
        """The line with carets under the place; without the source, only the file and line."""
        first, last, column, past = self.extent()
        where = f"{PurePath(self.code.co_filename).name}:{first}"
        line = linecache.getline(self.code.co_filename, first).rstrip()
        if not line:
            return [f"  {where}"]
        at, end = len(line) - len(line.lstrip()), len(line)
        if column >= 0:
            at = len(line.encode()[:column].decode())
            end = len(line.encode()[:past].decode()) if last == first else end
        text, at, carets = clipped(line.replace("\t", " "), at, max(1, end - at))
        label = f"  {where} | "
        return [label + text, " " * (len(label) - 2) + "| " + " " * at + "^" * carets]


def of_user(frame: FrameType) -> bool:
    """Whether a frame runs the user's code, not that of liftpy, NumPy or the standard library."""
    return is_users(frame.f_globals.get("__name__", ""))


@cache
def is_users(module: str) -> bool:
    """Whether a module of this name is the user's."""
    root = module.partition(".")[0]
    return root not in OURS and (root not in sys.stdlib_module_names or root == "__main__")


def of_writer(frame: FrameType) -> bool:
    """Whether a frame runs code of liftpy that writes programs or reads them."""
    return is_writer(frame.f_globals.get("__name__"))


@cache
def is_writer(module: str | None) -> bool:
    """Whether a module of this name belongs to `WRITERS`."""
    return module is not None and any(f"{module}.".startswith(f"{w}.") for w in WRITERS)


def user_frames() -> Iterator[FrameType]:
    """The user's frames on the stack, innermost first, up to code of liftpy in `WRITERS`."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not of_writer(frame):
        if of_user(frame):
            yield frame
        frame = frame.f_back


def here() -> Spot | None:
    """The current place in the user's code; None if there is none."""
    frame = next(user_frames(), None)
    return None if frame is None else Spot(frame.f_code, frame.f_lasti)


def beginning(f: Callable[..., Any]) -> Spot | None:
    """The place where a user's function begins; None for one of liftpy, or one without code."""
    own = unwrap(f)
    code = getattr(own, "__code__", None)
    return None if code is None or is_writer(getattr(own, "__module__", None)) else Spot(code, None)


def raised_at(traceback: TracebackType | None) -> Spot | None:
    """The innermost place in the user's code on the traceback of an error."""
    found: Spot | None = None
    while traceback is not None:
        if of_writer(traceback.tb_frame):
            found = None
        elif of_user(traceback.tb_frame):
            found = Spot(traceback.tb_frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


def locate(error: LiftError, spot: Spot | None) -> None:
    """Add its place in the user's code to a refusal, unless it has one or the place is unknown."""
    if error.located or spot is None:
        return
    what, *why = str(error).split("\n")
    if not why:
        what, _, reason = what.partition(": ")
        why = [f"  {reason}"] if reason else []
    error.args = ("\n".join([what, *spot.shown(), *why]),)
    error.located = True


def refusal(what: str, *why: str, kind: type[TypeRefused] = TypeRefused) -> TypeRefused:
    """A refusal, placed at the current line of the user's code."""
    error = kind("\n".join([what, *(f"  {reason}" for reason in why)]))
    locate(error, here())
    return error


def called_there() -> str:
    """The name of the function that the user's code is calling; empty if there is none."""
    spot = here()
    node = None if spot is None else spot.syntax()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):  # xs >> enumerate
        return getattr(node.right, "id", "")
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


# --- is an operation the user's? -----------------------------------------------------------------

# While a function is traced, Python's `==` and `in` on an expression or a size differ in meaning:
# in the user's code they belong to the program; inside liftpy they compare the structure of values.


def compared_by_user() -> bool:
    """Whether the user's code called the caller, rather than liftpy itself."""
    return of_user(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def looked_up_by_user() -> bool:
    """Whether the method that calls the caller runs for `x in values` in the user's code.

    A set or a dictionary looks up the hash first and may not call `==`.
    """
    if not of_user(sys._getframe(3)):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return False
    spot = here()
    node = None if spot is None else spot.syntax()
    return isinstance(node, ast.Compare) and any(
        isinstance(op, ast.In | ast.NotIn) for op in node.ops
    )


def needed_by_user() -> bool:
    """Whether the method that calls the caller runs for the user's code.

    NumPy and the standard library may be between them on the stack.
    """
    frame = sys._getframe(3)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not of_user(frame):
        if frame.f_globals.get("__name__", "").partition(".")[0] == "liftpy":
            return False
        frame = frame.f_back
    return frame is not None
