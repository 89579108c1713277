import json
from dataclasses import replace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device


def test_json_gives_back_the_device():
    text = json.dumps(DEFAULT_DEVICE.to_json())
    assert Device.from_json(json.loads(text)) == DEFAULT_DEVICE


def test_json_carries_the_fingerprint():
    assert DEFAULT_DEVICE.to_json()["fingerprint"] == DEFAULT_DEVICE.fingerprint


@pytest.mark.parametrize("change", [{"colour": "red"}, {"name": None}])
def test_json_of_something_else_is_refused(change):
    data = DEFAULT_DEVICE.to_json()
    data.update(change)
    data = {name: value for name, value in data.items() if value is not None}
    with pytest.raises(TypeError, match=next(iter(change))):
        Device.from_json(data)


def test_fingerprint_is_the_same_in_every_process_and_release():
    device = replace(DEFAULT_DEVICE, name="Mali-G76", driver_version="3.0", platform="ARM")
    assert device.fingerprint == "16698a6f66a6"


@pytest.mark.parametrize("field", ["name", "driver_version", "platform"])
def test_fingerprint_depends_on(field):
    assert replace(DEFAULT_DEVICE, **{field: "other"}).fingerprint != DEFAULT_DEVICE.fingerprint


@pytest.mark.parametrize("change", [{"ordinal": 1}, {"global_memory": 7}, {"compute_units": 3}])
def test_fingerprint_does_not_depend_on(change):
    assert replace(DEFAULT_DEVICE, **change).fingerprint == DEFAULT_DEVICE.fingerprint
