"""OpenVINO's CPU plug-in in f32, with input and output tensors that exist before."""

from __future__ import annotations

import numpy as np
from cases import Case

from peers.graph import model
from peers.interface import Made, Peer


class OpenVINO(Peer):
    """A compiled model of one node."""

    name = "OpenVINO"
    module = "openvino"

    def make(self, case: Case, threads: int) -> Made | None:
        """The request with both ends set."""
        graph = model(case)
        if graph is None or case.group == "programs":
            return None
        ov = self.library()
        core = ov.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }
        request = core.compile_model(core.read_model(graph), "CPU", settings).create_infer_request()
        image = case.kind == "convolution"
        given = case.nchw if image else case.arrays["a"]
        result = np.empty(tuple(request.model_outputs[0].shape), np.float32)
        request.set_input_tensor(ov.Tensor(given, shared_memory=True))
        request.set_output_tensor(ov.Tensor(result, shared_memory=True))
        if image:
            return Made(request.infer, lambda: case.in_layout(result), "nchw")
        return Made(request.infer, lambda: result)

    def version(self) -> str:
        """The version without the build."""
        return str(self.library().__version__).partition("-")[0]
