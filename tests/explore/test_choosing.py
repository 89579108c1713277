"""lp.choose: stages are chosen one by one, and their modelled times add up."""

import gc
import itertools
from collections import Counter
from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.explore import search as searches
from liftpy.explore.search import modelled_choice
from liftpy.explore.search.modelled_choice import HOPELESS, WHOLE, forecast
from liftpy.explore.search.stages import PATIENCE, Arm
from liftpy.explore.space.member import everything
from liftpy.ir.types import VNNI
from liftpy.opencl.devices import find_device
from liftpy.pipeline import collection_paused
from liftpy.rewrite.composition import STAGES, StagedSkeleton
from liftpy.rewrite.skeleton import key_of
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.time import modelled

X86 = "profile:xeon-silver-4208"
ATTENTION = lp.parse(
    "def p(q: [16][8]f32, k: [16][8]f32) ="
    " let scores = (q |> map(r => k |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0))))"
    " in scores |> map(row => row |> map(x => x * x) |> reduce(add, 0))"
)


@pytest.fixture(scope="module")
def choice():
    return lp.choose(ATTENTION, X86)


def test_the_model_of_stages_is_that_of_the_program(choice):
    """Each candidate, also one of several stages, has the time of its kernels as a whole."""
    device = find_device(X86)
    for model in (choice.best, *choice.others):
        lowered = model.candidate.skeleton.at(model.candidate.point)
        whole = modelled(lowered, device, hardware_of(device))
        assert whole.milliseconds == pytest.approx(model.milliseconds, rel=0.02)
        assert whole.bytes == model.modelled.bytes


def test_every_family_and_partition_has_a_candidate_or_a_reason(choice):
    space = lp.space(ATTENTION, X86)
    found = {model.alike for model in (choice.best, *choice.others)}
    found |= choice.left.keys() | choice.unlikely.keys()
    assert found == {m.family for m in space.members} | {p.key for p in space.products}
    best = choice.best.milliseconds
    assert all(spent > HOPELESS * best for spent in choice.left.values())
    for other in choice.others:
        assert other.milliseconds >= best
        assert " ms instead of " in choice.why_worse(other)


def test_the_choice_is_in_the_space(choice):
    assert lp.space(ATTENTION, X86).exactly(choice.assignment).key == choice.candidate.key


def test_constant_stages_take_no_time():
    """A transformed filter is computed before the runs."""
    program = lp.parse(
        "def p(xs: [8][64]f32, const w: [64][64]f32) ="
        " let sums = (w |> map(row => row |> reduce(add, 0)))"
        " in xs |> map(row => zip(row, sums) |> map(mul) |> reduce(add, 0))"
    )
    choice = lp.choose(program, X86)
    for model in (choice.best, *choice.others):
        assert len(model.modelled.kernels) == 1


def test_partitions_that_begin_badly_are_left(choice, monkeypatch):
    """Of each stage, a few candidates are modelled: they take twice as long as the best."""
    partition = "stages(scores=stored)"
    (stored,) = (model for model in choice.others if model.alike == partition)
    monkeypatch.setattr(modelled_choice, "UNLIKELY", 1.5)
    early = lp.choose(ATTENTION, X86)
    assert early.unlikely.keys() == {partition}
    assert stored.milliseconds <= early.unlikely[partition] > 1.5 * early.best.milliseconds
    assert early.considered < choice.considered
    assert early.candidate.key == choice.candidate.key


def test_of_families_that_begin_badly_only_a_few_candidates_are_modelled(monkeypatch):
    model, count = modelled_choice.Chooser.modelled, Counter()

    def counted(chooser, candidate):
        count[candidate.skeleton.family] += 1
        return model(chooser, candidate)

    monkeypatch.setattr(modelled_choice.Chooser, "modelled", counted)
    choice = lp.choose(lp.workload("resnet50/3"), X86)
    assert choice.unlikely
    assert all(count[family] <= modelled_choice.PROBED for family in choice.unlikely)
    assert count[choice.candidate.skeleton.family] > modelled_choice.PROBED
    assert all(spent > 2 * choice.best.milliseconds for spent in choice.unlikely.values())


def test_guided_search_begins_with_the_forecast_of_the_whole_space():
    """Then it prefers the forms that are expected to be fast, before any has a time."""
    space = lp.space(ATTENTION, X86)
    ahead = forecast(space)
    assert ahead is not None
    assert ahead.milliseconds.keys() == {WHOLE, *(p.key for p in space.products)}
    tried = searches.named("guided")(space, 0, [], everything)
    few = 2 * PATIENCE - 1  # after `PATIENCE` turns without a time, a form is not preferred
    first, *others = itertools.islice(tried, few)
    assert first.key == ahead.best.key
    assert first.ordinal == 0
    turns = Counter(form_of(candidate) for candidate in others)
    fast, slow = sorted(ahead.milliseconds, key=lambda form: ahead.milliseconds[form])
    assert ahead.milliseconds[slow] > 1.5 * ahead.milliseconds[fast]
    assert turns[fast] > turns[slow] + 1  # without times and models, they take turns


def form_of(candidate):
    """The key of a candidate's form in a forecast."""
    skeleton = candidate.skeleton
    if not isinstance(skeleton, StagedSkeleton):
        return WHOLE
    return key_of(STAGES, skeleton.choices)


def test_a_search_by_stages_without_a_forecast_gives_each_partition_a_turn():
    space = lp.space(ATTENTION, X86)
    tried = itertools.islice(searches.named("local")(space, 0, [], everything), 4)
    assert {form_of(c) for c in tried} >= {p.key for p in space.products}


def test_the_objects_of_a_space_are_not_traversed_as_new_ones():
    """They are old as soon as collection goes on, unless the process has frozen some."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    with collection_paused(kept=True):
        made = [[k] for k in range(20_000)]
    young = len(gc.get_objects(generation=0))
    gc.freeze()
    held = gc.get_freeze_count()
    with collection_paused(kept=True):
        more = [[k] for k in range(100)]
    still = gc.get_freeze_count()
    if not frozen:
        gc.unfreeze()
    assert gc.isenabled()
    assert young < len(made)
    assert held > 100 == len(more)
    assert still > held / 2


def test_each_partition_is_asked_for_its_time_a_few_times_only(monkeypatch):
    """The next turn takes time in proportion to the number of partitions."""
    measured, count = Arm.measured, Counter()

    def counted(arm):
        count[id(arm)] += 1
        return measured(arm)

    sums = (f"let y{k + 1} = (y{k} |> slide(3, 1) |> map(reduce(add, 0))) in" for k in range(3))
    space = lp.space(lp.parse(f"def p(y0: [64]f32) = {' '.join(sums)} y3 |> map(x => x * x)"), X86)
    tried = searches.named("guided")(space, 0, [], everything)
    next(tried)
    monkeypatch.setattr(Arm, "measured", counted)
    next(tried)
    assert len(count) > 8
    assert max(count.values()) < len(count)


PRODUCTS = lp.parse(
    "def p(x: [256][512]u8, const w: [256][512]i8) = x |> map(row => w |> map(column =>"
    " zip(row, column) |> map((a, b) => i32(a) * i32(b)) |> reduce(add, 0)))"
)


def test_a_processor_with_dot_products_of_bytes_chooses_them():
    """A vector of dot products takes the time of one operation, whatever its number of lanes."""
    xeon = find_device(X86)
    without, having = (replace(xeon, extensions=known) for known in ((), (VNNI,)))
    slow, fast = (lp.choose(PRODUCTS, device) for device in (without, having))
    assert "dots" not in {slow.assignment["family"], *(model.alike for model in slow.others)}
    assert fast.assignment["family"] == "dots"
    assert fast.assignment["lanes"] == "inner"
    assert fast.best.milliseconds < slow.best.milliseconds / 2
    alike = lp.parse(lp.show(PRODUCTS).replace("u8", "i8"))  # for these there is no instruction
    other = lp.choose(alike, having)
    assert other.assignment["family"] != "dots"
    assert other.best.milliseconds == lp.choose(alike, without).best.milliseconds
    others = {model.alike for model in fast.others} | fast.unlikely.keys()
    assert "direct" in others
