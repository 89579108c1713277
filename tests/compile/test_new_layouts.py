"""A layout is its class: those made here are known to every room by what their classes say.

`frame` mirrors before and has a constant after; `dilate` has a constant between the elements, so
that where its guard holds is no interval. `flip` has an inverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.ir.call import call
from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.expr import Expr
from liftpy.ir.nat import INDEX, Nat, greatest, nat, var
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.program import Program
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.types import ArrayType, Type
from liftpy.language.text import call_elaborator, elaborator
from liftpy.language.text import program as text
from liftpy.language.text.program import parse, show
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.primitives import (
    PRIMITIVES,
    Concat,
    Gather,
    Pad,
    Take,
)
from liftpy.primitives.border import backwards
from liftpy.primitives.map import array_of
from liftpy.primitives.pad import check_value, constant_like, cropped
from liftpy.rewrite.strategies.families.common import fused_or_stored
from liftpy.semantics.contract import prove_primitive
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference
from liftpy.semantics.verdict import Proved
from tests.compile.test_programs import every_family_is_right, every_form_is_right
from tests.gradient.test_layouts import check_adjoint
from tests.spaces import as_one_stage


@dataclass(frozen=True)
class Frame(Layout):
    """The array mirrored before, and a constant after, and before where the mirror ends.

    frame(left, right, value) : [a]n -> [a](left + n + right)
        element i is xs[j] where j < n, else `value`;  j is max(i - left, left - 1 - i)
    """

    name: ClassVar[str] = "frame"
    left: Nat
    right: Nat
    value: float

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        check_value(self.name, self.value, known)
        return ArrayType(known.element, self.left + known.length + self.right)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        length = array_of(self.name, xs).length
        yield at_least(1, length)
        yield at_least(1, self.left + length + self.right)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        def element(i: Index) -> Value:
            j = greatest(i - self.left, self.left - 1 - i)
            return guarded(read, read.inside(j, xs.length), xs[read.clip(j, xs)], self.value)

        return Pull(self.left + xs.length + self.right, element)

    def border(self) -> tuple[Nat, ...]:
        return self.left, self.right

    def equivalent(self, xs: Expr) -> Expr | None:
        """None if it is not known whether the mirrored elements suffice."""
        n = array_of(self.name, xs.type).length
        if self.left.bounds[1] is not None and self.left.bounds[1] <= 0:
            return call(Pad(self.left, self.right, self.value), xs)
        if (self.left.bounds[0] or 0) < 1 or ((n - self.left).bounds[0] or -1) < 0:
            return None
        mirrored = call(Concat(), backwards(call(Take(self.left), xs)), xs)
        return call(Pad(nat(0), self.right, self.value), mirrored)

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        edge, mirrored = [constant_like(xs[0], self.value)], xs[: max(0, left)][::-1]
        return cropped(edge * (left - len(xs)) + mirrored + xs + edge * right, left, right)


@dataclass(frozen=True)
class Dilate(Layout):
    """A constant between the elements.

    dilate(step, value) : [a]n -> [a]((n - 1)*step + 1)
        element i is xs[i / step] where step divides i, else `value`
    """

    name: ClassVar[str] = "dilate"
    step: Nat
    value: float

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        check_value(self.name, self.value, known)
        return ArrayType(known.element, (known.length - 1) * self.step + 1)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, array_of(self.name, xs).length)
        yield at_least(1, self.step)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        def element(i: Index) -> Value:
            return guarded(read, read.inside(i % self.step, 1), xs[i // self.step], self.value)

        return Pull((xs.length - 1) * self.step + 1, element)

    def adjoint(self, xs: Type) -> Primitive:
        return Gather(array_of(self.name, xs).length, self.step * var(INDEX))

    def reference(self, xs: list[Any]) -> list[Any]:
        between = [constant_like(xs[0], self.value)] * (int(self.step) - 1)
        return [y for x in xs for y in (*between, x)][len(between) :]


@dataclass(frozen=True)
class Flip(Layout):
    """The array backwards.

    flip : [a]n -> [a]n        element i is xs[n - 1 - i]
    """

    name: ClassVar[str] = "flip"
    unconditional: ClassVar[str] = "an array of any length may be read backwards"

    def type_of(self, xs: Type) -> Type:
        return array_of(self.name, xs)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(xs.length, lambda i: xs[xs.length - 1 - i])

    def reference(self, xs: list[Any]) -> list[Any]:
        return xs[::-1]

    def inverse(self, xs: Type) -> Layout:
        return self


NEW: tuple[type[Layout], ...] = (Frame, Dilate, Flip)
ROWS = "def p(xs: [9][8]f32) = xs |> {0} |> map({0}) |> map2d(x => x * 2 + 1)"
LAYER = """
    def p(x: [4][5][3]f32, const w: [4][2][2][3]f32, const b: [2]f32) =
      x |> {0} |> map({0}) |> slide2d(2, 1) |> map2d(window =>
        zip(w, b |> {1}) |> map((kernel, bias) =>
          max((zip(window |> join |> join, kernel |> join |> join)
            |> map((p, q) => p * q) |> reduce(add, 0)) - bias, 0)))
"""
PROGRAMS = {
    "frame in rows": ROWS.format("frame(2, 3, 0.5)"),
    "dilate in rows": ROWS.format("dilate(3, 0.5)"),
    "frame in a layer": LAYER.format("frame(1, 1, 2)", "frame(1, 1, 3)"),
    "dilate in a layer": LAYER.format("dilate(2, 0)", "dilate(3, 2)"),
    "frame of what is flipped": ROWS.format("flip |> frame(2, 1, 0.5)"),
    "flip of results": "def p(xs: [9][8]f32) = xs |> map2d(x => x * 2 + 1) |> flip |> map(flip)",
}
BOTH = {"fused", "copy"}
PADS = {
    "layer": {"plain": BOTH, "direct": {*BOTH, "windows"}, "local": {"tile"}},
    "flip of results": {"plain": {"fused"}, "tiled": {"fused"}},
}
COOPERATIVE = {"frame in a layer", "dilate in a layer"}
"""The programs to which `cooperative` applies; it is in no space of a processor."""

CALLS = [
    "frame(2, 3, 9)",
    "frame(9, 0, -1)",
    "frame(-2, 1, 9)",
    "dilate(1, 9)",
    "dilate(3, -1)",
    "flip",
]

pytestmark = pytest.mark.usefixtures("derived_once", "words")


@pytest.fixture(scope="module")
def words() -> Iterator[None]:
    """The new layouts are words of the text form: nothing else is said of them."""
    with pytest.MonkeyPatch.context() as patch:
        known = call_elaborator.WORDS | {layout.name for layout in NEW}
        for reader in (text, call_elaborator, elaborator):
            patch.setattr(reader, "WORDS", known)
        for layout in NEW:
            patch.setitem(PRIMITIVES, layout.name, layout)
        yield


@pytest.mark.parametrize("layout", NEW)
def test_its_contract_is_proved(layout):
    assert isinstance(prove_primitive(layout.name), Proved)


@pytest.mark.parametrize("length", [3, 7])
@pytest.mark.parametrize("call", CALLS)
def test_it_has_a_value_and_a_text(call, length):
    program = parse(f"def p(xs: [{length}]f32) = xs |> {call}")
    assert parse(show(program)) == program
    xs = np.arange(1, length + 1, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(program, xs), reference(program, xs))


@pytest.mark.parametrize("element", ["f32", "[2]f32", "(f32, f32)"])
@pytest.mark.parametrize("call", [c for c in CALLS if c != "frame(9, 0, -1)"])
def test_its_gradient_is_its_adjoint(call, element):
    check_adjoint(f"def p(xs: [5]{element}) = xs |> {call}")


def test_the_gradient_of_a_mirror_of_unknown_elements_is_refused():
    with pytest.raises(TypeRefused, match=r"frame\(9, 0, -1\)"):
        lp.gradient(parse("def p(xs: [5]f32) = xs |> frame(9, 0, -1)"))


def test_a_dilated_array_has_its_constant_between_the_elements():
    program = parse("def p(xs: [3]f32) = xs |> dilate(2, 9)")
    assert evaluate(program, np.float32([1, 2, 3])).tolist() == [1, 9, 2, 9, 3]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("def p(xs: [5]f32) = xs |> dilate(0, 1)", "it requires that 1 <= 0"),
        ("def p(xs: [5]i8) = xs |> dilate(2, 200)", "an i8 is a whole number from -128 to 127"),
    ],
)
def test_what_it_refuses_is_said_with_what_would_do(program, said):
    with pytest.raises(TypeRefused, match=said):
        parse(program)


def pads_of(name: str) -> dict[str, set[str]]:
    """What of a program's padded input may be stored in each family that applies."""
    found = (pads for part, pads in PADS.items() if part in name)
    return next(found, {"plain": BOTH, "tiled": BOTH})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_right_in_every_family(runtime: Device, name: str, kept: Path) -> None:
    assert pads_of(name).keys() <= every_family_is_right(parse(PROGRAMS[name]), runtime, kept)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_it_is_right(runtime: Device, name: str, kept: Path) -> None:
    assert every_form_is_right(parse(PROGRAMS[name]), runtime, kept) == pads_of(name).keys()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_whether_it_is_stored_is_a_choice(name: str) -> None:
    choices: dict[str, set[str]] = {}
    for skeleton in as_one_stage(parse(PROGRAMS[name])):
        words = dict(skeleton.choices)
        choices.setdefault(skeleton.family, set()).add(words.get("pad", "tile"))
    tiles = {"cooperative": {"tile"}} if name in COOPERATIVE else {}
    assert choices == pads_of(name) | tiles


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_border_may_have_classes(name: str) -> None:
    """A layout says what it adds at the ends; only then may a kernel have versions for them."""
    words = fused_or_stored(parse(PROGRAMS[name]).body.body)
    assert ("classes" in words) == ("frame" in name)


def test_results_are_written_through_it() -> None:
    program = parse(PROGRAMS["flip of results"])
    for skeleton in as_one_stage(program, ("plain",)):
        module = compile_candidate(skeleton, {})
        assert len(module.launches) == 1
        assert "+ 71] = " in module.source, module.source


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "layer" in n])
@pytest.mark.parametrize(("pad", "kernels"), [("fused", 1), ("copy", 2), ("windows", 2)])
def test_fused_it_takes_no_kernel_and_no_memory(name: str, pad: str, kernels: int) -> None:
    """Neither where the windows are read, nor in what is done to the sums."""
    module = register_blocked(parse(PROGRAMS[name]), pad)
    assert [x.phase for x in module.launches].count("run") == kernels
    assert (module.memory.scratch > 0) == (pad != "fused")


def register_blocked(program: Program, pad: str) -> Module:
    """A form of `direct`."""
    chosen = {("pad", pad), ("level", "glb")}
    made = as_one_stage(program, ("direct",))
    return compile_candidate(
        next(s for s in made if chosen <= {*s.choices}), {"kappa": 4, "sigma": 2, "v": 4}
    )
