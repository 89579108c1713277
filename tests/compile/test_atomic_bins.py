"""Reductions by index by atomic updates: on devices, in the interpreter, and under Oclgrind.

Lengths are odd, indices negative, too large, repeated and missing; some bins get no value, or all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.nat import nat
from liftpy.ir.program import Program
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.loops.bounds import bounds
from liftpy.loops.tree import Block, Store, Update
from liftpy.loops.values import Cell
from liftpy.loops.writers import shared_stores
from liftpy.pipeline import Compilation, compile_program
from liftpy.primitives.dialects import LoweredProgram
from tests.batch import results
from tests.compile.test_data_indices import IS, folded
from tests.fuzz.judge import misjudged
from tests.loops.interpreted import interpreted, nests_of
from tests.oclgrind import check_all_under_oclgrind

pytestmark = pytest.mark.usefixtures("derived_once")

RNG = np.random.default_rng(6)
XS = RNG.integers(-(2**31), 2**31, 11).astype(np.int32)  # sums wrap around
US = RNG.integers(0, 2**32, 11).astype(np.uint32)
STARTS = RNG.integers(-50, 50, 7).astype(np.int32)
FUNCTIONS = {
    "addInt": np.add,
    "minimumI32": np.minimum,
    "maximumI32": np.maximum,
    "both": np.bitwise_and,
    "some": np.bitwise_or,
    "odd": np.bitwise_xor,
}
"""The functions of a bin and a value, and those of NumPy."""
DECLARED = "\n".join(
    f"fun {name}(x: {{t}}, y: {{t}}) = {op}(y, x) laws associative, commutative"
    for name, op in (("both", "bitAnd"), ("some", "bitOr"), ("odd", "bitXor"))
)


def summed(start: Any, index: Any, values: Any, f: Any = np.add) -> Any:
    """`folded`; sums wrap around."""
    with np.errstate(over="ignore"):
        return folded(start, index, values, f)


def by(name: str, t: str) -> str:
    """A program that reduces numbers of a type by index by a function."""
    return f"""{DECLARED.format(t=t)}
      def p(z: [7]{t}, is: [11]i32, xs: [11]{t}) = zip(is, xs) |> reduceByIndex({name}, z)"""


PROGRAMS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    **{
        f"{name} of i32": (by(name, "i32"), (STARTS, IS, XS), summed(STARTS, IS, XS, f))
        for name, f in FUNCTIONS.items()
    },
    **{
        f"{name} of u32": (
            by({"addInt": "addU32"}.get(name, name.replace("I32", "U32")), "u32"),
            (US[:7], IS, US),
            summed(US[:7], IS, US, f),
        )
        for name, f in FUNCTIONS.items()
    },
    "a histogram": (
        "def p(is: [11]i32) = is |> map(i => (i, 1)) |> reduceByIndex(addInt, 0i32 |> repeat(7))",
        (IS,),
        summed(STARTS * 0, IS, np.ones(11, np.int32)),
    ),
    "a long one, with all pairs in one of the bins": (
        """def p(is: [4099]i32) = is |> map(i => (i, 1))
          |> reduceByIndex(addInt, 3i32 |> repeat(7))""",
        (np.full(4099, 5, np.int32),),
        np.array([3, 3, 3, 3, 3, 4102, 3]),
    ),
    "no pair in the one bin": (
        "def p(is: [11]i32, xs: [11]i32) = zip(is, xs) |> reduceByIndex(addInt, 9i32 |> repeat(1))",
        (np.where(IS == 0, 1, IS), XS),
        np.array([9]),
    ),
    "bins that are read at data, and reversed": (
        """def p(is: [11]i32, xs: [11]i32) = let h = zip(is, xs |> map(x => x / 16))
          |> reduceByIndex(addInt, 0i32 |> repeat(7)) in
          (is |> map(i => h |> at(max(i, 1i32))), h |> reorder(i => 6 - i, i => 6 - i))""",
        (IS, XS),
        None,
    ),
    "padded pairs": (
        """def p(is: [11]i32, xs: [11]i32) = zip(is |> pad(1, 2, 3), xs |> pad(1, 2, 1000))
          |> reduceByIndex(addInt, 0i32 |> repeat(7))""",
        (IS, XS),
        summed(
            STARTS * 0,
            np.pad(IS, (1, 2), constant_values=3),
            np.pad(XS, (1, 2), constant_values=1000),
        ),
    ),
    "bins of bins": (
        """def p(is: [11]i32, js: [7]i32, xs: [11]i32) =
          zip(js, zip(is, xs) |> reduceByIndex(addInt, 0i32 |> repeat(7)))
            |> reduceByIndex(addInt, 2i32 |> repeat(5))""",
        (IS, IS[3:10], XS),
        summed(STARTS[:5] * 0 + 2, IS[3:10], summed(STARTS * 0, IS, XS)),
    ),
    "sums of a scan": (
        """def p(is: [11]i32, xs: [11]i32) = zip(is, xs |> scan(addInt, 0i32))
          |> reduceByIndex(addInt, 0i32 |> repeat(7))""",
        (IS, XS),
        summed(STARTS * 0, IS, np.cumsum(XS, dtype=np.int32)),
    ),
    "a stored value of bins that begin with constants": (
        """def p(is: [11]i32, xs: [11]i32) = zip(is, xs |> map(x => x / 64))
          |> reduceByIndex(addInt, 0i32 |> repeat(7)) |> scan(addInt, 0i32)
          |> scan((a, x) => a * 3 - x / 4, 0i32)""",
        (IS, XS),
        None,
    ),
    "bins of constant pairs, read by a kernel": (
        """def p(is: [7]i32) = let h = generate(11, i => (i % 3i32 + 5i32, i))
          |> reduceByIndex(addInt, 1i32 |> repeat(7)) in
          is |> map(i => h |> at(i) |> (x => x * 2))""",
        (IS[:7],),
        None,
    ),
}


def wanted_of(name: str) -> Any:
    """The result of a program: NumPy's, or its meaning."""
    text, arrays, wanted = PROGRAMS[name]
    return lp.evaluate(parse(text), *arrays) if wanted is None else wanted


def candidates(program: Program, device: Device) -> list[Candidate]:
    """The candidates whose bins are updated atomically."""
    space = lp.space(program, device=device)
    drawn = space.sample(space.count(), seed=0)
    return [c for c in drawn if "atomic" in c.assignment.values()]


def compiled(program: Program, device: Device) -> dict[str, Compilation]:
    """The `candidates`, compiled, by their labels."""
    return {
        c.label: compile_program(c.skeleton.at(c.point)) for c in candidates(program, device)[:3]
    }


def same(found: Any, wanted: Any, what: str) -> None:
    """Results are equal: integers are exact."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other, what)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=what)


@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_agree_with_numpy_and_stay_in_bounds(name: str, runtime: Device) -> None:
    text, arrays, _ = PROGRAMS[name]
    made = compiled(parse(text), runtime)
    assert made
    for label, one in made.items():
        assert "atomic_" in one.module.source, label
        for kernel in one.optimized:
            assert all(b.way is not None for b in bounds(kernel)), label
            assert not shared_stores(kernel), label
    modules = [m.module for m in made.values()]
    for label, found in zip(made, results(runtime, modules, arrays), strict=True):
        same(found, wanted_of(name), label)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "long" not in n])
def test_every_pass_preserves_the_result_and_bounds_on_code_hold(name: str) -> None:
    text, arrays, _ = PROGRAMS[name]
    program = parse(text)
    given = dict(zip((p.name for p in program.params), arrays, strict=True))
    for candidate in candidates(program, DEFAULT_DEVICE)[:1]:
        one = compile_program(candidate.skeleton.at(candidate.point))
        for kernels in (*nests_of(one).values(), one.loops, one.optimized):
            same(interpreted(one, kernels, given), wanted_of(name), candidate.label)
        assert misjudged(chain(candidate.skeleton.program), {}, one) == ""


@pytest.mark.oclgrind
def test_oclgrind_finds_no_race() -> None:
    names = [name for name in PROGRAMS if "long" not in name]
    jobs = []
    for name in names:
        text, arrays, _ = PROGRAMS[name]
        program = parse(text)
        (one, *_) = compiled(program, DEFAULT_DEVICE).values()
        jobs.append((one.module, dict(zip((p.name for p in program.params), arrays, strict=True))))
    for name, (found, complaints) in zip(names, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], name
        same(found, wanted_of(name), name)


def test_no_atomic_updates_of_floats_or_without_the_laws_or_of_rows() -> None:
    for t, step, init in (
        ("f32", "add", "0 |> repeat(7)"),
        ("i64", "addI64", "0i64 |> repeat(7)"),
        ("i32", "(a, x) => a + x", "0i32 |> repeat(7)"),
        ("i32", "(a, x) => a - x", "0i32 |> repeat(7)"),
    ):
        text = f"def p(is: [8]i32, xs: [8]{t}) = zip(is, xs) |> reduceByIndex({step}, {init})"
        assert not candidates(parse(text), DEFAULT_DEVICE), text
    rows = """def p(is: [8]i32, xss: [8][3]i32) = zip(is, xss)
      |> reduceByIndex((a, x) => zip(a, x) |> map(addInt), 0i32 |> repeat(3) |> repeat(7))"""
    assert not candidates(parse(rows), DEFAULT_DEVICE)


UPDATES = """def p(is: [11]i32, xs: [11]i32, z: [7]i32) = zip(is, xs) |> mapGlb(0, p => p)
  |> reduceByIndexAtomic(addInt, z |> mapGlb(0, x => x) |> toGlobal)"""


def test_work_items_share_an_element_only_by_atomic_updates_of_one_operator() -> None:
    """A plain store, and an update by another operator, to the same bins are races."""
    _, code = compile_program(LoweredProgram.of(parse(UPDATES))).optimized
    assert not shared_stores(code)
    (update,) = (s for s in code.block if isinstance(s, Update))
    stored = Store(update.cell, update.value)
    first = Store(Cell(update.cell.memory, nat(0)), update.value)
    read = replace(update, cell=Cell(update.cell.memory, nat(1)), value=update.cell)
    for other in (stored, first, replace(update, op="max"), read):
        block = Block((*code.block, other))
        assert shared_stores(replace(code, block=block)), other
    only = tuple(stored if s is update else s for s in code.block)
    assert shared_stores(replace(code, block=Block(only)))


def test_a_parameter_with_the_initial_values_is_not_updated(device: Device) -> None:
    """Without a kernel that copies it, the first kernel copies it in one work-item."""
    text = UPDATES.replace(" |> mapGlb(0, x => x) |> toGlobal", "")
    made = compile_program(LoweredProgram.of(parse(text)))
    assert len(made.loops) == 2
    z = STARTS.copy()
    (found,) = results(device, [made.module], (IS, XS, z))
    same(found, summed(STARTS, IS, XS), "no copy")
    assert "__global const int* restrict z" in made.module.source
