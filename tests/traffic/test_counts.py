"""The loads and stores that the model counts, against those that Oclgrind counts."""

import math
from collections import Counter
from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.measure.inputs import inputs
from liftpy.opencl.arguments import by_buffer
from liftpy.pipeline import compile_candidate
from liftpy.traffic.reading import Reader
from liftpy.workloads.convolution import convolution
from liftpy.workloads.networks import square
from tests.oclgrind import executed_under_oclgrind
from tests.traffic.test_reading import codes_of

GPU = replace(DEFAULT_DEVICE, type="GPU", vector_width=4, compute_units=3)
PRODUCT = lp.workload("matmul/8x12x16")
LAYER = convolution(square(8, 8, 8), "c")

FORMS = [
    (PRODUCT, {"family": "plain"}),
    (PRODUCT, {"family": "direct", "sigma": 4, "kappa": 8, "v": 4}),
    (PRODUCT, {"family": "cooperative", "tile0": 4, "tile1": 8, "chunk": 4, "v": 1, "gap": 0}),
    (LAYER, {"family": "direct", "pad": "copy", "sigma": 4, "kappa": 8, "v": 4}),
    (LAYER, {"family": "direct", "pad": "fused", "sigma": 4, "kappa": 8, "v": 4}),
    (LAYER, {"family": "plain"}),
]


def modelled(candidate):
    """The counts of all work-items of each run-phase kernel."""
    found = []
    for code in codes_of(candidate):
        reader = Reader("gid0")
        reader.block(code.block, {}, [])
        items = math.prod(code.global_size)
        found.append(Counter({key: n * items for key, n in reader.counts.executed.items()}))
    return found


@pytest.mark.oclgrind
def test_the_code_executes_the_loads_and_stores_that_the_model_counts():
    candidates = [lp.space(program, GPU).candidate(fixed) for program, fixed in FORMS]
    modules = [compile_candidate(c.skeleton, c.point) for c in candidates]
    jobs = [
        (module, by_buffer(module, tuple(inputs(program).values())))
        for module, (program, _) in zip(modules, FORMS, strict=True)
    ]
    for candidate, module, counted in zip(
        candidates, modules, executed_under_oclgrind(jobs), strict=True
    ):
        run = [n for n, x in zip(counted, module.launches, strict=True) if x.phase == "run"]
        for model, executed in zip(modelled(candidate), run, strict=True):
            assert model.keys() == executed.keys(), candidate.label
            guarded = "?" in module.source or "if (" in module.source
            for key, count in executed.items():
                space, stores, _ = key
                if guarded:  # guards are taken to hold
                    assert count <= model[key] <= 2 * count, candidate.label
                elif space == "local" and not stores:  # the text repeats equal loads
                    assert count / 3 <= model[key] <= count, candidate.label
                else:
                    assert model[key] == count, candidate.label
