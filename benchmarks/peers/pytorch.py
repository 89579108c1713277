"""PyTorch: on CPUs convolutions by oneDNN, products by its BLAS; on GPUs convolutions by cuDNN.

It has no convolution that writes into memory that it is given: each call makes its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from cases import Case

from peers.interface import Made, Peer

Format = Literal["channels_last", "contiguous"]


class PyTorch(Peer):
    """One of the two memory formats of images; what has no images is in the second.

    `device` is where convolutions run; all else runs on the CPU.
    """

    module = "torch"

    def __init__(self, memory: Format, device: str = "cpu") -> None:
        self.memory = memory
        self.device = device
        self.name = f"PyTorch {'NHWC' if memory == 'channels_last' else 'NCHW'}"

    def make(self, case: Case, threads: int) -> Made | None:
        """`torch.nn.Conv2d`, `torch.mm` or `torch.dot`."""
        torch = self.library()
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        if case.kind == "convolution":
            return self._convolution(case)
        if case.group == "programs":
            return self._program(case)
        if self.memory == "channels_last":
            return None
        tensors = [torch.from_numpy(a) for a in case.arrays.values()]
        if case.kind == "matmul":
            out = torch.empty(tensors[0].shape[0], tensors[1].shape[1])
            return Made(lambda: torch.mm(*tensors, out=out), out.numpy)
        if case.kind == "dot":
            out = torch.empty(())
            return Made(lambda: torch.dot(*tensors, out=out), out.numpy)
        return None

    def _program(self, case: Case) -> Made | None:
        """A program of several operations, by PyTorch's own function where it has one."""
        torch = self.library()
        functions = torch.nn.functional
        if (case.kind == "block") != (self.memory == "channels_last"):
            return None
        given = [torch.from_numpy(a) for a in case.arrays.values()]
        last: list[Any] = []

        def of(compute: Callable[..., Any]) -> Callable[[], None]:
            def run() -> None:
                last[:] = [compute(*given)]

            return run

        def perceptron(x: Any, *layers: Any) -> Any:
            *hidden, out = layers
            for weights in hidden:
                x = functions.relu(functions.linear(x, weights))
            return functions.linear(x, out)

        def block(x: Any, *layers: Any) -> Any:
            for weights in layers:
                x = functions.relu(functions.conv2d(x, weights, padding=1))
            return functions.max_pool2d(x, 2)

        if case.kind == "block":
            image, *weights = given
            given[:] = [
                image.permute(2, 0, 1)[None].to(memory_format=torch.channels_last),
                *(w.permute(0, 3, 1, 2).to(memory_format=torch.channels_last) for w in weights),
            ]
            return Made(of(block), lambda: last[0][0].permute(1, 2, 0).numpy(), "nhwc")
        computed = {
            "attention": functions.scaled_dot_product_attention,
            "perceptron": perceptron,
            "softmax": lambda x: torch.softmax(x, -1),
            "normalisation": lambda x, scale, shift: functions.layer_norm(
                x, scale.shape, scale, shift
            ),
        }[case.kind]
        one = case.kind == "attention"  # of a batch
        if one:
            given[:] = [t[None] for t in given]

        def result() -> np.ndarray:
            return (last[0][0] if one else last[0]).numpy()

        return Made(of(computed), result)

    def _convolution(self, case: Case) -> Made | None:
        torch, layer = self.library(), case.layer
        top, bottom, left, right = layer.padding
        if (top, left) != (bottom, right):
            return None
        memory = getattr(
            torch, "channels_last" if self.memory == "channels_last" else "contiguous_format"
        )
        conv = torch.nn.Conv2d(
            layer.channels,
            layer.kernels,
            layer.kernel,
            layer.stride,
            (top, left),
            layer.dilation,
            layer.groups,
        )
        conv.weight.copy_(torch.from_numpy(case.oihw))
        conv.bias.copy_(torch.from_numpy(case.arrays["b"].reshape(-1)))
        conv = conv.to(self.device, memory_format=memory)
        image = torch.from_numpy(case.nchw).to(self.device, memory_format=memory)
        last: list[Any] = []

        def run() -> None:
            last[:] = [conv(image)]

        layout = "nhwc" if self.memory == "channels_last" else "nchw"
        return Made(run, lambda: case.in_layout(last[0].cpu().numpy()), layout)
