"""Inputs and results of plans that are arrays of other libraries, and what is copied."""

from unittest import mock

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused
from liftpy.opencl.resident import Resident
from tests.networks.models import model, node, value

SHAPE = (1, 2, 3, 32)
RNG = np.random.default_rng(4)
X, Z = (RNG.standard_normal(SHAPE).astype(np.float32) for _ in range(2))


class Tensor:
    """An object of another library in the processor's memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Differentiated(Tensor):
    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors that require gradient")


@pytest.fixture(scope="module")
def plan(runtime):
    """`x` is only read, by a reshape and three kernels; `z` is stored in a result, `j`."""
    shapes = {"y": SHAPE, "v": (2, 96), "j": (2, 2, 3, 32), "same": (5,)}
    nodes = [
        node("Mul", "x x", "y"),
        node("Reshape", "x shape", "flat"),
        node("Neg", "flat", "v"),
        node("Abs", "x", "w"),
        node("Concat", "z w", "j", axis=0),
        node("Identity", "k", "same"),
    ]
    inputs = [value("x", SHAPE), value("z", SHAPE), value("k", (5,))]
    outputs = [value(n, shape) for n, shape in shapes.items()]
    made = model(nodes, inputs, outputs, shape=np.array([2, 96]))
    with lp.network(made).plan(device=runtime) as found:
        yield found


K = np.arange(5, dtype=np.float32)


def right(found, x=X, z=Z):
    wanted = {"y": x * x, "v": -x.reshape(2, 96), "j": np.concatenate([z, abs(x)]), "same": K}
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_dlpack_is_read_and_results_are_read_through_it(plan):
    backwards = np.ascontiguousarray(X[..., ::-1])[..., ::-1]
    found = plan.run([Tensor(backwards), Tensor(Z), K])
    right(found)
    np.testing.assert_array_equal(np.from_dlpack(found["y"]), X * X)


def test_a_tensor_that_cannot_be_read_is_refused(plan):
    with pytest.raises(ArgumentRefused, match=r"(?s)for x, a tests.Diff.*require gradient.*cpu"):
        plan.run([Differentiated(X), Z, K])


def counted(name):
    """Counts the calls of a method that copies."""
    return mock.patch.object(Resident, name, autospec=True, side_effect=getattr(Resident, name))


@pytest.mark.parametrize("poison", [False, True])
def test_an_array_on_the_device_is_read_where_it_is(plan, poison):
    given = [cla.to_device(plan.queue, a) for a in (X, Z, K)]
    with counted("write") as writes, counted("copy") as copies:
        right(plan.run(given, poison=poison))
    assert writes.call_count == 0
    assert copies.call_count == 2  # z and k, of which results are parts
    right(plan.run([Z, X, K]), Z, X)  # the kernels read the arena again
    right(plan.run(given), X, Z)
    np.testing.assert_array_equal(given[0].get(), X)


def test_parts_of_arrays_and_other_contexts(plan):
    both = cla.to_device(plan.queue, np.stack([Z, X]))
    with counted("copy") as copies:
        right(plan.run([both[1], Z, K]))  # 768 bytes from the start, which is aligned
    assert copies.call_count == 0
    odd = cla.to_device(plan.queue, np.concatenate([[np.float32(9)], X.reshape(-1)]))
    with counted("copy") as copies:
        right(plan.run([odd[1:].reshape(SHAPE), both[0], K]))  # x is 4 bytes from the start
    assert copies.call_count == 2
    context = cl.Context([plan.queue.device])
    right(plan.run([cla.to_device(cl.CommandQueue(context), X), Z, K]))


def test_results_stay_on_the_device(plan):
    found = plan.run([X, Z, K], on_device=True)
    assert all(isinstance(array, cla.Array) for array in found.values())
    plan.run([Z, X, K])  # writes the arena again
    right({name: array.get() for name, array in found.items()})
    right(plan.run([found["y"], Z, K]), X * X, Z)


def test_a_wrong_shape_on_the_device_is_refused(plan):
    with pytest.raises(ArgumentRefused, match="x needs float32 numbers of shape"):
        plan.run([cla.to_device(plan.queue, X[0]), Z, K])
