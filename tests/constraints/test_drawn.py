"""What is drawn keeps every condition, judged by other code than what drew it.

benchmarks/space.py does the same for all built-in programs; tests/compile/test_families.py runs
what is drawn.
"""

import itertools
from dataclasses import replace
from importlib import import_module

import pytest

import liftpy as lp
from liftpy.constraints.collect import UNROLL_LIMIT
from liftpy.constraints.device import DEFAULT_DEVICE, PRIVATE_LIMIT
from liftpy.constraints.statements import statements
from liftpy.explore.space.space import Space
from liftpy.kernels.chain import chain
from liftpy.pipeline import PASSES, compile_candidate
from liftpy.workloads import workloads
from tests.constraints import faults
from tests.constraints.skeletons import skeletons_by_definition

DEVICES = (
    DEFAULT_DEVICE,
    replace(DEFAULT_DEVICE, max_work_group_size=384, max_work_item_sizes=(384, 384, 384)),
    replace(DEFAULT_DEVICE, max_work_group_size=64, local_memory=4096, largest_buffer=1 << 24),
)
SOME = [w.name for w in workloads()][::11]


@pytest.mark.sampled(24)
@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES, ids=["default", "groups of 384", "small"])
@pytest.mark.parametrize("name", ["vgg16/7", *SOME])
def test_draws_keep_every_condition_in_plain_integers(name, device):
    program = lp.workload(name)
    derived = skeletons_by_definition(program)
    space = Space.of(program, device, derived)
    systems = {m.skeleton.key: m.system for m in space.members}
    for candidate in itertools.islice(space.draws(seed=3), 30):
        system, point = systems[candidate.skeleton.key], candidate.point
        assert all(p.low <= point[p.name] <= p.high for p in system.parameters)
        assert [str(c) for c in system.clauses if not c.constraint.holds(point)] == []


SMALL = (
    "matmul/6x4x8",
    "batched/3x4x6x5",
    "convolution/strided/13x13x4x8x3x2",
    "convolution/depthwise/12x12x8x3x1",
    "pool/max/13x13x4x3x2",
    "stencil/jacobi9/18x18",
    "stencil/heat7/10x10x10",
    "dot/48",
    "nbody/24",
    "kmeans/32x4x6",
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", SMALL)
def test_the_text_of_what_is_drawn_has_the_sizes_that_were_estimated(name, monkeypatch):
    """Bytes of registers as the memory figures say, statements as the condition counts them.

    A step that overwrites what it still reads is emitted with a copy of it, `old`. The
    condition counts one version of each loop; a loop has at most three (`liftpy.loops.unswitch`).
    """
    program = lp.workload(name)
    space = Space.of(program, DEFAULT_DEVICE, skeletons_by_definition(program))
    for candidate in space.sample(6, seed=2):
        module = compile_candidate(candidate.skeleton, candidate.point)
        texts = faults.kernels(module.source)
        measured = [faults.registers(text)[1] for text in texts]
        with monkeypatch.context() as patch:
            few = {n: p for n, p in PASSES.items() if n != "unswitch"}
            patch.setattr(import_module("liftpy.pipeline"), "PASSES", few)
            plain = compile_candidate(candidate.skeleton, candidate.point)
        assert max(measured) == module.memory.private <= PRIVATE_LIMIT
        cut = chain(candidate.skeleton.program).kernels
        for kernel, text, one in zip(cut, texts, faults.kernels(plain.source), strict=True):
            estimate = int(statements(kernel.body).value(candidate.point))
            twice = 2 if " old" in text else 1
            assert faults.statements(one) <= twice * estimate, (candidate, kernel.name)
            assert faults.statements(text) <= 3 * faults.statements(one), (candidate, kernel.name)
            assert estimate <= UNROLL_LIMIT
