"""Each operator of PyTorch that has a translation computes what PyTorch computes.

Values are those of the meaning of the programs: kernels are tested elsewhere.
"""

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")

from torch.nn import functional as F  # noqa: E402, N812  torch may be absent

from liftpy.pytorch.operators import TRANSLATIONS  # noqa: E402
from liftpy.pytorch.translating import CREATED  # noqa: E402
from tests.pytorch.meaning import by_meaning, said  # noqa: E402

A = torch.ops.aten
DRAW = torch.Generator().manual_seed(7)


def some(*shape):
    return torch.randn(shape, generator=DRAW)


def positive(*shape):
    return some(*shape).abs() + 0.25


X, Y, P = some(2, 3, 5), some(3, 1), positive(2, 3, 5)
IMAGE = some(2, 3, 7, 11)
N = torch.tensor([[3, -7, 2], [0, 5, -1]])
M = torch.tensor([[2, 7, -3], [1, 0, 4]], dtype=torch.int32)
T = torch.tensor([[True, False, True], [False, False, True]])
VECTOR = some(3), positive(3), some(3), some(3)

CASES = {
    "add": lambda: (lambda x, y: torch.add(x, y, alpha=3) + 2, X, Y),
    "add_types": lambda: (lambda n, m: n + m * 2.5 + 1, N, M),
    "sub": lambda: (lambda x, y: torch.sub(x, y, alpha=2) - 1 + (3 - x), X, Y),
    "rsub": lambda: (lambda x, y: torch.rsub(x, y) * torch.rsub(x, 2), X, Y),
    "mul_div": lambda: (
        lambda x, y, n: x * y / 3 + n / n.abs().clamp(min=1),
        X[0, :2, :3],
        Y[:2],
        N,
    ),
    "pow": lambda: (lambda p, x: p**x + p**2 + x**3 + 2**x + p**0.5, P, X),
    "max_min": lambda: (lambda x, y: torch.maximum(x, y) * torch.minimum(x, y), X, Y),
    "unary": lambda: (
        lambda x: torch.abs(x) + torch.ceil(x) * torch.floor(x) - torch.sign(x) + torch.round(x),
        X,
    ),
    "functions": lambda: (
        lambda x, p: torch.cos(x) + torch.exp(x) * torch.log(p) + torch.sin(x) - torch.sqrt(p),
        X,
        P,
    ),
    "more_functions": lambda: (
        lambda x: torch.cosh(x) - torch.sinh(x) * torch.tan(x / 2) + torch.tanh(x) / -x,
        X,
    ),
    "inverse_functions": lambda: (
        lambda x, p: (
            torch.asin(x / 4) - torch.acos(x / 5) * torch.atan(x),
            torch.asinh(x) + torch.acosh(p + 1) - torch.atanh(x / 6) * torch.erf(x),
        ),
        X,
        P,
    ),
    "roots": lambda: (lambda p: torch.rsqrt(p) + torch.reciprocal(p), P),
    "comparisons": lambda: (
        lambda x, y, n: (x > y, x >= 0.5, x < y, x <= y, x == x.round(), x != y, n == 2, n > 1.5),
        X,
        Y,
        N,
    ),
    "logical": lambda: (
        lambda t, n: (torch.logical_and(t, n), t | (n > 0), torch.logical_xor(t, n), ~t & (n < 3)),
        T,
        N,
    ),
    "bitwise_xor": lambda: (lambda t, n: t ^ (n > 0) ^ torch.logical_or(t, n), T, N),
    "bits": lambda: (
        lambda n, m: ((n & m) | (~n ^ 5), torch.bitwise_or(m, 12) & -7, torch.bitwise_not(m)),
        N,
        M,
    ),
    "not": lambda: (torch.logical_not, N),
    "nan": lambda: (lambda x: torch.isnan(x / 0) | torch.isinf(x / 0), torch.tensor([0.0, 1, -2])),
    "clamp": lambda: (
        lambda x, y: x.clamp(-0.5, 0.75) + x.clamp(max=0.5) * x.clamp(min=y) + x.clamp_min(0.1),
        X,
        Y,
    ),
    "clamp_integers": lambda: (lambda n: n.clamp(-2, 3), N),
    "relu6": lambda: (lambda x: F.relu6(4 * x) + F.hardtanh(x, -0.5, 2), X),
    "where": lambda: (lambda x, y: torch.where(x > y, x, 1.0) + x.masked_fill(x > 1, -2), X, Y),
    "activations": lambda: (
        lambda x: F.elu(x, 0.7) + F.softplus(x) * F.silu(x) - F.leaky_relu(x, 0.2),
        X,
    ),
    "hard": lambda: (lambda x: F.hardsigmoid(3 * x) + F.hardswish(2 * x), X),
    "relu": lambda: (lambda x: F.relu(x) + torch.sigmoid(x), X),
    "gelu": lambda: (lambda x: F.gelu(x, approximate="tanh") - 2 * F.gelu(x), X),
    "casts": lambda: (
        lambda x, n: (x.to(torch.int32) + n, n.to(torch.float64) / 3, x.bool()),
        X[0, :2, :3],
        N,
    ),
    "views": lambda: (lambda x: (-x).reshape(3, 10).unsqueeze(1).flatten(1).view(5, 6).t(), X),
    "squeeze": lambda: (lambda x: (-x)[:1].squeeze(0).squeeze(), X),
    "permute": lambda: (lambda x: (2 * x).permute(2, 0, 1).transpose(0, -1) + 1, X),
    "permute_scalar": lambda: (lambda x: x.sum().permute(()) * 2, X),
    "expand": lambda: (lambda y: (-y).expand(2, 3, 5) * 2, Y),
    "repeat": lambda: (lambda x: (-x).repeat(2, 1, 3, 1), X),
    "cat": lambda: (lambda x, y: torch.cat([x, y.expand(2, 3, 1), -x], -1), X, Y),
    "cat_types": lambda: (lambda n, m: torch.cat([n * 2, m]), N, M),
    "stack": lambda: (lambda x: torch.stack([x, 2 * x], 1), X),
    "slices": lambda: (lambda x: (-x)[:, 1:, ::2] * x[:, -2:, -1:] + x[1, 2, 3], X),
    "split": lambda: (lambda x: torch.mul(*(2 * x).split([2, 2, 1], 2)[:2]), X),
    "chunk": lambda: (lambda x: [-c for c in (2 * x).chunk(2, 2)], X),
    "pad": lambda: (lambda x: F.pad(-x, (1, 2, 0, 3), value=0.5), X),
    "flip": lambda: (lambda x: (-x).flip(0, 2) + 1, X),
    "embedding": lambda: (lambda n, w: F.embedding(n.abs(), w) * 2, N, some(9, 4)),
    "index_select": lambda: (lambda x, n: torch.index_select(-x, 2, n), X, torch.tensor([4, 0, 1])),
    "index": lambda: (lambda x, n: (-x)[:, n] + 1, X, torch.tensor([[2, -1], [0, 1]])),
    "index_of_several": lambda: (
        lambda x, n, m: (-x)[:, n[:, None], m] + 1,
        X,
        torch.tensor([2, 0]),
        torch.tensor([4, -1, 3]),
    ),
    "gather": lambda: (lambda x, n: torch.gather(-x, 1, n), some(2, 3), N.abs() % 3),
    "triangles": lambda: (lambda x: torch.tril(-x, 1) + torch.triu(x * x, -1), X),
    "full": lambda: (lambda x: torch.full_like(x, 3) + x * torch.zeros_like(x) + torch.ones(5), X),
    "arange": lambda: (lambda x: x * torch.arange(5) + torch.linspace(0, 1, 5), X),
    "nearest": lambda: (lambda x: F.interpolate(-x, scale_factor=(2, 3)), IMAGE),
    "products": lambda: (
        lambda x, y: x @ x.transpose(1, 2) @ x + x.transpose(1, 2)[:, :3] @ y,
        X,
        Y,
    ),
    "mv": lambda: (lambda a, v: torch.mv(a, v) + torch.mm(a, a.t()).sum(0), some(4, 3), some(3)),
    "linear": lambda: (F.linear, some(5, 3), some(4, 3), some(4)),
    "addmm": lambda: (
        lambda b, x, w: torch.addmm(b, x, w, alpha=0.5, beta=2),
        some(4),
        some(5, 3),
        some(3, 4),
    ),
    "baddbmm": lambda: (
        lambda b, x, w: torch.baddbmm(b, x, w, alpha=0.5, beta=2),
        some(2, 1, 4),
        some(2, 5, 3),
        some(2, 3, 4),
    ),
    "conv": lambda: (
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        IMAGE,
        some(5, 3, 3, 2),
        some(5),
    ),
    "conv_groups": lambda: (lambda x, w: F.conv2d(x, w, groups=3), IMAGE, some(6, 1, 3, 3)),
    "conv1d": lambda: (lambda x, w: F.conv1d(x, w, padding=1), X, some(4, 3, 3)),
    "max_pool": lambda: (lambda x: F.max_pool2d(x, (3, 2), 2, (1, 0), 1, True), IMAGE),
    "max_pool_unbatched": lambda: (lambda x: F.max_pool2d(x[0], 3), IMAGE),
    "average_pool": lambda: (
        lambda x: (
            F.avg_pool2d(x, 3, (1, 2), 1, count_include_pad=False) + F.avg_pool2d(x, 3, (1, 2), 1)
        ),
        IMAGE,
    ),
    "average_pool_1d": lambda: (lambda x: F.avg_pool1d(x, 2), X),
    "adaptive": lambda: (lambda x: F.adaptive_avg_pool2d(x[..., :10], (1, 5)), IMAGE),
    "global": lambda: (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    "batch_norm": lambda: (
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b) + F.batch_norm(x, m, v),
        IMAGE,
        *VECTOR,
    ),
    "layer_norm": lambda: (
        lambda x, w, b: F.layer_norm(x, (3, 5), w, b) + F.layer_norm(x, (5,)),
        X,
        some(3, 5),
        some(3, 5),
    ),
    "group_norm": lambda: (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        some(2, 6, 5),
        some(6),
        some(6),
    ),
    "instance_norm": lambda: (F.instance_norm, IMAGE[:1]),
    "softmax": lambda: (lambda x: F.softmax(x, 1) + F.log_softmax(x, -1), X),
    "sums": lambda: (lambda x, n, t: x.sum() + x.sum(1, keepdim=True) + n.sum() + t.sum(), X, N, T),
    "means": lambda: (lambda x: x.mean() + x.mean((0, 2), keepdim=True), X),
    "extremes": lambda: (lambda x: x.amax((0, 2)) * x.amin(1).sum() + x.max() - x.min(), X),
    "extremes_along": lambda: (lambda x: (x.max(1), x.min(2, keepdim=True)), X),
    "prod": lambda: (lambda x: x.prod(1) + x.prod(), X),
    "quantifiers": lambda: (lambda n: (n.any(1), (n > -7).all(), n.all(0), n.any()), N),
    "positions": lambda: (lambda x: (x.argmax(1), x.argmin(), x.argmin(2, keepdim=True)), X),
    "variance": lambda: (lambda x: x.var(1) + x.std(), X[0]),
    "cumsum": lambda: (lambda x, n: (x.cumsum(1), n.cumsum(0)), X, N),
    "attention": lambda: (
        F.scaled_dot_product_attention,
        some(2, 2, 5, 3),
        some(2, 2, 7, 3),
        some(2, 2, 7, 3),
    ),
    "overloads": lambda: (
        lambda x, y: (
            A.div.Scalar(A.sub.Scalar(A.add.Scalar(x, 2, 3), 0.5, 2), 3),
            A.clamp_max(x, 0.3),
            A.ge.Tensor(x, y),
            A.le.Scalar(x, 0.1),
            A.ne.Scalar(x, 1),
            A.any.dims(x > 1, [0, 2]),
            A.mul.Scalar(A.lift_fresh_copy(A.alias(A.detach(x))), 2),
            A.squeeze.dims(A.mul.Scalar(A._unsafe_view(x, [2, 1, 15, 1]), 2), [1, 3]),
        ),
        X,
        Y,
    ),
}


def test_every_translation_is_of_an_operator_of_pytorch():
    for name in {*TRANSLATIONS} | CREATED:
        space, packet, overload = name.split(".")
        assert overload in getattr(getattr(torch.ops, space), packet).overloads(), name


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_pytorch_computes(name, caplog):
    f, *inputs = CASES[name]()
    found, backend = by_meaning(f, *inputs)
    assert said(caplog) == []
    assert backend.subgraphs
    torch.testing.assert_close(found, f(*inputs))


SCALARS = {
    "cumsum": lambda s: s.cumsum(0),
    "argmax": lambda s: s.argmax(-1),
    "min": lambda s: s.min(0),
    "flip": lambda s: s.flip(0),
    "gather": lambda s: torch.gather(s, 0, torch.tensor(0)),
    "index_select": lambda s: torch.index_select(s, 0, torch.tensor([0])),
}


@pytest.mark.parametrize("name", SCALARS)
def test_an_axis_of_a_scalar_is_left_to_pytorch(name, caplog):
    def f(x):
        return SCALARS[name](x.sum())

    found, backend = by_meaning(f, X)
    (text,) = said(caplog)
    assert text.endswith("an axis of a tensor without axes is not expressed")
    assert len(backend.subgraphs) == 1
    torch.testing.assert_close(found, f(X))


def test_pooling_to_nothing_is_left_to_pytorch(caplog):
    found, _ = by_meaning(lambda x: F.adaptive_avg_pool2d(x, (0, 1)), IMAGE)
    assert found.shape == (2, 3, 0, 1)
    assert "_adaptive_avg_pool2d" in said(caplog)[0]
