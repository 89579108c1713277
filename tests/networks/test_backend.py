"""ONNX's backend tests that must pass: those in passing.txt (`make conformance` writes it).

On each commit one case of each operator runs, all in one test: making the cases takes seconds in
each process that runs one.
"""

import warnings
from functools import cache
from unittest import mock

import numpy as np
import pytest
from onnx.backend.test import BackendTest
from onnx.backend.test.case import base

from liftpy.errors import ArgumentRefused, NetworkRefused
from liftpy.networks.backend import LiftpyBackend
from tests.covering import OPTION
from tests.docs.pages import Shape, run_page
from tests.networks.conformance import PAGE, PASSING, operators_table, section, wrapped
from tests.networks.models import convolutional, model, node, one, value

NAMES = PASSING.read_text(encoding="utf-8").split()


SLOW = {f"export_{kind}pool_3d_default" for kind in ("average", "lp", "max")}
"""Functions of onnx that make cases with many elements, and take most of the time of all cases."""


def without_slow(init):
    """The `__init__` of a class of onnx that makes cases, which skips the `SLOW` functions."""

    def made(cls, name, bases, members):
        init(cls, name, bases, {n: member for n, member in members.items() if n not in SLOW})

    return made


@cache
def cases(every):
    """The tests of onnx by name; making them takes seconds, which collecting need not wait for.

    The source text of each, which onnx shows in its documentation, is not read.
    """
    snippet = mock.patch.object(base, "process_snippet", return_value=("", ""))
    exporter = base._Exporter
    init = exporter.__init__ if every else without_slow(exporter.__init__)
    quick = mock.patch.object(exporter, "__init__", init)
    with snippet, quick, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # casts of NumPy overflow in some cases
        classes = BackendTest(LiftpyBackend, __name__).test_cases
    return {
        name.removesuffix("_cpu"): found(name)
        for found in classes.values()
        for name in vars(found)
        if name.startswith("test_") and name.endswith("_cpu")
    }


def operator(name):
    """The word that names the operator of a case."""
    return name.split("_")[1]


FIRST = [*{operator(name): name for name in reversed(NAMES)}.values()]
OTHERS = sorted({*NAMES} - {*FIRST})


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FIRST, id="one of each operator"),
        pytest.param(OTHERS, id="the others", marks=pytest.mark.soak),
    ],
)
def test_onnx_passes(names, request):
    """The cases that are in the list pass, by their own comparison."""
    every = request.config.getoption(OPTION)
    failed = []
    for name in names:
        try:
            getattr(cases(every)[name], f"{name}_cpu")()
        except Exception as error:  # noqa: BLE001  each case is told
            error.add_note(f"in {name}")
            failed.append(error)
    if failed:
        raise ExceptionGroup("cases that are in passing.txt", failed)


def test_the_list_has_many_cases():
    assert len(NAMES) == len(set(NAMES)) > 1100


def test_the_page_has_the_operators():
    """`make conformance` writes it."""
    page = PAGE.read_text(encoding="utf-8")
    assert section(page, "operators") == wrapped(operators_table())
    passed = [int(row.split("|")[2]) for row in section(page, "conformance").splitlines()[4:8]]
    assert sum(passed) == len(NAMES)


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE, tmp_path, checker=Shape()) > 8


def test_a_backend_runs_a_model_and_refuses_what_has_no_program():
    x = np.random.default_rng(2).standard_normal((1, 3, 11, 13)).astype(np.float32)
    rep = LiftpyBackend.prepare(convolutional())
    (found,) = rep.run([x])
    np.testing.assert_array_equal(found, rep.network.evaluate([x])["y"])
    with pytest.raises(NetworkRefused, match=r"op \(Det\)") as refused:
        LiftpyBackend.prepare(one("Det", (3, 3), rank=0))
    assert [u.operator for u in refused.value.unsupported] == ["Det"]
    assert LiftpyBackend.supports_device("CPU")
    assert not LiftpyBackend.supports_device("CUDA:0")
    with pytest.raises(NetworkRefused, match="not on CUDA"):
        LiftpyBackend.prepare(convolutional(), "CUDA")


@pytest.mark.parametrize("declared", [["N", 3], ["N", "L"], [None, None]])
def test_a_backend_takes_dynamic_lengths_from_the_inputs(declared):
    made = model([node("Neg", "x", "y")], [value("x", declared)], [value("y", [None, None])])
    x = np.float32([[2, 3, 5], [7, 11, 13]])
    (found,) = LiftpyBackend.run_model(made, [x])
    np.testing.assert_array_equal(found, -x)


def test_a_backend_runs_a_node():
    x, y = np.float32([2, 3, 5]), np.float32([7, 11, 13])
    (found,) = LiftpyBackend.run_node(node("Sub", "b a", "c"), [x, y])
    np.testing.assert_array_equal(found, x - y)
    (found,) = LiftpyBackend.run_node(node("Softmax", "a", "c"), [x[None]], opset_version=11)
    np.testing.assert_allclose(found, np.exp(x[None]) / np.exp(x).sum(), rtol=1e-5)
    with pytest.raises(ArgumentRefused, match="Sub takes 2 inputs, got 1"):
        LiftpyBackend.run_node(node("Sub", "b a", "c"), [x])


@pytest.mark.parametrize("count", [0, 2])
def test_a_backend_needs_all_inputs_and_no_others(count):
    x = np.float32([2, 3, 5])
    with pytest.raises(ArgumentRefused, match=f"takes 1 input, got {count}\n  its inputs are: x0"):
        LiftpyBackend.prepare(one("Relu", (3,))).run([x] * count)
