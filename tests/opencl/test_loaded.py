"""A loaded module on a device: results, poison, stray writes, and arrays that do not fit."""

import numpy as np
import pytest

from liftpy.errors import ArgumentRefused, StrayWrite
from tests.opencl.modules import COPY, EXPECTED, SOURCE, N, W, X, Y, saxpy, single

# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [False, True])
def test_a_module_computes_its_result(loaded, poison):
    loaded.set_constants({"w": W}, poison=poison)
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}, poison=poison), EXPECTED)
    np.testing.assert_array_equal(loaded.run({"x": Y, "y": X}, poison=poison), X + 2 * W * Y)


def test_constants_can_be_set_again(loaded):
    loaded.set_constants({"w": X})
    loaded.run({"x": X, "y": Y})
    loaded.set_constants({"w": W})
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), EXPECTED)


def test_a_strided_array_is_made_contiguous(loaded):
    both = np.stack([X, Y], axis=1)
    loaded.set_constants({"w": np.flip(W)[::-1]})
    np.testing.assert_array_equal(loaded.run({"x": both[:, 0], "y": both[:, 1]}), EXPECTED)


def test_a_result_may_be_one_number(session):
    source = (
        COPY % "if (i == 0) { float s = 0; for (int j = 0; j < 101; ++j) s += x[j]; *out = s; }"
    )
    with session.load(single(source, result_shape=())) as loaded:
        output = loaded.run({"x": X})
    assert output.shape == ()
    assert output == X.sum()


# --- poison ---------------------------------------------------------------------------------------


def test_poison_shows_an_element_that_is_not_written(session):
    with session.load(single(COPY % "if (i != 7) out[i] = x[i];")) as loaded:
        output = loaded.run({"x": X}, poison=True)
    assert np.flatnonzero(np.isnan(output)).tolist() == [7]


def test_poison_of_integers_is_a_number_nobody_computes(session):
    source = (COPY % "if (i != 7) out[i] = x[i];").replace("float", "int")
    with session.load(single(source, scalar="i32")) as loaded:
        output = loaded.run({"x": np.arange(N, dtype=np.int32)}, poison=True)
    assert np.flatnonzero(output != np.arange(N)).tolist() == [7]
    assert output[7] == 0x7F7F7F7F


@pytest.mark.parametrize(
    "statement", ["t[i] = w2[i] * x[i]", "w2[i] = 2.0f * w[i]"], ids=["temporary", "packed"]
)
def test_poison_shows_what_is_not_written_between_kernels(session, statement):
    source = SOURCE.replace(statement, f"if (i != 7) {statement}")
    assert source != SOURCE
    with session.load(saxpy(source)) as loaded:
        loaded.set_constants({"w": W}, poison=True)
        output = loaded.run({"x": X, "y": Y}, poison=True)
    assert np.flatnonzero(np.isnan(output)).tolist() == [7]


# --- guard zones ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "wrong", "buffer", "first"),
    [
        ("prepare", "w2[i] = 2.0f * w[i]; if (i == 3) w2[-1] = 1;", "weights", -4),
        ("run", "t[i] = w2[i] * x[i]; if (i == 3) t[i + 98] = 1;", "between", 4 * N),
    ],
)
def test_a_stray_write_is_refused_in_a_checked_run_only(session, phase, wrong, buffer, first):
    right = wrong.split(";")[0]
    assert right in SOURCE
    with session.load(saxpy(SOURCE.replace(f"{right};", wrong))) as loaded:

        def run():
            loaded.set_constants({"w": W}, poison=True)
            assert phase == "run", "the prepare phase is looked at as well"
            loaded.run({"x": X, "y": Y}, poison=True)

        with pytest.raises(StrayWrite, match=f"wrote from byte {first} to byte") as stray:
            run()
        assert stray.value.offset == first
        assert loaded.module.buffer(stray.value.buffer).slot == buffer


# --- memory and time ------------------------------------------------------------------------------


def test_profiling_restores_inputs_that_a_run_destroys(loaded, monkeypatch):
    loaded.set_constants({"w": W})
    loaded.run({"x": X, "y": Y})
    uploads = []
    monkeypatch.setattr(loaded, "_upload", lambda arrays: uploads.append(sorted(arrays)))
    loaded.profile(repeats=2, warmup=1)
    assert uploads == [["x"], ["x"], ["x"]]


# --- refused arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, r"needs an array for its input 'y'; it takes: x: f32\[101\], y: f32\[101\]"),
        ({"x": X, "y": Y, "z": X}, r"has no input 'z'; it takes: x"),
        ({"x": X, "y": Y, "w": W}, r"has no input 'w'"),
        (
            {"x": X[:-1], "y": Y},
            r"'x' is \[101\]f32; it got an array of shape \(100,\)\. Pass one of .*\(101,\)",
        ),
        (
            {"x": X, "y": Y.astype(np.float64)},
            r"'y' is \[101\]f32; it got float64 .* \.astype\(np\.float32\)",
        ),
        ({"x": X.tolist(), "y": Y}, r"'x' is \[101\]f32; it got float64 elements"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(loaded, arrays, message):
    loaded.set_constants({"w": W})
    with pytest.raises(ArgumentRefused, match=message):
        loaded.run(arrays)


def test_a_run_without_constants_is_refused(loaded):
    with pytest.raises(ArgumentRefused, match=r"not set: w; call set_constants\(\)"):
        loaded.run({"x": X, "y": Y})


def test_profiling_without_inputs_is_refused(loaded):
    loaded.set_constants({"w": W})
    with pytest.raises(ArgumentRefused, match=r"call run\(\) first"):
        loaded.profile(repeats=1, warmup=0)
