"""A candidate is found without the units behind it, and is the one that the space would give."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.explore import one_candidate
from liftpy.explore.one_candidate import candidate_in_space, candidate_of, exact_candidate
from liftpy.explore.space import units
from liftpy.explore.space.units import families_for, units_of
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.rewrite import composition, partition
from liftpy.rewrite.composition import stage_skeletons
from liftpy.rewrite.forms import in_turn
from liftpy.rewrite.strategies.families import FAMILIES, derived
from liftpy.workloads import Convolution, convolution
from tests.fuzz.correlations import Case

LAYER = convolution(Convolution(4, 8, 8, 8, (2, 1), padding=(1, 0, 0, 0)), "layer")
LINE = Case((13,), 3, 2, (2,), 0).program
TWO = parse("""def two(xs: [6][8]f32, ys: [6]f32) =
  let score = xs |> map(reduce(add, 0)) in zip(score, ys) |> map((a, b) => a * b)""")
#: Its lanes read a value that maps fold, which cannot be fused: every partition has two stages.
CUT = parse("""def cut(xs: [8][8]f32) =
  let score = xs |> map(reduce(add, 0)) in
  score |> asVector(4) |> map(mapVec(y => y + y)) |> asScalar""")

FITTING = [
    (LAYER, {}),
    (LAYER, {"family": "direct"}),
    (LAYER, {"family": "direct", "kappa": 4}),
    (LAYER, {"family": "direct", "kappa": "4"}),
    (LAYER, {"family": "stages"}),
    (LAYER, {"kappa": 8}),
    (LAYER, {"winograd": "4x1"}),
    (LAYER, {"winograd": "2x1", "products.family": "direct", "products.kappa": 4}),
    (TWO, {}),
    (TWO, {"score": "stored"}),
    (TWO, {"score.family": "tiled", "result.family": "plain"}),
    (TWO, {"score.family": "plain", "result.family": "tiled", "result.tile0": 2}),
    (LINE, {"winograd": 4}),
    (CUT, {}),
]


@functools.cache
def whole(program):
    """The space of a program."""
    return space_of(program, DEFAULT_DEVICE)


@pytest.mark.parametrize(("program", "settings"), FITTING)
def test_the_candidate_is_that_of_the_whole_space(program, settings):
    found = candidate_of(program, DEFAULT_DEVICE, settings)
    assert found == whole(program).candidate(settings)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"family": "none"}, UnknownName),
        ({"colour": "red"}, UnknownName),
        ({"family": "direct", "kappa": "many"}, ConstraintRefused),
        ({"family": "direct", "kappa": 3}, ConstraintRefused),
        ({"family": "plain", "kappa": 4}, ConstraintRefused),
    ],
)
def test_the_refusal_is_that_of_the_whole_space(settings, kind):
    refused_alike(LAYER, settings, kind)


@pytest.mark.parametrize("first", ["plan", "plain", "chunked"])
def test_the_refusal_of_the_family_of_a_stage_is_that_of_the_whole_space(first):
    refused_alike(TWO, {"score.family": first, "result.family": "til"}, UnknownName)


def refused_alike(program, settings, kind):
    with pytest.raises(kind) as found:
        candidate_of(program, DEFAULT_DEVICE, settings)
    with pytest.raises(kind) as wanted:
        whole(program).candidate(settings)
    assert str(found.value) == str(wanted.value)


def test_a_number_is_the_word_of_a_partition(monkeypatch):
    """`--set` gives it as a number; the whole space is not derived."""
    monkeypatch.setattr(one_candidate, "space_of", None)
    assert candidate_of(LINE, DEFAULT_DEVICE, {"winograd": 4}).assignment["winograd"] == "4"


@pytest.mark.parametrize("seed", range(3))
def test_a_complete_assignment_is_derived_alone(seed, monkeypatch):
    (wanted,) = whole(LINE).sample(1, seed=seed)
    monkeypatch.setattr(one_candidate, "space_of", None)
    assert exact_candidate(LINE, DEFAULT_DEVICE, wanted.assignment) == replace(wanted, ordinal=-1)


def test_each_candidate_of_several_stages_is_found_by_its_own_settings(monkeypatch):
    """Also if another candidate has these settings and a further choice, such as `pack`."""
    space = lp.space(LAYER, device=DEFAULT_DEVICE, fixed={"family": "stages"})
    monkeypatch.setattr(one_candidate, "space_of", None)
    for wanted in space.sample(60, seed=1):
        assert exact_candidate(LAYER, DEFAULT_DEVICE, wanted.assignment) == replace(
            wanted, ordinal=-1
        )
        assert candidate_in_space(LAYER, DEFAULT_DEVICE, wanted.assignment) is not None


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"family": "plain"}, ConstraintRefused),
        ({"kappa": 4}, ConstraintRefused),
        ({"kapa": 4}, UnknownName),
    ],
)
def test_the_refusal_of_an_incomplete_assignment_is_that_of_the_whole_space(settings, kind):
    with pytest.raises(kind) as found:
        exact_candidate(LAYER, DEFAULT_DEVICE, settings)
    with pytest.raises(kind) as wanted:
        whole(LAYER).exactly(settings)
    assert str(found.value) == str(wanted.value)


def test_a_memory_limit_restricts_it():
    found = candidate_of(LAYER, DEFAULT_DEVICE, {"family": "direct"}, memory_limit=1 << 20)
    limited = space_of(LAYER, DEFAULT_DEVICE, families=["direct"], memory_limit=1 << 20)
    assert found == limited.candidate({"family": "direct"})
    with pytest.raises(ConstraintRefused):
        candidate_of(TWO, DEFAULT_DEVICE, {}, memory_limit=1)


@pytest.mark.parametrize("settings", [{}, {"family": "direct"}, {"family": "direct", "kappa": 4}])
def test_what_comes_later_is_not_derived(settings, monkeypatch):
    def refuse(_program):
        raise AssertionError("forms by F(m, r) were derived")

    monkeypatch.setattr(partition, "other_algorithms", refuse)
    assert candidate_of(LAYER, DEFAULT_DEVICE, settings).skeleton.family != "stages"


@pytest.mark.parametrize(
    "settings",
    [
        {"family": "direct", "pad": "copy", "kappa": 4},
        {"family": "cooperative", "chunks": "even", "buffers": "2", "chunk": 2},
    ],
)
def test_only_skeletons_with_the_choices_are_derived(settings, monkeypatch):
    seen = []

    def derive(family, form, program, choices):
        seen.append({"family": family, **dict(choices)})
        return derived(family, form, program, choices)

    composition.derived_alone.cache_clear()
    monkeypatch.setattr(composition, "derived", derive)
    found = candidate_of(LAYER, DEFAULT_DEVICE, settings)
    assert found.assignment.items() >= settings.items()
    assert seen
    assert all(words[name] == settings[name] for words in seen for name in words.keys() & settings)


def test_the_units_are_those_of_the_space_in_its_order():
    units = [unit.key for unit in units_of(DEFAULT_DEVICE, in_turn(LAYER))]
    assert units == [unit.key for unit in whole(LAYER).units]


@pytest.mark.parametrize("fixed", [{"winograd": "4x1"}, {"winograd": ["2x1", "4x1"]}, {"kappa": 4}])
def test_a_space_with_fixed_words_is_that_of_the_whole(fixed):
    """Though only the partitions that have them are derived."""
    some, same = space_of(LAYER, DEFAULT_DEVICE, fixed=fixed), whole(LAYER).asking((), fixed)
    assert some.counts() == same.counts()
    assert [*map(repr, some.sample(5, 0))] == [*map(repr, same.sample(5, 0))]


def test_a_word_that_no_partition_has_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownName, match="2x1"):
        space_of(LAYER, DEFAULT_DEVICE, fixed={"winograd": "3x3"})


def test_conditions_and_refusals_see_what_other_words_have():
    """A condition may name a size that only other partitions have; a refusal lists every word."""
    program = parse("""def tiles(x: [64]f32) =
      let y = x |> map(a => a * a) in y |> slide(4, 4) |> map(reduce(add, 0))""")
    space = space_of(program, DEFAULT_DEVICE, fixed={"y": "fused"}, where=["result.theta <= 8"])
    assert space.unbound
    with pytest.raises(UnknownName, match="fused, stored"):
        space_of(program, DEFAULT_DEVICE, fixed={"y": ["stored", "other"]})


@pytest.mark.parametrize(
    ("families", "asked"),
    [
        (["direct"], {}),
        (["direct", "plain"], {"where": ["kappa >= 4"]}),
        (["small", "direct", "plain"], {}),
        (["direct"], {"fixed": {"pad": "copy"}}),
        (["plain"], {"where": ["kappa >= 4"]}),  # a size of other families
    ],
)
def test_the_space_of_some_families_is_that_part_of_the_whole(families, asked):
    found = space_of(LAYER, DEFAULT_DEVICE, families=families, **asked)
    rest = whole(LAYER).asking(asked.get("where", ()), asked.get("fixed", {}))
    part = rest.of_families(families)
    assert [unit.key for unit in found.units] == [unit.key for unit in part.units]
    assert found.count() == part.count() > 0
    assert found.sample(5, seed=3) == part.sample(5, seed=3)


def test_only_the_families_that_are_named_are_derived(monkeypatch):
    seen = set()

    def derive(form, stage, families, *, images):
        seen.update(families)
        return stage_skeletons(form, stage, families, images=images)

    monkeypatch.setattr(units, "stage_skeletons", derive)
    space_of(TWO, DEFAULT_DEVICE, families=["plain"])
    assert seen == {"plain"}


def test_a_family_that_makes_no_stage_is_refused_with_those_that_do():
    with pytest.raises(UnknownName, match=r"family cannot be 'direct'; it is one of: plain, "):
        space_of(TWO, DEFAULT_DEVICE, families=["plain", "direct"])


@pytest.mark.parametrize("name", [f.name for f in FAMILIES.values() if f.if_named])
def test_a_family_is_in_a_space_only_if_it_is_named(name: str) -> None:
    assert name not in families_for(DEFAULT_DEVICE)
    assert name in families_for(DEFAULT_DEVICE, [name])
