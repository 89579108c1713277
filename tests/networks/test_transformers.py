"""A block of a transformer, with the nodes that PyTorch exports, against ONNX's own evaluator."""

from contextlib import closing

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import liftpy as lp
from tests.networks.models import model, node, value

BATCH, TOKENS, WIDTH, HEADS, INNER = 2, 5, 6, 2, 7


def gelu(x, y):
    """The exact GELU of a tensor, as PyTorch exports it for opsets before 20."""
    return [
        node("Div", f"{x} root", f"{x}_scaled"),
        node("Erf", f"{x}_scaled", f"{x}_erf"),
        node("Add", f"{x}_erf one", f"{x}_sum"),
        node("Mul", f"{x} {x}_sum", f"{x}_product"),
        node("Mul", f"{x}_product half", y),
    ]


def dense(name, x, y):
    """A product with weights, and a bias."""
    return [
        node("MatMul", f"{x} {name}_w", f"{name}_product"),
        node("Add", f"{name}_product {name}_b", y),
    ]


def heads(x, y, order):
    """The parts of each token for the heads, with the dimensions in another order."""
    return [
        node("Reshape", f"{x} by_heads", f"{x}_parts"),
        node("Transpose", f"{x}_parts", y, perm=order),
    ]


def block(seed=7):
    """Attention and a perceptron, each with a residual and a normalization before it."""
    rng = np.random.default_rng(seed)
    widths = dict.fromkeys(("q", "k", "v", "out"), (WIDTH, WIDTH))
    widths |= {"up": (WIDTH, INNER), "down": (INNER, WIDTH)}
    weights = {}
    for name, (rows, columns) in widths.items():
        weights[f"{name}_w"] = rng.normal(size=(rows, columns))
        weights[f"{name}_b"] = rng.normal(size=columns)
    for name in ("first", "second"):
        weights[f"{name}_scale"] = rng.normal(size=WIDTH) + 1
        weights[f"{name}_shift"] = rng.normal(size=WIDTH)
    weights |= {"root": np.sqrt(2), "one": 1, "half": 0.5, "scale": np.sqrt(WIDTH / HEADS)}
    constants = {name: np.float32(w) for name, w in weights.items()}
    constants["by_heads"] = np.int64([0, 0, HEADS, WIDTH // HEADS])
    constants["by_tokens"] = np.int64([0, 0, WIDTH])
    nodes = [
        node("LayerNormalization", "x first_scale first_shift", "normal", epsilon=1e-5),
        *(part for name in "qkv" for part in dense(name, "normal", f"{name}_all")),
        *heads("q_all", "q_heads", [0, 2, 1, 3]),
        *heads("k_all", "k_heads", [0, 2, 3, 1]),
        *heads("v_all", "v_heads", [0, 2, 1, 3]),
        node("MatMul", "q_heads k_heads", "products"),
        node("Div", "products scale", "scores"),
        node("Softmax", "scores", "attention", axis=-1),
        node("MatMul", "attention v_heads", "read"),
        node("Transpose", "read", "read_tokens", perm=[0, 2, 1, 3]),
        node("Reshape", "read_tokens by_tokens", "joined"),
        *dense("out", "joined", "projected"),
        node("Add", "x projected", "middle"),
        node("LayerNormalization", "middle second_scale second_shift", "again", epsilon=1e-5),
        *dense("up", "again", "wide"),
        *gelu("wide", "active"),
        *dense("down", "active", "narrow"),
        node("Add", "middle narrow", "y"),
    ]
    shape = [BATCH, TOKENS, WIDTH]
    return model(nodes, [value("x", shape)], [value("y", shape)], 17, **constants)


@pytest.fixture(scope="module")
def network():
    return lp.network(block())


def given(seed=3):
    return np.random.default_rng(seed).normal(size=(BATCH, TOKENS, WIDTH)).astype(np.float32)


def test_every_node_of_a_transformer_block_has_a_program(network):
    assert network.unsupported == ()
    erf = [o.name for o in network if o.operator == "Erf"]
    assert len(erf) == 1


def test_a_transformer_block_has_the_values_of_the_reference_evaluator(network, device):
    x = given()
    (wanted,) = ReferenceEvaluator(block()).run(None, {"x": x})
    for made in (network, network.joined()):
        np.testing.assert_allclose(made.evaluate([x])["y"], wanted, rtol=1e-4, atol=1e-5)
        with closing(made):
            found = made.run([x], device=device)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_each_operation_of_a_transformer_block_agrees_with_the_reference(network):
    assert network.check([given()]).passed
