"""Whatever a field of a board's file says, it is taken in or refused with its line, and no more."""

import copy
from contextlib import suppress

import pytest

from liftpy.errors import ResultsRefused
from tests.errors.boards import CAMPAIGN, DEVICE, imported, printed, row

NASTY = [None, True, -1, 0.5, 1e308, 2**64, "", "x", "x" * 2000, [], [[-1]], {}, {"a": {}}, [1, 2]]

CELLS = {
    "candidate": ["", "x", "0123456789abc", "0" * 4000],
    "ordinal": ["", "1.5", "9" * 30, "٣", "1_0"],
    "sizes": ["a", "a=", "a=-1", "a=1 a=2", "a=٣", f"a={2**63}", "=1"],
    "source": ["", "0", "g" * 64],
    "error": ["-1", "nan", "inf", "1e999", "x", "1_0"],
    "rms": ["-0.5", "nan"],
    "build_seconds": ["-1", "inf", "1e300"],
    "prepare_ns": ["-1", "1.5", str(10**16), "9" * 5000],
    "allocated": ["-1", str(2**63)],
    "times_ns": ["", "0", "30;0;20", "-1", "30;;20", str(10**16), ";".join(["1"] * 10_001)],
    "detail": ["x", "suspect=1:2:3", "suspect=-1:2:3", "suspect=0:-2:3", "suspect=0:99:x", "=1"],
}


def refused(text, folder):
    with pytest.raises(ResultsRefused, match=r"results.csv, line \d+: "):
        imported(text, folder)
    assert not (folder / "a.db").exists()


@pytest.mark.parametrize(("column", "value"), [(c, v) for c, vs in CELLS.items() for v in vs])
def test_a_cell_that_cannot_be_is_refused(tmp_path, column, value):
    refused(printed(row(**{column: value})), tmp_path)


def places(data, path=()):
    """Where a value stands in JSON data."""
    for key, value in data.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def changed(data, path, value):
    found = copy.deepcopy(data)
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


def taken_or_refused(text, folder):
    """Whatever is raised is a refusal; then there is no file."""
    with suppress(ResultsRefused):
        imported(text, folder)
        (folder / "a.db").unlink()
    assert not (folder / "a.db").exists()


@pytest.mark.parametrize("path", list(places(CAMPAIGN)), ids=".".join)
def test_a_field_of_a_campaign_that_cannot_be_is_refused(tmp_path, path):
    for value in NASTY:
        taken_or_refused(printed(row(), campaign=changed(CAMPAIGN, path, value)), tmp_path)
    for value in ([[-1]], {"a": {}}):
        refused(printed(row(), campaign=changed(CAMPAIGN, path, value)), tmp_path)


@pytest.mark.parametrize("path", list(places(DEVICE)), ids=".".join)
def test_a_field_of_a_device_that_cannot_be_is_refused(tmp_path, path):
    for value in NASTY:
        taken_or_refused(printed(row(), device=changed(DEVICE, path, value)), tmp_path)
    for value in ([[-1]], {"a": {}}):
        refused(printed(row(), device=changed(DEVICE, path, value)), tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"seed": 0', '"seed": 0, "seed": 0'),
        ('"tolerance": 1e-05', '"tolerance": NaN'),
        ('"families": null', '"families": null, "unknown": 1'),
        ('"settings": {', '"settings": ' + "[" * 5000 + "{"),
        ('"seed": 0', '"seed": ' + "1" * 5000),
        ('"compute_units": 1', '"compute_units": 1, "threads": 1'),
        ('"compute_units": 1', '"compute_units": 0'),
        ('"compute_units": 1', '"compute_units": ' + "[" * 100_000),
    ],
)
def test_json_that_a_bundle_does_not_write_is_refused(tmp_path, old, new):
    text = printed(row())
    assert old in text
    refused(text.replace(old, new, 1), tmp_path)


def test_a_lesson_of_a_driver_is_about_a_kernel_that_there_is(tmp_path):
    for detail in ("kernel=x figure=group number=1", "kernel=k0_output figure=x number=1"):
        refused(printed(row(outcome="refused", detail=detail)), tmp_path)
    imported(
        printed(row(outcome="refused", detail="kernel=k0_output figure=group number=1")), tmp_path
    )
