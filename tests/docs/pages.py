"""Runs a page of the documentation as its reader would: blocks in their order, in one folder.

    ```python, lift, toml   whose first line is `# NAME`: saved under that name
    ```pycon                examples of doctest; names are kept from block to block
    ```console              `$ COMMAND` and, below, what it prints; compared if there is anything
    ```diff                 changes of an existing file (`change`)

Outputs are compared as doctest does with ELLIPSIS and NORMALIZE_WHITESPACE; numbers and settings
may differ with the checker `Shape`. Blocks of `sh` and `text` are not tried.
"""

from __future__ import annotations

import contextlib
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.commands import in_a_process, ran

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNTRIED = {"sh", "text"}
NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")


def blocks(page: Path, section: str = "") -> Iterator[tuple[int, str, str]]:
    """The line, the language and the text of each block of a page, or of one of its sections."""
    text = page.read_text(encoding="utf-8")
    spans = dict(sections(text))
    start, end = spans[section] if section else (0, len(text))
    for found in FENCE.finditer(text, start, end):
        yield text.count("\n", 0, found.start()) + 2, found[1], found[2]


def sections(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The headings of the second level of a page, and where the text below each begins and ends."""
    heads = list(re.finditer(r"^## (.*)\n", text, re.MULTILINE))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=True):
        yield head[1], (head.end(), end)


def files(page: Path) -> dict[str, str]:
    """The blocks of a page that say which file they are."""
    named = ((NAMED.match(text), text) for _, _, text in blocks(page))
    return {found[1]: text for found, text in named if found}


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the output that stands below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Shape(doctest.OutputChecker):
    """Compares outputs that depend on the machine.

    Any number matches any other, and so does any value of a setting (`kappa=8`, `'level': 'glb'`).
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether two outputs have the same shape."""
        return super().check_output(shape(want), shape(got), optionflags)


def shape(text: str) -> str:
    """A text without its numbers and the values of settings."""
    return re.sub(r"\d+(\.\d+)?", "0", re.sub(r"(\w+=|'\w+': )[\w']+", r"\1_", text))


def run_page(
    page: Path,
    folder: Path,
    package: Path = ROOT,
    section: str = "",
    checker: doctest.OutputChecker | None = None,
) -> int:
    """Runs the blocks of a page, or a section of it; how many commands and examples there were.

    Commands run the liftpy in the folder `package`: if that is the root, in this process; if it is
    a copy, in one process for each block.
    """
    checker = checker or doctest.OutputChecker()
    count, names = 0, dict[str, Any]()
    for line, language, text in blocks(page, section):
        place = f"{page.name}, line {line}"
        if language == "pycon":
            count += run_examples(text, names, place, checker)
        elif language == "console":
            count += run_commands(text, folder, package, place, checker)
        elif language == "diff":
            change(text, folder, place)
        elif found := NAMED.match(text):
            (folder / found[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / found[1]).write_text(text, encoding="utf-8")
        else:
            assert language in UNTRIED, f"{place}: a block of {language} without a file's name"
    return count


def run_examples(
    text: str, names: dict[str, Any], place: str, checker: doctest.OutputChecker
) -> int:
    """Runs the examples of a block; AssertionError with what differs."""
    test = doctest.DocTestParser().get_doctest(text, names, place, place, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(checker, optionflags=FLAGS)
    failed, tried = runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not failed, "".join(said)
    assert tried, f"{place}: no example in this block"
    return tried


def change(text: str, folder: Path, place: str) -> None:
    """Makes the changes of a diff: each stands where the file has its old lines, exactly once.

    The first line names the file; a line `@@` stands before each change. The first and the last
    line of a change may be parts of lines of the file.
    """
    head, *changes = re.split(r"^@@\n", text, flags=re.MULTILINE)
    file = folder / head.strip().removeprefix("--- ")
    whole = file.read_text(encoding="utf-8")
    for part in changes:
        lines = part.splitlines()
        old = "\n".join(line[1:] for line in lines if line[:1] != "+")
        new = "\n".join(line[1:] for line in lines if line[:1] != "-")
        found = whole.count(old)
        assert found == 1, f"{place}: {found} places in {file.name} have these lines:\n{old}"
        whole = whole.replace(old, new)
    file.write_text(whole, encoding="utf-8")


def run_commands(
    text: str, folder: Path, package: Path, place: str, checker: doctest.OutputChecker
) -> int:
    """Runs the commands of a block in a folder; how many there were.

    AssertionError if one prints something else, or fails. With status 1 it refused something,
    which a page may show.
    """
    lines = dict(commands(text))
    if package == ROOT:
        with contextlib.chdir(folder):
            done = [ran(line) for line in lines]
    else:
        done = in_a_process(list(lines), folder, package)
    for (line, expected), one in zip(lines.items(), done, strict=True):
        assert one.status <= bool(expected), f"{place}: {line}\n{one.out}{one.err}"
        same = not expected or checker.check_output(expected, one.out, FLAGS)
        assert same, f"{place}: {line}\nexpected:\n{expected}\ngot:\n{one.out}"
    return len(lines)
