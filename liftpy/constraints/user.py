"""The user's own conditions on a space: `--where "kappa*sigma <= 64"` and `--set theta=7,9,11`.

A condition is written like the sizes of a `.lift` file and read by the same grammar. A name may
have dots, as the sizes of a stage do (`score.kappa <= 8`). A condition applies to the skeletons
that have all its parameters. A skeleton that lacks one keeps all its points, because it has nothing
to bound. (`--family` selects a single family.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from liftpy.constraints.draw import search
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.errors import ConstraintRefused, LiftError, SyntaxRefused
from liftpy.ir.constraint import Constraint, at_least, at_most, divides, equal, one_of, unequal
from liftpy.ir.nat import Nat, var
from liftpy.language.text.parse import parse_condition
from liftpy.language.text.size_elaborator import SizeElaborator
from liftpy.language.text.syntax import Group, Infix, Minus, Node, Number, Syntax, names_in
from liftpy.rewrite.skeleton import Parameter
from liftpy.source.spans import Source, Span

Listed: TypeAlias = Mapping[str, Sequence[int]]
"""Sizes, and the numbers that each may have."""

EFFORT = 300_000  # values tried to decide whether a condition can hold at all

#: Comparisons of sizes. A strict bound is an inclusive one at the next integer.
COMPARISONS: Mapping[str, Callable[[Nat, Nat], Constraint]] = {
    "<=": at_most,
    "<": lambda left, right: at_most(left + 1, right),
    ">=": lambda left, right: at_least(right, left),
    ">": lambda left, right: at_least(right + 1, left),
    "==": equal,
    "!=": unequal,
}
JOINED = "all conditions must hold: join them by `and`, or repeat --where"


@dataclass(frozen=True)
class Wish:
    """A condition of the user, its source, and its place in a text.

    A condition from `--set` has no place.
    """

    constraint: Constraint
    asker: str
    written: tuple[Source, Span] | None = None

    @property
    def text(self) -> str:
        """The condition as it is stored: the same text however it is spaced."""
        return str(self.constraint)

    def on(self, parameters: Sequence[Parameter]) -> Constraint | None:
        """The condition over the ranges of some parameters; None if it uses another one."""
        sizes = {p.name: p.nat for p in parameters}
        names = self.constraint.names()
        return self.constraint.substitute(sizes) if names <= sizes.keys() else None

    def refuse_if_hopeless(self, systems: Iterable[ConstraintSystem]) -> None:
        """Raise ConstraintRefused if no values in range satisfy the condition in any system.

        This includes that no system has all its parameters: it would bound nothing.
        """
        seen: dict[tuple[Parameter, ...], None] = {}
        for system in systems:
            if self.on(system.parameters) is not None:
                names = self.constraint.names()
                seen[tuple(p for p in system.parameters if p.name in names)] = None
        if not seen:
            names = sorted(self.constraint.names())
            why = f"none has {' and '.join(names)}"
            if len({stage_of(name) for name in names}) > 1:
                why += ", and no partition has stages with all of these"
            raise self.refusal("this condition applies to no skeleton", why)
        if any(self.can_hold(parameters) for parameters in seen):
            return
        ranges: dict[str, list[Parameter]] = {}
        for parameter in (p for parameters in seen for p in parameters):
            ranges.setdefault(parameter.name, []).append(parameter)
        why = " and ".join(
            f"{name} ranges from {min(p.low for p in some)} to {max(p.high for p in some)}"
            for name, some in ranges.items()
        )
        raise self.refusal("no sizes satisfy this condition", why)

    def refusal(self, what: str, why: str) -> LiftError:
        """The error that refuses the condition, with its place."""
        if self.written is None:
            return ConstraintRefused(f"no value satisfies {self.asker}: {why}")
        source, place = self.written
        return source.refusal(ConstraintRefused, what, place, why)

    def can_hold(self, parameters: tuple[Parameter, ...]) -> bool:
        """Whether some values of these parameters satisfy the condition, or that is unknown."""
        constraint = self.on(parameters)
        clauses = () if constraint is None else (Clause(constraint, (self.asker,)),)
        return search(ConstraintSystem(parameters, clauses), EFFORT) != (None, True)


def stage_of(name: str) -> str:
    """The stage whose size has this name; empty for a size of the whole program.

    >>> stage_of("score.kappa"), stage_of("kappa")
    ('score', '')
    """
    return name.rpartition(".")[0]


def wishes(where: Iterable[str], fixed: Listed, names: Iterable[str]) -> tuple[Wish, ...]:
    """The conditions of texts and of listed values, in an order that does not depend on theirs.

    `names` has every parameter. Raises SyntaxRefused and UnknownName, with the place.
    """
    known = sorted(names)
    found = [wish for text in where for wish in parsed(text, known)]
    for name, values in fixed.items():
        words = ",".join(map(str, values))
        found.append(Wish(one_of(var(name, None), values), f"user --set {name}={words}"))
    return tuple(sorted({wish.text: wish for wish in found}.values(), key=lambda wish: wish.text))


def parsed(text: str, names: Sequence[str]) -> Iterator[Wish]:
    """The conditions that a text joins with `and`."""
    source = Source(text)
    elaborator = SizeElaborator(source, {name: var(name, None) for name in names})
    for node in conjuncts(parse_condition(source)):
        asker = f'user --where "{source.snippet(node.place)}"'
        for constraint in (condition(elaborator, node), *exactness(elaborator, node)):
            yield Wish(constraint, asker, (source, node.place))


def conjuncts(node: Syntax) -> Iterator[Syntax]:
    """The parts that a condition joins with `and`."""
    match node:
        case Group(items=(item,)):
            yield from conjuncts(item)
        case Infix(op="and"):
            yield from conjuncts(node.left)
            yield from conjuncts(node.right)
        case _:
            yield node


def condition(elaborator: SizeElaborator, node: Syntax) -> Constraint:
    """One comparison of sizes; `a % b == 0` means that `b` divides `a`."""
    if not isinstance(node, Infix) or node.op not in COMPARISONS:
        why = (
            JOINED
            if isinstance(node, Infix) and node.op == "or"
            else "a condition compares two sizes"
        )
        raise elaborator.refuse(
            SyntaxRefused,
            "this is not a condition",
            node,
            why,
            "write one such as `kappa*sigma <= 64`",
        )
    for name in names_in(node):
        if name.name not in elaborator.sizes:
            raise elaborator.unknown("parameter", name.name, name, elaborator.sizes)
    for one, other in ((node.left, node.right), (node.right, node.left)):
        whole = inside(one)
        if node.op == "==" and isinstance(whole, Infix) and whole.op == "%" and is_zero(other):
            elaborator.nat(whole)  # refuses what is not a size
            return divides(elaborator.nat(whole.right), elaborator.nat(whole.left))
    return COMPARISONS[node.op](elaborator.nat(node.left), elaborator.nat(node.right))


def exactness(elaborator: SizeElaborator, node: object) -> Iterator[Constraint]:
    """Yield the requirement that every `a /^ b` in a condition is exact, as `/^` demands."""
    match node:
        case Infix(op="/^"):
            yield divides(elaborator.nat(node.right), elaborator.nat(node.left))
            yield from exactness(elaborator, (node.left, node.right))
        case Infix():
            yield from exactness(elaborator, (node.left, node.right))
        case Group() | Minus():
            parts = node.items if isinstance(node, Group) else (node.value,)
            yield from exactness(elaborator, parts)
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from exactness(elaborator, part)
        case _:
            return


def inside(node: Syntax) -> Syntax:
    """A piece of syntax without the parentheses around it."""
    return inside(node.items[0]) if isinstance(node, Group) and len(node.items) == 1 else node


def is_zero(node: Node) -> bool:
    """Whether a piece of syntax is the number 0."""
    return isinstance(node, Number) and node.digits == "0" and not node.suffix


def asked_too(system: ConstraintSystem, asked: Iterable[Wish]) -> ConstraintSystem:
    """A system with the user's conditions on its parameters; known ones get another source."""
    clauses = {clause.constraint: clause for clause in system.clauses}
    for wish in asked:
        constraint = wish.on(system.parameters)
        if constraint is not None:
            askers = clauses[constraint].askers if constraint in clauses else ()
            clauses[constraint] = Clause(constraint, (*askers, wish.asker))
    return ConstraintSystem(system.parameters, tuple(clauses.values()))
