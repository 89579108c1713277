"""No wrong kernel hides behind a wide tolerance, and every right one passes."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest

from liftpy.compile import Kernel
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ArgumentRefused, NothingMeasured, StoreRefused
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.exploring import explore
from liftpy.explore.measure.bounding import Bounding, narrow_bounds
from liftpy.explore.measure.check import Error
from liftpy.explore.measure.compiling import Compiler
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.report.page import reproduce
from liftpy.explore.space import precision
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import composed, skeletons
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import WINOGRAD
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.winograd.triple import cook_toom
from liftpy.workloads import workload
from tests.fuzz.correlations import Case, drawn
from tests.staged import derivations


def in_f32(case: Case, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The convolution in f32, one tap after another."""
    x, w, b = (arrays[n] for n in "xwb")
    padded = np.pad(x, (*((p, p) for p in case.around), (0, 0)))
    rows, columns = case.sides
    out = np.tile(b, (rows, columns, 1))
    for i, j, c in np.ndindex(*case.taps, case.channels):
        part = padded[i : i + rows, j : j + columns, c]
        out = out + part[:, :, np.newaxis] * w[:, i, j, c]
    return out


class Tried:
    """A case and its judge, with and without the bounds of the direct form."""

    def __init__(self, case: Case, arrays: dict[str, np.ndarray] | None = None) -> None:
        program = case.program
        self.arrays = inputs(program) if arrays is None else arrays
        wanted = expected(program, self.arrays)
        self.judge = Judge(program, self.arrays, wanted)
        self.bounds = narrow_bounds(program, self.arrays, wanted)
        assert self.bounds is not None
        self.right = in_f32(case, self.arrays)
        assert isinstance(self.judge.judge(self.right, self.bounds), Error)

    def hides(self, wrong: np.ndarray) -> bool:
        """Whether the tolerance accepts a wrong result; the bounds must refuse it, and say why."""
        verdict = self.judge.judge(wrong, self.bounds)
        assert isinstance(verdict, WrongResult)
        hidden = isinstance(self.judge.judge(wrong), Error)
        assert ("rounding explains a difference of at most" in verdict.reason) == hidden
        return hidden


def test_a_tap_that_is_dropped_at_one_element_of_the_border_is_found():
    """Its product is small beside the largest value, but not beside its own rounding."""
    case = Case((9, 9), 1, 2, (3, 3), 0)
    given = inputs(case.program)
    given["x"][0, 1, 0] = 2e-5
    tried = Tried(case, given)
    wrong = tried.right.copy()
    product = given["x"][0, 1, 0] * given["w"][0, 1, 2, 0]
    wrong[0, 0, 0] -= product
    assert 0 < abs(product) < 1e-5 * np.abs(tried.right).max()
    assert tried.hides(wrong)
    wrong[0, 0, 0] -= 0.01
    assert not tried.hides(wrong)


def test_a_last_channel_that_is_left_out_is_found_though_its_data_is_small():
    case = Case((7, 8), 5, 3, (3, 3), 0)
    given = inputs(case.program)
    given["x"][:, :, 4] *= 1e-5
    tried = Tried(case, given)
    fewer = replace(case, channels=4)
    part = {"x": given["x"][:, :, :4], "w": given["w"][:, :, :, :4], "b": given["b"]}
    assert tried.hides(in_f32(fewer, part))


@pytest.mark.parametrize(("change", "hidden"), [(1e-3, False), (1e-6, True)])
def test_an_entry_of_a_matrix_that_is_changed_is_found(change, hidden):
    """F(2, 3) in one dimension, as a program, with a wrong entry of A^T."""
    program = parse(
        "def p(x: [40]f32, w: [3]f32) = x |> slide(3, 1)"
        " |> map(part => zip(part, w) |> map(mul) |> reduce(add, 0))"
    )
    arrays = inputs(program)
    wanted = expected(program, arrays)
    judge, bounds = Judge(program, arrays, wanted), narrow_bounds(program, arrays, wanted)
    f = cook_toom(2, 3)
    at, g, bt = (np.array(a, np.float64) for a in (f.at, f.g, f.bt))
    tiles = np.lib.stride_tricks.sliding_window_view(arrays["x"].astype(np.float64), 4)[::2]

    def result(at):
        return ((tiles @ bt.T * (g @ arrays["w"])) @ at.T).ravel().astype(np.float32)

    assert isinstance(judge.judge(result(at), bounds), Error)
    at[1, 1] += change
    assert isinstance(judge.judge(result(at), bounds), WrongResult)
    assert isinstance(judge.judge(result(at)), Error) == hidden


@pytest.mark.parametrize(
    ("case", "narrow"),
    [
        (Case((9,), 45, 2, (5,), 0), ""),
        (Case((9,), 17, 2, (3,), 0), "direct 2 2+overlap"),
        pytest.param(
            Case((9, 9), 3, 2, (3, 3), 0),
            "direct 2x2 2x2+overlap 1x2 1x4",
            marks=pytest.mark.soak,
        ),
    ],
    ids=["long", "one dimension", "two dimensions"],
)
def test_long_sums_and_forms_with_wide_bounds_have_the_tolerance_alone(case, narrow):
    """Their bounds are not evaluated."""
    assert bounds_of(case).keys() == {*narrow.split()}


def bounds_of(case: Case) -> dict[str, int]:
    """The roundings of the forms that have narrow bounds."""
    program = case.program
    arrays = inputs(program)
    bounding = Bounding(program, arrays, expected(program, arrays))
    others = {dict(p.words)[WINOGRAD]: p for p in partitions(program) if p.other_algorithm}
    made = {word: plainly_made(partition) for word, partition in others.items()}
    made["direct"] = skeletons(program, ("plain",))[0]
    found = {form: bounding.bounds(skeleton) for form, skeleton in made.items()}
    return {form: bounds.roundings for form, bounds in found.items() if bounds is not None}


def plainly_made(partition: Partition) -> Skeleton:
    """A skeleton of a partition, with each stage by the first family that makes it."""
    stages = (
        next(s for name in FAMILIES for s in derivations(partition, stage, name, Random(0)))
        for stage in partition.stages
    )
    return composed(partition, [*stages])


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(k, marks=pytest.mark.soak) for k in range(8) if k != 3)]
)
def test_right_candidates_of_drawn_convolutions_pass_in_all_forms(seed, device):
    case = Case.drawn(seed)
    program, arrays = case.program, dict(zip("xwb", case.arrays, strict=True))
    wanted = expected(program, arrays)
    bounding, judge = Bounding(program, arrays, wanted), Judge(program, arrays, wanted)
    forms = [next(drawn(program, device, {WINOGRAD: (form,)}, seed)) for form in case.words]
    others = [*itertools.islice(drawn(program, device, {}, seed), 4)]
    assert len(others) == 4
    for candidate in (*forms, *others):
        with contextlib.closing(Kernel(candidate, device)) as kernel:
            result = kernel(*case.arrays)
        verdict = judge.judge(result, bounding.bounds(candidate.skeleton))
        assert isinstance(verdict, Error), (candidate.label, verdict.reason)


SUMS = parse("def p(x: [9][7]f32) = x |> map(reduce(add, 0)) |> map(s => s * 3)")


def scaled_by(factor: str):
    """A compiler whose kernels multiply what they store by a factor."""

    def compiled(skeleton, sizes):
        module = compile_candidate(skeleton, sizes)
        out = module.launches[-1].arguments[-1]
        store = re.compile(rf"({out}\[.*\]) = (.*);")
        return replace(module, source=store.sub(rf"\1 = {factor} * (\2);", module.source))

    return compiled


@pytest.mark.usefixtures("in_one_process")
def test_a_campaign_refuses_what_rounding_does_not_explain(device, tmp_path):
    def outcomes(name, **options):
        with contextlib.suppress(NothingMeasured):
            explore(SUMS, 2, 0, tmp_path / name, device, again=False, **options)
        found = Campaign.read(tmp_path / name)
        return found, {row.outcome for row in found.rows}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Compiler.__module__], "compile_candidate", scaled_by("1.000004f"))
        found, kinds = outcomes("bound.db")
        assert kinds == {"wrong"}
        assert "rounding explains a difference of at most" in found.rows[0].reason
        assert found.identity.settings["check"] == "bound"
        given, kinds = outcomes("given.db", tolerance=1e-5)
        assert kinds == {"measured"}
        assert given.identity.settings["check"] is None
        resumed, _ = outcomes("given.db")  # as it began
        assert resumed.identity == given.identity
    assert outcomes("right.db")[1] == {"measured"}


def test_a_limit_on_the_error_leaves_out_forms_before_anything_is_built():
    case = Case((13,), 3, 2, (3,), 0)
    families = ("plain", "small", "direct")
    derive = partial(Space.whole, case.program, DEFAULT_DEVICE, families=families)
    whole = derive()
    assert {*whole.choices[WINOGRAD]} == {*case.words}
    assert whole.left_out == ()
    some = derive(max_error=1e-5)
    kept = ["2", "4", "2+overlap", "4+overlap"]
    assert some.choices[WINOGRAD] == kept
    assert {form.word for form in some.left_out} == {*case.words} - {*kept}
    keys = {unit.key for unit in some.units}
    assert some.counts() == {key: n for key, n in whole.counts().items() if key in keys}
    none = derive(max_error=0)
    assert WINOGRAD not in none.choices
    assert none.possible


def test_a_limit_on_the_error_applies_to_each_form_in_two_dimensions():
    case = Case((12, 13), 3, 2, (3, 3), 0)
    some = frozenset({"2x2", "2x2+overlap", "1x4", "6x4"})
    kept, left = precision.within_error([*partitions(case.program, words=some)], 1e-5)
    words = {dict(form.words).get(WINOGRAD) for form in kept} - {None}
    assert words == {"2x2", "2x2+overlap", "1x4"}
    assert {form.word for form in left} == {"6x4"}
    why = {form.word: form.why for form in left}
    assert "the error of F(6, 3) by F(4, 3) in two dimensions with 3 channels is" in why["6x4"]


def test_the_printed_bound_is_enough():
    case = Case((13,), 3, 2, (3,), 0)
    forms = [*partitions(case.program)]
    _, left = precision.within_error(forms, 0)
    assert {form.word for form in left} == {*case.words}
    for form in left:
        least = float(form.why.rpartition(" ")[2])
        kept, _ = precision.within_error(forms, least)
        assert form.word in {dict(partition.words).get(WINOGRAD) for partition in kept}


def test_a_form_whose_bound_is_not_known_is_left_out(monkeypatch):
    """Direct forms stay, whatever the number of products in a sum."""
    case = Case((13,), 3, 2, (3,), 0)
    monkeypatch.setattr(precision, "CHANNELS", range(1, 2))
    found = space_of(case.program, DEFAULT_DEVICE, max_error=1)
    assert found.left_out
    assert all("only for up to 1 products in a sum" in form.why for form in found.left_out)
    assert WINOGRAD not in found.choices
    assert found.possible


def test_a_campaign_keeps_its_limit_on_the_error(device, tmp_path):
    case, path = Case((5,), 2, 1, (3,), 0), tmp_path / "a.db"
    program = case.program
    notes: list[str] = []
    found = explore(program, 1, 0, path, device, max_error=1e-6, again=False, note=notes.append)
    assert found.identity.settings["max_error"] == 1e-6
    left = {word for note in notes for word in re.findall(r"winograd=(\S+) is left", note)}
    assert left == {*case.words}
    for other in (None, 1e-5):
        with pytest.raises(StoreRefused, match="max error: it has 1e-06"):
            explore(program, 1, 0, path, device, max_error=other, again=False)
    assert "--max-error 1e-06" in reproduce(found)
    with pytest.raises(ArgumentRefused, match="max_error=-1"):
        explore(program, 1, 0, path, device, max_error=-1)


def test_a_campaign_that_was_begun_without_bounds_goes_on_without_them(device, tmp_path):
    path = tmp_path / "old.db"

    def older(*args, **named):
        made = identity_of(*args, **named)
        del made.settings["check"], made.settings["max_error"]
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[explore.__module__], "identity_of", older)
        explore(SUMS, 1, 0, path, device, again=False)
    found = explore(SUMS, 2, 0, path, device, again=False)
    assert len(found.rows) == 2
    assert "check" not in found.identity.settings
    assert "--tolerance 1e-05" in reproduce(found)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name",
    [
        "stencil/poisson19/7x6x5",
        "stencil/separable/11x13x5",
        pytest.param("convolution/depthwise/9x8x4x3x1", marks=pytest.mark.soak),
        "pool/average/8x10x3x2x2",
        "gesummv/11x7",
        "atax/7x5",
    ],
)
def test_right_candidates_of_drawn_programs_pass(name, device):
    program = workload(name)
    arrays = inputs(program)
    wanted = expected(program, arrays)
    bounding, judge = Bounding(program, arrays, wanted), Judge(program, arrays, wanted)
    for candidate in space_of(program, device).sample(5, 2):
        with contextlib.closing(Kernel(candidate, device)) as kernel:
            result = kernel(*arrays.values())
        bounds = bounding.bounds(candidate.skeleton)
        assert bounds is not None or WINOGRAD in candidate.skeleton.words  # whose bounds are wide
        verdict = judge.judge(result, bounds)
        assert isinstance(verdict, Error), (candidate.label, verdict.reason)
