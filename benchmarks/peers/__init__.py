"""The libraries that liftpy is measured against: one file each, one interface."""

from __future__ import annotations

from peers.clblast import CLBlast
from peers.copy import Copy
from peers.halide import Halide
from peers.interface import Made, Peer
from peers.onnxruntime import OnnxRuntime
from peers.openblas import OpenBLAS
from peers.openvino import OpenVINO
from peers.plain import NumPy
from peers.pytorch import PyTorch
from peers.tvm import TVM

PEERS: tuple[Peer, ...] = (
    PyTorch("channels_last"),
    PyTorch("contiguous"),
    OnnxRuntime(),
    OpenVINO(),
    OpenBLAS(),
    CLBlast(),
    Halide("cpu"),
    Halide("opencl"),
    TVM(),
    NumPy(),
    Copy(),
)

__all__ = ["PEERS", "Made", "Peer"]
