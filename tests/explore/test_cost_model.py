"""What is known before building orders candidates well, and drops none."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.deadline import Deadline
from liftpy.errors import TimeUp, TypeRefused
from liftpy.explore.choosing import chosen
from liftpy.explore.search import Trial, modelled_choice, named
from liftpy.explore.search.cost_model import GUESS, Trend, figures, figures_at
from liftpy.explore.search.guided import MANY
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawing, everything
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.types import size_bytes
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.workloads import Convolution, convolution
from tests.staged import by_definition

STORED = json.loads(Path(__file__).with_name("measured.json").read_text(encoding="utf-8"))
TIMES = {tuple(row[:-1]): row[-1] for row in STORED["rows"]}
DEVICE = replace(Device.from_json(STORED["device"]), vector_width=16)
LAYER = convolution(Convolution(16, 28, 28, 16, (3, 3), padding=(1, 1, 1, 1)), "layer")


@pytest.fixture(scope="module")
def space() -> Space:
    direct = Space.whole(LAYER, DEVICE, families=["direct"], made=by_definition)
    return direct.asking(["kappa >= 4", "sigma >= 2"], {})


def of(space: Space, **settings: Any) -> Candidate:
    return space.candidate({"family": "direct", "level": "wrg", "pad": "fused"} | settings)


def time_of(candidate: Candidate) -> int | None:
    s = candidate.assignment
    return TIMES.get(tuple(s[n] for n in ("pad", "level", "kappa", "sigma", "v")))


def run(space: Space, seed: int, most: int) -> list[int]:
    """The stored times of what guided search tries."""
    trials: list[Trial] = []
    tried = named("guided")(space, seed, trials, everything)
    trials += (Trial(c, time_of(c), 1) for c in itertools.islice(tried, most))
    return [t.time_ns or 0 for t in trials]


def test_the_first_candidate_of_guided_search_is_the_one_of_the_model(space: Space) -> None:
    """It takes at most 1.1 times as long as the fastest of 400 measured candidates."""
    first = next(iter(named("guided")(space, 3, [], everything)))
    assert first.key == chosen(space).candidate.key
    assert (time_of(first) or math.inf) <= 1.1 * min(TIMES.values())


def test_small_spaces_begin_with_the_trend(space: Space) -> None:
    small = space.asking(["kappa == 16"], {})
    assert small.count() <= MANY < space.count()
    assert next(iter(named("guided")(small, 3, [], everything))).ordinal == 0


def test_a_candidate_that_cannot_be_modelled_does_not_end_a_search(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TypeRefused("no kernel is made of it")

    monkeypatch.setattr(modelled_choice, "modelled", refuse)
    unknown = replace(space, kept={})
    assert next(iter(named("guided")(unknown, 3, [], everything))).ordinal == 0


def test_the_time_limit_ends_a_search_that_models(space: Space) -> None:
    with Deadline.after(0.05).phase("drawing"), pytest.raises(TimeUp):
        next(iter(named("guided")(replace(space, kept={}), 4, [], everything)))


def test_figures_of_points_are_those_of_each_point(space: Space) -> None:
    """All points of a skeleton at once, also if a figure does not depend on the sizes."""
    for member in space.members[:4]:
        points = [*itertools.islice(member.points.draws(3), 7)]
        single = [figures_at(member.skeleton, [point], DEVICE)[0] for point in points]
        assert figures_at(member.skeleton, points, DEVICE) == single
        assert len(set(single)) > 1
    assert figures_at(space.members[0].skeleton, [], DEVICE) == []


def test_figures_say_what_is_amiss(space: Space) -> None:
    good = figures(of(space, kappa=16, sigma=28, v=16), DEVICE)
    assert good[0] == good[2] == 0
    assert good[1] < 0.3  # 28 vectors of 32
    assert figures(of(space, kappa=16, sigma=14, v=4), DEVICE)[0] == 2
    assert figures(of(space, kappa=4, sigma=2, v=4), DEVICE)[1] == pytest.approx(6)
    assert figures(of(space, pad="copy", kappa=16, sigma=28, v=16), DEVICE)[3] > good[3] == 0
    wide = replace(DEVICE, compute_units=28 * 3)
    assert figures(of(space, kappa=16, sigma=28, v=16), wide)[2] == pytest.approx(math.log2(3))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_comes_early_in_a_space_that_was_measured_whole(space: Space, seed: int) -> None:
    assert space.count() == len(TIMES)
    times = run(space, seed, len(TIMES) // 8)
    assert min(times) <= 1.05 * min(TIMES.values())


def test_nothing_is_lost(space: Space) -> None:
    some = space.choosing({"pad": "fused", "level": "glb"})
    times = run(some, 0, len(TIMES))
    assert len(times) == some.count()
    assert sorted(times) == sorted(t for key, t in TIMES.items() if key[:2] == ("fused", "glb"))


@pytest.mark.parametrize(("lanes", "apart"), [({}, 2), ({"lanes": "outer"}, 0)])
def test_lanes_that_are_stored_one_after_another_are_counted(
    lanes: dict[str, str], apart: int
) -> None:
    first = convolution(Convolution(3, 18, 18, 8, (3, 3), (3, 1), layout="nchw"), "layer")
    space = space_of(first, DEFAULT_DEVICE, families=["direct"])
    member = next(m for m in space.members if ("lanes" in m.words) == bool(lanes))
    drawn = next(d for _, d in member.draws(Drawing(0)) if d["v"] == 4)
    found = figures(Candidate(first, member.skeleton, tuple(drawn.items())), DEVICE)
    assert found[4] == apart


def test_the_trend_learns_what_matters(space: Space) -> None:
    rng = np.random.default_rng(0)
    trend, found = Trend(DEVICE), space.sample(60, seed=0)
    weights = np.array([2.0, 0.0, 0.0, 3.0, 1.0])
    logs = trend.figures(found) @ weights + rng.normal(0, 0.01, len(found))
    trials = [Trial(c, int(1e6 * 2**log), 1) for c, log in zip(found, logs, strict=True)]
    before = trend.expected(found)
    assert before == pytest.approx(math.log(2) * trend.figures(found) @ np.array(GUESS))
    trend.fit(trials, 10**9)
    after = trend.expected(found) / math.log(2)
    assert np.corrcoef(after, logs)[0, 1] > 0.99 > np.corrcoef(before, logs)[0, 1]


def test_a_family_without_vectors_or_groups_has_figures_too() -> None:
    columns = convolution(Convolution(3, 13, 7, 4, (3, 1), padding=(1, 1, 0, 0)), "columns")
    space = Space.whole(columns, DEFAULT_DEVICE, made=by_definition)
    for candidate in space.sample(12, seed=0):
        assert all(math.isfinite(f) and f >= 0 for f in figures(candidate, DEFAULT_DEVICE))


def test_figures_are_those_of_the_kernels(space: Space) -> None:
    """What is kept of a skeleton gives the bytes and the registers of its kernels at each point."""
    for candidate in space.sample(8, seed=1):
        cut = chain(candidate.skeleton.at(candidate.point))
        moved = sum(int(size_bytes(p.type)) for k in cut.run for p in (*k.reads, k.writes))
        kept = [b for b in cut.buffers if b.role in ("input", "constant", "output")]
        _, registers, _, traffic, _ = figures(candidate, DEVICE)
        assert traffic == math.log2(max(1.0, moved / sum(int(b.bytes) for b in kept)))
        held = (max(int(k.demand.private), 4) for k in cut.run)
        assert registers == min(abs(math.log2(bytes_ / (4 * 32 * 16))) for bytes_ in held)


PRODUCT = """
def p(a: [4096][64]f32, b: [64][64]f32) =
  a |> map(row => b |> map(c => zip(row, c) |> map(mul) |> reduce(add, 0)))
"""


@pytest.fixture(scope="module")
def on_gpu() -> Space:
    return space_of(parse(PRODUCT), "profile:nvidia-hopper", families=["cooperative", "direct"])


def test_figures_for_a_gpu_say_what_is_amiss(on_gpu: Space) -> None:
    def found(**settings: int) -> tuple[float, ...]:
        sizes = {"tile0": 64, "tile1": 64, "sigma": 4, "kappa": 4, "chunk": 16, "v": 4, "gap": 0}
        words = {"family": "cooperative", "chunks": "even", "buffers": "1"}
        return figures(on_gpu.candidate({**words, **sizes, **settings}), on_gpu.device)

    lanes, registers, idle, traffic, loads = found()
    assert lanes == 0
    assert registers == pytest.approx(math.log2(48 / 16))
    items = 4096 * 64 / 16
    assert idle == pytest.approx(math.log2(on_gpu.device.compute_units * 256 / items))
    assert found(tile0=4, tile1=64)[0] == 1  # 16 work-items of 32
    assert found(tile0=16)[3] > traffic  # fewer rows share the columns of a tile
    assert found(sigma=2)[4] > loads  # a value that is loaded serves fewer sums


def test_first_tries_on_a_gpu_are_of_each_family(on_gpu: Space) -> None:
    trials: list[Trial] = []
    tried = named("guided")(on_gpu, 0, trials, everything)
    trials += (Trial(c, 10**6, 1) for c in itertools.islice(tried, 4))
    families = [t.candidate.assignment["family"] for t in trials]
    assert families.count("cooperative") == families.count("direct") == 2
