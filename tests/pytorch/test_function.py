"""`lp.torch_function`: values and gradients of all orders are PyTorch's own."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.language.text.program import parse
from tests.plainly import building_plainly

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")


@pytest.fixture(autouse=True)
def plainly():
    with building_plainly():
        yield


LAYER = parse("""
    def layer(x: [5][3]f32, w: [4][3]f32, b: [4]f32) =
      x |> map(row => zip(w, b)
        |> map((k, c) => max((zip(row, k) |> map(mul) |> reduce(add, 0)) + c, 0)))
""")


def drawn(*shapes, seed=3, grad=True):
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=made).requires_grad_(grad) for s in shapes]


def own(f, tensors):
    """A value, and gradients of its product with fixed cotangents."""
    value = f(*tensors)
    ct = torch.arange(value.numel(), dtype=torch.float32).reshape(value.shape) - 1.5
    return value, *torch.autograd.grad((value * ct).sum(), tensors)


def test_a_layer_and_its_gradients_are_those_of_pytorch(runtime: Device) -> None:
    f = lp.torch_function(LAYER, device=runtime)
    tensors = drawn((5, 3), (4, 3), (4,))
    theirs = own(lambda x, w, b: torch.relu(torch.nn.functional.linear(x, w, b)), tensors)
    for mine, other in zip(own(f, tensors), theirs, strict=True):
        torch.testing.assert_close(mine, other)


def test_a_number_and_its_second_derivative() -> None:
    f = lp.torch_function(
        parse("def f(xs: [4]f32, a: f32) = xs |> map(x => sin(x * a)) |> reduce(add, 0)")
    )
    xs, a = drawn((4,), ())
    value = f(xs, a)
    torch.testing.assert_close(value, torch.sin(xs * a).sum())
    first = torch.autograd.grad(3 * value, (xs, a), create_graph=True)
    other = torch.autograd.grad(3 * torch.sin(xs * a).sum(), (xs, a), create_graph=True)
    torch.testing.assert_close(first, other)
    second = torch.autograd.grad(first[0].square().sum() + first[1], (xs, a))
    torch.testing.assert_close(
        second, torch.autograd.grad(other[0].square().sum() + other[1], (xs, a))
    )


def test_tuples_are_tuples_of_tensors_and_integers_are_not_differentiated() -> None:
    f = lp.torch_function(
        parse("""
        def f(ps: [3](f32, f32), n: [3]i32) =
          (zip(ps, n) |> map((p, k) => (p.0 * p.1, k + 1)), ps |> map(p => p.0))
        """)
    )
    xs, ys = drawn((3,), (3,))
    counts = torch.arange(3, dtype=torch.int32)
    (products, more), firsts = f((xs, ys), counts)
    assert not more.requires_grad
    assert more.tolist() == [1, 2, 3]
    (products.sum() + 2 * firsts.sum()).backward()
    torch.testing.assert_close(xs.grad, ys.detach() + 2)
    torch.testing.assert_close(ys.grad, xs.detach())


def test_what_needs_no_gradient_has_none() -> None:
    f = lp.torch_function(LAYER, wrt="w")
    (x,), (w,) = drawn((5, 3), grad=False), drawn((4, 3))
    bias = np.ones(4, np.float32)
    assert not f(x, w.detach(), bias).requires_grad
    assert "kernel" not in vars(f.gradient)  # compiled when it is needed
    value, d = own(lambda w: f(x, w, bias), [w])
    other = own(lambda w: torch.relu(x @ w.T + 1), [w])
    torch.testing.assert_close((value, d), other)
    with pytest.raises(lp.LiftError, match="`x` of layer needs a gradient"):
        f(x.requires_grad_(), w, bias)
    with torch.no_grad():
        f(x, w, bias)


def test_numbers_and_arrays_have_no_gradient_and_are_copied() -> None:
    f = lp.torch_function(
        parse("def f(xs: [3]f32, ys: [3]f32, k: f32) = zip(xs, ys) |> map((x, y) => x * y * k)")
    )
    xs, ys = torch.tensor([1.0, 2.0, 5.0], requires_grad=True), np.array([3, 4, 6], np.float32)
    value = f(xs, ys, 2.0)
    ys[:] = 0
    value.sum().backward()
    assert xs.grad.tolist() == [6, 8, 12]


def test_candidates_of_campaigns_are_used(runtime: Device) -> None:
    """Of the program and of its gradient; the kernel of the second derivative is plain."""
    program = parse("def f(xs: [8]f32) = xs |> map(x => x * x)")
    tiled, back = (
        lp.space(p, runtime).candidate({"family": "tiled"}).assignment
        for p in (program, lp.gradient(program))
    )
    f = lp.torch_function(program, device=runtime, settings=[tiled, back])
    (xs,) = drawn((8,))
    (d,) = torch.autograd.grad(f(xs).sum(), xs)
    torch.testing.assert_close(d, 2 * xs.detach())
    assert f.kernel.assignment == tiled
    assert f.gradient.kernel.assignment == back


def test_arguments_that_do_not_fit_are_refused() -> None:
    f = lp.torch_function(LAYER)
    x, w, b = drawn((5, 3), (4, 3), (4,), grad=False)
    with pytest.raises(lp.LiftError, match="takes 3 arguments, got 2"):
        f(x, w)
    with pytest.raises(lp.LiftError, match="x"):
        f(x.double(), w, b)
    with pytest.raises(lp.LiftError, match="bfloat16"):
        f(x.bfloat16(), w, b)
    with pytest.raises(lp.LiftError, match="no gradient"):
        lp.torch_function(parse("def f(xs: [4]f32) = xs |> map(floor)"))


def test_a_small_network_learns() -> None:
    f = lp.torch_function(LAYER, wrt=["w", "b"])
    x, y, w, b = drawn((5, 3), (5, 4), (4, 3), (4,), grad=False)
    weights = [t.requires_grad_() for t in (w, b)]
    steps = torch.optim.SGD(weights, lr=0.05)
    losses = []
    for _ in range(10):
        steps.zero_grad()
        loss = (f(x, *weights) - torch.relu(y)).square().sum()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 1.5
