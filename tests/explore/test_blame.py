"""A wrong result names the first stage whose value is wrong: kernels are broken, campaigns real."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import islice

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import InternalError, NothingMeasured
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.exploring import explore
from liftpy.explore.measure.blame import up_to
from liftpy.explore.measure.check import Right
from liftpy.explore.measure.compiling import Compiler
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import Measurer
from liftpy.explore.measure.messages import Cut, Inspect, Setup
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.space.candidate import Candidate, program_text
from liftpy.explore.space.member import Drawing
from liftpy.explore.space.precision import partition_of
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.skeleton import Skeleton

pytestmark = pytest.mark.usefixtures("in_one_process")

#: A stage that runs once, one after another, and a value that two stages read.
PROGRAM = parse("""def p(xs: [9][7]f32, const w: [7]f32, zs: [9]f32) =
  let u = w |> map(x => x * x + 1) in
  let score = xs |> map(row => zip(row, u) |> map(mul) |> reduce(add, 0)) in
  let total = score |> reduce(add, 0) in
  let most = score |> reduce(maximum, -inf) in
  zip(score, zs) |> map((s, z) => (s - most) * z / total)""")
#: The sums have a shape that is not the one that is stored by the kernel alone, and two parts.
PAIRS = parse("""def q(xs: [9][7]f32, ys: [9][7]f32) =
  let pairs = zip(xs, ys) |> map((x, y) => zip(x, y) |> map((a, b) => (a * b, a + b))) in
  let sums = pairs |> map(map(p => p.0 - p.1)) |> map(reduce(add, 0)) in
  sums |> map(s => s * 2)""")


def broken(module: Module, number: int, how: str) -> Module:
    """A module whose kernel of this number stores something else."""
    launch = module.launches[number]
    out = launch.arguments[-1]
    head, name, rest = module.source.partition(f"void {launch.function}(")
    kernel, end, after = rest.partition("\n}\n")
    store = re.compile(rf"({out}\[.*\]) = (.*);")
    assert store.search(kernel), kernel
    return replace(module, source=head + name + store.sub(how, kernel) + end + after)


def campaign(program, device, path, number: int, how: str, **options) -> Campaign:
    """A campaign of which every candidate has a broken kernel."""

    def compiled(skeleton: Skeleton, sizes: dict[str, int]) -> Module:
        return broken(compile_candidate(skeleton, sizes), number, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Compiler.__module__], "compile_candidate", compiled)
        with pytest.raises(NothingMeasured):
            explore(program, 2, 0, path, device, families=["plain"], again=False, **options)
    return Campaign.read(path)


@pytest.mark.parametrize(
    ("number", "stage"), [*enumerate(["u", "score", "total", "most", "result"])]
)
def test_the_first_stage_that_is_wrong_is_named(device, tmp_path, number, stage):
    found = campaign(PROGRAM, device, tmp_path / "a.db", number, r"\1 = 1 + (\2);")
    assert found.rows
    for row in found.rows:
        assert row.outcome == "wrong"
        assert row.reason.startswith("result[")
        assert f"; the first stage that is wrong is {stage}" in row.reason
        inside = re.search(rf"{stage}\S* is (\S+), it should be (\S+)$", row.reason)
        assert (inside is None) == (stage == "result")
        if inside is not None:
            got, meant = map(float, inside.groups())
            assert got == pytest.approx(meant + 1, abs=1e-4)


def test_an_element_that_a_stage_does_not_write_is_said(device, tmp_path):
    how = r"if (get_global_id(0) != 3) \1 = \2;"
    (row, *_) = campaign(PROGRAM, device, tmp_path / "a.db", 1, how).rows
    assert "is score: score[3] is nan (an element that no work-item wrote)" in row.reason


def test_a_program_of_one_stage_has_none_to_name(device, tmp_path):
    program = parse("def p(xs: [9]f32) = xs |> map(x => x * 3)")
    (row, *_) = campaign(program, device, tmp_path / "a.db", 0, r"\1 = 1 + (\2);").rows
    assert "stage" not in row.reason


def test_where_no_stage_can_be_found_the_result_is_wrong_all_the_same(device, tmp_path):
    def fails(*_: object) -> None:
        raise InternalError("no values")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Compiler.__module__], "stored", fails)
        (row, *_) = campaign(PROGRAM, device, tmp_path / "a.db", 1, r"\1 = 1 + (\2);").rows
    assert (row.outcome, "stage" in row.reason) == ("wrong", False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", [PROGRAM, PAIRS], ids=lambda program: program.name)
def test_what_right_candidates_store_is_what_is_meant(program, device):
    """Of all families: nothing that is stored is blamed for its form."""
    given, arrays = Inputs.of(program)
    setup = Setup(program_text(program), device, given, expected(program, arrays), bounded=True)
    space = Space.whole(program, DEFAULT_DEVICE)
    seen = 0
    with Measurer(setup, 600.0) as measurer:
        for product in space.products:
            for skeleton, sizes in islice(product.draws(Drawing(0)), 3):
                candidate = Candidate(program, skeleton, tuple(sizes.items()))
                outcome = measurer.measure(candidate)
                assert isinstance(outcome, Measured), outcome.reason
                ready = measurer.prepare(candidate)
                there = measurer.compiler.ask(Cut(ready.candidate), 600.0, 600.0, "")
                assert len(there.values) == len(product.partition.stages) - 1
                look = Inspect(ready.compiled.module, there.values)
                found = measurer.bench.ask(look, 600.0, 600.0, "")
                assert all(isinstance(verdict, Right) for verdict in found.verdicts), found
                seen += len(found.verdicts)
    assert seen > 10


def test_the_programs_up_to_each_value_are_those_that_make_it(device):
    (product,) = Space.whole(PROGRAM, DEFAULT_DEVICE).products
    skeleton, _ = next(product.draws(Drawing(0)))
    partition = partition_of(skeleton)
    assert partition is not None
    types = [str(own.type) for own in up_to(PROGRAM, partition)]
    assert types == ["[7]f32", "[9]f32", "f32", "f32"]
