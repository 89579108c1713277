"""Search for sizes at which a rule is false.

Both sides are computed with numbers (`trial`). If they differ, they are written out (`free`), so
that the witness can be read. A rule that was proved is tried as well, at a few small sizes: a
counterexample to it is a fault of the prover.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from liftpy.errors import InternalError, Unsatisfiable
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import INDEX, Applied, Nat, Var, var
from liftpy.ir.polynomial import Atom
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Value
from liftpy.ir.types import Type, same_shape
from liftpy.ir.walk import map_sizes, substitute_sizes, top_down
from liftpy.primitives.transpose import Permutes
from liftpy.rewrite.rule import EXACT, REAL_LAWS, Assumption, Rule, with_indices
from liftpy.semantics.free import FreeReader, Sizes, TooLongError, assignments, differences
from liftpy.semantics.trial import FieldReader, MachineReader, TrialReader, WholeReader
from liftpy.semantics.verdict import Refuted

#: The most sizes that are tried; the most elements of an array, and of the result.
TRIALS, ARRAYS, RESULT = 60, 120, 1500

REQUIRES = "what the right side's primitives require holds"
SIZES = "sizes agree at every depth"
ELEMENTS_AGREE = "elements agree at every index"


def requirements(expr: Expr) -> Iterator[tuple[str, Constraint]]:
    """Yield the conditions of every primitive in an expression, with the primitive's name."""
    for _, part in top_down(expr):
        if isinstance(part, FunCall) and isinstance(part.fun, Primitive):
            for condition in part.fun.conditions(*(a.type for a in part.args)):
                yield part.fun.name, condition


def hypotheses(rule: Rule) -> tuple[Constraint, ...]:
    """The assumptions about the sizes: what the left side requires, and `where`."""
    return (*(c for _, c in requirements(rule.left)), *rule.where)


def sizes_in(exprs: Iterable[Expr]) -> Iterator[Nat]:
    """Every length in the types of the parts of expressions."""
    for expr in exprs:
        for _, part in top_down(expr):
            yield from part.type.lengths()


def variables(rule: Rule) -> list[Var]:
    """The size metavariables of a rule, sorted by name."""
    conditions = [*hypotheses(rule), *(c for _, c in requirements(rule.right))]
    sizes = [
        *sizes_in((rule.left, rule.right)),
        *(s for c in conditions for s in (c.left, c.right)),
    ]
    found = {a.name: a for size in sizes for a in size.atoms() if isinstance(a, Var)}
    return [found[name] for name in sorted(found) if name != INDEX]


def lengths(rule: Rule) -> list[Nat]:
    """The outermost lengths of the metavariable arrays of the left side."""
    outer = (next(p.type.lengths(), None) for p in sorted(rule.left.free, key=lambda p: p.name))
    return [length for length in outer if length is not None]


MOST = 64  # sizes at which elements are compared: a fold makes a term as deep as it is long


def refutation(rule: Rule, suggested: Sizes | None = None) -> Refuted | None:
    """Sizes at which the rule is false, larger arrays first; None if none were found."""
    rule, indices = with_permutations(rule)
    names, assumed, measured = variables(rule), hypotheses(rule), tuple(lengths(rule))
    grades = [list(candidates) for candidates in _graded(assumed, tuple(names), measured)]
    if suggested is not None and (at := _known(rule, suggested)) is not None:
        grades[grade(at, measured)].insert(0, at)
    for at in itertools.chain.from_iterable(map(spread, grades)):
        if (found := witness(rule, at)) is not None:
            return _refuted(at, indices, found)
    return None


def refutation_at(rule: Rule, suggested: Sizes) -> Refuted | None:
    """`refutation` at the suggested sizes only."""
    rule, indices = with_permutations(rule)
    at = _known(rule, suggested)
    found = None if at is None else witness(rule, at)
    return None if at is None or found is None else _refuted(at, indices, found)


def _known(rule: Rule, suggested: Sizes) -> Sizes | None:
    """The suggested values of the sizes of a rule; None unless its conditions hold there."""
    names = [v.name for v in variables(rule)]
    if not all(name in suggested for name in names):
        return None
    at = {name: suggested[name] for name in names}
    return at if hold(hypotheses(rule), at) else None


def _refuted(at: Sizes, indices: list[str], found: tuple[str, str]) -> Refuted:
    """The verdict for an obligation that fails at sizes."""
    obligation, words = found
    named = ", ".join([*(f"{name} = {size}" for name, size in at.items()), *indices])
    return Refuted(obligation, f"{named}: {words}" if named else words)


@lru_cache(maxsize=16)
def _graded(
    assumed: tuple[Constraint, ...], names: tuple[Var, ...], measured: tuple[Nat, ...]
) -> tuple[tuple[Sizes, ...], ...]:
    """The sizes to try at which conditions hold, by grade; shared by the mutants of a rule."""
    grades: tuple[list[Sizes], ...] = [], [], []
    for at in assignments(list(names)):
        if hold(assumed, at):
            grades[grade(at, measured)].append(at)
    return tuple(map(tuple, grades))


def possible(rule: Rule) -> bool:
    """Whether the assumptions hold at some known sizes with an array of more than 8 elements."""
    rule, _ = with_permutations(rule)
    assumed, measured = hypotheses(rule), lengths(rule)
    return any(
        any(length > 8 for length in values(measured, at)) and hold(assumed, at)
        for at in assignments(variables(rule))
    )


def with_permutations(rule: Rule) -> tuple[Rule, list[str]]:
    """The rule with known permutations in place of unknown ones, and these as text.

    The first rotates by one, the second goes in steps of two around an odd length. The two do not
    commute, and neither they nor their compositions are their own inverse.
    """
    i = var(INDEX)
    functions: dict[str, Nat] = {}
    for number, (forth, back, n) in enumerate(permutes(rule)):
        rotated, doubled = ((i + 1) % n, (i + n - 1) % n), (2 * i % n, (n + 1) // 2 * i % n)
        functions[forth], functions[back] = rotated if number % 2 == 0 else doubled
    if not functions:
        return rule, []
    left, right = (map_sizes(side, lambda s: with_indices(s, functions)) for side in sides(rule))
    words = [f"{name}(i) = {function}" for name, function in functions.items()]
    return replace(rule, left=left, right=right), words


def permutes(rule: Rule) -> list[tuple[str, str, Nat]]:
    """The unknown permutations of a rule: index function, inverse, length."""
    pairs = [
        (left.function, back.function, condition.right)
        for condition in hypotheses(rule)
        if isinstance(condition, Permutes)
        and isinstance(left := only_atom(condition.left), Applied)
        and isinstance(back := only_atom(condition.inverse), Applied)
    ]
    return list(dict.fromkeys(pairs))


def sides(rule: Rule) -> tuple[Expr, Expr]:
    """Both sides of a rule."""
    return rule.left, rule.right


def only_atom(size: Nat) -> Atom | None:
    """The atom that a size consists of; None if it is not a single atom."""
    atoms = [m[0][0] for m, c in size.terms.items() if c == 1 and len(m) == 1 and m[0][1] == 1]
    return atoms[0] if len(size.terms) == len(atoms) == 1 else None


def grade(at: Sizes, measured: Iterable[Nat]) -> int:
    """How good a witness sizes make: 0, the best, for over 8 elements and no size below 2."""
    if not any(8 < length <= ARRAYS for length in values(measured, at)):
        return 2
    return 0 if all(value < 0 or value > 1 for value in at.values()) else 1


def values(lengths: Iterable[Nat], at: Sizes) -> list[int]:
    """The numbers of lengths at sizes; none if one of them divides by zero."""
    try:
        return [length.value(at) for length in lengths]
    except ZeroDivisionError:
        return []


def spread(candidates: list[Sizes]) -> list[Sizes]:
    """At most `TRIALS` of the candidates, including the first."""
    step = max(1, -(-len(candidates) // TRIALS))
    return candidates[::step]


def hold(conditions: Iterable[Constraint], at: Sizes) -> bool:
    """Whether conditions hold at sizes; a condition that divides by zero does not."""
    try:
        return all(c.holds(at) for c in conditions)
    except ZeroDivisionError:
        return False


def witness(rule: Rule, at: Sizes) -> tuple[str, str] | None:
    """The first obligation that fails at given sizes, and how; written out if that is readable."""
    found = difference(rule, at, numbers(rule, at))
    if found is None or found[0] != ELEMENTS_AGREE or rule.proof in EXACT:
        return found
    try:
        return difference(rule, at, FreeReader(at, rule.assuming)) or found
    except TooLongError:
        return found


def numbers(rule: Rule, at: Sizes) -> TrialReader:
    """The reader that computes a rule with numbers."""
    if rule.proof in EXACT:
        return (WholeReader if rule.proof == "exact" else MachineReader)(at, rule.assuming)
    return (FieldReader if rule.proof in REAL_LAWS else TrialReader)(at, rule.assuming)


def difference(rule: Rule, at: Sizes, read: FreeReader) -> tuple[str, str] | None:
    """The first obligation that fails at given sizes, and how, in the terms of a reader.

    None also for sizes at which the rule has no instance: a length on one side is divided by zero,
    or rounded so that a primitive refuses it.
    """
    try:
        return _difference(rule, at, read)
    except (Unsatisfiable, ZeroDivisionError):
        return None


def _difference(rule: Rule, at: Sizes, read: FreeReader) -> tuple[str, str] | None:
    arrays = [count(p.type, at) for p in rule.left.free]
    for primitive, condition in requirements(rule.right):
        if not hold([condition], at):
            return REQUIRES, f"{primitive} requires that {condition}"
    pairs = same_shape(rule.left.type, rule.right.type)
    if pairs is None:
        return SIZES, f"the left side is {rule.left.type}, the right side {rule.right.type}"
    for one, two in pairs:
        if one.value(at) != two.value(at):
            return SIZES, f"{one} is {one.value(at)}, {two} is {two.value(at)}"
    if count(rule.left.type, at) > RESULT or any(number > ARRAYS for number in arrays):
        return None
    of_arrays = {name for length in sizes_in((rule.left, rule.right)) for name in length.names()}
    if any(at[name] > MOST for name in of_arrays):
        return None
    known, left = left_side(rule.left, tuple(at.items()), rule.assuming, type(read))
    sized = replace(rule, left=known, right=substitute_sizes(rule.right, at))
    right = denote(sized.right, environment(sized, read), read)
    first = next(differences(left, right, read), None)
    return None if first is None else (ELEMENTS_AGREE, first)


@lru_cache(maxsize=256)
def left_side(
    left: Expr,
    at: tuple[tuple[str, int], ...],
    assuming: tuple[Assumption, ...],
    reader: type[FreeReader],
) -> tuple[Expr, Value]:
    """The left side at given sizes and its value, which a rule shares with most of its mutants."""
    read = reader(dict(at), assuming)
    sized = substitute_sizes(left, dict(at))
    return sized, read.remembered(denote(sized, leaves(sized, read), read))


def count(t: Type, at: Sizes) -> int:
    """The number of elements of a value of a type at given sizes."""
    total = 1
    for length in t.lengths():
        total *= length.value(at)
    return total


def environment(rule: Rule, read: FreeReader) -> dict[Param, object]:
    """The metavariables of both sides as leaves."""
    unbound = rule.right.free - rule.left.free
    if unbound:
        names = ", ".join(sorted(p.name for p in unbound))
        raise InternalError(f"rule {rule.name} has {names} on its right side only")
    return leaves(rule.left, read)


def leaves(side: Expr, read: FreeReader) -> dict[Param, object]:
    """The metavariables of a side as leaves."""
    return {p: read.leaf(p.name, p.type) for p in side.free}


# --- proved rules -------------------------------------------------------------------------------

#: How many sizes a proved rule is tried at; bounds on their values and number, tried in turn.
POINTS, SMALL = 3, ((4, 600), (9, 600), (16, 4000))


def points(rule: Rule) -> Iterator[Sizes]:
    """Small sizes that satisfy a rule's assumptions; different ones of two and more come first."""
    known = variables(rule)
    assumed = hypotheses(rule)
    for most, limit in SMALL:
        allowed = [at for at in assignments(known, most, limit) if hold(assumed, at)]
        if any(min(at.values(), default=2) > 1 for at in allowed) or most == SMALL[-1][0]:
            allowed.sort(key=unlikely)
            yield from allowed[:POINTS]
            return


def unlikely(at: Sizes) -> tuple[int, int, int]:
    """A sort key: how little sizes would show, and how large they are."""
    small = sum(value < 2 for value in at.values())
    return small, -len(set(at.values())), sum(map(abs, at.values()))


def contradiction(rule: Rule) -> str | None:
    """Sizes at which a rule gives different numbers, and where; None if there are none."""
    rule, indices = with_permutations(rule)
    for at in points(rule):
        found = difference(rule, at, numbers(rule, at))
        if found is not None:
            named = ", ".join([*(f"{name} = {value}" for name, value in at.items()), *indices])
            return f"{found[0]}: with {named}, {found[1]}" if named else ": ".join(found)
    return None


def tried(rule: Rule) -> Rule:
    """A rule that was proved; InternalError if numbers refute it."""
    if (words := contradiction(rule)) is not None:
        raise InternalError(
            f"rule {rule.name} was proved by the method '{rule.proof}', but an example refutes it"
            f"\n  {words}\n  the method is not sound: no proof made by it may be used"
        )
    return rule
