"""Limits that a driver gives built kernels, learned in the course of a campaign."""

from dataclasses import replace
from functools import cache
from unittest import mock

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import KernelRefused
from liftpy.explore import exploring
from liftpy.explore.campaign.store import Store
from liftpy.explore.exploring import explore
from liftpy.explore.measure.bench import Bench
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.learned import Lessons
from liftpy.explore.measure.measurer import Measurer
from liftpy.explore.measure.messages import Measure, Setup
from liftpy.explore.measure.outcome import KernelLimit, Measured, Refused
from liftpy.explore.search import SEARCHES
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.spaces import space_of
from liftpy.ir.nat import product
from liftpy.kernels.chain import chain
from liftpy.opencl.kernel import MemoryFigures
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from tests.cli.said import PROGRAM
from tests.explore.test_campaign import TEXT, drawn

pytestmark = pytest.mark.usefixtures("in_one_process")

ROOM = 6  # work-items that the driver of these tests allows where many bytes are held
HELD = 8


def groups(candidate):
    """Of each kernel with work-groups: its name, their size, the bytes of a work-item."""
    return [
        (
            kernel.name,
            product(kernel.demand.local_size()).value(candidate.point),
            kernel.demand.private.value(candidate.point),
        )
        for kernel in chain(candidate.skeleton.program).kernels
        if kernel.demand.groups
    ]


def judged(_measurer, candidate, *_):
    """What a driver says that gives kernels with many private bytes small work-groups only."""
    for name, size, held in groups(candidate):
        if size > ROOM and held >= HELD:
            return Refused(f"{name} has {size}", KernelLimit(name, "group", ROOM))
    time, peak = int(candidate.key[:4], 16), int(candidate.key[4:8], 16)
    return Measured(((1 + time,),), 0, MemoryFigures(peak, 1, 1, 1, 1, 1), 0.0, 0.0, 0.0)


@cache
def staged():
    """The space of these tests: it is the same for all, and takes a while to derive."""
    return space_of(PROGRAM, DEFAULT_DEVICE, families=["staged"])


@pytest.fixture
def campaign(monkeypatch):
    """A campaign on that driver."""

    def space(*_, where=(), **__):
        return staged().asking(where, {})

    monkeypatch.setattr(exploring, "space_of", space)
    monkeypatch.setattr(Measurer, "start", lambda _: None)
    monkeypatch.setattr(Measurer, "prepare", lambda *_: None)  # nothing is launched
    monkeypatch.setattr(Measurer, "measure", judged)

    def run(path, samples, **options):
        options = {"search": "random", "families": ["staged"], **options}
        return explore(PROGRAM, samples, 0, path, DEFAULT_DEVICE, **options)

    return run


def test_what_was_refused_once_is_not_drawn_again(campaign, tmp_path, monkeypatch):
    found = campaign(tmp_path / "a.db", 60)
    worst = {}
    for row in found.rows:
        for name, size, held in groups(staged().exactly(row.assignment)):
            before = worst.setdefault((row.skeleton, name), [])
            broken = size > ROOM and any(taught <= held for taught in before)
            assert not broken, "a point that breaks what was learned before it"
            if row.outcome == "refused":
                before.append(held)
    assert found.counts["refused"] >= 1
    monkeypatch.setattr(Lessons, "learn", lambda *_: None)
    unlearned = campaign(tmp_path / "b.db", 60)
    assert unlearned.counts["refused"] > 3 * found.counts["refused"]
    allowed = {row.id for row in unlearned.rows if row.outcome == "measured"}
    assert allowed <= {row.id for row in found.rows}, "what the driver allows is not lost"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("search", SEARCHES)
def test_a_resumed_campaign_tries_what_one_without_a_stop_tries(campaign, tmp_path, search):
    whole = campaign(tmp_path / "whole.db", 24, search=search)
    for samples in (7, 8, 24):
        resumed = campaign(tmp_path / "parts.db", samples, search=search)
    assert drawn(resumed) == drawn(whole)
    again = campaign(tmp_path / "parts.db", 24, search=search)
    assert drawn(again) == drawn(whole)
    with Store.read(tmp_path / "parts.db") as store:
        learned = store.learned()
    assert learned.keys() == {row.id for row in whole.rows if row.outcome == "refused"}


def test_a_space_that_is_used_up_by_lessons_is_exhausted(campaign, tmp_path, monkeypatch):
    def none(_measurer, candidate, *_):
        name, _, _ = groups(candidate)[0]
        return Refused("none", KernelLimit(name, "group", 0))

    def right(*_):
        return Measured(((1,),), 0, MemoryFigures(1, 1, 1, 1, 1, 1), 0.0, 0.0, 0.0)

    monkeypatch.setattr(Measurer, "measure", right)
    first = campaign(tmp_path / "a.db", 1, where=["theta <= 4"])
    assert not first.exhausted
    monkeypatch.setattr(Measurer, "measure", none)
    rest = campaign(tmp_path / "a.db", 5000, where=["theta <= 4"])
    assert rest.exhausted
    assert 1 < len(rest.rows) < staged().asking(["theta <= 4"], {}).count()


def test_local_memory_that_the_driver_adds_is_learned():
    space = space_of(PROGRAM, DEFAULT_DEVICE, families=["local"])
    member, *_ = space.members
    point, *_ = member.points.draws(0)
    candidate = Candidate(PROGRAM, member.skeleton, tuple(point.items()))
    kernel = next(k for k in chain(member.skeleton.program).kernels if k.demand.local.constant != 0)
    own = kernel.demand.local.value(point)
    for added, fits in ((0, True), (64, True), (65, False)):
        lessons = Lessons(replace(DEFAULT_DEVICE, local_memory=own + 64))
        lessons.learn(candidate, KernelLimit(kernel.name, "local", own + added))
        assert lessons.allows(member.skeleton, point) is fits


def test_launches_are_called_as_the_kernels_of_the_chain():
    for member in space_of(PROGRAM, DEFAULT_DEVICE, families=["staged", "local"]).members:
        point = next(member.points.draws(0))
        module = compile_candidate(member.skeleton, point)
        names = {kernel.name for kernel in chain(member.skeleton.program).kernels}
        assert {launch.function for launch in module.launches} == names


@pytest.mark.parametrize(("figure", "said"), [("group", (0, 0)), ("local", (4096, 1 << 40))])
def test_a_worker_says_which_kernel_and_how_much(device, figure, said):
    """The driver is asked through `Session`; what it answers is set here."""
    group, local = said
    candidate = next(
        c
        for c in space_of(PROGRAM, device, families=["staged"]).draws(0)
        if any(size > 1 for _, size, _ in groups(c))
    )
    module = compile_candidate(candidate.skeleton, candidate.point)
    bench = Bench(Setup(TEXT, device, Inputs.of(PROGRAM)[0], ()))
    check = "liftpy.opencl.session.check_launch"

    def answered(module, launch, on, **_):
        from liftpy.opencl.arguments import check_launch  # noqa: PLC0415

        check_launch(module, launch, on, group=group, local=local)

    with mock.patch(check, answered):
        outcome = bench.measure(Measure(module, None, 60.0))
        with Session(device) as session, pytest.raises(KernelRefused) as refusal:
            session.load(module)
    assert isinstance(outcome, Refused)
    assert outcome.reason == str(refusal.value)
    assert outcome.limit is not None
    assert outcome.limit.figure == figure
    assert outcome.limit.number == (group if figure == "group" else local)
    assert outcome.limit.kernel in {name for name, _, _ in groups(candidate)} | {
        launch.function for launch in module.launches
    }
