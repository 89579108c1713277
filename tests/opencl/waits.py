"""Which work-items of a group touch which local memory between which barriers, by running the text.

It knows nothing of views or traces: the text of a kernel becomes Python, which notes the accesses
of every work-item.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

BARRIER = "barrier(CLK_LOCAL_MEM_FENCE)"
LOOP = re.compile(r"for \(int (\w+) = (.+); \w+ < (.+); \w+ ?\+[+=] ?(\d*)\) {")
LOCAL = re.compile(r"__local \w+ (\w+)\[")
ID = re.compile(r"const int (\w+) = get_(\w+)_id\((\d)\);")
SIZE = re.compile(r"reqd_work_group_size\((\d+), (\d+), (\d+)\)")


def without_barriers(source: str) -> Iterator[str]:
    """The text of a kernel without one of its barriers."""
    lines = source.splitlines()
    for k, line in enumerate(lines):
        if BARRIER in line:
            yield "\n".join([*lines[:k], *lines[k + 1 :]])


def is_race(kernel: str, groups: tuple[int, ...] = (0, 0, 0)) -> bool:
    """Whether two work-items of a group touch one address between barriers, and one writes."""
    found = SIZE.search(kernel)
    assert found
    program = compile(in_python(kernel), "kernel", "exec")
    epochs: dict[tuple[int, str, int], set[tuple[tuple[int, ...], bool]]] = {}
    for item in itertools.product(*map(range, map(int, found.groups()))):
        known = {"items": item, "groups": groups, "barriers": 0, "touched": []}
        exec(program, known)  # noqa: S102 - made of a kernel that the test made
        for epoch, memory, address, stores in known["touched"]:
            epochs.setdefault((epoch, memory, address), set()).add((item, stores))
    return any(
        len({item for item, _ in who}) > 1 and any(stores for _, stores in who)
        for who in epochs.values()
    )


def in_python(kernel: str) -> str:
    """The loops, branches, ids and accesses to local memory of a kernel as Python."""
    memories = LOCAL.findall(kernel)
    made: list[str] = []
    depth = 0
    for line in (line.strip() for line in kernel.split("{\n", 1)[1].splitlines()):
        pad = "  " * depth
        if line.startswith("}"):
            depth -= 1
            if line == "} else {":
                made.append("  " * depth + "else:")
                depth += 1
        elif loop := LOOP.match(line):
            counter, start, bound, step = loop.groups()
            made.append(f"{pad}for {counter} in range({start}, {bound}, {step or 1}):")
            depth += 1
        elif line.startswith("if "):
            made.append(f"{pad}if {words(line[3:-1])}:")
            depth += 1
        elif known := ID.match(line):
            name, kind, dimension = known.groups()
            made.append(f"{pad}{name} = {'items' if kind == 'local' else 'groups'}[{dimension}]")
        elif line.startswith(BARRIER):
            made.append(f"{pad}barriers += 1")
        elif not line.startswith("__local"):
            made += [f"{pad}{touch}" for touch in touches(line, memories)]
        if line.endswith("{"):
            made.append("  " * depth + "pass")
    return "\n".join(made)


def touches(line: str, memories: list[str]) -> Iterator[str]:
    """The accesses of a statement, those behind conditions too."""
    for access in re.finditer(rf"&?\b({'|'.join(memories) or '-'})\[", line):
        stop, level = access.end(), 1
        while level:
            level += {"[": 1, "]": -1}.get(line[stop], 0)
            stop += 1
        before = line[: access.start()]
        vector = (
            re.search(r"v(load|store)(\d+)\((?:[^&]*)$", before)
            if line[access.start()] == "&"
            else None
        )
        width = int(vector[2]) if vector else 1
        stores = vector[1] == "store" if vector else not before
        index = words(line[access.end() : stop - 1])
        touch = f"(barriers, {access[1]!r}, {index} + k, {stores})"
        yield f"touched += [{touch} for k in range({width})]"


def words(c: str) -> str:
    """An expression of C over numbers that are not negative where it divides."""
    c = re.sub(r"\((int|long)\)", "", c).replace("&&", " and ").replace("||", " or ")
    return c.replace("/", "//")
