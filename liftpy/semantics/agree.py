"""Show that two values are the same: at every index, and through folds.

Two arrays agree if their lengths agree, and their elements agree at an arbitrary index in range.
Two components of folds agree by induction over the steps (*lockstep*): both folds take the same
number of steps, their initial values agree, and one step takes accumulators that agree to
accumulators that agree. If one side folds once with an array as accumulator and the other folds
for each element, the accumulator of the second is the element of the first at that index.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import z3

from liftpy.ir.constraint import Constraint
from liftpy.ir.expr import Param
from liftpy.ir.nat import Nat, NatLike, Var, atom, nat
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.rewrite.rule import Assumption
from liftpy.semantics.dependence import named_in
from liftpy.semantics.laws import instances
from liftpy.semantics.smt import STEPS, Terms, ask
from liftpy.semantics.symbolic import FoldComponent, SymbolicReader, along, components
from liftpy.semantics.verdict import Open

Bool: TypeAlias = Any
Hypotheses: TypeAlias = tuple[Bool, ...]
Induction: TypeAlias = Callable[["Proof", Any, Any, Hypotheses], None]


class Proof:
    """One proof attempt: its assumptions, and the obligations that were shown, in order.

    An obligation that cannot be shown raises `Open`.
    """

    def __init__(
        self,
        assuming: tuple[Assumption, ...] = (),
        induction: Induction | None = None,
        steps: int = STEPS,
    ) -> None:
        self.terms = Terms(z3.Context())
        self.reader = SymbolicReader(self.terms)
        self.hypotheses: list[Bool] = []
        self.preferred: list[Bool] = []  # a counterexample satisfies the first that one can
        self.assuming = assuming
        self.induction = induction or lockstep
        self.steps = steps
        self.shown: list[str] = []
        self.indices = 0

    def index(self, length: NatLike) -> tuple[Nat, Bool]:
        """An arbitrary index below a length, and the formula for its range."""
        self.indices += 1
        i = atom(Var(f"i{self.indices}#"))
        term = self.terms.nat(i)
        return i, z3.And(term >= 0, term < self.terms.nat(length))

    def show(self, obligation: str, goal: Bool, hypotheses: Iterable[Bool] = ()) -> None:
        """Show a goal, or raise `Open`."""
        if not z3.is_true(z3.simplify(goal)):
            self._ask(obligation, goal, [*hypotheses])
        if obligation not in self.shown:
            self.shown.append(obligation)

    def _ask(self, obligation: str, goal: Bool, hypotheses: list[Bool]) -> None:
        """Have the solver show a goal, or raise `Open`."""
        held = [*self.hypotheses, *hypotheses]
        laws = instances(self.assuming, [goal, *hypotheses])
        query = [*self.terms.facts, *held, *laws, z3.Not(goal)]
        answer = ask(query, self.steps)
        if answer.status == "sat":
            asked = (ask([*query, wish], self.steps) for wish in self.preferred)
            answer = next((better for better in asked if better.status == "sat"), answer)
            sizes = {
                str(d): answer.model[d].as_long()
                for d in answer.model.decls()
                if d.arity() == 0 and d.range().kind() == z3.Z3_INT_SORT
            }
            raise Open(obligation, "z3 has a counterexample to this step", sizes)
        if answer.status == "unknown":
            raise Open(obligation, f"z3 gave up: {answer.reason}")

    def same_length(self, left: NatLike, right: NatLike, hypotheses: Hypotheses) -> None:
        """Show that two lengths are equal."""
        equal = self.terms.nat(left) == self.terms.nat(right)
        self.show("sizes agree at every depth", equal, hypotheses)

    def agree(
        self, left: Value, right: Value, hypotheses: Hypotheses, what: str = "elements agree"
    ) -> None:
        """Show that two values are the same."""
        match left, right:
            case Pull(), Pull():
                self.same_length(left.length, right.length, hypotheses)
                i, in_range = self.index(left.length)
                self.agree(left[i], right[i], (*hypotheses, in_range), what)
            case ((tuple() | Parts()), (tuple() | Parts())):
                for a, b in zip(components(left), components(right), strict=True):
                    self.agree(a, b, hypotheses, what)
            case FoldComponent(), FoldComponent():
                self.induction(self, left, right, hypotheses)
            case (FoldComponent(), _) | (_, FoldComponent()) if self.induction is not lockstep:
                self.induction(self, left, right, hypotheses)
            case _:
                self.same_scalar(left, right, hypotheses, what)

    def same_scalar(self, left: Value, right: Value, hypotheses: Hypotheses, what: str) -> None:
        """Show that two scalars are equal, using what can be shown of the arguments they name."""
        one, two = self.reader.scalar(left), self.reader.scalar(right)
        if one.sort() != two.sort():
            raise Open(what, f"a value of type {one.sort()} against one of type {two.sort()}")
        goal = one == two
        self.show(what, goal, (*hypotheses, *self.equal_names(goal, hypotheses)))

    def equal_names(self, goal: Bool, hypotheses: Hypotheses) -> list[Bool]:
        """The equations of named arguments in a goal whose values can be shown to agree."""
        used = named_in(self.reader, goal)
        equal: list[Bool] = []
        for first, second in itertools.combinations(used, 2):
            alike = first.constant.sort() == second.constant.sort()
            if alike and self.can_agree(first.value, second.value, hypotheses):
                equal.append(first.constant == second.constant)
        return equal

    def can_agree(self, left: Value, right: Value, hypotheses: Hypotheses) -> bool:
        """Whether two values can be shown to be the same."""
        shown = list(self.shown)
        try:
            self.agree(left, right, hypotheses)
        except Open:
            self.shown = shown
            return False
        return True


def lockstep(
    proof: Proof, left: FoldComponent, right: FoldComponent, hypotheses: Hypotheses
) -> None:
    """Induction over the steps of two folds of the same length; see the module."""
    one, two = left.fold, right.fold
    same_length = proof.terms.nat(one.length) == proof.terms.nat(two.length)
    proof.show("both sides fold over as many steps", same_length, hypotheses)
    k, in_range = proof.index(one.length)
    before = (*hypotheses, in_range)
    if left.path and right.path:
        here = along_indices(left.path, right.path)
        for a, b in here:
            at = proof.terms.nat(a) == proof.terms.nat(b)
            proof.show("accumulators are read at the same place", at, hypotheses)
        state = proof.reader.state(one.init)
        plain = with_lockstep(proof)
        plain(one.init, two.init, hypotheses, "the folds start alike")
        plain(one.step(k, state), two.step(k, state), before, "steps keep the accumulators equal")
        return
    if right.path:
        state_two = proof.reader.state(two.init)
        state_one = along(state_two, right.path)
    else:
        state_one = proof.reader.state(one.init)
        state_two = along(state_one, left.path)
    plain = with_lockstep(proof)
    starts = along(one.init, left.path), along(two.init, right.path)
    plain(*starts, hypotheses, "the folds start alike")
    steps = (
        along(one.step(k, state_one), left.path),
        along(two.step(k, state_two), right.path),
    )
    plain(*steps, before, "steps keep the accumulators equal")


def with_lockstep(proof: Proof) -> Callable[..., None]:
    """`agree`, with lockstep for folds inside the steps of a fold."""

    def agree(left: Value, right: Value, hypotheses: Hypotheses, what: str) -> None:
        chosen, proof.induction = proof.induction, lockstep
        try:
            proof.agree(left, right, hypotheses, what)
        finally:
            proof.induction = chosen

    return agree


def along_indices(left: tuple[Any, ...], right: tuple[Any, ...]) -> list[tuple[Nat, Nat]]:
    """The pairs of indices of two paths of the same form."""
    if len(left) != len(right):
        raise Open("accumulators are read at the same place", "the accumulators differ in form")
    return [(nat(a), nat(b)) for a, b in zip(left, right, strict=True)]


def started(params: tuple[Param, ...], clauses: tuple[Constraint, ...], steps: int) -> Proof:
    """A proof that assumes clauses, and prefers larger arrays for its counterexamples."""
    proof = Proof(steps=steps)
    proof.hypotheses = [proof.terms.assume(c) for c in clauses]
    outer = [next(p.type.lengths(), None) for p in params]
    long = [proof.terms.nat(length) > 8 for length in outer if length is not None]
    proof.preferred = [z3.Or(long)] if long else []
    return proof
