"""The published best point of layer 7 (specs: lift-convolution, Table 4) as derived here."""

from __future__ import annotations

from dataclasses import replace

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.ir.constraint import divides
from liftpy.ir.nat import var
from liftpy.pipeline import compile_program
from liftpy.workloads import workload
from tests.constraints.examples import four_stages
from tests.spaces import as_one_stage

POINT = {"theta": 5, "rho": 11, "kappa": 4, "sigma": 3, "omega": 144, "v": 4}


def test_the_published_point_has_the_published_shape() -> None:
    """1681 tiles, 32 kernel groups, 8 chunks by 3 window groups, 62 MB of partial results."""
    made = {s.key: s for s in as_one_stage(workload("vgg16/7"), ("staged",))}
    skeleton = made["staged(coalesce=yes, unroll=no)"]
    assert collect(skeleton, DEFAULT_DEVICE).holds(POINT)
    module = compile_program(skeleton.at(POINT)).module
    pad, partial, total, crop = module.launches
    assert partial.local_size == (8, 3, 1)
    assert partial.global_size == (32 * 8, 1681 * 3, 1)
    sizes = [module.buffer(launch.arguments[-1]) for launch in (pad, partial, total, crop)]
    assert sizes[0].shape == (125, 125, 128)
    assert sizes[1].bytes == 4 * 128 * 123 * 123 * 8
    assert sizes[2].shape == (123, 123, 128)
    assert sizes[3].shape == (112, 112, 128)
    assert sizes[0].slot == sizes[2].slot  # the padded input is dead when the sums are made
    assert "dot(" in module.source


def test_the_inferred_conditions_have_as_many_points_as_the_published_ones() -> None:
    """Work-groups of 384 and v in 1, 2, 4, as published; buffers and code of any length."""
    group = 384
    device = replace(
        DEFAULT_DEVICE,
        max_work_group_size=group,
        max_work_item_sizes=(group,) * 3,
        largest_buffer=1 << 60,
        global_memory=1 << 60,
    )
    made = {s.key: s for s in as_one_stage(workload("vgg16/7"), ("staged",))}
    found = collect(made["staged(coalesce=no, unroll=no)"], device)
    kept = [c for c in found.clauses if not c.asked_by.startswith(("private memory", "code size"))]
    lanes = Clause(divides(var("v", 1), 4), ("the published range",))
    inferred = ConstraintSystem(found.parameters, (*kept, lanes))
    published = four_stages(rho=32, group=group)
    assert Space(inferred).count() == Space(published).count() == 368_592
    assert all(published.holds(point) for point in Space(inferred).sample(500, seed=0))
    assert all(inferred.holds(point) for point in Space(published).sample(500, seed=1))


def test_neighbouring_chunks_read_neighbouring_vectors() -> None:
    """Coalesced, chunk ids stand beside each other in the address; else omega apart."""
    made = {s.key: s for s in as_one_stage(workload("vgg16/7"), ("staged",))}
    sources = [
        compile_program(made[f"staged(coalesce={c}, unroll=no)"].at(POINT)).module.source
        for c in ("yes", "no")
    ]
    assert "lid0 * 4" in sources[0]
    assert "lid0 * 144" not in sources[0]
    assert "lid0 * 144" in sources[1]
