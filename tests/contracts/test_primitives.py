"""Every primitive keeps its contract: C1 to C6, see liftpy/semantics/contract.py."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from liftpy.errors import UnknownName
from liftpy.ir.call import call
from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Param
from liftpy.ir.nat import nat, nats, var
from liftpy.ir.primitive import Layout
from liftpy.ir.pull import Pull
from liftpy.ir.types import ArrayType
from liftpy.primitives import (
    PRIMITIVES,
    AnyIterate,
    Drop,
    Pad,
    PadMirror,
    Slide,
    SlideCopies,
    SlideSeq,
    Split,
    Take,
    Transpose,
    stride,
)
from liftpy.primitives.scan import AnyInclusiveScan
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules.notation import T, U, array, function, k, m, n, unknown
from liftpy.semantics import adjoint
from liftpy.semantics.agree import Proof
from liftpy.semantics.contract import (
    INSIDE,
    LENGTHS,
    NEEDED,
    REFERENCE,
    general,
    needless,
    prove_instance,
    prove_primitive,
)
from liftpy.semantics.smt import STEPS
from liftpy.semantics.verdict import Proved, Refuted, Unknown

size, step = var("size", None), var("step", None)
xs = array("xs", T, n)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_keeps_its_contract(name):
    verdict = prove_primitive(name)
    assert isinstance(verdict, Proved), verdict


@dataclass(frozen=True)
class OverlappingSlide(Slide):
    """Wrong: every window starts one element after the last, whatever the step is."""

    name: ClassVar[str] = "overlappingSlide"

    def meaning(self, read, xs):
        windows = self.windows(xs.length)
        return Pull(windows, lambda i: Pull(self.size, lambda j: xs[i + j]))


def test_wrong_meaning_that_stays_in_bounds_is_caught_by_the_reference():
    verdict = prove_instance(OverlappingSlide(size, step), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == REFERENCE
    assert "[1][0]" in verdict.witness


@dataclass(frozen=True)
class LateSlide(Slide):
    """Wrong: the windows start one element late."""

    name: ClassVar[str] = "lateSlide"

    def meaning(self, read, xs):
        windows = self.windows(xs.length)
        return Pull(windows, lambda i: Pull(self.size, lambda j: xs[i * self.step + j + 1]))


def test_read_past_the_end_is_refuted_at_more_than_8_elements():
    verdict = prove_instance(LateSlide(size, step), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == INSIDE
    sizes = dict(part.split(" = ") for part in verdict.witness.split(", "))
    assert int(sizes["n"]) > 8


@dataclass(frozen=True)
class FloorSplit(Split):
    """Wrong: it does not ask that the chunks fill the array, nor that they have an element."""

    name: ClassVar[str] = "floorSplit"

    def requires(self, xs):
        return iter(())


def test_split_without_its_conditions_is_refuted():
    assert isinstance(prove_instance(FloorSplit(m), (xs,)), Refuted)


@dataclass(frozen=True)
class UnclippedPad(Pad):
    """Wrong: outside of the array it reads what lies there."""

    name: ClassVar[str] = "unclippedPad"

    def meaning(self, read, xs):
        return Pull(self.left + xs.length + self.right, lambda i: xs[i - self.left])


def test_pad_that_reads_outside_is_refuted():
    pad = UnclippedPad(var("left", None), var("right", None), ValueVar("c"))
    verdict = prove_instance(pad, (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == INSIDE


@dataclass(frozen=True)
class FlatTranspose(Transpose):
    """Wrong: the lengths stay where they were."""

    name: ClassVar[str] = "flatTranspose"

    def type_of(self, xss):
        return xss


def test_type_with_other_lengths_than_the_meaning_is_refuted():
    verdict = prove_instance(FlatTranspose(), (array("xss", T, n, m),))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == LENGTHS


@dataclass(frozen=True)
class TimidSlide(Slide):
    """Asks for more than it needs."""

    name: ClassVar[str] = "slide"

    def requires(self, xs):
        yield from super().requires(xs)
        yield at_least(2, xs.length)


def test_clause_that_nothing_needs_is_refuted():
    verdict = prove_instance(TimidSlide(size, step), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == NEEDED
    assert "2 <= n" in verdict.witness


@pytest.mark.parametrize(
    ("name", "clause"),
    [(p.name, clause) for p in PRIMITIVES.values() for clause in p.by_definition],
)
def test_clause_that_stands_by_definition_is_not_needed(name, clause, monkeypatch):
    primitive, params = general(PRIMITIVES[name])
    clauses = tuple(primitive.requires(*(p.type for p in params)))
    others = {c: why for c, why in primitive.by_definition.items() if c != clause}
    monkeypatch.setattr(PRIMITIVES[name], "by_definition", others)
    idle = [str(c) for c in needless(primitive, params, clauses, STEPS)]
    assert idle == [clause], "what is needed wants no excuse"


def test_stride_is_a_permutation_with_its_inverse():
    s, p = nats("s p")
    (condition,) = stride(s, s * p).requires(array("xs", T, s * p).type)
    proof = Proof()
    proof.hypotheses = [proof.terms.assume(at_least(1, s)), proof.terms.assume(at_least(1, p))]
    for goal in proof.terms.claims(condition):
        proof.show("stride permutes", goal)


def test_unknown_primitive_is_refused_with_those_there_are():
    with pytest.raises(UnknownName, match="no primitive is named slid; known primitives: map, "):
        prove_primitive("slid")


def test_what_neighbouring_windows_share_is_moved_by_a_step():
    """Why `slideSeq` may keep its window: element j of window i + 1 is element j + step of i."""
    proof = Proof()
    slide = Slide(size, step)
    proof.hypotheses = [proof.terms.assume(c) for c in slide.requires(xs.type)]
    windows = slide.meaning(proof.reader, proof.reader.leaf("xs", xs.type))
    i, in_windows = proof.index(windows.length - 1)
    j, in_shared = proof.index(size - step)
    proof.agree(windows[i + 1][j], windows[i][j + step], (in_windows, in_shared))


@dataclass(frozen=True)
class LateScan(AnyInclusiveScan):
    """Wrong: an exclusive scan."""

    name: ClassVar[str] = "lateScan"

    def meaning(self, read, f, init, xs):
        return Pull(xs.length, lambda i: read.fold(i, init, lambda k, acc: f(acc, xs[k])))


def test_a_scan_that_is_one_element_late_is_refuted():
    verdict = prove_instance(LateScan(function(unknown("f", U), a=U, x=T)), (Param("z", U), xs))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == REFERENCE


@dataclass(frozen=True)
class HastySlideSeq(SlideSeq):
    """Wrong: the window moves by one element, whatever the step is."""

    name: ClassVar[str] = "hastySlideSeq"

    def meaning(self, read, f, xs):
        windows = Slide(self.size, self.step).windows(xs.length)
        return Pull(windows, lambda i: f(Pull(self.size, lambda j: xs[i + j])))


def test_a_window_that_moves_too_slowly_is_refuted():
    window = function(unknown("f", U), w=ArrayType(T, size))
    verdict = prove_instance(HastySlideSeq(window, size, step), (xs,))
    assert isinstance(verdict, Refuted)


def test_iterating_once_more_is_refuted():
    @dataclass(frozen=True)
    class Further(AnyIterate):
        name: ClassVar[str] = "further"

        def meaning(self, read, f, x):
            return f(super().meaning(read, f, x))

    again = Further(function(unknown("f", T), x=T), var("times", None))
    assert isinstance(prove_instance(again, (Param("x", T),)), Refuted)


# --- C6: adjoints ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LateTake(Take):
    """Wrong: the elements go back to the end of the array."""

    name: ClassVar[str] = "lateTake"

    def adjoint(self, xs):
        return Pad(xs.length - self.count, nat(0), 0.0)


@dataclass(frozen=True)
class OffByOneDrop(Drop):
    """Wrong: the elements go back one too early."""

    name: ClassVar[str] = "offByOneDrop"

    def adjoint(self, xs):
        return Pad(self.count - 1, nat(1), 0.0)


@pytest.mark.parametrize("wrong", [LateTake(k), OffByOneDrop(k)], ids=lambda p: p.name)
def test_an_adjoint_that_puts_elements_elsewhere_is_refuted(wrong):
    verdict = prove_instance(wrong, (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation in {adjoint.BACK, adjoint.FORTH}
    assert {"k", "n"} <= {part.partition(" = ")[0] for part in verdict.witness.split(", ")}


@dataclass(frozen=True)
class ShortPad(Pad):
    """Wrong: the adjoint crops one element too few, and leaves a constant in its place."""

    name: ClassVar[str] = "shortPad"

    def adjoint(self, xs):
        return Pad(1 - self.left, -self.right - 1, 0.0)


def test_an_adjoint_of_a_padding_that_crops_elsewhere_is_refuted():
    verdict = prove_instance(ShortPad(var("left", None), var("right", None), ValueVar("c")), (xs,))
    assert isinstance(verdict, Refuted)


@dataclass(frozen=True)
class SwappedMirror(PadMirror):
    """Wrong: what is added before the array is not in reverse order."""

    name: ClassVar[str] = "swappedMirror"

    def before(self, xs, n):
        return call(Take(self.left), xs)


@dataclass(frozen=True)
class FewCopies(Slide):
    """Wrong: an element may be in one more window than it has copies for."""

    name: ClassVar[str] = "fewCopies"

    def equivalent(self, xs):
        return call(SlideCopies(self.size, self.step + 1), super().equivalent(xs).args[0])


@pytest.mark.parametrize(
    "wrong",
    [
        SwappedMirror(var("left", None), var("right", None)),
        FewCopies(size, step),
    ],
    ids=lambda p: p.name,
)
def test_an_expression_that_is_not_equal_is_refuted(wrong):
    verdict = prove_instance(wrong, (xs,))
    assert isinstance(verdict, Refuted), verdict
    assert verdict.obligation.startswith("C6")


def test_an_equal_expression_has_to_satisfy_its_conditions():
    @dataclass(frozen=True)
    class EagerSlide(Slide):
        """Wrong: chunks are windows only if they fill the array."""

        name: ClassVar[str] = "eagerSlide"

        def equivalent(self, xs):
            return call(Split(self.step), xs)

    verdict = prove_instance(EagerSlide(size, step), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == adjoint.ALLOWED


@dataclass(frozen=True)
class Doubled(Layout):
    """Each element twice, one after the other.

    doubled : [a]n -> [a](2*n)        element i is xs[i / 2]
    """

    name: ClassVar[str] = "doubled"
    unconditional: ClassVar[str] = "an array of any length may be doubled"

    def type_of(self, xs):
        return ArrayType(xs.element, 2 * xs.length)

    def meaning(self, read, xs):
        return Pull(2 * xs.length, lambda i: xs[i // 2])

    def reference(self, xs):
        return [x for x in xs for _ in range(2)]


def test_a_layout_without_an_adjoint_is_not_proved():
    verdict = prove_instance(Doubled(), (xs,))
    assert isinstance(verdict, Unknown)
    assert verdict.obligation == adjoint.NONE


def test_a_layout_whose_adjoint_is_a_definition_needs_no_other():
    @dataclass(frozen=True)
    class Defined(Doubled):
        adjoint_by_definition: ClassVar[str] = "the sum of both copies"

    assert isinstance(prove_instance(Defined(), (xs,)), Proved)


def test_a_layout_that_reads_twice_has_no_inverse_as_its_adjoint():
    @dataclass(frozen=True)
    class Halved(Doubled):
        """Wrong: it drops the second copy."""

        def adjoint(self, xs):
            return Slide(nat(1), nat(2))

    assert not isinstance(prove_instance(Halved(), (xs,)), Proved)
