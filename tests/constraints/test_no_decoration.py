"""No condition is decoration: without it, some candidate is wrong, unbuildable or unlaunchable.

Each condition of small systems is dropped in turn. z3 finds a point that only this condition
refuses, and `faults` says what is wrong with it; or z3 proves that there is none, as the condition
follows from the others. That every kind of condition is missed somewhere is tested as well.
"""

from dataclasses import replace
from functools import cache

import pytest

import liftpy as lp
from liftpy.constraints.audit import DEVICE, FORMS, Asks
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.constraints.solve import Feasible, Infeasible, implied
from liftpy.constraints.system import MEMORY_LIMIT, ConstraintSystem
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, F64
from liftpy.language.embedded.lang import (
    array_type,
    as_image,
    as_scalar,
    as_vector,
    join,
    map,
    map_glb,
    map_seq,
    map_vec,
    pad,
    program,
    split,
    take,
    to_global,
    to_private,
)
from liftpy.rewrite.skeleton import Parameter
from liftpy.workloads.convolution import Convolution, convolution
from tests.constraints import faults
from tests.constraints.skeletons import by_hand, doubling, skeleton_by_definition

FAULTS = {
    "device work-group size of": faults.GROUP,
    "device work-group size in dimension": faults.AXIS,
    "device local memory": faults.SHARED,
    "device largest buffer": faults.BUFFER,
    "device global memory": faults.TOTAL,
    MEMORY_LIMIT: faults.PEAK,
    "private memory": faults.REGISTERS,
    "code size": faults.LENGTH,
    "device images": faults.IMAGE,
}
"""The fault of a candidate that breaks a condition of the device and no other one."""

N = Parameter("n", 16, 4096, "elements of a private copy")


def private_copies():
    """Chunks of a row copied to registers in vectors: many bytes in few statements."""

    @program
    def copied(xs: array_type(F64, 2, 4096)):
        lanes = lambda chunk: chunk >> as_vector(16) >> map_seq(map_vec(lambda x: x + x))
        one = lambda chunk: to_private(lanes(chunk)) >> map_seq(lambda v: v) >> as_scalar()
        return xs >> map_glb(0, lambda row: row >> split(N.nat) >> map_seq(one) >> join())

    return by_hand(copied, N)


@program
def doubled(xs: array_type(F64, 2, 4096)):
    return xs >> map(map(lambda x: x + x))


def padded_copies():
    """A copy with more elements, which is read through an image."""

    @program
    def copied(xs: array_type(F32, 7)):
        longer = to_global(xs >> pad(0, N.nat, 0) >> map_glb(0, lambda x: x))
        return longer >> as_image() >> take(7) >> map_glb(0, lambda x: x + x)

    return by_hand(copied, N)


@program
def seven(xs: array_type(F32, 7)):
    return xs >> map(lambda x: x + x)


skeleton = cache(skeleton_by_definition)


CONVOLUTION = convolution(Convolution(2, 6, 6, 4, (3, 3), padding=(1, 1, 1, 1)))
PRODUCT = lp.workload("matmul/6x4x8")
UNEVEN = lp.workload("matmul/17x4x19")
TOTAL = lp.parse("def total(xs: [24]f32) = xs |> reduce(add, 0)")


def family(source, key, **limits):
    memory_limit = limits.pop("memory_limit", None)
    return source, skeleton(source, key), replace(DEFAULT_DEVICE, **limits), memory_limit


def alone(skeleton, source=None, **limits):
    lowered = skeleton.program
    start = Program(lowered.name, Lambda(lowered.params, skeleton.derivation.start))
    return source or start, skeleton, replace(DEFAULT_DEVICE, **limits), None


STAGED = "staged(coalesce=no, unroll=no)"
UNROLLED = "staged(coalesce=yes, unroll=yes)"
PARTIAL = "partial(strided=no)"
EXAMPLES = {
    "product": lambda: family(PRODUCT, "direct(pad=fused, level=glb)"),
    "tail": lambda: family(UNEVEN, "direct(pad=fused, level=wrg, tail=overlap)"),
    "direct": lambda: family(CONVOLUTION, "direct(pad=copy, level=wrg)"),
    "local": lambda: family(CONVOLUTION, "local(stage=tile)"),
    "staged": lambda: family(CONVOLUTION, STAGED),
    "unrolled": lambda: family(CONVOLUTION, UNROLLED),
    "group": lambda: alone(doubling(), max_work_group_size=50),
    "axis": lambda: alone(doubling(), max_work_item_sizes=(40, 1024, 1024)),
    "tiles": lambda: family(CONVOLUTION, "local(stage=tile)", local_memory=400),
    "buffer": lambda: family(CONVOLUTION, STAGED, largest_buffer=30_000),
    "total": lambda: family(TOTAL, PARTIAL, global_memory=130),
    "peak": lambda: family(TOTAL, PARTIAL, memory_limit=130),
    "registers": lambda: alone(private_copies(), doubled),
    "images": lambda: alone(padded_copies(), seven, image_texels=500),
}


def without(system, clause):
    return ConstraintSystem(system.parameters, tuple(c for c in system.clauses if c is not clause))


@cache
def missed(name):
    """The clauses of an example that are missed, each with the fault of who comes in without it."""
    source, skeleton, device, memory_limit = EXAMPLES[name]()
    found = {}
    system = collect(skeleton, device, memory_limit=memory_limit)
    points = Space(system).count()
    for clause in system.clauses:
        others = without(system, clause)
        verdict = implied(others, clause)
        if isinstance(verdict, Infeasible):
            assert Space(others).count() == points, clause
            continue
        assert isinstance(verdict, Feasible), (clause, verdict)
        point = verdict.assignment
        assert [str(c) for c in system.broken(point)] == [str(clause)]
        found[clause] = faults.fault(source, skeleton, point, device, memory_limit)
    return found


#: `buffer` has the same skeleton as `staged`.
MARKS = {"staged": pytest.mark.soak, "unrolled": pytest.mark.slow, "buffer": pytest.mark.slow}
examples = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[MARKS[n]] if n in MARKS else []) for n in EXAMPLES]
)


@examples
def test_without_a_condition_some_candidate_is_at_fault(name):
    assert missed(name)
    for clause, found in missed(name).items():
        limits = {kind for by, kind in FAULTS.items() for a in clause.askers if a.startswith(by)}
        expected = limits or {faults.UNBUILDABLE, faults.WRONG}
        assert found in expected, (clause, found)


@examples
def test_with_all_conditions_none_is(name):
    source, skeleton, device, memory_limit = EXAMPLES[name]()
    system = collect(skeleton, device, memory_limit=memory_limit)
    drawn = Space(system).sample(3, seed=1)
    assert drawn
    for point in drawn:
        assert faults.fault(source, skeleton, point, device, memory_limit) is None


@pytest.mark.slow
def test_every_kind_of_condition_is_missed_somewhere():
    kinds = {
        by
        for name in EXAMPLES
        if name != "staged"
        for clause in missed(name)
        for a in clause.askers
        for by in (*FAULTS, "split", "asVector", "rule ")
        if a.startswith(by)
    }
    assert kinds == {*FAULTS, "split", "asVector", "rule "}
    words = {
        w for asks in (*FORMS.values(), *DEVICE.values()) if isinstance(asks, Asks) for w in asks.by
    }
    assert all(any(by.startswith(w) for by in FAULTS) for w in words)
