"""Laws between layouts, proved for all sizes; and what is almost a law, refuted."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from liftpy.ir.call import call
from liftpy.ir.constraint import Constraint, at_least, at_most, divides
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr
from liftpy.ir.nat import INDEX, Applied, atom, nat, nats, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Pull, guarded
from liftpy.language.embedded.lang import map, permute, transpose
from liftpy.primitives import (
    Concat,
    Cover,
    CoverOnce,
    Drop,
    Gather,
    Join,
    Pad,
    PadClamp,
    PadMirror,
    PadWrap,
    Reorder,
    Repeat,
    Slide,
    SlideStrict,
    Split,
    SplitAt,
    Take,
    Transpose,
    Uncover,
    Unslide,
)
from liftpy.primitives.transpose import Permutes
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules.notation import T, array, k, m, n
from liftpy.semantics.agree import Proof
from liftpy.semantics.contract import BACK, FORTH, INSIDE, prove_instance
from liftpy.semantics.verdict import Open, Refuted

size, step, l, r, p, q = nats("size step l r p q")  # noqa: E741  the language's own names
xs, ys, zs = array("xs", T, n), array("ys", T, k), array("zs", T, m)
xss, cube, windows = array("xss", T, n, m), array("cube", T, n, m, k), array("w", T, k, size)
c = ValueVar("c")
WINDOWS = (at_least(1, step), at_most(step, size), at_most(size, n))
FULL = (at_least(1, n), at_least(1, k), at_least(1, m))


def of(xs: Expr, *layouts: Primitive) -> Expr:
    """An array after some layouts."""
    for layout in layouts:
        xs = call(layout, xs)
    return xs


def both(one: Expr, two: Expr) -> Expr:
    """Two arrays in a row."""
    return call(Concat(), one, two)


def prove(left: Expr, right: Expr, *given: Constraint) -> None:
    """That two expressions over the same arrays are equal; raises `Open`."""
    proof = Proof()
    proof.hypotheses = [proof.terms.assume(condition) for condition in given]
    env = {v: proof.reader.leaf(v.name, v.type) for v in left.free | right.free}
    proof.agree(denote(left, env, proof.reader), denote(right, env, proof.reader), ())


LAWS = {
    "unslide of slide is what the windows cover": (
        of(xs, Slide(size, step), Unslide(size, step)),
        of(xs, Take((n - size) // step * step + size)),
        *WINDOWS,
    ),
    "unslide undoes slideStrict": (
        of(xs, SlideStrict(size, step), Unslide(size, step)),
        xs,
        divides(step, n - size),
        *WINDOWS,
    ),
    "unslide of windows side by side is join": (
        of(windows, Unslide(size, size)),
        of(windows, Join()),
        at_least(1, size),
        at_least(1, k),
    ),
    "take and drop make the whole": (
        both(of(xs, Take(k)), of(xs, Drop(k))),
        xs,
        at_least(1, k),
        at_most(k + 1, n),
    ),
    "the second of splitAt is drop": (of(xs, SplitAt(k))[1], of(xs, Drop(k))),
    "drops add up": (of(xs, Drop(k), Drop(m)), of(xs, Drop(k + m))),
    "concat is associative": (both(both(xs, ys), zs), both(xs, both(ys, zs)), *FULL),
    "drop after slide": (
        of(xs, Slide(size, step), Drop(k)),
        of(xs, Drop(k * step), Slide(size, step)),
        at_least(1, step),
        at_most(k * step + size, n),
    ),
    "take after split": (
        of(xs, Split(m), Take(k)),
        of(xs, Take(k * m), Split(m)),
        divides(m, n),
        at_most(k * m, n),
    ),
    "constant paddings add up": (
        of(xs, Pad(l, r, c), Pad(p, q, c)),
        of(xs, Pad(l + p, r + q, c)),
        *FULL,
    ),
    "clamped paddings add up": (
        of(xs, PadClamp(l, r), PadClamp(p, q)),
        of(xs, PadClamp(l + p, r + q)),
        *FULL,
    ),
    "a clamped padding repeats the ends": (
        of(xs, PadClamp(l, r)),
        both(
            both(of(xs, Take(nat(1)), Gather(l, nat(0))), xs),
            of(xs, Drop(n - 1), Gather(r, nat(0))),
        ),
        at_least(1, l),
        at_least(1, r),
        *FULL,
    ),
    "a mirrored padding turns the ends round": (
        of(xs, PadMirror(n, nat(0))),
        both(of(xs, Reorder(n - 1 - var(INDEX), n - 1 - var(INDEX))), xs),
        *FULL,
    ),
    "a wrapped padding of whole turns repeats": (
        of(xs, PadWrap(n, n)),
        of(xs, Repeat(nat(3)), Join()),
        *FULL,
    ),
    "permute(1, 0) is transpose": (permute(1, 0)(xss), of(xss, Transpose())),
    "permutations undo each other": (permute(2, 0, 1)(permute(1, 2, 0)(cube)), cube, *FULL),
    "both ways to turn three dimensions round": (
        permute(2, 1, 0)(cube),
        (map(transpose()) >> transpose() >> map(transpose()))(cube),
        *FULL,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_law_holds_for_all_sizes(name):
    prove(*LAWS[name])


FALSE = {
    "mirrored paddings do not add up": (
        of(xs, PadMirror(l, r), PadMirror(p, q)),
        of(xs, PadMirror(l + p, r + q)),
        at_most(l + p, n),
        at_most(r + q, n),
        *FULL,
    ),
    "wrapped paddings do not add up": (
        of(xs, PadWrap(l, r), PadWrap(p, q)),
        of(xs, PadWrap(l + p, r + q)),
        *FULL,
    ),
    "slide does not undo unslide": (
        of(windows, Unslide(size, step), Slide(size, step)),
        windows,
        *WINDOWS,
        *FULL,
    ),
    "unslide of slide is not the whole array": (
        of(xs, Slide(size, step), Unslide(size, step)),
        xs,
        *WINDOWS,
    ),
    "gather with phi is not scatter with phi": (
        of(array("t", T, nat(7)), Reorder((3 * var(INDEX)) % 7, (5 * var(INDEX)) % 7)),
        of(array("t", T, nat(7)), Reorder((5 * var(INDEX)) % 7, (3 * var(INDEX)) % 7)),
    ),
    "concat does not commute": (both(xs, ys), both(ys, xs), *FULL),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_almost_a_law_is_refuted(name):
    with pytest.raises(Open) as left:
        prove(*FALSE[name])
    assert left.value.sizes is not None, "a counterexample, not a solver that gave up"


def test_an_unknown_permutation_is_undone_by_its_inverse():
    phi, psi = (atom(Applied(name, var(INDEX))) for name in ("phi", "psi"))
    prove(of(xs, Reorder(phi, psi), Reorder(psi, phi)), xs, Permutes(phi, n, psi))


# --- contracts that are broken --------------------------------------------------------------------


@dataclass(frozen=True)
class ForwardUnslide(Unslide):
    """Wrong: Lift's way, every element from the window of its own step, also past the last one."""

    name: ClassVar[str] = "forwardUnslide"

    def meaning(self, read, xss):
        whole = super().meaning(read, xss)
        return type(whole)(whole.length, lambda k: xss[k // self.step][k % self.step])


def test_unslide_without_the_end_of_the_last_window_reads_outside():
    verdict = prove_instance(ForwardUnslide(size, step), (array("xss", T, n, size),))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == INSIDE


@dataclass(frozen=True)
class WritableSlide(SlideStrict):
    """Wrong: `unslide` undoes it, but what is written through that leaves places empty."""

    name: ClassVar[str] = "writableSlide"

    def requires(self, xs):
        yield from super().requires(xs)
        yield at_most(self.step, self.size)

    def inverse(self, xs):
        return Unslide(self.size, self.step)


def test_an_inverse_that_does_not_fill_its_destination_is_refuted():
    verdict = prove_instance(WritableSlide(var("size", None), var("step", None)), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == FORTH


@dataclass(frozen=True)
class WrittenUnslide(Unslide):
    """Wrong: windows that overlap would be written over each other."""

    name: ClassVar[str] = "writtenUnslide"

    def inverse(self, xss):
        return Slide(self.size, self.step)


def test_writing_overlapping_windows_is_refuted():
    verdict = prove_instance(WrittenUnslide(size, step), (array("xss", T, n, m),))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == BACK


@dataclass(frozen=True)
class TwiceUncover(Uncover):
    """Wrong: what two chunks have would be written by both."""

    name: ClassVar[str] = "twiceUncover"

    def inverse(self, xss):
        return Cover(xss.element.length)


@dataclass(frozen=True)
class EmptyUncover(Uncover):
    """Wrong: what two chunks have is in place in neither, so that places stay empty."""

    name: ClassVar[str] = "emptyUncover"

    def inverse(self, xss):
        return Twice(xss.element.length, 0.0)


@dataclass(frozen=True)
class Twice(CoverOnce):
    """`cover`, with a constant in place of the last chunk wherever it begins early."""

    name: ClassVar[str] = "twice"

    def meaning(self, read, xs):
        m, whole = self.size, Cover(self.size).meaning(read, xs)

        def chunk(i):
            return guarded(
                read, read.inside(xs.length - (i + 1) * m, xs.length), whole[i], self.value
            )

        return Pull(whole.length, chunk)


@pytest.mark.parametrize(("wrong", "why"), [(TwiceUncover, BACK), (EmptyUncover, FORTH)])
def test_writing_chunks_twice_or_not_at_all_is_refuted(wrong, why):
    verdict = prove_instance(wrong(var("length", None)), (array("xss", T, n, m),))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == why


@dataclass(frozen=True)
class BoldMirror(PadMirror):
    """Wrong: the array is mirrored once; further out there is nothing."""

    name: ClassVar[str] = "boldMirror"

    def requires(self, xs):
        yield at_least(1, xs.length)
        yield at_least(1, self.left + xs.length + self.right)


def test_a_mirror_longer_than_the_array_reads_outside():
    verdict = prove_instance(BoldMirror(var("left", None), var("right", None)), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == INSIDE


@dataclass(frozen=True)
class UncheckedGather(Gather):
    """Wrong: it does not ask that the indices stay in the array."""

    name: ClassVar[str] = "uncheckedGather"

    def requires(self, xs):
        yield at_least(1, self.length)


def test_gather_without_its_range_reads_outside():
    index = atom(Applied("phi", var(INDEX)))
    verdict = prove_instance(UncheckedGather(var("length", None), index), (xs,))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == INSIDE
