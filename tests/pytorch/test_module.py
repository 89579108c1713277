"""`lp.torch_module(plan)`: a plan as a module of PyTorch."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused
from tests.networks.models import model, node, value
from tests.plainly import building_plainly

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")

W = np.random.default_rng(3).standard_normal((5, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def plan(runtime, tmp_path_factory):
    """A dense layer and integers beside it, from a file."""
    nodes = [
        node("Gemm", "x w", "d", transB=1),
        node("Relu", "d", "y"),
        node("Add", "n n", "m"),
    ]
    inputs = [value("x", (2, 3)), value("n", (7,), 7)]
    path = tmp_path_factory.mktemp("plans") / "dense.plan"
    with building_plainly():
        made = model(nodes, inputs, [value("y", (2, 5)), value("m", (7,), 7)], w=W)
        with lp.network(made).plan(device=runtime) as planned:
            planned.save(path)
        with lp.load(path, runtime) as found:
            yield found


X, N = torch.tensor([[2.0, -3, 5], [7, 11, -13]]), torch.arange(7)


def test_a_plan_is_a_module(plan):
    module = lp.torch_module(plan)
    assert isinstance(module, torch.nn.Module)
    assert "Plan of small" in repr(module)
    assert [*module.parameters(), *module.buffers()] == []
    y, m = module(X.t().contiguous().t(), N)
    torch.testing.assert_close(y, torch.relu(X @ torch.from_numpy(W).t()))
    assert torch.equal(m, 2 * N)
    again, _ = module(-X, N)
    assert not torch.equal(again, y)  # results are copies: a run does not change earlier ones


def test_a_module_is_called_from_compiled_code(plan):
    module = lp.torch_module(plan)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, n: module(x * 2, n)[0] + 1, backend="eager")
    torch.testing.assert_close(compiled(X, N), torch.relu(2 * X @ torch.from_numpy(W).t()) + 1)


def test_tensors_that_do_not_fit_are_refused(plan):
    module = lp.torch_module(plan)
    with pytest.raises(ArgumentRefused, match="x needs float32 numbers of shape"):
        module(X.double(), N)
    with pytest.raises(ArgumentRefused, match=r"shape \(2, 3\), got float32 of shape \(1, 3\)"):
        module(X[:1], N)
    with pytest.raises(ArgumentRefused, match="takes 2 tensors, got 1\n  its inputs are: x, n"):
        module(X)
    with pytest.raises(ArgumentRefused, match="x of small must be a tensor\n  got ndarray"):
        module(X.numpy(), N)


def test_a_tensor_that_needs_a_gradient_is_refused(plan):
    module, x = lp.torch_module(plan), X.clone().requires_grad_()
    with pytest.raises(ArgumentRefused, match=r"(?s)x of small needs a gradient.*x.detach\(\)"):
        module(x, N)
    with torch.no_grad():
        module(x, N)
