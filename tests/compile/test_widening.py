"""`widen=copy`: the copy of a tile converts stored numbers, and the tile holds the results."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.space.space import Space
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import STORAGE, scalars
from liftpy.language.text.program import parse, show
from liftpy.loops.bounds import bounds
from liftpy.loops.writers import shared_stores
from liftpy.pipeline import Compilation, compile_program
from liftpy.rewrite.strategies.conversions import stored_numbers_widened
from liftpy.rewrite.strategies.families.widening import COPY, WIDEN
from liftpy.rewrite.strategy import Success
from tests.batch import results
from tests.spaces import some_of, words_of

SUM = "map((u, v) => {u} * {v}) |> reduce(add, 0)"
BOTH, FIRST = SUM.format(u="f32(u)", v="f32(v)"), SUM.format(u="f32(u)", v="v")
STENCIL = "slide2d(3, 1) |> map2d(part => zip(part |> join, w) |> " + FIRST + ")"
MATRICES = "a |> map(row => b |> map(column => zip(row, column) |> " + BOTH + "))"
PROGRAMS = {
    "matrices": ("cooperative", f"def p(a: [13][12]{{t}}, b: [11][12]{{t}}) = {MATRICES}"),
    "one of two matrices": (
        "cooperative",
        f"""def p(a: [7][10]f32, b: [17][10]{{t}}) =
          a |> map(row => b |> map(column => zip(column, row) |> {FIRST}))""",
    ),
    "broadcasts": ("broadcast", f"def p(a: [13][12]{{t}}, b: [11][12]{{t}}) = {MATRICES}"),
    "a fold of pairs": (
        "cooperative",
        """def p(a: [7][11]{t}, b: [13][11]{t}) = a |> map(row => b |> map(column =>
          zip(row, column) |> reduce((sum, p) => sum + f32(p.0) * f32(p.1), 0f32)))""",
    ),
    "windows": ("local", f"def p(x: [11][13]{{t}}, const w: [9]f32) = x |> {STENCIL}"),
    "windows of a padded image": (
        "local",
        f"def p(x: [9][11]{{t}}, const w: [9]f32) = x |> pad2d(1, 1, 1, 1, 0) |> {STENCIL}",
    ),
}
TYPES = ["bf16", "flyte24"]


def program_of(name: str, t: str) -> tuple[str, Program]:
    """The family and the program of a case."""
    family, text = PROGRAMS[name]
    return family, parse(text.format(t=t))


def arrays_of(program: Program) -> list[np.ndarray]:
    """Random numbers, in the type of each parameter."""
    rng = np.random.default_rng(7)
    found = []
    for p in program.params:
        x = rng.uniform(-1, 1, tuple(map(int, p.type.shape))).astype(np.float32)
        (t,) = {*scalars(p.type)}
        found.append(lp.to_storage(x, t) if t in STORAGE else x)
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tiles_of_converted_numbers_give_the_meaning(runtime: Device, name: str, t: str) -> None:
    family, program = program_of(name, t)
    arrays = arrays_of(program)
    meant = lp.evaluate(program, *arrays)
    found = Space.of(program, runtime, some_of(program, family, 3, **{WIDEN: COPY}))
    members = [m for m in found.members if m.possible]
    assert members
    candidates = [found.candidate(dict(member.words), seed=5) for member in members]
    made = [compile_program(c.skeleton.at(c.point)) for c in candidates]
    for candidate, one in zip(candidates, made, strict=True):
        for code in one.optimized:
            assert all(bound.way for bound in bounds(code)), candidate.label
            assert not shared_stores(code), candidate.label
    each = results(runtime, [one.module for one in made], arrays)
    for candidate, got in zip(candidates, each, strict=True):
        np.testing.assert_allclose(got, meant, atol=1e-5, err_msg=candidate.label)


def compiled(name: str, t: str, **words: str) -> Compilation:
    """A candidate of a case."""
    family, program = program_of(name, t)
    found = Space.of(program, DEFAULT_DEVICE, some_of(program, family, 1, **words))
    candidate = found.candidate(dict(next(m for m in found.members if m.possible).words), seed=1)
    return compile_program(candidate.skeleton.at(candidate.point))


@pytest.mark.parametrize("name", ["matrices", "windows"])
def test_the_tile_holds_what_its_copy_converts(name: str) -> None:
    """Each number is converted as it is stored in local memory, and nowhere else."""
    for words, held in (({}, "ushort"), ({WIDEN: COPY}, "float")):
        (kernel,) = compiled(name, "bf16", **words).kernels
        assert {*re.findall(r"__local (\w+)", kernel.source)} == {held}
        read = [line for line in kernel.source.splitlines() if "read_bf16" in line]
        assert all(re.match(r" *(v?store\d*\(.*)?l\d", line) for line in read) == bool(words)


def test_without_stored_numbers_there_is_no_choice() -> None:
    plain = parse("def p(a: [13][12]f32, b: [11][12]f32) = " + MATRICES.replace("f32", ""))
    assert WIDEN not in dict(words_of(plain, "cooperative"))
    assert WIDEN in dict(words_of(program_of("matrices", "bf16")[1], "cooperative"))


def test_conversions_move_out_of_functions_and_past_layouts_up_to_padding() -> None:
    program = parse("""
        def p(x: [9]bf16) = x |> pad(1, 1, 0) |> slide(3, 2)
          |> map(w => w |> map(v => f32(v) * f32(v)) |> reduce(add, 0))""")
    result = stored_numbers_widened(program.body.body)
    assert isinstance(result, Success)
    wanted = parse("""
        def p(x: [9]bf16) = x |> pad(1, 1, 0) |> map(v => f32(v)) |> slide(3, 2)
          |> map(x1 => x1 |> map(x => x * x) |> reduce(add, 0))""")
    made = replace(program, body=Lambda(program.params, result.expr))
    assert show(made) == show(wanted)
