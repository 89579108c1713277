"""The answer to whether some candidate has given settings, and the reasons if none has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.explain import Explanation, explain, least_memory, out_of_range
from liftpy.errors import ConstraintRefused, a_few
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.member import Member
from liftpy.explore.space.product import Joint, Product
from liftpy.explore.space.settings import spelled
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.rewrite.origin import origins


@dataclass(frozen=True)
class Answer:
    """The answer of `explain`: whether some candidate has the settings, and a text that says why.

    `count` is the number of such candidates. `clashes` has, as JSON data, an explanation for each
    set of skeletons without such a candidate.
    """

    valid: bool
    text: str
    count: int = 0
    clashes: tuple[dict[str, Any], ...] = ()


def answer(
    program: Program,
    units: Iterable[Member | Product],
    settings: Mapping[str, str | int],
    asked: Sequence[str] = (),
) -> Answer:
    """Whether some candidate of the units has the settings.

    The units must make the choices and have the sizes in `settings`. `asked` has the user's
    conditions as texts. Raises ConstraintRefused if a size is out of range in every unit.
    """
    keys: dict[tuple[object, ...], list[str]] = {}
    found: dict[tuple[object, ...], tuple[Member, Explanation]] = {}
    outside: dict[str, list[str]] = {}
    valid: list[Member | Product] = []
    limits: list[int] = []
    for unit in units:
        if (narrowed := unit.at(settings)) is not None:
            valid.append(narrowed)
            continue
        least: dict[int, int | None] = {}
        for member, mine in unit.without_points(settings):
            sizes = member.sizes(mine)
            least[id(member)] = None
            if (why := out_of_range(member.system, sizes)) is not None:
                outside.setdefault(why, []).append(member.key)
            else:
                explanation = explain(member.system, sizes)
                limit = explanation.least_memory
                if limit is not None and explanation.blameless:  # it is that of no settings
                    limit = least_memory(member.system.fix(sizes))
                least[id(member)] = limit
                same = keys.setdefault(explanation.gist, [])
                same += [member.key] if member.key not in same else []
                found.setdefault(explanation.gist, (member, explanation))
        limits += least_of_all(unit, least)
    if not valid and not found:
        raise ConstraintRefused("\n".join(outside))
    given = ", ".join([*([spelled(settings)] if settings else []), *asked]) or "no settings"
    clashes = tuple({"skeletons": keys[g], **e.to_json()} for g, (_, e) in found.items())
    if valid:
        count = sum(unit.count() for unit in valid)
        what = "a valid candidate" if count == 1 else f"{count} valid candidates"
        return Answer(True, f"{given}: {what} in {a_few([u.key for u in valid])}", count, clashes)
    written = with_positions(program)
    whose = "" if written is program else " of its text (`liftpy show`)"
    parts = [
        f"{a_few(keys[gist])}:\n"
        + indented("\n".join([explanation.text(), *places(written, whose, member, explanation)]))
        for gist, (member, explanation) in found.items()
    ]
    parts += [f"{a_few(mine)}:\n{indented(why)}" for why, mine in outside.items()]
    stated = {explanation.least_memory for _, explanation in found.values()}
    if limits and (len(found) > 1 or stated != {min(limits)}):
        parts.append(f"A memory limit of {min(limits)} bytes is the least that admits a candidate.")
    return Answer(False, "\n".join([f"{given}: no valid candidate", *parts]), 0, clashes)


def least_of_all(unit: Member | Product, least: Mapping[int, int | None]) -> Iterator[int]:
    """The least memory limit under which every stage has points, if limits alone prevent them.

    `least` has those of the members without points, by identity; all that fit of a stage are there.
    """
    groups = unit.groups if isinstance(unit, Product) else ((unit,),)
    prevented = [[least[id(m)] for m in group if id(m) in least] for group in groups]
    found = least_for_all(group for group in prevented if group)
    if found and sum(map(len, prevented)) == len(least):
        yield found


def least_for_all(groups: Iterable[Sequence[int | None]]) -> int | None:
    """The least limit that admits a member of each group; None if none of a group has one."""
    each = [min((n for n in group if n is not None), default=None) for group in groups]
    known = [n for n in each if n is not None]
    return max(known, default=0) if len(known) == len(each) else None


def least_limit(units: Iterable[Member | Product]) -> int | None:
    """The least memory limit under which a unit has candidates; None if no limit helps."""
    found: list[int] = []
    for unit in units:
        groups = unit.groups if isinstance(unit, Product) else ((unit,),)
        each = ([0 if m.possible else least_memory(m.system) for m in group] for group in groups)
        if (least := least_for_all(each)) is not None:
            found.append(least)
    return min(found, default=None)


def why_empty(
    what: str,
    units: Sequence[Member | Product],
    answered: Callable[[], Answer],
    memory_limit: int | None = None,
) -> str:
    """Why a space with these units is empty; `what` is the fact to explain.

    `answered` returns the answer for no settings. Its text is the reason if each member by itself
    has candidates, or if members are empty for different reasons. If a memory limit is given, the
    result names the least possible limit.
    """
    if memory_limit is not None:
        least = least_limit(units)
        if least:
            return (
                f"{what} within a memory limit of {memory_limit} bytes: the least possible "
                f"limit is {least} bytes"
            )
    members = {m.key: m for unit in units for m in unit.members}.values()
    reasons = [explain(m.system, {}).clashes for m in members if not m.possible]
    if reasons:
        for clause in reasons[0]:
            if not clause.names and all(clause in reason for reason in reasons):
                return f"{what}: {clause} does not hold"
        if all(reason == reasons[0] for reason in reasons):
            return f"{what}: {'; '.join(map(str, reasons[0]))} exclude each other"
    # the reasons differ, or no candidate satisfies a condition across stages
    _, _, why = answered().text.partition("\n")
    return f"{what}:\n{why}"


def with_positions(program: Program) -> Program:
    """The program with positions in its source, or in its printed text if it has no source."""
    return parse(program_text(program)) if program.spans is None else program


def places(written: Program, whose: str, member: Member, explanation: Explanation) -> Iterator[str]:
    """Sentences that name the parts of a program that cause clashing conditions.

    `written` is the program with positions in a text; `whose` names that text.
    """
    steps = {k: who for clause in explanation.clashes for k, who in clause.steps.items()}
    if written.spans is None or isinstance(member, Joint):  # steps are numbered by stage
        return
    source = written.spans.source
    named: dict[str, list[str]] = {}
    for number, paths in origins(written, member.skeleton.derivation, steps).items():
        texts: list[str] = []
        for path in paths:
            line, column = source.position(path)
            texts.append(f"`{source.snippet(path)}` at line {line}, column {column}")
        named.setdefault(" or ".join(texts), []).append(steps[number])
    for where, who in named.items():
        yield f"{' and '.join(who)}: on {where}{whose}."


def indented(text: str) -> str:
    """A text with two spaces before each line."""
    return "\n".join(f"  {line}" for line in text.splitlines())
