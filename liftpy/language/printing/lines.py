"""Text that is broken into lines where it is too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Break:
    """A possible line break; `flat` is its text if the line continues."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Indented:
    """A layout indented by two columns."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Fit:
    """A layout on one line if it fits; otherwise all of its breaks are line breaks."""

    doc: Doc


Doc: TypeAlias = str | Break | Indented | Fit | tuple["Doc", ...]
LINE, SOFT = Break(), Break("")


def render(doc: Doc, width: int | None) -> str:
    """The text of a layout; a width of None means unlimited."""
    out: list[str] = []
    column = 0
    work: list[tuple[int, bool, Doc]] = [(0, width is None, doc)]
    while work:
        indent, flat, part = work.pop()
        match part:
            case str():
                out.append(part)
                column += len(part)
            case Break():
                if flat:
                    out.append(part.flat)
                    column += len(part.flat)
                else:
                    out.append("\n" + " " * indent)
                    column = indent
            case Indented(inner):
                work.append((indent + 2, flat, inner))
            case Fit(inner):
                flat = flat or fits(inner, (width or 0) - column, work)
                work.append((indent, flat, inner))
            case tuple():
                work.extend((indent, flat, inner) for inner in reversed(part))
    return "".join(out)


def fits(doc: Doc, room: int, after: list[tuple[int, bool, Doc]]) -> bool:
    """Whether a layout, with the text after it up to the next break, fits on one line."""
    work: list[tuple[bool, Doc]] = [(flat, part) for _, flat, part in after[-8:]]
    work.append((True, doc))
    while work and room >= 0:
        flat, part = work.pop()
        match part:
            case str():
                room -= len(part)
            case Break():
                if not flat:
                    return True
                room -= len(part.flat)
            case Indented(inner):
                work.append((flat, inner))
            case Fit(inner):
                work.append((flat, inner))
            case tuple():
                work.extend((flat, inner) for inner in reversed(part))
    return room >= 0


def listed(docs: list[Doc]) -> Doc:
    """Parts separated by commas, in parentheses."""
    if not docs:
        return "()"
    parts: list[Doc] = [docs[0]]
    for doc in docs[1:]:
        parts += [",", LINE, doc]
    return Fit(("(", Indented((SOFT, *parts)), SOFT, ")"))
