"""PyTorch: on CPUs convolutions by oneDNN, products by its BLAS; on GPUs cuDNN, cuBLAS and its own.

Products are written into memory that is given; all other functions make their result in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from cases import Case

from peers.interface import Made, Peer

Format = Literal["channels_last", "contiguous"]


def made(
    compute: Callable[[], Any],
    result: Callable[[np.ndarray], np.ndarray] = lambda array: array,
    layout: str = "",
) -> Made:
    """A function that makes its result, which `result` turns into that of the case."""
    last: list[Any] = []

    def run() -> None:
        last[:] = [compute()]

    return Made(run, lambda: result(last[0].cpu().numpy()), layout)


class PyTorch(Peer):
    """One of the two memory formats of images; what has no images is in the second.

    `device` is PyTorch's name of where it runs.
    """

    module = "torch"

    def __init__(self, memory: Format, device: str = "cpu") -> None:
        self.memory = memory
        self.device = device
        self.name = f"PyTorch {'NHWC' if memory == 'channels_last' else 'NCHW'}"

    def make(self, case: Case, threads: int) -> Made | None:
        """The case by PyTorch's own function, where it has one; a block by several."""
        torch = self.library()
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        if case.kind == "convolution":
            return self._convolution(case)
        if case.kind == "max_pool":
            return self._max_pool(case)
        if (case.kind == "block") != (self.memory == "channels_last"):
            return None
        if case.kind == "block":
            return self._block(case)
        given = [torch.from_numpy(a).to(self.device) for a in case.arrays.values()]
        if case.kind in {"matmul", "batched"}:
            product = {"matmul": torch.mm, "batched": torch.bmm}[case.kind]
            out = torch.empty(*given[0].shape[:-1], given[1].shape[-1], device=self.device)
            return Made(lambda: product(*given, out=out), lambda: out.cpu().numpy())
        compute = self._function(case.kind)
        return None if compute is None else made(lambda: compute(*given))

    def _function(self, kind: str) -> Callable[..., Any] | None:
        """The function of the tensors of a case that has no images; None if PyTorch has none."""
        torch = self.library()
        functions = torch.nn.functional

        def attention(*heads: Any) -> Any:
            return functions.scaled_dot_product_attention(*(t[None] for t in heads))[0]

        def perceptron(x: Any, *layers: Any) -> Any:
            *hidden, out = layers
            for weights in hidden:
                x = functions.relu(functions.linear(x, weights))
            return functions.linear(x, out)

        def normalisation(x: Any, scale: Any, shift: Any) -> Any:
            return functions.layer_norm(x, scale.shape, scale, shift)

        return {
            "attention": attention,
            "dot": torch.dot,
            "normalisation": normalisation,
            "perceptron": perceptron,
            "softmax": lambda x: torch.softmax(x, -1),
        }.get(kind)

    @property
    def _layout(self) -> str:
        return "nhwc" if self.memory == "channels_last" else "nchw"

    def _in_format(self, nchw: np.ndarray) -> Any:
        """Images or kernels on the device, in the memory format."""
        torch = self.library()
        last = self.memory == "channels_last"
        memory = torch.channels_last if last else torch.contiguous_format
        return torch.from_numpy(nchw).to(self.device, memory_format=memory)

    def _block(self, case: Case) -> Made:
        functions = self.library().nn.functional
        image = self._in_format(case.nchw)
        _, *weights = case.arrays.values()
        layers = [self._in_format(np.ascontiguousarray(w.transpose(0, 3, 1, 2))) for w in weights]

        def compute() -> Any:
            x = image
            for w in layers:
                x = functions.relu(functions.conv2d(x, w, padding=1))
            return functions.max_pool2d(x, 2)

        return made(compute, case.in_layout, self._layout)

    def _max_pool(self, case: Case) -> Made:
        pool, functions = case.pooling, self.library().nn.functional
        image = self._in_format(case.nchw)
        sizes = pool.window, pool.stride, (pool.padding[0], pool.padding[2])
        return made(lambda: functions.max_pool2d(image, *sizes), case.in_layout, self._layout)

    def _convolution(self, case: Case) -> Made | None:
        torch, layer = self.library(), case.layer
        top, bottom, left, right = layer.padding
        if (top, left) != (bottom, right):
            return None
        conv = torch.nn.Conv2d(
            layer.channels,
            layer.kernels,
            layer.kernel,
            layer.stride,
            (top, left),
            layer.dilation,
            layer.groups,
            device=self.device,
        )
        conv.weight.data = self._in_format(case.oihw)
        conv.bias.copy_(torch.from_numpy(case.arrays["b"].reshape(-1)))
        image = self._in_format(case.nchw)
        return made(lambda: conv(image), case.in_layout, self._layout)


class PyTorchCopy(Peer):
    """PyTorch's copy of the first input, for cases that stream it."""

    name = "copy"
    module = "torch"
    computes = False

    def __init__(self, device: str) -> None:
        self.device = device

    def make(self, case: Case, threads: int) -> Made | None:
        """The copy."""
        if not case.streams:
            return None
        torch = self.library()
        torch.set_num_threads(threads)
        source = torch.from_numpy(next(iter(case.arrays.values()))).to(self.device)
        target = torch.empty_like(source)
        return Made(lambda: target.copy_(source), lambda: target.cpu().numpy())
