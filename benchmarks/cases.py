"""What is measured: built-in programs, in groups, with the tensors that everybody gets."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import liftpy as lp
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.ir.types import size_bytes
from liftpy.workloads import (
    ALEXNET,
    FAMILIES,
    INCEPTIONV3,
    MOBILENET,
    RESNET50,
    VGG16,
    Convolution,
)
from liftpy.workloads.convolution import strided
from liftpy.workloads.family import Family
from liftpy.workloads.pooling import Pooling, square

TOLERANCE = 1e-4
"""Largest difference from float64, relative to the largest result; peers round in other ways."""

PROGRAMS = Path(__file__).parent / "programs"

OPERATIONS = {
    "attention": 2 * 2 * 8 * 512 * 512 * 64,
    "perceptron": 2 * 64 * (784 * 512 + 512 * 512 + 512 * 10),
    "block": 2 * 2 * 56 * 56 * 64 * 64 * 9,
    "softmax": 4 * 4096 * 1024,
    "normalisation": 8 * 4096 * 1024,
}
"""Of programs of several operations: those of products, and about those of rows."""

NETWORKS = {
    "vgg16": VGG16,
    "alexnet": ALEXNET,
    "resnet50": RESNET50,
    "mobilenet": MOBILENET,
    "inceptionv3": INCEPTIONV3,
}


STRIDED = "convolution/strided/"


@dataclass(frozen=True)
class Case:
    """A built-in program, the group that its ratios are summed up in, and what kind of work it is.

    `kind` is what peers look at: convolution, max_pool, matmul, batched, dot, or the name of a
    stencil or of a program.
    """

    name: str
    group: str
    kind: str

    @cached_property
    def program(self) -> lp.Program:
        """The program: a built-in one, or a file of the folder `programs`."""
        if self.group == "programs":
            return lp.parse((PROGRAMS / f"{self.kind}.lift").read_text(encoding="utf-8"))
        return lp.workload(self.name)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """A tensor for each parameter: the ones that campaigns use."""
        return inputs(self.program)

    @cached_property
    def layer(self) -> Convolution:
        """The sizes of a convolution."""
        if self.name.startswith(STRIDED):
            return strided(*self.sizes)
        network, _, number = self.name.partition("/")
        number, _, layout = number.partition(":")
        layer = NETWORKS[network][int(number)]
        return replace(layer, layout="nchw") if layout == "nchw" else layer

    @property
    def pooling(self) -> Pooling:
        """The sizes of a pooling layer."""
        return square(*self.sizes)

    @property
    def layout(self) -> str:
        """The layout of a convolution's images, else nothing."""
        return self.layer.layout if self.kind == "convolution" else ""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers at the end of the name."""
        return tuple(map(int, self.name.rpartition("/")[2].split("x")))

    @property
    def flops(self) -> int:
        """Operations of the direct algorithm."""
        if self.kind == "convolution":
            return self.layer.flops
        if self.group == "programs":
            return OPERATIONS[self.kind]
        family = FAMILIES[self.name.rpartition("/")[0]]
        assert isinstance(family, Family)  # the layers of networks are convolutions
        return family.flops(*self.sizes)

    @property
    def needed(self) -> int:
        """Bytes of what is given and of what is made."""
        given = sum(int(size_bytes(p.type)) for p in self.program.params)
        return given + int(size_bytes(self.program.body.body.type))

    @property
    def streams(self) -> bool:
        """Whether it reads its first input and makes as many bytes: a copy shows its limit."""
        return self.group == "stencil" or self.kind in {"softmax", "normalisation"}

    @cached_property
    def judge(self) -> Judge:
        """Compares results with the program's meaning in float64."""
        wanted = expected(self.program, self.arrays, tolerance=TOLERANCE)
        return Judge(self.program, self.arrays, wanted)

    def error(self, result: Any) -> float:
        """How far a result is from the meaning, relative to the largest; ValueError if wrong."""
        verdict = self.judge.judge(np.asarray(result))
        if isinstance(verdict, WrongResult):
            raise ValueError(verdict.reason)  # noqa: TRY004  it is no matter of types
        return verdict.largest

    # --- a convolution or a pooling layer as libraries name its tensors ---------------------------

    @cached_property
    def nchw(self) -> np.ndarray:
        """The image, `[1][C][H][W]`."""
        x = self.arrays["x"]
        return np.ascontiguousarray(x if self.layout == "nchw" else x.transpose(2, 0, 1))[None]

    @cached_property
    def oihw(self) -> np.ndarray:
        """The kernels, `[M][C/groups][Kh][Kw]`."""
        w = self.arrays["w"]
        first = w if self.layout == "nchw" else np.moveaxis(w, -1, -3)
        layer = self.layer
        shape = (layer.kernels, layer.channels // layer.groups, *layer.kernel)
        return np.ascontiguousarray(first).reshape(shape)

    def in_layout(self, nchw: np.ndarray) -> np.ndarray:
        """A library's result `[1][M][H][W]` as the program has it."""
        return nchw[0] if self.layout == "nchw" else nchw[0].transpose(1, 2, 0)


def layers(network: str, group: str, layout: str = "") -> Iterator[Case]:
    """The layers of a network."""
    for number in NETWORKS[network]:
        yield Case(f"{network}/{number}{layout}", group, "convolution")


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        *layers("vgg16", "vgg16"),
        *layers("vgg16", "vgg16:nchw", ":nchw"),
        *layers("alexnet", "alexnet"),
        *layers("resnet50", "resnet50"),
        *layers("mobilenet", "mobilenet"),
        *layers("inceptionv3", "inceptionv3"),
        *(
            Case(f"matmul/{n}x{n}x{n}", "matmul", "matmul")
            for n in (256, 509, 512, 1021, 1024, 2048)
        ),
        Case("stencil/jacobi5/4096x4096", "stencil", "jacobi5"),
        Case("stencil/jacobi9/4096x4096", "stencil", "jacobi9"),
        Case("stencil/jacobi7/256x256x256", "stencil", "jacobi7"),
        *(Case(f"dot/{1 << k}", "dot", "dot") for k in (16, 20, 24)),
        *(Case(f"programs/{name}", "programs", name) for name in OPERATIONS),
    )
}

ON_GPUS: dict[str, Case] = {
    case.name: case
    for case in (
        CASES["matmul/1024x1024x1024"],
        Case("matmul/4096x4096x4096", "matmul", "matmul"),
        Case("batched/16x512x512x512", "matmul", "batched"),
        CASES["programs/softmax"],
        CASES["programs/normalisation"],
        CASES["programs/attention"],
        CASES["dot/16777216"],
        Case("pool/max/224x224x64x2x2", "pooling", "max_pool"),
        CASES["stencil/jacobi5/4096x4096"],
        CASES["resnet50/3"],
        CASES["resnet50/15"],
        CASES["resnet50/6"],
        CASES["mobilenet/1"],
        CASES["mobilenet/13"],
    )
}
"""The cases of `gpu.py` beside the layers of VGG-16: products, rows, a sum, VGG-16's first pooling
layer, a stencil, and convolutions 1x1, 3x3 with stride 2, and depthwise."""

CLAIMED_LAYERS = (
    (27, 96, 256, 5),
    (13, 256, 384, 3),
    (13, 384, 384, 3),
    (13, 384, 256, 3),
    (299, 3, 32, 3),
    (149, 32, 32, 3),
    (147, 64, 64, 3),
    (73, 64, 96, 3),
    (35, 64, 96, 3),
    (224, 3, 32, 3),
    (112, 32, 32, 3),
    (112, 56, 56, 3),
    (56, 128, 128, 3),
    (28, 256, 256, 3),
    (14, 512, 512, 3),
    (56, 64, 64, 3),
    (28, 128, 128, 3),
    (14, 256, 256, 3),
    (7, 512, 512, 3),
    (224, 3, 64, 3),
    (224, 64, 64, 3),
    (112, 64, 128, 3),
    (112, 128, 128, 3),
    (56, 128, 256, 3),
    (56, 256, 256, 3),
    (28, 256, 512, 3),
    (28, 512, 512, 3),
    (14, 512, 512, 3),
)
"""The layers of published claims (C. D. Keane, Trinity College Dublin, 2022): side of the image,
channels, kernels, side of a kernel. The last layer occurs twice, as in the source."""

CLAIMED_PRODUCTS = (
    *((56, c, m) for c, m in ((64, 16), (16, 64), (128, 16))),
    *((28, c, m) for c, m in ((128, 32), (32, 128), (256, 32))),
    *((14, c, m) for c, m in ((256, 48), (48, 192), (384, 48), (384, 64), (64, 256), (512, 64))),
    *((56, c, m) for c, m in ((64, 64), (64, 256), (256, 64))),
    *((28, c, m) for c, m in ((256, 128), (512, 128), (128, 512))),
    *((14, c, m) for c, m in ((1024, 256), (256, 1024))),
    *((7, c, m) for c, m in ((2048, 512), (512, 2048))),
)
"""1x1 convolutions of SqueezeNet and ResNet-152 as matrix products: side of the image, channels,
kernels. The source lists no sizes; these are the layers of the networks that it names."""

CLAIMED: dict[str, Case] = {
    case.name: case
    for case in (
        *(
            Case(f"{STRIDED}{side}x{side}x{c}x{m}x{k}x1", "claimed layers", "convolution")
            for side, c, m, k in CLAIMED_LAYERS
        ),
        *(
            Case(f"matmul/{side * side}x{c}x{m}", "claimed products", "matmul")
            for side, c, m in CLAIMED_PRODUCTS
        ),
    )
}
"""The cases of `direct_claims.py`, by name; `bench.py` does not run them."""


def chosen(patterns: list[str], among: Mapping[str, Case] = CASES) -> list[Case]:
    """The cases whose names fit a pattern, in their order."""
    return [c for c in among.values() if any(fnmatch.fnmatch(c.name, p) for p in patterns)]
