"""The benchmark that compares searched forms by F(m, r) with a fixed one."""

from __future__ import annotations

import pytest

from liftpy.explore.one_candidate import candidate_of
from liftpy.opencl.devices import find_device
from liftpy.rewrite.composition import keys_of_stages
from tests.benchmarks.scripts import script
from tests.fuzz.correlations import Case

fixed_form = script("fixed_form")


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ([("4x4", 1.0, 2.0), ("6x6", 1.0, 2.0), ("4x4", 2.0, 1.0)], True),
        ([("4x4", 1.0, 2.0), ("4x4", 1.0, 2.0), ("4x4", 1.0, 2.0)], False),
        ([("4x4", 1.0, 2.0), ("6x6", 2.0, 1.0)], False),
    ],
)
def test_the_claim_needs_most_layers_and_several_tiles(found, holds):
    assert fixed_form.holds(found) is holds


def test_the_fixed_form_has_the_same_kernels_on_every_layer():
    device = find_device("profile:xeon-silver-4208")
    keys = set[str]()
    for side, channels in ((9, 4), (6, 8)):
        program = Case((side, side), channels, 64, (3, 3), 0).program
        found = candidate_of(program, device, fixed_form.fixed(device, side, side))
        assert len(keys_of_stages(found.skeleton.key)) == 4  # one transforms the filters
        keys.add(found.skeleton.key)
    assert len(keys) == 1
