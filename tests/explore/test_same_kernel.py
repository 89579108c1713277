"""Keys of launches: equal where the device is asked for the same, and nowhere else."""

from dataclasses import replace
from itertools import islice

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.same_kernel import Kernels
from liftpy.explore.search.trial import launches_of
from liftpy.explore.space.member import Drawing
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Launch
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import StagedSkeleton

SOURCE = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
inline long floor_div(long a, long b) { return a / b; }
inline long floor_mod(long a, long b) { return a - b * floor_div(a, b); }
inline float unused(float a) {
  return a;
}
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void k0_score(__global const float* restrict w, __global const float* restrict xs, __global float* \
restrict score) {
  const int lid0 = get_local_id(0); // xs of w
  score[floor_mod(lid0, 3)] = xs[lid0] * w[lid0];
}

__kernel void k1_output(__global const float* restrict score, __global float* restrict output) {
  output[0] = score[0];
}
"""
FIRST = Launch("k0_score", ("w", "xs", "score"), (4, 1, 1), (4, 1, 1), "run")
SECOND = Launch("k1_output", ("score", "output"), (1, 1, 1), None, "run")
SIZES = {"w": 16, "xs": 24, "score": 16, "output": 4}
KERNELS = Kernels(SOURCE, (FIRST, SECOND), SIZES, "-cl-std=CL1.2", "d0")


def first(kernels: Kernels) -> str | None:
    return kernels.key(kernels.launches[0])


def with_source(old: str, new: str) -> Kernels:
    assert old in SOURCE
    return replace(KERNELS, source=SOURCE.replace(old, new))


def test_names_and_what_is_around_do_not_count():
    assert len({*KERNELS.run_keys()}) == 2
    text = (
        SOURCE[: SOURCE.index("inline float unused")]
        + SOURCE[SOURCE.index("__kernel") : SOURCE.index("__kernel void k1")]
    )
    text = text.replace("k0_score", "k3_product").replace(" // xs of w", "")
    text = text.replace("* restrict w, __global const float* restrict xs", "* restrict a, B")
    text = text.replace("B, ", "__global const float* restrict b, ").replace("score", "product")
    text = text.replace("xs[", "a[").replace("w[", "b[")  # in another order, by their names
    launch = replace(FIRST, function="k3_product", arguments=("a", "b", "product"))
    sizes = {"a": 24, "b": 16, "product": 16}
    other = replace(KERNELS, source=text, launches=(launch,), sizes=sizes)
    assert other.run_keys() == [first(KERNELS)]


@pytest.mark.parametrize(
    "other",
    [
        with_source("xs[lid0] * w[lid0]", "xs[lid0] * xs[lid0]"),
        with_source("xs[lid0] * w[lid0]", "w[lid0] * w[lid0]"),
        with_source("get_local_id(0)", "get_global_id(0)"),
        with_source("reqd_work_group_size(4, 1, 1)", "reqd_work_group_size(2, 2, 1)"),
        with_source("const float* restrict w", "const int* restrict w"),
        with_source("return a - b * floor_div(a, b)", "return a % b"),
        with_source("return a / b", "return (a - 1) / b"),  # called by what is called
        with_source("fp64", "fp16"),
        replace(KERNELS, launches=(replace(FIRST, global_size=(8, 1, 1)), SECOND)),
        replace(KERNELS, launches=(replace(FIRST, local_size=(2, 1, 1)), SECOND)),
        replace(KERNELS, launches=(replace(FIRST, local_size=None), SECOND)),
        replace(KERNELS, sizes={**SIZES, "xs": 32}),
        replace(KERNELS, sizes={**SIZES, "w": 24, "xs": 16}),
        replace(KERNELS, options="-cl-std=CL1.2 -cl-opt-disable"),
        replace(KERNELS, device="d1"),
    ],
)
def test_everything_else_counts(other):
    assert first(other) is not None
    assert first(other) != first(KERNELS)


def test_text_that_is_printed_otherwise_has_no_key():
    for other in (
        with_source("void k0_score", "void other"),
        with_source("restrict w,", "restrict w ,"),
    ):
        assert other.run_keys() is None
    assert (
        replace(KERNELS, launches=(replace(FIRST, arguments=("xs", "w", "score")),)).key(
            replace(FIRST, arguments=("xs", "w", "score"))
        )
        is None
    )


def test_what_runs_once_has_no_key():
    once = replace(KERNELS, launches=(replace(FIRST, phase="prepare"), SECOND))
    assert once.run_keys() == KERNELS.run_keys()[1:]


def test_a_stored_module_has_the_keys_of_the_compiled_one():
    program = parse("def p(xs: [6][8]f32) = xs |> map(reduce(add, 0))")
    for candidate in Space.whole(program, DEFAULT_DEVICE).sample(8):
        module = compile_candidate(candidate.skeleton, candidate.point)
        made = Kernels.of(module, DEFAULT_DEVICE)
        stored = Kernels.stored(module.source, module.manifest(), made.options, made.device)
        assert stored.run_keys() == made.run_keys()
        assert None not in stored.run_keys()


@pytest.mark.parametrize(
    "text",
    [
        """def p(xs: [6][8]f32, const w: [4][8]f32, zs: [6]f32) =
          let big = xs |> map(r => w |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0))) in
          let sum = zs |> reduce(add, 0) in
          let most = big |> transpose |> map(reduce(maximum, 0)) in
          most |> padClamp(1, 1) |> slide(3, 1) |> map(reduce(add, 0)) |> map(x => x / sum)""",
        """def p(xs: [12]i32) =
          let sum = xs |> reduce(add, 0) in xs |> map(x => x / sum)""",
    ],
)
def test_a_stage_has_the_same_keys_alone_and_in_its_program(text):
    families = ["plain", "direct", "cooperative"]
    for product in Space.whole(parse(text), DEFAULT_DEVICE, families=families).products:
        for skeleton, sizes in islice(product.draws(Drawing(0)), 3):
            assert isinstance(skeleton, StagedSkeleton)
            keys = Kernels.of(compile_candidate(skeleton, sizes), DEFAULT_DEVICE).run_keys()
            alone = [
                key
                for (_, own), count in zip(
                    skeleton.stages, launches_of(skeleton, sizes), strict=True
                )
                if count
                for key in Kernels.of(compile_candidate(own, sizes), DEFAULT_DEVICE).run_keys()
            ]
            assert keys == alone
