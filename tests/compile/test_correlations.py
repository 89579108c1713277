"""Correlations by F(m, r): which programs have the forms, and that these are right at odd sizes."""

from __future__ import annotations

import contextlib
import math
import random
from itertools import islice

import numpy as np
import pytest

import liftpy as lp
from liftpy.compile import Kernel
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.precision import partition_of
from liftpy.explore.spaces import space_of
from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.walk import every_part
from liftpy.language.text.program import parse, show
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.primitives import Pad
from liftpy.rewrite.algorithms import algorithms_of
from liftpy.rewrite.by_tiles import also_within, by_tiles, each_value
from liftpy.rewrite.composition import skeleton_named
from liftpy.rewrite.cuts import all_cut
from liftpy.rewrite.forms import in_turn, partitions
from liftpy.rewrite.rules.correlation import FLAT, SIZES, triple
from liftpy.rewrite.stages import HELD, STORED, WINOGRAD, Stage
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategies.hybrid import PARTS
from liftpy.rewrite.strategies.transformed import NAMED, saves, square, whole_square, winograd
from liftpy.rewrite.strategy import Success
from liftpy.semantics.evaluate import evaluate
from liftpy.winograd import linear
from liftpy.winograd.error import bound_of
from liftpy.winograd.sharing import applied
from liftpy.workloads import workload
from tests.draws import unproved
from tests.fuzz.correlations import Case, Form, drawn, errors
from tests.staged import of_partition

CASES = [
    Case((1, 1), 1, 1, (3, 3), 0),  # one result, far fewer than a tile has
    Case((5, 7), 3, 2, (3, 3), 1),
    Case((12, 12), 4, 8, (3, 3), 2),  # 2, 4 and 6 divide
    Case((1, 13), 7, 1, (5, 5), 3),
    Case((11, 6), 1, 9, (5, 5), 4),
    Case((3, 8), 2, 3, (7, 7), 5),
    Case((6, 9), 3, 4, (2, 2), 6, "nchw"),
    Case((8, 5), 4, 2, (7, 1), 7),
    Case((5, 11), 2, 5, (1, 7), 8, "nchw"),
    Case((7, 9), 5, 3, (5, 3), 9),
    Case((17,), 6, 5, (3,), 10),
    Case((13,), 3, 7, (5,), 11, "nchw"),
    Case((9, 6), 2, 3, (4, 4), 12),
    Case((13, 13), 2, 3, (3, 3), 29),  # 6x6 for 12 x 12 results, the others directly
    Case((6, 10), 3, 4, (2, 2), 30, "nchw"),  # 4x4 for one row of tiles
]

STRIDED = [
    Case((9, 12), 3, 5, (3, 3), 13, stride=2),
    Case((13, 8), 2, 3, (5, 5), 14, "nchw", stride=2),
    Case((11, 13), 3, 2, (7, 7), 15, stride=2, padded=False),
    Case((17, 14), 2, 3, (11, 11), 16, "nchw", stride=4, padded=False),
    Case((7, 11), 1, 4, (5, 7), 17, stride=3),
    Case((17,), 2, 3, (11,), 18, stride=3),
    Case((12, 3), 3, 2, (7, 1), 19, stride=2),
    Case((9, 12), 3, 5, (3, 3), 27, epilogue="relu", stride=2),
    Case((12, 9), 2, 3, (5, 5), 28, "nchw", "shift", "kernel first", stride=2),
    Case((11, 9), 3, 2, (5, 5), 44, stride=2, batch=2),
    Case((12, 7), 2, 3, (3, 3), 45, "nchw", stride=2, groups=2),
    Case((13,), 2, 3, (7,), 46, groups=2, batch=3, stride=3, padded=False),
]
"""Windows of blocks: 2, 3, 4, 3, 2 x 3, 4, 4 x 1, 2, 3, 3, 2 and 3 of them."""


CHUNKS = 16
"""The parts into which the forms of a case are divided; a test tries one of them."""


def part_of(case: Case, part: int) -> list[Form]:
    """Every sixteenth form of a case, from `part` on, with one of the forms that overlap."""
    overlaps = {form for form in case.forms if form[0].endswith("+overlap")}
    one = random.Random(case.seed).sample(sorted(overlaps), min(1, len(overlaps)))
    return sorted((case.forms - overlaps).union(one))[part::CHUNKS]


@pytest.mark.sampled(480)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize(
    ("case", "part"),
    [(case, part) for case in CASES for part in range(CHUNKS) if part_of(case, part)],
    ids=str,
)
def test_every_form_is_right_within_its_bound(runtime, case: Case, part: int) -> None:
    tried = part_of(case, part)
    found = errors(case, runtime, tried)
    assert found.keys() == {*tried}
    assert max(max(each) for each in found.values()) <= 1


FINISHED = [
    (Case((5, 7), 3, 4, (3, 3), 20, "nhwc", "relu"), ("1x4", STORED)),
    (Case((4, 6), 2, 3, (3, 3), 21, "nchw", "shift", "nested"), ("4x6", STORED)),
    (Case((5, 9), 2, 3, (3, 3), 25, "nhwc", "inside", "nested"), ("4x4", STORED)),
    (Case((11,), 3, 5, (3,), 23, "nhwc", "shift"), ("4", HELD)),
    (Case((7, 3), 1, 3, (5, 1), 24, "nchw", "relu"), ("4x1", STORED)),
    (Case((5, 6), 3, 2, (3, 3), 22, "nchw", "residual", "kernel first"), ("4x4", HELD)),
    (Case((13, 13), 2, 3, (3, 3), 31, "nhwc", "inside"), ("6x6+direct", HELD)),
    (Case((5, 10), 2, 3, (2, 2), 32, "nchw", "relu"), ("4x4+direct", STORED)),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("case", "form"), FINISHED, ids=str)
def test_what_is_done_to_each_result_is_fused_into_the_last_step(device, case: Case, form) -> None:
    """It is applied to the results of a tile, without a kernel of its own."""
    ((error,),) = errors(case, device, [form]).values()
    assert error <= 1


#: Convolutions in maps, over images and over groups, each with one of its forms.
MANY = [
    (Case((5, 7), 3, 2, (3, 3), 20, batch=3), ("4x4", HELD)),
    (Case((7, 5), 2, 3, (3, 3), 21, "nchw", batch=3), ("1x4", STORED)),
    (Case((5, 7), 3, 2, (3, 3), 22, groups=2), ("2x2", STORED)),
    (Case((7, 5), 1, 3, (3, 3), 23, "nchw", groups=3), ("6x6", HELD)),
    (Case((5, 3), 2, 3, (5, 5), 24, groups=2), ("1x2", HELD)),
    (Case((5, 7), 3, 2, (3, 3), 25, "nchw", groups=2, batch=3), ("4x4", STORED)),
    (Case((13,), 3, 5, (5,), 26, "nchw", groups=3, batch=2), ("4", STORED)),
    (Case((5, 7), 1, 2, (3, 1), 8, "nhwc", "inside", batch=2), ("2x1", STORED)),
    (Case((9, 5), 4, 3, (5, 5), 48, "nhwc", "inside", batch=3), ("4x4", HELD)),
    (Case((10, 6), 3, 1, (4, 4), 9, "nchw", "inside", groups=3, batch=1), ("2x2", STORED)),
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize(("case", "form"), MANY, ids=str)
def test_a_form_in_a_map_is_right_within_its_bound(runtime, case: Case, form: Form) -> None:
    found = errors(case, runtime, {form})
    assert found.keys() == {form}
    assert max(found[form]) <= 1


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("case", STRIDED, ids=str)
def test_windows_with_a_stride_are_right_within_the_bound(runtime, case: Case) -> None:
    chosen = random.Random(case.seed).choice(sorted(case.forms))
    found = errors(case, runtime, [chosen])
    assert found.keys() == {chosen}
    assert max(found[chosen]) <= 1


IN_MAPS = tuple(MANY[k][0] for k in (0, 2, 6, 7, 8, 9))


SOME = [
    pytest.param(case, marks=pytest.mark.sampled(48))
    for case in (*CASES, *(c for c, _ in FINISHED), *IN_MAPS, *STRIDED)
]


@pytest.mark.parametrize("case", SOME, ids=str)
def test_a_case_has_the_forms_that_it_states(case: Case) -> None:
    assert forms(case.text("x", "w", "b"), **case.fused) == sorted(case.forms)


def forms(text: str, **words: tuple[str, ...]) -> list[tuple[str, str]]:
    """The tiles of each form of a program, and whether these and the products are held.

    Only hybrids and forms with the given words count.
    """
    made = [dict(p.words) for p in partitions(parse(text)) if p.other_algorithm]
    made = [
        own
        for own in made
        if own[WINOGRAD].endswith("+direct")
        or all(own[name] in allowed for name, allowed in words.items())
    ]
    assert all(own["inputs"] == own["products"] for own in made)
    return sorted((own[WINOGRAD], own["inputs"]) for own in made)


OVERLAPPING = [((5, 7), (3, 3), 4), ((13, 6), (5, 5), 2), ((9, 4), (2, 2), 2), ((17,), (3,), 6)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("sides", "taps", "m"), OVERLAPPING)
def test_tiles_that_overlap_read_the_array_and_no_more_zeros(sides, taps, m: int) -> None:
    """As many points and products as padded tiles, over the array with its border only.

    With r taps: ceil(n/m) tiles in a dimension of n results, of m + r - 1 points each.
    """
    case, more = Case(sides, 3, 2, taps, 34), len(sides) - 1
    word = f"{m}x{m}" if more else f"{m}"
    stages, other = stages_of(case, f"{word}+overlap"), stages_of(case, word)
    tiles = math.prod(-(-n // m) for n in case.results)
    points = (m + taps[0] - 1) ** len(sides)
    for made in (stages, other):
        types = {name: str(stage.program.body.body.type) for name, stage in made.items()}
        assert types["inputs"] == f"[{points}][{tiles}][3]f32"
        assert types["products"] == f"[{points}][{tiles}][2]f32"
    assert stages["products"].key == other["products"].key
    assert stages["filters"].key == other["filters"].key
    assert added(stages["inputs"]) == sum(case.around)
    assert added(other["inputs"]) == sum(case.around) + sum(-n % m for n in case.results)


def added(stage: Stage) -> int:
    """The number of zeros after the array in all dimensions, in the stage's padding."""
    calls = (e.fun for e in every_part(stage.program.body.body) if isinstance(e, FunCall))
    return sum(int(fun.right) for fun in calls if isinstance(fun, Pad))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("sides", "word"), [((8, 12), "4x4"), ((9, 3), "4x4"), ((12,), "6")])
def test_tiles_overlap_only_if_one_is_partial_and_all_fit(sides, word: str) -> None:
    case = Case(sides, 1, 2, (3,) * len(sides), 35)
    found = {form for form, _ in forms(case.text("x", "w", "b"))}
    assert word in found
    assert f"{word}+overlap" not in found


def test_tiles_have_classes_only_if_the_array_is_padded() -> None:
    """Also if it is padded in a map over images, where no padded copy can be stored."""
    batch = stages_of(Case((5, 7), 1, 2, (3, 3), 41, "nchw", batch=2), "2x2")["inputs"]
    assert pads_of(batch) == {"fused", "classes"}
    assert pads_of(stages_of(Case((4, 7), 1, 2, (2, 2), 42), "2x2+overlap")["inputs"]) == {"fused"}


def pads_of(stage: Stage) -> set[str]:
    """The words of the choice `pad` of straight-line code for a stage."""
    return {skeleton.words["pad"] for skeleton in skeletons_of(FAMILIES["small"], stage.canonical)}


@pytest.mark.parametrize(("sides", "word"), [((5, 6), "2x2"), ((11,), "4")])
def test_a_result_that_two_tiles_have_is_stored_once(sides, word: str) -> None:
    """It is proved that no element has two writers, in each mapping of the last step."""
    case = Case(sides, 1, 2, (3,) * len(sides), 36)
    last = stages_of(case, f"{word}+overlap")["result"]
    made = skeletons_of(FAMILIES["small"], last.canonical)
    assert made
    for skeleton in made:
        assert unproved(compile_program(skeleton.at({})).optimized) == []


BY_CLASSES = [
    (Case((5, 7), 3, 2, (3, 3), 37), "2x2"),
    (Case((13, 6), 2, 3, (5, 5), 38, "nchw"), "2x2+overlap"),
    (Case((17,), 2, 3, (3,), 39), "4+overlap"),
    (Case((9, 4), 1, 2, (4, 4), 40), "4x4"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize(("case", "word"), BY_CLASSES, ids=str)
def test_tiles_by_classes_of_the_border_are_right_within_the_bound(runtime, case, word) -> None:
    fixed = {WINOGRAD: (word,), "inputs": (STORED,), "inputs.pad": ("classes",)}
    (candidate,) = space_of(case.program, runtime, fixed=fixed).sample(1, case.seed)
    with contextlib.closing(Kernel(candidate, runtime)) as kernel:
        assert np.abs(kernel(*case.arrays) - case.expected).max() <= case.allowed(word)


def test_a_hybrid_computes_whole_tiles_and_the_rest_apart() -> None:
    """12 x 12 of 13 x 13 results in 2 x 2 tiles of 64 points; a column of 12, and a row of 13."""
    stages = stages_of(Case((13, 13), 2, 3, (3, 3), 29), "6x6+direct")
    made = {name: str(stage.program.body.body.type) for name, stage in stages.items()}
    assert made["products"] == "[64][4][3]f32"
    assert [made[name] for name in PARTS] == ["[12][12][3]f32", "[12][1][3]f32", "[1][13][3]f32"]
    assert stages["below"].is_direct
    assert stages["beside"].is_direct


@pytest.mark.parametrize("case", [*CASES, *STRIDED], ids=str)
def test_a_hybrid_is_offered_where_it_takes_the_fewest_products(case: Case) -> None:
    if len(case.results) == 2 and case.blocks[0] == case.blocks[1]:
        r = case.blocks[1]
        offered = [m for m, taps in SIZES if taps == r and saves(whole_square(m, r), case.results)]
        assert offered == case.hybrids


#: Depthwise convolutions of odd sizes in both layouts, with their words and r.
CHANNELS = [
    ("convolution/depthwise/9x7x5x3x1", 3, ["2x2", "4x4"]),
    ("convolution/depthwise/5x11x3x5x1:nchw", 5, ["2x2"]),
    ("convolution/depthwise/1x4x6x3x1:relu", 3, ["2x2", "4x4"]),
]
LINE = """
def p(x: [11][4]f32, const w: [4][3]f32, const b: [4]f32) =
  x |> pad(2, 0, 0) |> slide(3, 1) |> map(part =>
    zip(part |> transpose, w, b) |> map((d, k, b) => zip(d, k) |> map(mul) |> reduce(add, b)))
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "r", "words"), [*CHANNELS, ("line", 3, ["2", "4"])])
def test_a_depthwise_convolution_is_right_within_its_bound(device, name, r, words) -> None:
    """One stage transforms, multiplies and transforms back; `filters` runs before, in prepare."""
    program = parse(LINE) if name == "line" else workload(name)
    made = [p for p in partitions(program) if p.other_algorithm]
    assert sorted({dict(p.words)[WINOGRAD] for p in made}) == words
    rng = np.random.default_rng(33)
    shapes = [tuple(map(int, p.type.shape)) for p in program.params]
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    meant = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    for partition in made:
        assert partition.stages[0].name == "filters"
        (used,) = algorithms_of(partition)
        assert used.summed == 1
        m = int(dict(partition.words)[WINOGRAD][-1])
        dimensions = 1 if name == "line" else 2
        assert used.bound == bound_of(triple(m, r), dimensions)
        names = [["small", "plain"] for _ in partition.stages]
        candidate = of_partition(program, partition, device, names, random.Random(0))
        assert candidate is not None
        module = compile_candidate(candidate.skeleton, candidate.point)
        phases = [launch.phase for launch in module.launches]
        assert phases == ["prepare", *["run"] * (len(phases) - 1)]
        with contextlib.closing(Kernel(candidate, device)) as kernel:
            apart = np.abs(kernel(*arrays) - meant).max()
        assert apart <= float(used.bound.absolute) + 4 * 2.0**-24 * (r**dimensions + 2)


#: Convolutions that map over the groups of channels of each window, and the channels of a group.
GROUPED = [
    ("convolution/grouped/5x6x4x6x7x2", 2),
    ("convolution/grouped/6x3x9x3x2x3:nchw:relu", 3),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kept", [STORED, HELD])
@pytest.mark.parametrize(("name", "channels"), GROUPED)
def test_groups_of_each_window_have_the_forms_and_are_right(device, name, channels, kept) -> None:
    program = workload(name)
    rng = np.random.default_rng(43)
    shapes = [tuple(map(int, p.type.shape)) for p in program.params]
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    meant = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    words = {WINOGRAD: ("2x2",), "inputs": (kept,)}
    candidate = next(drawn(program, device, words, 0))
    partition = partition_of(candidate.skeleton)
    assert partition is not None
    (used,) = algorithms_of(partition)
    assert used.summed == channels
    with contextlib.closing(Kernel(candidate, device)) as kernel:
        apart = np.abs(kernel(*arrays) - meant).max()
    assert apart <= float(used.bound.absolute) + 2.0**-24 * (2 + float(abs(meant).max()))


def test_a_form_with_flat_transforms_differs_in_its_transforms_only() -> None:
    """The stage of the products is the same as that of the separable form."""
    case = Case((12, 12), 4, 8, (3, 3), 2)
    stages, flat = stages_of(case, "4x4"), stages_of(case, "4x4+flat")
    assert [*stages] == [*flat]
    assert {name for name in stages if stages[name].key == flat[name].key} == {"products"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("size", SIZES)
def test_flat_transforms_are_offered_where_they_take_no_more_operations(size) -> None:
    def operations(m: int, r: int, form: linear.Form) -> list[int]:
        f = triple(m, r)
        counts = [applied(a, form).counts for a in (f.bt, f.at)]
        return [c.additions + c.multiplications + c.negations for c in counts]

    flat, apart = (operations(*size, form) for form in (linear.Form.FLAT, linear.Form.SEPARABLE))
    assert (size in FLAT) == np.less_equal(flat, apart).all()


SQUARES, ROWS = ["2x2", "4x4", "6x6"], ["1x2", "1x4", "1x6"]
DENSE = """
def p(x: [10][11][3]{t}, const w: [4][{r}][{r}][3]{t}) =
  x |> slide({r}, {s}) |> map(rows => rows |> map(slide({r}, {s})) |> transpose |> map(part =>
    w |> map(k => zip(part |> join |> join, k |> join |> join) |> map({f}) |> reduce(add, 0))))
"""


def test_a_program_without_padding_or_bias_has_the_forms() -> None:
    found = {word for word, _ in forms(DENSE.format(t="f32", r=3, s=1, f="mul"))}
    overlaps = {f"{word}+overlap" for word in SQUARES}
    assert found == {*ROWS, *SQUARES, *overlaps, "4x6", "4x4+flat"}  # of 8 x 9 results


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"s": 3}, "windows that do not overlap"),
        ({"r": 6}, "no triple of six taps"),
        ({"f": "(a, b) => a + b"}, "a fold that adds no products"),
        ({"f": "(a, b) => a * a"}, "products of one array"),
    ],
)
def test_another_program_has_none(changed: dict, why: str) -> None:
    del why
    given = {"t": "f32", "r": 3, "s": 1, "f": "mul", **changed}
    assert forms(DENSE.format(**given)) == []


def test_a_rectifier_takes_no_stage() -> None:
    """A layer with a ReLU has the stages of one without; a stage of its own is a choice."""
    found: dict[tuple[str, ...], list[str]] = {}
    for epilogue in ("", "relu"):
        for made in partitions(Case((12,), 4, 3, (3,), 43, epilogue=epilogue).program):
            if made.other_algorithm:
                words = dict(made.words)
                key = words[WINOGRAD], words[NAMED[0]], words.get("stage1", "")
                found[key] = [stage.name for stage in made.stages]
    plain = {key: names for key, names in found.items() if not key[-1]}
    assert len(found) == 3 * len(plain) > 3
    for (*form, _), names in plain.items():
        assert found[*form, "fused"] == names
        assert found[*form, STORED] == [*names[:-1], "stage1", "result"]


def test_the_steps_have_names_and_belong_to_their_phases() -> None:
    program = workload("vgg16/12")
    for found in partitions(program):
        if found.other_algorithm:
            stages = {stage.name: stage for stage in found.stages}
            held = dict(found.words)["inputs"] == HELD
            assert {*NAMED} & {*stages} == ({"filters"} if held else {*NAMED})
            assert all(stages["filters"].is_constant(p) for p in stages["filters"].program.params)
            (first, *_) = (s for s in found.stages if s.name != "filters")
            assert not first.is_constant(first.program.params[0])
            assert first.holds == held


def stages_of(case: Case, word: str) -> dict[str, Stage]:
    """The stages of a case's form with this word, all stored."""
    made = next(
        p
        for p in in_turn(case.program, words=frozenset({word}))
        if p.other_algorithm and dict(p.words)[WINOGRAD] == word and dict(p.words)["inputs"] != HELD
    )
    return {stage.name: stage for stage in made.stages}


def test_the_tiles_of_a_batch_are_multiplied_together() -> None:
    """2 x 2 tiles of each of 3 images; the kernels are transformed once for all images."""
    stages = stages_of(MANY[0][0], "4x4")
    assert stages["filters"].program.constants == {"w"}  # not the bias
    assert [str(p.type) for p in stages["products"].program.params] == [
        "[36][12][3]f32",
        "[36][3][2]f32",
    ]


def test_each_group_has_products_of_its_own() -> None:
    """2 groups with 12 tiles and 16 points; no step reads what only others need."""
    stages = stages_of(MANY[2][0], "2x2")
    read = {name: [p.name for p in stage.program.params] for name, stage in stages.items()}
    assert read["inputs"] == ["x"]
    assert read["filters"] == ["w"]
    assert [str(p.type) for p in stages["products"].program.params] == [
        "[32][12][3]f32",
        "[32][3][2]f32",
    ]
    assert read["result"] == ["b", "products"]


def test_the_kernels_of_a_batch_are_transformed_and_packed_before_it_runs(device) -> None:
    made = {WINOGRAD: "2x2", "inputs": STORED, "products.family": "direct"}
    found = candidate_of(MANY[0][0].program, device, made)
    phases = [launch.phase for launch in compile_candidate(found.skeleton, found.point).launches]
    assert phases.count("prepare") == 2


CONVOLVED = "slide2d(3, 1) |> map2d(part => {})"
EACH = """w |> map(k => zip(part |> join |> join, k |> join |> join) |> map(mul)
  |> reduce(add, 0))"""
SPELLINGS = {
    "padded before": "xs |> map(pad2d(1, 1, 1, 1, 0)) |> map(x => x |> {conv})",
    "maps one by one": "xs |> map(slide2d(3, 1)) |> map3d(part => {each})",
    "a named image": "xs |> map(x => let p = x |> pad2d(1, 1, 1, 1, 0) in p |> {conv})",
    "a ReLU after": "xs |> map(x => x |> {conv}) |> map(map3d(y => max(y, 0)))",
    "a ReLU inside": "xs |> map(x => x |> {conv} |> map3d(y => max(y, 0)))",
    "a named result": "xs |> map(x => let c = x |> {conv} in c |> map3d(y => max(y, 0)))",
    "batches": "xs |> split(1) |> map(map(x => x |> {conv}))",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_a_batch_is_recognised(text: str) -> None:
    whole = text.format(conv=CONVOLVED.format(EACH), each=EACH)
    assert by_rule(f"def p(xs: [2][5][7][3]f32, const w: [4][3][3][3]f32) = {whole}") == 1


def by_rule(text: str) -> int:
    """The number of convolutions of a program that tiles of 4 x 4 results compute."""
    form = all_cut(Success(parse(text).body.body))
    made, _ = each_value(form, also_within(winograd(square(4, 3))))
    return sum(step.rule == "correlation_4_3" for step in made.steps)


def test_each_layer_in_a_map_is_recognised() -> None:
    conv = CONVOLVED.format(EACH)
    layers = f"x |> {conv} |> map3d(y => max(y, 0)) |> {conv}"
    text = f"def p(xs: [2][7][9][4]f32, const w: [4][3][3][4]f32) = xs |> map(x => {layers})"
    assert by_rule(text) == 2


def test_a_python_function_of_an_image_is_recognised() -> None:
    last, flat = lp.transpose() >> lp.map(lp.transpose()), lp.join() >> lp.join()

    @lp.program
    def batch(xs: lp.array(lp.f32, 2, 3, 5, 7), w: lp.const(lp.f32, 4, 3, 3, 3)):
        def conv(image):
            kernels = w >> lp.map(last)

            def output(part):
                def weigh(k):
                    products = lp.zip(part >> flat, k >> flat) >> lp.map(lp.mul)
                    return products >> lp.reduce(lp.add, 0)

                return kernels >> lp.map(weigh)

            return image >> last >> lp.slide2d(3, 1) >> lp.map2d(output)

        return xs >> lp.map(conv)

    assert by_rule(show(batch)) == 1


def test_a_work_item_holds_a_block_of_tiles_at_a_time(device) -> None:
    """9 tiles of 36 points, of 4 channels and 8 kernels: three blocks, one after another."""
    form = {WINOGRAD: "4x4", "inputs": HELD}
    made = {**form, "result.hold": "global", "result.pad": "fused"}
    sizes = {"result.block": 3, "result.turns": 3}
    found = candidate_of(CASES[2].program, device, {**made, **sizes})
    module = compile_candidate(found.skeleton, found.point)
    assert module.memory.scratch == 36 * 3 * (4 + 8) * 4
    phases = [launch.phase for launch in module.launches]
    assert phases == ["prepare", "prepare", "run"]  # kernels are transformed, then packed


def test_a_form_is_derived_again_from_its_key(device) -> None:
    program = CASES[10].program
    for candidate in islice(drawn(program, device, {WINOGRAD: ("4",)}, 0), 2):
        again = skeleton_named(program, candidate.skeleton.key)
        assert again is not None
        assert again.derivation.steps == candidate.skeleton.derivation.steps


def test_a_users_names_do_not_collide() -> None:
    """Parameters may have the names of the steps, and so may other values."""
    other = parse(CASES[10].text("inputs", "filters", "products"))
    made = [p for p in partitions(other) if p.other_algorithm]
    assert {len(p.stages) for p in made} == {2, 4}
    assert all(len({s.name for s in p.stages}) == len(p.stages) for p in made)


def test_a_name_inside_a_map_may_be_that_of_what_the_map_reads() -> None:
    """The inner `y` moves out of the map under another name, and every form keeps the value."""
    conv = (
        "pad(1, 1, 0) |> slide(3, 1) |> map(part => w |> map(k => "
        "zip(part |> join, k |> join) |> map(mul) |> reduce(add, 0)))"
    )
    program = parse(f"""
        def p(x: [2][6][2]f32, const w: [2][3][2]f32) =
          let y = x |> map(i => i |> {conv}) in
          y |> map(i => let y = i |> {conv} in
            zip(y, i) |> map(rows => zip(rows.0, rows.1) |> map((a, b) => a - b)))
    """)
    rng = np.random.default_rng(29)
    arrays = [rng.uniform(-1, 1, s).astype(np.float32) for s in ((2, 6, 2), (2, 3, 2))]
    meant = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    made = [form.expr for _, form in by_tiles(all_cut(Success(program.body.body)))]
    assert made
    for expr in made:
        after = Program("p", Lambda(program.params, expr))
        np.testing.assert_allclose(evaluate(after, *arrays, dtype=np.float64), meant, atol=1e-12)


@pytest.mark.parametrize("case", [CASES[7], STRIDED[5]], ids=str)
def test_forms_with_given_words_are_those_of_all_forms(case: Case) -> None:
    """Also those by phases, which a program with a stride has if it has no other forms."""
    every = partitions(case.program)
    for word in {dict(p.words).get(WINOGRAD) for p in every} - {None}:
        wanted = [p.words for p in every if dict(p.words).get(WINOGRAD) in {None, word}]
        made = partitions(case.program, words=frozenset({word}))
        assert [p.words for p in made] == wanted
        assert {s.key for p in made for s in p.stages} <= {s.key for p in every for s in p.stages}
