"""Programs of several stages: maps of folds that other maps read, fused into these or stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from liftpy.constraints.device import Device
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import STAGES
from liftpy.rewrite.forms import as_declared
from liftpy.rewrite.skeleton import FAMILY
from liftpy.rewrite.strategies.families import FAMILIES
from tests.compile.test_families import generic
from tests.compile.test_programs import all_right, inputs
from tests.draws import draws, tried
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import space
from tests.staged import form_of
from tests.subsample import first

TIMES = (
    "map(row => {} |> transpose |> map(column => zip(row, column) |> map(mul) |> reduce(add, 0)))"
)
LAYER = """|> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1) |> map2d(window => {} |> map(kernel =>
    zip(window |> join |> join, kernel |> join |> join) |> map(mul) |> reduce(add, 0)))"""
IMAGE = "x: [7][5][3]f32, const w: [6][3][3][3]f32"

PROGRAMS = {
    "a product, clipped": f"""
        def p(a: [7][11]f32, const b: [11][6]f32) =
          a |> {TIMES.format("b")} |> map2d(x => max(x, 0))""",
    "a product beside a matrix": f"""
        def p(a: [7][11]f32, const b: [11][6]f32, c: [7][6]f32) =
          zip(a |> {TIMES.format("b")}, c)
            |> map((news, olds) => zip(news, olds) |> map((new, old) => 3 * new - old))""",
    "a named product, clipped": f"""
        def p(a: [7][11]f32, const b: [11][6]f32) =
          let product = a |> {TIMES.format("b")} in product |> map2d(x => max(x, 0))""",
    "products in a map, clipped": f"""
        def p(as: [3][7][5]f32, b: [5][4]f32) =
          as |> map(a => a |> {TIMES.format("b")} |> map2d(x => max(x, 0)))""",
    "three matrices": f"""
        def p(a: [7][11]f32, const b: [11][6]f32, const c: [6][13]f32) =
          a |> {TIMES.format("b")} |> {TIMES.format("c")}""",
    "a layer, clipped": f"def p({IMAGE}) = x {LAYER.format('w')} |> map2d(map(x => max(x, 0)))",
    "two layers": f"""
        def p({IMAGE}, const v: [4][3][3][6]f32) = x {LAYER.format("w")} {LAYER.format("v")}""",
    "a layer, pooled": f"""
        def p({IMAGE}) = x {LAYER.format("w")}
          |> slide2d(2, 2) |> map2d(w => w |> join |> transpose |> map(reduce(maximum, -inf)))""",
    "two passes": """
        def p(x: [7][11]f32, const across: [3]f32, const down: [5]f32) =
          x |> map(pad(1, 1, 0) |> slide(3, 1)
                |> map(w => zip(w, across) |> map(mul) |> reduce(add, 0)))
            |> transpose
            |> map(pad(2, 2, 0) |> slide(5, 1)
                |> map(w => zip(w, down) |> map(mul) |> reduce(add, 0)))
            |> transpose""",
    "the least of a row that a fold makes": """
        def p(x: [7]f32, rows: [5][7]f32) =
          rows |> reduce((a, b) => a, x) |> reduce(minimum, 3)""",
    "a sum of sums": "def p(xs: [7][11]f32) = xs |> map(reduce(add, 0)) |> reduce(add, 0)",
    "sums less their mean": """
        def p(xs: [7][11]f32) =
          let sums = xs |> map(reduce(add, 0)) in
            sums |> map(s => s - (sums |> reduce(add, 0)) / 7)""",
}
DRAWS = 1  # of each family
BLOCKED = [n for n in PROGRAMS if any(w in n for w in ("matrices", "product", "layer", "beside"))]
PARTS = 3


def part_of(families: int) -> tuple[str, ...]:
    """Every third family; the first part has `direct`."""
    order = ("direct", *(name for name in FAMILIES if name != "direct"))
    return order[families::PARTS]


@pytest.mark.sampled(18)
@pytest.mark.parametrize("families", range(PARTS))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_some_stages_is_right(
    runtime: Device, name: str, families: int, kept: Path
) -> None:
    """Drawn candidates of every family: what the constraints allow compiles and is right."""
    program = parse(PROGRAMS[name])
    drawn = draws(program, first(), DRAWS, kept, part_of(families))
    some = tried(drawn, program, runtime)
    if some:
        all_right(program, ((d.label, d.module) for d in some), runtime)


@pytest.mark.parametrize("name", PROGRAMS)
def test_some_stages_have_register_blocks(name: str) -> None:
    """`direct` makes a stage that multiplies and adds in two nested maps."""
    stages = (stage for cut in as_declared(parse(PROGRAMS[name])) for stage in cut.stages)
    assert any(form_of(stage, "direct") for stage in stages) == (name in BLOCKED)


@pytest.mark.parametrize(
    ("name", "fused", "stored"),
    [("three matrices", 1, 2), ("two passes", 1, 2), ("a product, clipped", 1, 2)],
)
def test_a_stage_is_fused_or_stored_by_choice(name: str, fused: int, stored: int) -> None:
    """As many kernels; a stage that is stored is folded once for each element."""
    found = Space.whole(parse(PROGRAMS[name]), generic(), families=("plain",))
    kernels = {}
    for choice in ("fused", "stored"):
        plainly = {
            **{n: "plain" for n in found.choices if n.endswith(FAMILY) and choice == "stored"},
            **{n: "fused" for n in found.choices if n.endswith("pad") and choice == "stored"},
            **({"pad": "fused"} if choice == "fused" else {}),
            FAMILY: "plain" if choice == "fused" else STAGES,
        }
        plainly = {n: word for n, word in plainly.items() if "." in n or n == FAMILY}
        candidate = found.candidate({**plainly, "stage1": choice})
        kernels[choice] = len(compile_candidate(candidate.skeleton, candidate.assignment).launches)
    assert kernels == {"fused": fused, "stored": stored}


def test_without_a_cut_there_is_no_choice() -> None:
    found = space(parse("def p(xs: [7]f32) = xs |> reduce(add, 0)"), generic())
    assert not found.products
    assert not any(m.skeleton.cuts for m in found.members)


def test_what_functions_read_is_stored() -> None:
    """What a `let` names and a map's function reads would be computed for each element."""
    found = space(parse(PROGRAMS["sums less their mean"]), generic())
    assert not found.members
    assert [p.partition.words for p in found.products] == [()]


@pytest.mark.oclgrind
@pytest.mark.sampled(45)
@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("turn", range(len(FAMILIES)))
def test_no_race_and_no_stray_access(turn: int, third: int, kept: Path) -> None:
    """Oclgrind finds nothing in programs of several stages, each by another family in turn."""
    jobs, cases = [], []
    for k, (name, text) in [*enumerate(PROGRAMS.items(), turn)][third::3]:
        program = parse(text)
        arrays = dict(zip((p.name for p in program.params), inputs(program), strict=True))
        family = [*FAMILIES][k % len(FAMILIES)]
        for draw in draws(program, generic(), 1, kept, (family,)):
            jobs.append((draw.module, arrays))
            cases.append((name, draw.label))
    for case, (_, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert not complaints, (case, complaints[:3])
