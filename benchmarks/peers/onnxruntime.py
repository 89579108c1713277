"""ONNX Runtime's CPU provider, with input and output bound to memory that exists before."""

from __future__ import annotations

import numpy as np
from cases import Case

from peers.graph import model
from peers.interface import Made, Peer


class OnnxRuntime(Peer):
    """A session of one node."""

    name = "ONNX Runtime"
    module = "onnxruntime"

    def make(self, case: Case, threads: int) -> Made | None:
        """The session with both ends bound."""
        graph = model(case)
        if graph is None:
            return None
        ort = self.library()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        image = case.kind in {"convolution", "block"}
        given = case.nchw if image else next(iter(case.arrays.values()))
        result = np.empty(session.get_outputs()[0].shape, np.float32)
        binding = session.io_binding()
        x, y = map(ort.OrtValue.ortvalue_from_numpy, (given, result))
        binding.bind_ortvalue_input("x", x)
        binding.bind_ortvalue_output("y", y)
        if case.kind == "block":
            return Made(
                lambda: session.run_with_iobinding(binding),
                lambda: y.numpy()[0].transpose(1, 2, 0),
                "nchw",
            )
        if case.kind == "convolution":
            return Made(
                lambda: session.run_with_iobinding(binding),
                lambda: case.in_layout(y.numpy()),
                "nchw",
            )
        return Made(lambda: session.run_with_iobinding(binding), y.numpy)
