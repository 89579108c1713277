"""Mutants of rules: a law with one thing changed, which has to be refuted.

The changes are systematic: a condition or an assumption dropped or weakened by one; on the right
side, a size one larger or smaller, two sizes exchanged, arguments or components exchanged, an array
reversed, rotated by one element or transposed, a part replaced by another of its type. A mutant is
either refuted, which is shown at sizes that are written out, or a law itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import AtMost
from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.function import FunVar
from liftpy.ir.nat import INDEX, Nat, var
from liftpy.ir.primitive import Get, Primitive, nat_fields
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, replace_at, top_down
from liftpy.primitives import Reorder, Transpose
from liftpy.rewrite.rule import Rule
from liftpy.semantics.prove import attempt
from liftpy.semantics.refute import ELEMENTS_AGREE, refutation, refutation_at
from liftpy.semantics.smt import FEWER_STEPS
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown, Verdict

ORDER = "the function is commutative and associative: the order of the elements does not matter"
BOUND = "the variable is bound to this very value"
FACTORS = "a product is the same in the other order"
UNDONE = "the change takes back what the rule does, which leaves its left side"

MOST_CHANGES = 60
"""The most changes of a rule's right side that are tried, or one of each kind."""

ZIPS = {
    "products_extension_2": ("1", "2.1"),
    "products_extension_3": ("1", "2.1", "2.2.1"),
    "products_exchange": ("1", "2.1", "2.2.1"),
    "linear_map_of_sums": ("0.0.1.1.1",),
    "linear_map_twice": ("0.1.1.1", "1.1"),
    "linear_maps_interchange": ("0.0.1.1.1", "1.1.1"),
    "scaled_products": ("1",),
}
"""The zips of two arrays on the right sides of laws about sums of products."""

#: Mutants that are laws, each with the reason; tests/refuted/test_mutants.py proves them.
LAWS: dict[str, str] = {
    "split_introduction: xs for join at the top": UNDONE,
    "join_introduction: xss for split at the top": UNDONE,
    "pad_introduction: xs for pad at the top": UNDONE,
    "by_classes: xs for byClasses at the top": UNDONE,
    "as_image: xs for asImage at the top": UNDONE,
    "split_in_two: xs for concat at the top": UNDONE,
    "uncover_introduction: xs for uncover at the top": UNDONE,
    "let_introduction: v for x at 1.0": BOUND,
    "let_of_let: v for x at 1.0.0": BOUND,
    "let_of_two: v for x at 1.1.0": BOUND,
    "let_of_two: v2 for y at 1.1.1": BOUND,
    "let_of_three: v for x at 1.2.0": BOUND,
    "let_of_three: v2 for y at 1.2.1": BOUND,
    "let_of_three: v3 for z at 1.2.2": BOUND,
    "let_of_four: v for x at 1.3.0": BOUND,
    "let_of_four: v2 for y at 1.3.1": BOUND,
    "let_of_four: v3 for z at 1.3.2": BOUND,
    "let_of_four: v4 for u at 1.3.3": BOUND,
    "map_of_invariant_let: v2 for v at 1.1.1": BOUND,
    "map_of_repeat: reversed at the top": "all elements are the same",
    "map_of_repeat: rotated at the top": "all elements are the same",
    "map_as_repeat: reversed at the top": "all elements are the same",
    "map_as_repeat: rotated at the top": "all elements are the same",
    "split_of_repeat: reversed at the top": "all elements are the same",
    "split_of_repeat: rotated at the top": "all elements are the same",
    "reduce_by_index_split: reversed at 0.1.0.1.0": "all elements are the same",
    "reduce_by_index_split: rotated at 0.1.0.1.0": "all elements are the same",
    "reduce_by_index_to_atomic: reversed at 1": ORDER,
    "reduce_by_index_to_atomic: rotated at 1": ORDER,
    "reduce_by_index_to_atomic: reversed at 1.0": ORDER,
    "reduce_by_index_to_atomic: rotated at 1.0": ORDER,
    "reduce_by_index_to_atomic: arguments exchanged at 2": ORDER,
    "reduce_by_index_to_atomic: pairs for mapGlb at 1": "the map changes nothing",
    "split_of_repeat: reversed at 0": "all elements are the same",
    "split_of_repeat: rotated at 0": "all elements are the same",
    "transpose_of_repeats: reversed at the top": "all elements are the same",
    "transpose_of_repeats: rotated at the top": "all elements are the same",
    "transpose_introduction: xss for transpose at the top": UNDONE,
    "map_copy: xs for map at the top": UNDONE,
    "to_global: x for toGlobal at the top": UNDONE,
    "to_streamed: x for toStreamed at the top": UNDONE,
    "to_local: x for toLocal at the top": UNDONE,
    "to_local_padded: xs for toLocalPadded at the top": UNDONE,
    "to_private: x for toPrivate at the top": UNDONE,
    "to_subgroup: xs for toSubgroup at the top": UNDONE,
    "reduce_exchange: not transposed at 1.0": UNDONE,
    "slide_step: transposed at 1.0": "of one window or of its columns: joined, they are the same",
    "reduce_flip: arguments exchanged at 2": UNDONE,
    "reduce_of_reorder: reversed at 1": ORDER,
    "reduce_of_reorder: rotated at 1": ORDER,
    "reduce_of_reorder: arguments exchanged at 2": ORDER,
    "reduce_of_joined_transpose: reversed at 1": ORDER,
    "reduce_of_joined_transpose: rotated at 1": ORDER,
    "reduce_of_joined_transpose: reversed at 1.0": ORDER,
    "reduce_of_joined_transpose: rotated at 1.0": ORDER,
    "reduce_of_joined_transpose: transposed at 1.0": ORDER,
    "reduce_of_joined_transpose: arguments exchanged at 2": ORDER,
    "map_to_subgroup: items + 1 at the top": "a group may have any number of work-items",
    "reduce_to_subgroups: reversed at 1": ORDER,
    "reduce_to_subgroups: rotated at 1": ORDER,
    "reduce_to_subgroups: arguments exchanged at 2": ORDER,
    "reduce_to_items: reversed at 1": ORDER,
    "reduce_to_items: rotated at 1": ORDER,
    "reduce_to_items: arguments exchanged at 2": ORDER,
    "reduce_exchange: arguments exchanged at 1.1.2": ORDER,
    "reduce_exchange: arguments exchanged at 2": ORDER,
    "reduce_extension: left + 1 at 1": "one more neutral element before changes nothing",
    "reduce_extension: right + 1 at 1": "one more neutral element behind changes nothing",
    "reduce_extension: left and right exchanged at 1": "neutral elements may come first",
    "reciprocal_f16: arguments exchanged at the top": FACTORS,
    "reciprocal_f32: arguments exchanged at the top": FACTORS,
    "reciprocal_f64: arguments exchanged at the top": FACTORS,
    "linear_map_of_sums: arguments exchanged at 1.2": ORDER,
    "sum_in_f32: arguments exchanged at the top": ORDER,
    "sum_in_f32: arguments exchanged at 1.0.2": ORDER,
    **{
        f"{rule}: arguments exchanged at {place}": FACTORS
        for rule, places in ZIPS.items()
        for place in places
    },
}

#: Mutants that no size refutes and no method proves. They count as missed.
UNDECIDED: dict[str, str] = (
    {
        f"reduce_exchange: {change} at {place}": ORDER
        for change in ("reversed", "rotated")
        for place in ("1", "1.0", "1.0.0", "1.1.1")
    }
    | {
        f"{rule}: {change} at {place}": ORDER
        for rule, places in ZIPS.items()
        for change in ("reversed", "rotated")
        for place in places
    }
    | {
        f"linear_map_of_sums: {change} at {place}": ORDER
        for change in ("reversed", "rotated")
        for place in ("0.0", "0.0.0", "1.1")
    }
    | {f"sum_in_f32: {change} at 1.0.1": ORDER for change in ("reversed", "rotated")}
)


@dataclass(frozen=True)
class Mutant:
    """A rule with one thing changed; `change` says which."""

    of: str
    change: str
    rule: Rule

    @property
    def name(self) -> str:
        """The name of the mutant in lists."""
        return f"{self.of}: {self.change}"


def judge(mutant: Mutant) -> Verdict:
    """Refuted at sizes that are written out, or else the prover's verdict by any of its methods.

    Laws of integers by F(m, r) have no other method: comparing their sums of products argument by
    argument takes exponential time, and proves none.
    """
    verdict: Verdict = refutation(mutant.rule) or Unknown(ELEMENTS_AGREE, "no method was tried")
    own = mutant.rule.proof
    for method in (own,) if own == "integral" else dict.fromkeys((own, "lockstep", "permuted")):
        if isinstance(verdict, Refuted | Proved):
            break
        try:
            verdict = attempt(replace(mutant.rule, proof=method), FEWER_STEPS)
        except Open as left:
            found = None if left.sizes is None else refutation_at(mutant.rule, left.sizes)
            verdict = found or Unknown(left.obligation, left.reason)
    return verdict


def mutants_of(rule: Rule) -> Iterator[Mutant]:
    """The mutants of a rule."""
    for change, mutant in (*without_clauses(rule), *with_other_right(rule)):
        yield Mutant(rule.name, change, mutant)


def without_clauses(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with a clause dropped or weakened."""
    for k, clause in enumerate(rule.where):
        rest = rule.where[:k], rule.where[k + 1 :]
        yield f"without {clause}", replace(rule, where=(*rest[0], *rest[1]))
        if isinstance(clause, AtMost):
            weaker = AtMost(clause.left - 1, clause.right)
            yield f"{weaker} for {clause}", replace(rule, where=(*rest[0], weaker, *rest[1]))
    for k, law in enumerate(rule.assuming):
        rest = rule.assuming[:k], rule.assuming[k + 1 :]
        yield f"without {law}", replace(rule, assuming=(*rest[0], *rest[1]))


def with_other_right(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with one part of its right side changed, wherever that has a type.

    If there are more than `MOST_CHANGES` changes, as in straight-line code, some of each kind are
    made, at parts that are spread over the right side.
    """
    every = [
        (path, change, make)
        for path, part in top_down(rule.right)
        for change, make in changes(part, rule)
    ]
    if len(every) > MOST_CHANGES:
        kinds: dict[str, list[tuple[Path, str, Callable[[], Expr]]]] = {}
        for one in every:
            kinds.setdefault(one[1], []).append(one)
        each = max(1, MOST_CHANGES // len(kinds))
        every = [one for some in kinds.values() for one in some[:: math.ceil(len(some) / each)]]
    for path, change, make in every:
        where = ".".join(map(str, path)) or "the top"
        try:
            right = replace_at(rule.right, path, make())
        except TypeRefused:
            continue
        if right != rule.right:
            yield f"{change} at {where}", replace(rule, right=right)


def changes(part: Expr, rule: Rule) -> Iterator[tuple[str, Callable[[], Expr]]]:
    """Yield the changes of a part of the right side, with a function that makes each."""
    if isinstance(part.type, ArrayType):
        if part.type.length.constant != 1:  # one element stays in its place
            yield "reversed", lambda: FunCall(reversal(part), (part,))
            yield "rotated", lambda: FunCall(rotation(part), (part,))
        if isinstance(part.type.element, ArrayType):
            yield "transposed", lambda: FunCall(Transpose(), (part,))
    match part:
        case FunCall(FunVar() as f, (x, y)) if f.params[0] == f.params[1]:
            yield "arguments exchanged", lambda: FunCall(f, (y, x))
        case FunCall(Primitive() as p, args):
            yield from other_primitive(p, args)
        case Tuple((x, y)):
            yield "components exchanged", lambda: Tuple((y, x))
        case _:
            pass
    others = [*rule.left.free, *(p for _, p in top_down(rule.right) if isinstance(p, Literal))]
    for other in sorted(set(others) - {part}, key=str):
        if other.type == part.type:
            yield f"{named(other)} for {named(part)}", lambda other=other: other


def other_primitive(
    p: Primitive, args: tuple[Expr, ...]
) -> Iterator[tuple[str, Callable[[], Expr]]]:
    """A call of a primitive with another size or component, or its arguments exchanged."""
    fields = nat_fields(type(p))
    for field in fields:
        for by in (1, -1):
            size: Nat = getattr(p, field) + by
            yield (
                f"{field} {'+' if by > 0 else '-'} 1",
                lambda field=field, size=size: FunCall(replace(p, **{field: size}), args),
            )
    if len(fields) == 2:
        one, two = (getattr(p, field) for field in fields)
        exchanged = dict(zip(fields, (two, one), strict=True))
        yield (
            f"{fields[0]} and {fields[1]} exchanged",
            lambda: FunCall(replace(p, **exchanged), args),
        )
    if isinstance(p, Get):
        for index in range(3):
            if index != p.index:
                yield f"component {index}", lambda index=index: FunCall(Get(index), args)
    if isinstance(p, Transpose):
        yield "not transposed", lambda: args[0]
    if len(args) == 2:
        yield "arguments exchanged", lambda: FunCall(p, args[::-1])


def reversal(part: Expr) -> Reorder:
    """A reorder that reverses an array as long as a part."""
    (length, *_), i = part.type.lengths(), var(INDEX)
    return Reorder(length - 1 - i, length - 1 - i)


def rotation(part: Expr) -> Reorder:
    """A reorder that rotates an array as long as a part by one element."""
    (length, *_), i = part.type.lengths(), var(INDEX)
    return Reorder((i + 1) % length, (i + length - 1) % length)


def named(part: Expr) -> str:
    """A short name for a part."""
    match part:
        case FunCall(fun, _):
            return str(getattr(fun, "name", fun))
        case Literal(value, _):
            return str(value)
        case _:
            return str(getattr(part, "name", "a tuple"))
