"""`torch.compile(model, backend=lp.torch_backend())`: models on a device, beside PyTorch."""

import gc
import importlib.metadata
import tomllib
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused, MemoryRefused, TypeRefused
from tests.plainly import building_plainly

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")

from torch import nn  # noqa: E402  torch may be absent
from torch.nn import functional as F  # noqa: E402, N812

from liftpy.pytorch.compiling import ByShape, TorchBackend  # noqa: E402
from tests.pytorch.meaning import Meaning, by_meaning, said  # noqa: E402


@pytest.fixture(autouse=True)
def plainly():
    torch._dynamo.reset()
    torch.manual_seed(3)
    with building_plainly(), torch.no_grad():
        yield


class Convolutional(nn.Module):
    """Conv, BatchNorm, ReLU, a residual, pooling, Linear."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 5, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(5)
        self.conv2 = nn.Conv2d(5, 5, 3, padding=1, bias=False)
        self.dense = nn.Linear(5 * 2 * 3, 7)
        for part in (self.norm.weight, self.norm.bias, self.norm.running_mean):
            nn.init.normal_(part)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.max_pool2d(x + self.conv2(x), 3, 2)
        return self.dense(x.flatten(1))


def close(found, wanted):
    """The tolerance of `net.check`: relative to the largest value."""
    assert found.dtype == wanted.dtype
    assert found.stride() == wanted.stride()
    scale = 1e-4 * float(wanted.abs().max()) if wanted.is_floating_point() else 0
    torch.testing.assert_close(found, wanted, rtol=0, atol=scale)


def test_a_convolutional_network_is_one_subgraph(runtime, caplog):
    net, x = Convolutional().eval(), torch.randn(2, 3, 11, 13)
    backend = lp.torch_backend(device=runtime)
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    close(compiled(x), net(x))
    assert said(caplog) == []
    (part,) = backend.subgraphs
    assert part.plan.device is runtime
    assert len(part.plan.graph.inputs) == 1  # the weights are constants
    close(compiled(-x), net(-x))


class Block(nn.Module):
    """Attention and a perceptron, each with a residual and a normalization before it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 7), nn.GELU(), nn.Linear(7, width))

    def forward(self, x):
        parts = self.inner(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outer(found.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


def test_a_transformer_block_is_one_subgraph(caplog):
    net, x = Block(6, 2).eval(), torch.randn(2, 5, 6)
    backend = lp.torch_backend()
    close(torch.compile(net, backend=backend, fullgraph=True)(x), net(x))
    assert said(caplog) == []
    assert len(backend.subgraphs) == 1


def test_an_operator_in_the_middle_is_left(caplog):
    def f(x, n):
        ordered = torch.sort(x * x + 1, dim=1).values
        return torch.fft.rfft(ordered).abs() + n, (ordered - x).sum(1)

    x, n = torch.randn(3, 7), torch.tensor([[2], [3], [-5]])
    found, backend = by_meaning(f, x, n)
    for one, wanted in zip(found, f(x, n), strict=True):
        close(one, wanted)
    (text,) = said(caplog)
    assert "  sort (aten.sort.default): it has no translation to ONNX\n" in text
    assert "  _fft_r2c (aten._fft_r2c.default): it has no translation to ONNX\n" in text
    assert len(backend.subgraphs) == 2


def test_graph_breaks_integers_and_messages_that_are_said_once(caplog):
    def f(n, w):
        a = F.embedding(n, w) * 2
        torch._dynamo.graph_break()
        b = torch.erfc(a + 1)
        torch._dynamo.graph_break()
        return torch.erfc(b.sum(1)) - 1, n * 3

    n, w = torch.tensor([[2, 0, 5], [1, 3, 4]]), torch.randn(6, 5)
    found, backend = by_meaning(f, n, w)
    for one, wanted in zip(found, f(n, w), strict=True):
        close(one, wanted)
    assert len(backend.subgraphs) == 4  # in the last one, erfc separates the integers from the sum
    texts = said(caplog)
    assert texts
    assert len(texts) == len(set(texts))


# --- weights --------------------------------------------------------------------------------------


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("shift", torch.randn(4))

    def forward(self, x):
        return x @ self.weight.t() + self.shift


def in_place(net):
    net.weight.mul_(-2)


def through_data(net):
    net.weight.data[1, 2] = 5


def by_numpy(net):
    net.shift.numpy()[3] = 7


def other_memory(net):
    net.weight.data = torch.randn(4, 3)


def loaded(net):
    net.load_state_dict({name: 2 * value for name, value in net.state_dict().items()})


def assigned(net):
    net.weight = nn.Parameter(torch.randn(4, 3))


CHANGES = [in_place, through_data, by_numpy, other_memory, loaded, assigned]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("weights", ["compared", "counted"])
def test_changed_weights_are_packed_again(change, weights):
    net, x = Affine(), torch.randn(2, 3)
    backend = lp.torch_backend(weights=weights)
    compiled = torch.compile(net, backend=backend)
    before = compiled(x)
    close(before, net(x))
    plan = backend.subgraphs[0].plan
    close(compiled(x), before)
    assert backend.subgraphs[0].plan is plan
    change(net)
    after = compiled(x)
    if weights == "counted" and change in {through_data, by_numpy}:
        close(after, before)  # PyTorch does not count these
    else:
        assert not torch.equal(after, before)
        close(after, net(x))
    if change is in_place:
        assert backend.subgraphs[0].plan.modules is plan.modules  # no kernel is derived again


def test_weights_that_decide_a_program_are_planned_again(runtime):
    """A variance near 0 keeps batch normalization out of the weights of a convolution."""
    net, x = Convolutional().eval(), torch.randn(1, 3, 11, 13)
    net.norm.eps = 1e-12
    backend = lp.torch_backend(device=runtime)
    compiled = torch.compile(net, backend=backend)
    close(compiled(x), net(x))
    before = backend.subgraphs[0].plan.graph.operations
    net.norm.running_var[2] = 0
    close(compiled(x), net(x))
    after = backend.subgraphs[0].plan.graph.operations
    assert [o.program for o in before] != [o.program for o in after]


def test_weights_are_packed_by_the_call_after_a_failure():
    net, x, calls = Affine(), torch.randn(2, 3), []

    def plan_of(network):
        calls.append(network)
        if len(calls) == 2:
            raise MemoryRefused("no memory")
        return Meaning(network)

    compiled = torch.compile(net, backend=TorchBackend(plan_of, "compared", torch))
    close(compiled(x), net(x))
    net.weight.mul_(3)
    with pytest.raises(MemoryRefused):
        compiled(x)
    close(compiled(x), net(x))
    assert len(calls) == 3


def test_a_plan_that_cannot_be_renewed_is_closed():
    closed = []

    class Full(Meaning):
        def renewed(self, graph):
            raise MemoryRefused("no memory")

        def close(self):
            closed.append(self)

    net, x = Affine(), torch.randn(2, 3)
    compiled = torch.compile(net, backend=TorchBackend(Full, "compared", torch))
    close(compiled(x), net(x))
    net.weight.mul_(3)
    with pytest.raises(MemoryRefused):
        compiled(x)
    assert len(closed) == 1
    close(compiled(x), net(x))


def test_what_a_graph_writes_is_no_constant():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total += x.abs()
            return x * self.total

    own, other, x = Counting(), Counting(), torch.tensor([2.0, -3, 5])
    backend = lp.torch_backend()
    compiled = torch.compile(own, backend=backend)
    for _ in range(3):
        close(compiled(x), other(x))
        close(own.total, other.total)
    assert len(backend.subgraphs[0].plan.graph.inputs) == 2


# --- what is left to PyTorch ----------------------------------------------------------------------


def test_a_graph_that_needs_gradients_is_left_and_learns(caplog):
    net, x = Affine(), torch.randn(2, 3)
    backend = lp.torch_backend()
    compiled = torch.compile(net, backend=backend)
    with torch.enable_grad():
        compiled(x).square().sum().backward()
    assert net.weight.grad is not None
    (text,) = said(caplog)
    assert text.startswith("PyTorch computes a graph of")
    assert "it needs gradients" in text
    assert "torch.no_grad()" in text
    assert backend.subgraphs == []
    close(compiled(x), net(x))  # without gradients, it is another graph
    assert len(backend.subgraphs) == 1


def test_gradients_that_a_graph_enables_are_pytorchs(caplog):
    def f(x, w):
        with torch.enable_grad():
            return (x @ w).sum()

    w = torch.randn(3, 2, requires_grad=True)
    found, backend = by_meaning(f, torch.randn(4, 3), w)
    assert found.requires_grad
    assert backend.subgraphs == []
    assert "gradients" in said(caplog)[0]


def test_autocast_is_left(caplog):
    with torch.autocast("cpu", torch.bfloat16):
        found, backend = by_meaning(lambda x: x @ x, torch.randn(3, 3))
    assert found.dtype is torch.bfloat16
    assert backend.subgraphs == []
    assert "autocast" in said(caplog)[0]


def test_types_that_numpy_does_not_have_are_left(caplog):
    found, backend = by_meaning(lambda x: (x * 2).float() + 1, torch.randn(3).bfloat16())
    assert found.dtype is torch.float32
    assert "type, shape or device is not supported" in said(caplog)[0]
    assert len(backend.subgraphs) == 1  # the sum of floats


def test_views_results_in_place_and_strides_are_pytorchs():
    def f(x):
        y = (x * 2).permute(2, 0, 1)
        z = torch.sort(y, 0).values.mul_(3)
        x[0] = 7
        return y, y[0], z.as_strided((2, 2), (1, 3)), x.t() if x.dim() == 2 else x[1]

    own, other = torch.randn(2, 3, 5), None
    other = own.clone()
    found, _ = by_meaning(f, own)
    for one, wanted in zip(found, f(other), strict=True):
        close(one, wanted)
    close(own, other)
    assert found[3]._base is own


# --- shapes ---------------------------------------------------------------------------------------


def test_each_length_is_compiled_up_to_a_limit(caplog, monkeypatch):
    monkeypatch.setattr("liftpy.pytorch.compiling.MOST_SHAPES", 2)
    net = Affine()
    backend = lp.torch_backend()
    compiled = torch.compile(net, backend=backend)
    for n in (2, 3, 5, 3, 7, 7):
        x = torch.randn(n, 3)
        close(compiled(x), net(x))
    assert len(backend.subgraphs) == 3  # one of fixed shape, before PyTorch takes it for dynamic
    assert all(len(part.plan.graph.inputs) == 1 for part in backend.subgraphs)
    assert said(caplog) == [
        "PyTorch computes a graph for further shapes of its inputs: it is compiled for at most 2"
    ]


def test_more_shapes_than_the_limit_add_no_further_one(monkeypatch):
    """As when two threads compile for the last shape at the same time."""
    monkeypatch.setattr("liftpy.pytorch.compiling.MOST_SHAPES", 2)
    backend = TorchBackend(Meaning, "compared", torch)
    by_shape = ByShape(backend, lambda x: x + 1, frozenset(), torch)
    by_shape._made = dict.fromkeys(range(3))
    x = torch.randn(3)
    close(by_shape(x), x + 1)
    assert len(by_shape._made) == 3


# --- options --------------------------------------------------------------------------------------


def test_campaigns_are_run_and_chosen_from(tmp_path, monkeypatch, runtime):
    net, x = Affine(), torch.randn(5, 3)
    first = lp.torch_backend(device=runtime, db=tmp_path, samples=2)
    close(torch.compile(net, backend=first)(x), net(x))
    files = sorted(tmp_path.glob("*.db"))
    assert files
    assert first.subgraphs[0].plan.predicted_ns
    torch._dynamo.reset()
    second = lp.torch_backend(device=runtime, db=tmp_path)
    close(torch.compile(net, backend=second)(x), net(x))
    assert second.subgraphs[0].plan.predicted_ns == first.subgraphs[0].plan.predicted_ns


def test_what_pytorch_forgets_is_freed():
    backend = lp.torch_backend()
    compiled = torch.compile(lambda x: x * 3, backend=backend)
    compiled(torch.ones(3))
    assert len(backend.subgraphs) == 1
    del compiled
    torch._dynamo.reset()
    gc.collect()
    assert backend.subgraphs == []
    assert len(backend._made) == 0


def test_the_backend_has_a_name():
    project = tomllib.loads((Path(lp.__file__).parents[1] / "pyproject.toml").read_text())
    (target,) = project["project"]["entry-points"]["torch_dynamo_backends"].values()
    named = importlib.metadata.EntryPoint("liftpy", target, "torch_dynamo_backends").load()
    x = torch.randn(3, 5)
    compiled = torch.compile(lambda x: x * 2 + 1, backend=named, options={"weights": "counted"})
    close(compiled(x), x * 2 + 1)
    with pytest.raises(Exception, match="unexpected keyword argument 'speed'"):
        torch.compile(lambda x: x * 3, backend=named, options={"speed": 3})(x)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentRefused, match=r"campaigns of lp\.torch_backend need one folder"):
        lp.torch_backend(samples=3)
    with pytest.raises(TypeRefused, match="'compared' or 'counted'"):
        lp.torch_backend(weights="frozen")
    backend = lp.torch_backend()
    with pytest.raises(Exception, match=r"torch\.compile passes options to the backend of liftpy"):
        torch.compile(lambda x: x * 5, backend=backend, options={"db": "x"})(torch.randn(3))
