"""Twelve programs as one writes them after reading docs/embedded.md, against numpy."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.explore.space.space import Space
from liftpy.pipeline import compile_candidate
from tests.batch import results

N, D, K = 12, 5, 4
rng = np.random.default_rng(3)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@lp.program
def dot(xs: lp.array(lp.f32, N), ys: lp.array(lp.f32, N)):
    return lp.zip(xs, ys) >> lp.map(lambda x, y: x * y) >> lp.reduce(lp.add, 0)


@lp.program
def softmax(rows: lp.array(lp.f32, K, N)):
    def one(xs):
        largest = xs >> lp.reduce(lp.maximum, -np.inf)
        powers = xs >> lp.map(lambda x: np.exp(x - largest))
        total = powers >> lp.reduce(lp.add, 0)
        return powers >> lp.map(lambda p: p / total)

    return rows >> lp.map(one)


@lp.program
def layernorm(rows: lp.array(lp.f32, K, N), gain: lp.const(lp.f32, N), bias: lp.const(lp.f32, N)):
    def one(xs):
        mean = (xs >> lp.reduce(lp.add, 0)) / N
        variance = (xs >> lp.map(lambda x: (x - mean) ** 2) >> lp.reduce(lp.add, 0)) / N
        scale = 1 / np.sqrt(variance + 1e-5)
        return lp.zip(xs, gain, bias) >> lp.map(lambda x, g, b: (x - mean) * scale * g + b)

    return rows >> lp.map(one)


@lp.program
def assignment(points: lp.array(lp.f32, N, D), centres: lp.const(lp.f32, K, D)):
    def nearest(point):
        def distance(centre):
            return (
                lp.zip(point, centre) >> lp.map(lambda a, b: (a - b) ** 2) >> lp.reduce(lp.add, 0)
            )

        def better(best, found):
            closer = found[1] < best[1]
            return lp.select(closer, found[0], best[0]), lp.select(closer, found[1], best[1])

        distances = centres >> lp.map(distance)
        return (lp.zip(lp.iota(K), distances) >> lp.reduce(better, (0, np.inf)))[0]

    return points >> lp.map(nearest)


@lp.program
def life(board: lp.array(lp.i32, N, K)) -> lp.array(lp.i32, N, K):
    def cell(window):
        alive = window[1, 1]
        count = (window >> lp.join() >> lp.reduce(lp.add, 0)) - alive
        return lp.select((count == 3) | ((alive == 1) & (count == 2)), 1, 0)

    return board >> lp.pad2d(1, 1, 1, 1) >> lp.slide2d(3) >> lp.map2d(cell)


@lp.program
def matmul(a: lp.array(lp.f32, N, D), b: lp.array(lp.f32, D, K)):
    columns = b >> lp.transpose
    return a >> lp.map(
        lambda row: (
            columns
            >> lp.map(lambda column: lp.zip(row, column) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0))
        )
    )


@lp.program
def conv2d(image: lp.array(lp.f32, N, K), weights: lp.const(lp.f32, 3, 3)):
    def weigh(window):
        pairs = lp.zip(window >> lp.join(), weights >> lp.join())
        return pairs >> lp.map(lambda x, w: x * w) >> lp.reduce(lp.add, 0)

    return image >> lp.pad2d(1, 1, 1, 1) >> lp.slide2d(3) >> lp.map2d(weigh)


@lp.program
def moving_average(xs: lp.array(lp.f32, N)):
    return xs >> lp.slide(3) >> lp.map(lambda w: (w[0] + w[1] + w[2]) / 3)


@lp.program
def histogram(xs: lp.array(lp.i32, N)) -> lp.array(lp.i32, K):
    return lp.generate(
        K, lambda b: xs >> lp.map(lambda x: lp.select(x == b, 1, 0)) >> lp.reduce(lp.add, 0)
    )


@lp.program
def argmax(xs: lp.array(lp.f32, N)):
    def better(best, found):
        larger = found[1] > best[1]
        return lp.select(larger, found[0], best[0]), lp.select(larger, found[1], best[1])

    best = lp.zip(lp.iota(N), xs) >> lp.reduce(better, (0, -np.inf))
    return best[0]


@lp.program
def attention(
    queries: lp.array(lp.f32, K, D), keys: lp.array(lp.f32, N, D), values: lp.array(lp.f32, N, D)
):
    columns = values >> lp.transpose()

    def product(a, b):
        return lp.zip(a, b) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)

    def one(query):
        scores = keys >> lp.map(lambda key: product(query, key) / np.sqrt(D))
        largest = scores >> lp.reduce(lp.maximum, -np.inf)
        powers = scores >> lp.map(lambda s: lp.exp(s - largest))
        total = powers >> lp.reduce(lp.add, 0)
        return columns >> lp.map(lambda column: product(powers, column) / total)

    return queries >> lp.map(one)


@lp.program
def mandelbrot(re: lp.array(lp.f32, N), im: lp.array(lp.f32, N)):
    def steps(a, b):
        def step(z):
            x, y, n = z
            inside = x * x + y * y <= 4
            return (
                lp.select(inside, x * x - y * y + a, x),
                lp.select(inside, 2 * x * y + b, y),
                lp.select(inside, n + 1, n),
            )

        start = a * 0, b * 0, lp.convert(0, lp.i32)
        return (lp.let(start, lp.iterate(9, step)))[2]

    return lp.zip(re, im) >> lp.map(steps)


def exactly_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def neighbours(board):
    wide = np.pad(board, 1)
    count = sum(np.roll(wide, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
    return (count - wide)[1:-1, 1:-1]


def lived(board):
    count = neighbours(board)
    return ((count == 3) | ((board == 1) & (count == 2))).astype(np.int32)


def convolved(image, weights):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1), (3, 3))
    return np.einsum("ijkl,kl->ij", windows, weights)


def escaped(re, im):
    z, n = np.zeros(len(re), complex), np.zeros(len(re), np.int32)
    for _ in range(9):
        inside = abs(z) <= 2
        z, n = np.where(inside, z * z + re + 1j * im, z), n + inside
    return n.astype(np.int32)


def normalised(x, gain, bias):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + bias


CASES = {
    "dot": (dot, (floats(N), floats(N)), np.dot),
    "softmax": (softmax, (floats(K, N),), exactly_softmax),
    "layernorm": (layernorm, (floats(K, N), floats(N), floats(N)), normalised),
    "assignment": (
        assignment,
        (floats(N, D), floats(K, D)),
        lambda p, c: ((p[:, None] - c) ** 2).sum(2).argmin(1).astype(np.int32),
    ),
    "life": (life, (rng.integers(0, 2, (N, K)).astype(np.int32),), lived),
    "matmul": (matmul, (floats(N, D), floats(D, K)), np.matmul),
    "conv2d": (conv2d, (floats(N, K), floats(3, 3)), convolved),
    "moving_average": (
        moving_average,
        (floats(N),),
        lambda x: np.convolve(x, np.ones(3) / 3, "valid"),
    ),
    "histogram": (
        histogram,
        (rng.integers(0, K, N).astype(np.int32),),
        lambda x: np.bincount(x, minlength=K).astype(np.int32),
    ),
    "argmax": (argmax, (floats(N),), lambda x: np.int32(x.argmax())),
    "attention": (
        attention,
        (floats(K, D), floats(N, D), floats(N, D)),
        lambda q, k, v: exactly_softmax(q @ k.T / np.sqrt(D)) @ v,
    ),
    "mandelbrot": (mandelbrot, (floats(N), floats(N)), escaped),
}
programs = pytest.mark.parametrize("name", CASES)


@programs
def test_it_is_what_numpy_computes(name):
    program, arrays, reference = CASES[name]
    got, expected = program(*arrays), reference(*arrays)
    if np.asarray(expected).dtype.kind == "i":
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@programs
def test_its_text_reads_back(name):
    program = CASES[name][0]
    assert lp.parse(lp.show(program)) == program


@pytest.mark.covering(2)
@programs
def test_a_kernel_computes_it(runtime, name):
    """A drawn candidate, on a device."""
    program, arrays, reference = CASES[name]
    (candidate,) = Space.whole(program, runtime).sample(1, 5)
    module = compile_candidate(candidate.skeleton, candidate.assignment)
    (got,) = results(runtime, [module], list(arrays))
    np.testing.assert_allclose(got, reference(*arrays), rtol=1e-4, atol=1e-4)


def test_a_loop_of_choices_that_use_each_other_is_written_in_one_pass():
    @lp.program
    def escaped(re: lp.array(lp.f32, 3), im: lp.array(lp.f32, 3)):
        def count(a, b):
            x, y, n = a * 0, b * 0, lp.convert(0, lp.i32)
            for _ in range(20):
                inside = x * x + y * y <= 4
                x, y, n = (
                    lp.select(inside, x * x - y * y + a, x),
                    lp.select(inside, 2 * x * y + b, y),
                    lp.select(inside, n + 1, n),
                )
            return n

        return lp.zip(re, im) >> lp.map(count)

    assert escaped(np.float32([0, 2, 0.5]), np.float32([0, 2, 0])).tolist() == [20, 1, 5]
