"""A compiled program as a function of arrays."""

import json

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused, TypeRefused
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.report import tables as report
from liftpy.explore.space.candidate import program_text
from liftpy.workloads import Convolution, convolution

pytestmark = pytest.mark.usefixtures("in_one_process")

SHIFT = lp.parse("def shift(xs: [5]f32, by: f32) = xs |> map(x => x - by)")
XS = np.arange(5, dtype=np.float32)


@pytest.mark.parametrize("by", [np.float32(3), np.asarray(3, np.float32), 3.0, 3])
def test_a_number_may_be_a_numpy_scalar_or_one_of_python(runtime, by):
    kernel = lp.compile(SHIFT, device=runtime)
    assert kernel(XS, by).tolist() == [-3, -2, -1, 0, 1]
    kernel.close()


@pytest.mark.parametrize("by", [np.float64(3), np.int32(3), True])
def test_a_number_of_another_type_is_refused(runtime, by):
    kernel = lp.compile(SHIFT, device=runtime)
    with pytest.raises(ArgumentRefused, match="by needs float32 numbers"):
        kernel(XS, by)
    kernel.close()


def test_a_closed_kernel_says_that_it_is(runtime):
    kernel = lp.compile(SHIFT, device=runtime)
    kernel.close()
    kernel.close()
    with pytest.raises(ArgumentRefused, match=r"(?s)is closed, .* compile the program again"):
        kernel(XS, np.float32(1))


@pytest.mark.parametrize(
    "body",
    [
        "xs |> mapLcl(0, x => x + 1)",
        "xs |> split(2) |> mapGlb(0, mapGlb(0, x => x))",
        "xs |> iterateSeq(1001, ys => ys |> mapGlb(0, x => x * x))",
    ],
)
def test_a_program_without_kernels_has_no_space(runtime, body):
    program = lp.parse(f"def f(xs: [6]f32) = {body}")
    with pytest.raises(TypeRefused) as compiled:
        lp.compile(program, device=runtime)
    with pytest.raises(TypeRefused) as spaced:
        lp.space(program, runtime)
    assert str(spaced.value) == str(compiled.value)


# --- an assignment --------------------------------------------------------------------------------

DOT = "def dot(xs: [12]f32, ys: [12]f32) = zip(xs, ys) |> map((x, y) => x * y) |> reduce(add, 0)"
ROWS = (
    "def rows(xs: [6][8]f32) = xs |> map(row => row |> pad(1, 1, 0) |> slide(3, 1)"
    " |> map(window => window |> reduce(add, 0)))"
)
STAGES = """def stages(xs: [8][8]f32) =
  let score = xs |> map(reduce(add, 0)) in
  score |> asVector(4) |> map(mapVec(y => y + y)) |> asScalar"""
CONV = program_text(convolution(Convolution(3, 4, 6, 4, (2, 2), (2, 2)), "conv"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "families"),
    [
        (DOT, {"plain", "partial"}),
        (ROWS, {"plain", "tiled"}),
        (CONV, {"plain", "direct", "local"}),
        (STAGES, {"stages"}),
    ],
    ids=["dot", "rows", "conv", "stages"],
)
def test_a_rows_assignment_compiles_to_its_kernels(text, families, device, tmp_path):
    program, file = lp.parse(text), tmp_path / "rows.db"
    options = {"device": device, "families": [*families - {"stages"}] or None}
    campaign = lp.explore(program, 8, db=file, again=False, search="random", **options)
    rows = {row.assignment["family"]: row for row in campaign.rows}
    assert rows.keys() == families
    stored = {row.id: row.assignment for row in campaign.rows}
    drawn = {c.key: c.assignment for c in lp.space(program, **options).sample(8, 0)}
    both = drawn.keys() & stored.keys()
    assert len(both) >= len(stored) - 1  # the first place is the plainest candidate's
    assert {key: drawn[key] for key in both} == {key: stored[key] for key in both}
    listed = report.candidates_json(campaign)
    assert {entry["id"]: json.loads(json.dumps(entry["assignment"])) for entry in listed} == stored
    for row in rows.values():
        kernel = lp.compile(program, row.assignment, device=device)
        kernel.close()
        with CampaignReader.read(file) as store:
            assert kernel.sources == store.kernels(row.id)[0]
        assert kernel.assignment == row.assignment
        assert lp.space(program, device).explain(row.assignment).count == 1


def test_an_assignment_that_one_candidate_has_need_not_be_whole(device):
    space = lp.space(lp.parse(DOT), device)
    found = space.exactly({"strided": "yes", "chunk": 3})
    assert found.assignment == {"family": "partial", "strided": "yes", "chunk": 3}
