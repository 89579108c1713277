"""A campaign or its workers killed at any moment; benchmarks/kill.py does many more."""

import pytest

from liftpy.errors import DeviceRefused, UnknownName
from liftpy.explore.exploring import explore
from liftpy.opencl.devices import find_device
from tests.explore.killing import TINY, Command, content, front_with_times_of, moment, rng_of
from tests.shared import in_one_process

SAMPLES = 4


@pytest.fixture(scope="module")
def intel():
    try:
        return find_device("intel")
    except (DeviceRefused, UnknownName) as refusal:
        pytest.skip(str(refusal))


@pytest.mark.soak  # test_campaign.py kills a campaign and its workers on each commit
@pytest.mark.parametrize("seed", range(4))
def test_what_is_killed_and_resumed_is_what_was_never_killed(intel, tmp_path, seed):
    command, options = Command(tmp_path, SAMPLES), {"families": ["plain", "direct"]}
    with in_one_process(tmp_path):
        whole = explore(
            TINY, SAMPLES, 0, tmp_path / "whole.db", intel, search=command.search, **options
        )
    _, resumed = moment(command, tmp_path / "resumed.db", rng_of(seed))
    assert content(tmp_path / "resumed.db") == content(tmp_path / "whole.db")
    assert front_with_times_of(whole, resumed) == [row.id for row in whole.pareto()]
