"""Trains a small convolutional network, every kernel derived, beside PyTorch.

    python benchmarks/training.py [--steps 200] [--rate 0.002]

The network is `programs/network.lift`: convolution, ReLU, average pooling, a weighted sum, squared
loss. Its gradient (`lp.gradient` with `value=True`) is compiled once and run in each step; another
program of the language updates the weights. PyTorch trains the same network from the same weights
on the same numbers, and so does PyTorch's optimizer with `lp.torch_function` in place of the
network. Prints the losses, and the largest relative differences from PyTorch's over all steps.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import liftpy as lp

NETWORK = Path(__file__).parent / "programs" / "network.lift"
WEIGHTS = ("w1", "b1", "w2", "b2")


def update(shape: tuple[int, ...], rate: float) -> lp.Kernel:
    """The kernel of one step of gradient descent for weights of a shape."""
    count = int(np.prod(shape))
    text = "def step(w: [{0}]f32, d: [{0}]f32) = zip(w, d) |> map((w, d) => w - d * {1})"
    return lp.compile(lp.parse(text.format(count, rate)))


def torch_loss(x: torch.Tensor, y: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """The loss of the network in PyTorch."""
    made = torch.nn.functional.conv2d(x[:, None], weights["w1"][:, None], weights["b1"])
    pooled = torch.nn.functional.avg_pool2d(torch.relu(made), 2)
    scores = (pooled.flatten(2) * weights["w2"]).sum((1, 2)) + weights["b2"]
    return ((scores - y) ** 2).sum()


def main() -> None:
    """Prints the losses every tenth of the steps, and their largest difference."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.002)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 12, 12)).astype(np.float32)
    y = np.tanh(x[:, 3:6, 3:6].sum((1, 2))).astype(np.float32)
    shapes = {"w1": (4, 3, 3), "b1": (4,), "w2": (4, 25), "b2": ()}
    mine = {n: np.float32(rng.standard_normal(s) * 0.2) for n, s in shapes.items()}
    theirs = {n: torch.tensor(w, requires_grad=True) for n, w in mine.items()}
    both = {n: torch.tensor(w, requires_grad=True) for n, w in mine.items()}
    network = lp.parse(NETWORK.read_text())
    backward = lp.compile(lp.gradient(network, wrt=WEIGHTS, value=True))
    function = lp.torch_function(network, wrt=WEIGHTS)
    optimizer = torch.optim.SGD([*both.values()], lr=given.rate)
    updates = {n: update(s, given.rate) for n, s in shapes.items()}
    inputs = torch.from_numpy(x), torch.from_numpy(y)
    worst = [0.0, 0.0]
    for step in range(given.steps):
        loss, *gradients = backward(x, y, *mine.values())
        for (name, weights), gradient in zip(mine.items(), gradients, strict=True):
            moved = updates[name](np.ravel(weights), np.ravel(gradient))
            mine[name] = moved.reshape(weights.shape)
        other = torch_loss(*inputs, theirs)
        other.backward()
        with torch.no_grad():
            for own in theirs.values():
                own.sub_(given.rate * own.grad)
                own.grad = None
        optimizer.zero_grad()
        third = function(*inputs, *both.values())
        third.backward()
        optimizer.step()
        for k, ours in enumerate((float(loss), third.item())):
            worst[k] = max(worst[k], abs(ours - other.item()) / other.item())
        if step % max(1, given.steps // 10) == 0 or step == given.steps - 1:
            losses = f"loss {float(loss):10.6f}, PyTorch {other.item():10.6f}"
            losses += f", by its optimizer {third.item():10.6f}"
            print(f"step {step:4}: {losses}", flush=True)
    print(f"largest relative differences of the losses: {worst[0]:.1e}, {worst[1]:.1e}")


if __name__ == "__main__":
    main()
