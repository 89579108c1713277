"""The value of programs in numpy, against plain numpy."""

import time

import numpy as np
import pytest

from liftpy.errors import ArgumentRefused, TypeRefused
from liftpy.ir.expr import Literal
from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32, I32, TupleType, array
from liftpy.language.embedded.lang import (
    add,
    add_int,
    as_scalar,
    as_vector,
    get,
    join,
    let,
    map,
    map_vec,
    mul,
    pad,
    program,
    reduce,
    reduce_vec,
    reorder,
    slide,
    split,
    to_global,
    transpose,
    unzip,
    zip,
)
from liftpy.language.embedded.operations import operate
from liftpy.language.text.program import parse
from liftpy.semantics import numbers as numbers_module
from liftpy.semantics.evaluate import evaluate, evaluate_at
from liftpy.semantics.reference import reference
from liftpy.workloads import Convolution, convolution

LAYERS = {
    "3x3": Convolution(3, 7, 5, 4, (3, 3), (1, 1), (1, 1, 1, 1)),
    "1x1": Convolution(5, 7, 3, 2, (1, 1)),
    "5x5, asymmetric padding": Convolution(2, 7, 11, 3, (5, 5), (1, 1), (2, 0, 1, 3)),
    "stride 2": Convolution(3, 13, 11, 5, (3, 3), (2, 2), (1, 1, 1, 1)),
    "3x2, stride 2x3": Convolution(2, 11, 13, 3, (3, 2), (2, 3), (0, 1, 2, 0)),
    "one window": Convolution(7, 3, 3, 2, (3, 3)),
}


def data(layer, dtype=np.float32):
    r = np.random.default_rng(layer.height)
    shapes = (
        (layer.height, layer.width, layer.channels),
        (layer.kernels, *layer.kernel, layer.channels),
        (layer.kernels,),
    )
    return [r.standard_normal(shape).astype(dtype) for shape in shapes]


def convolved(layer, x, w, b):
    top, bottom, left, right = layer.padding
    padded = np.pad(x.astype(np.float64), ((top, bottom), (left, right), (0, 0)))
    (rows, columns), (down, across) = layer.kernel, layer.stride
    result = np.empty((*layer.out, layer.kernels))
    for i, j in np.ndindex(*layer.out):
        window = padded[i * down : i * down + rows, j * across : j * across + columns]
        result[i, j] = np.tensordot(w.astype(np.float64), window, 3) + b
    return result


@pytest.mark.parametrize("name", LAYERS)
def test_convolution_is_that_of_numpy(name):
    layer = LAYERS[name]
    arrays = data(layer)
    got = evaluate(convolution(layer), *arrays, dtype=np.float64)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, convolved(layer, *arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_chosen_points_are_those_of_the_whole(name):
    layer = LAYERS[name]
    arrays, conv = data(layer), convolution(layer)
    whole = evaluate(conv, *arrays)
    points = np.argwhere(np.ones(whole.shape, bool))[::-1]
    np.testing.assert_array_equal(evaluate_at(conv, points, *arrays), whole[tuple(points.T)])


def test_whole_is_the_same_in_small_blocks(monkeypatch):
    layer = LAYERS["stride 2"]
    arrays, conv = data(layer), convolution(layer)
    whole = evaluate(conv, *arrays)
    monkeypatch.setattr(numbers_module, "BLOCK", 7)
    np.testing.assert_array_equal(evaluate(conv, *arrays), whole)


def test_a_few_points_of_a_large_layer_do_not_take_the_whole_of_it():
    """They take about as long as so many of a small one; the whole would take 50 times as long."""
    taken = []
    for size in (16, 112):
        layer = Convolution(128, size, size, 128, (3, 3), (1, 1), (1, 1, 1, 1))
        arrays = data(layer)
        points = np.random.default_rng(1).integers(0, (*layer.out, 128), (2000, 3))
        start = time.process_time()
        got = evaluate_at(convolution(layer), points, *arrays, dtype=np.float64)
        taken.append(time.process_time() - start)
    assert taken[1] < 10 * taken[0]
    x, w, b = (a.astype(np.float64) for a in arrays)
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    want = [np.vdot(padded[i : i + 3, j : j + 3], w[k]) + b[k] for i, j, k in points]
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


def test_a_component_that_is_read_once_is_not_stored(monkeypatch):
    """One element of a scaled row needs one sum, not those of the whole row."""
    rows = parse(
        """def rows(x: [5][7][11]f32, s: [5]f32) =
             zip(x |> map(map(reduce(add, 0))), s) |> map(t => t.0 |> map(y => y * t.1 - t.1))"""
    )
    stored, store = [], numbers_module.NumpyReader.stored_array
    monkeypatch.setattr(
        numbers_module.NumpyReader,
        "stored_array",
        lambda self, value, like: stored.append(value) or store(self, value, like),
    )
    x, s = numbers(5, 7, 11), numbers(5)
    found = evaluate_at(rows, np.array([[3, 2], [4, 6]]), x, s, dtype=np.float64)
    wide = x.astype(np.float64).sum(2)[[3, 4], [2, 6]]
    np.testing.assert_allclose(found, wide * s[3:] - s[3:], rtol=1e-12)
    assert not stored


@program
def dot(xs: array(F32, 101), ys: array(F32, 101)):
    return zip(xs, ys) >> map(mul) >> reduce(add, 0)


@program
def matmul(a: array(F32, 7, 11), b: array(F32, 11, 5)):
    def row(r):
        return b >> transpose() >> map(lambda c: zip(r, c) >> map(mul) >> reduce(add, 0))

    return a >> map(row)


@program
def stencil(xs: array(F32, 23)):
    return xs >> pad(1, 1) >> slide(3) >> map(reduce(add, 0))


def numbers(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_dot_product_is_a_number():
    xs, ys = numbers(101), numbers(101)
    got = evaluate(dot, xs, ys, dtype=np.float64)
    assert got.shape == ()
    np.testing.assert_allclose(got, xs.astype(float) @ ys, rtol=1e-12)
    assert evaluate(dot, xs, ys).dtype == np.float32


def test_dot_product_is_folded_in_order_in_its_own_type():
    xs, ys = numbers(101), numbers(101)
    total = np.float32(0)
    for product in xs * ys:
        total += product
    assert evaluate(dot, xs, ys) == total


def test_matrix_product_is_that_of_numpy():
    a, b = numbers(7, 11), numbers(11, 5)
    got = evaluate(matmul, a, b, dtype=np.float64)
    np.testing.assert_allclose(got, a.astype(float) @ b, rtol=1e-12, atol=1e-12)


def test_three_point_stencil_is_that_of_numpy():
    xs = numbers(23)
    wide = np.pad(xs.astype(float), 1)
    want = wide[:-2] + wide[1:-1] + wide[2:]
    np.testing.assert_allclose(evaluate(stencil, xs, dtype=np.float64), want, rtol=1e-12)


def test_float64_is_not_computed_in_float32_on_the_way():
    xs = np.full(101, 0.1, np.float32)
    got = evaluate(dot, xs, xs, dtype=np.float64)
    assert abs(got - 101 * float(np.float32(0.1)) ** 2) < 1e-13


@pytest.mark.parametrize("amounts", [(3, 2), (-2, 1), (1, -3), (-1, -2), (0, 0)])
def test_padding_is_that_of_numpy_and_negative_amounts_crop(amounts):
    left, right = amounts

    @program
    def padded(xs: array(F32, 7)):
        return xs >> pad(left, right, 9.0)

    xs = np.arange(7, dtype=np.float32)
    body = xs[max(0, -left) : 7 - max(0, -right)]
    want = np.pad(body, (max(0, left), max(0, right)), constant_values=9)
    np.testing.assert_array_equal(evaluate(padded, xs), want)


def test_layouts_move_elements_as_their_references_do():
    i = var("i")

    @program
    def moved(xs: array(F32, 3, 8)):
        turned = xs >> transpose() >> map(reorder(nat(2) - i, nat(2) - i)) >> join()
        return turned >> as_vector(4) >> map(map_vec(lambda x: x * 2)) >> as_scalar() >> split(6)

    xs = np.arange(24, dtype=np.float32).reshape(3, 8)
    want = (xs.T[:, ::-1].reshape(-1) * 2).reshape(4, 6)
    np.testing.assert_array_equal(evaluate(moved, xs), want)
    np.testing.assert_array_equal(reference(moved, xs), want)


def test_lanes_of_vectors_are_folded():
    @program
    def lanes(xs: array(F32, 8)):
        return xs >> as_vector(4) >> map(reduce_vec(add, 1))

    xs = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(lanes, xs), [7, 23])


def test_result_may_be_a_tuple_of_arrays_and_an_argument_too():
    @program
    def apart(pairs: array(TupleType((F32, I32)), 5)):
        return pairs >> unzip()

    floats, ints = np.arange(5, dtype=np.float32), np.arange(5, dtype=np.int32)[::-1]
    one, two = evaluate(apart, (floats, ints))
    np.testing.assert_array_equal(one, floats)
    np.testing.assert_array_equal(two, ints)
    assert two.dtype == np.int32
    some, others = evaluate_at(apart, np.array([[3], [0]]), (floats, ints))
    np.testing.assert_array_equal(some, floats[[3, 0]])
    np.testing.assert_array_equal(others, ints[[3, 0]])


def test_scalar_operators_are_those_of_numpy():
    @program
    def mixed(xs: array(F32, 7), ys: array(F32, 7)):
        def f(x, y):
            low, high = operate("min", x, y), operate("max", x, y)
            return operate("select", x < y, -low / high, operate("sqrt", operate("abs", x)) + y)

        return zip(xs, ys) >> map(f)

    xs, ys = numbers(7), numbers(7)[::-1].copy()
    low, high = np.minimum(xs, ys), np.maximum(xs, ys)
    want = np.where(xs < ys, -low / high, np.sqrt(np.abs(xs)) + ys)
    np.testing.assert_array_equal(evaluate(mixed, xs, ys), want)


def test_integers_divide_towards_zero():
    @program
    def halves(xs: array(I32, 5)):
        return xs >> map(lambda x: x / 2)

    xs = np.array([-3, -2, 0, 2, 3], np.int32)
    got = evaluate(halves, xs)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, [-1, -1, 0, 1, 1])


def test_let_and_memories_keep_values():
    @program
    def twice(xs: array(F32, 5)):
        return xs >> map(lambda x: x * 3) >> to_global >> let(lambda t: zip(t, t) >> map(mul))

    xs = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(twice, xs), (3 * xs) ** 2)


# --- accumulators that are arrays ---------------------------------------------------------------


def rows_and_columns(turn):
    """Folds matrices into one; the accumulator is turned over first where `turn`."""

    @program
    def folded(xss: array(F32, 5, 3, 3), start: array(F32, 3, 3)):
        def step(a, x):
            known = a >> transpose() if turn else a
            return zip(known, x) >> map(lambda p, q: zip(p, q) >> map(lambda s, t: s * 2 + t))

        return xss >> reduce(step, start)

    return folded


@pytest.mark.parametrize("turn", [False, True])
def test_fold_of_matrices_is_that_of_numpy(turn):
    xss, start = numbers(5, 3, 3), numbers(3, 3)
    want = start
    for matrix in xss:
        want = (want.T if turn else want) * 2 + matrix
    folded = rows_and_columns(turn)
    np.testing.assert_array_equal(evaluate(folded, xss, start), want)
    points = np.array([[2, 1], [0, 2]])
    got = evaluate_at(folded, points, xss, start)
    np.testing.assert_array_equal(got, want[tuple(points.T)])


@pytest.mark.parametrize("turn", [False, True])
def test_fold_of_matrices_inside_a_map_is_that_of_numpy(turn):
    @program
    def folded(xsss: array(F32, 4, 5, 3, 3), start: array(F32, 3, 3)):
        def step(a, x):
            known = a >> transpose() if turn else a
            return zip(known, x) >> map(lambda p, q: zip(p, q) >> map(lambda s, t: s * 2 + t))

        return xsss >> map(reduce(step, start))

    xsss, start = numbers(4, 5, 3, 3), numbers(3, 3)
    want = []
    for xss in xsss:
        a = start
        for matrix in xss:
            a = (a.T if turn else a) * 2 + matrix
        want.append(a)
    np.testing.assert_array_equal(evaluate(folded, xsss, start), want)


def test_fold_whose_accumulator_shifts_is_that_of_numpy():
    i = var("i")

    @program
    def shifted(xss: array(F32, 6, 5), start: array(F32, 5)):
        def step(a, x):
            around = a >> reorder((i + 1) % 5, (i + 4) % 5)
            return zip(around, x) >> map(add)

        return xss >> reduce(step, start)

    xss, start = numbers(6, 5), numbers(5)
    want = start
    for x in xss:
        want = np.roll(want, -1) + x
    np.testing.assert_array_equal(evaluate(shifted, xss, start), want)


def test_a_number_of_python_takes_the_type_of_its_parameter():
    program = parse("def f(a: f32, b: f64, n: i32, yes: bool) = (a, b, n, yes)")
    given = evaluate(program, 2, 0.1, 7, True)
    assert [x.dtype for x in given] == [np.float32, np.float64, np.int32, np.bool_]
    assert [x.item() for x in given] == [2.0, 0.1, 7, True]
    for refused in ((1.0, 1.0, 7.0, True), (True, 1.0, 7, True), (1, 1, 1 << 31, True)):
        with pytest.raises(ArgumentRefused):
            evaluate(program, *refused)
    with pytest.raises(ArgumentRefused, match="a needs float32"):
        evaluate(program, np.float64(1), 1, 1, True)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros(100, np.float32),) * 2,
            r"xs needs float32 numbers of shape \(101,\), got .*100",
        ),
        ((np.zeros(101),) * 2, r"xs needs float32 .* got float64"),
        ((np.zeros(101, np.int32),) * 2, r"xs needs float32 .* got int32"),
        ((np.zeros(101, np.float32),), r"dot takes 2 arguments, got 1"),
    ],
)
def test_argument_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ArgumentRefused, match=message):
        evaluate(dot, *arguments)


def test_float64_arguments_are_taken_where_everything_is_float64():
    xs = np.random.default_rng(0).standard_normal(101)
    np.testing.assert_allclose(evaluate(dot, xs, xs, dtype=np.float64), xs @ xs, rtol=1e-12)


def test_tuple_argument_of_other_length_is_refused():
    @program
    def apart(pairs: array(TupleType((F32, I32)), 5)):
        return pairs >> map(get(1))

    with pytest.raises(ArgumentRefused, match="pairs needs a tuple of 2 arrays"):
        evaluate(apart, np.zeros(5, np.float32))


def test_open_size_is_refused():
    @program
    def doubled(xs: array(F32, var("n"))):
        return xs >> map(lambda x: x * 2)

    with pytest.raises(TypeRefused, match="the open size n has no number"):
        evaluate(doubled.body, np.zeros(3, np.float32))
    assert evaluate(doubled, np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_point_outside_is_refused():
    xs = numbers(23)
    with pytest.raises(ArgumentRefused, match=r"index 0 of a point must be in 0 \.\. 22"):
        evaluate_at(stencil, np.array([[3], [23]]), xs)


def test_points_with_too_few_indices_are_refused():
    a, b = numbers(7, 11), numbers(11, 5)
    with pytest.raises(ArgumentRefused, match="needs an index for each dimension"):
        evaluate_at(matmul, np.array([[3]]), a, b)


# --- the reference evaluator --------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_reference_is_the_meaning_on_whole_numbers(name):
    """Whole numbers are computed exactly, so that the two agree to the last bit."""
    layer = LAYERS[name]
    arrays = [np.round(4 * a) for a in data(layer)]
    conv = convolution(layer)
    np.testing.assert_array_equal(reference(conv, *arrays), evaluate(conv, *arrays))


def test_reference_of_integers_and_truth_values():
    @program
    def counted(xs: array(I32, 11)):
        one, none = Literal(1, I32), Literal(0, I32)
        return xs >> map(lambda x: operate("select", x < 4, one, none)) >> reduce(add_int, 0)

    xs = np.arange(11, dtype=np.int32)[::-1].copy()
    assert reference(counted, xs) == evaluate(counted, xs) == 4
