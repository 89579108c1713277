"""The layers of the networks on which e-PlaNNer was evaluated: convolutions and full connections.

ResNet-50 is for images of 256 x 256, has no projections, and has stride 2 in its 3x3 convolutions.
AlexNet has no groups. SqueezeNet is version 1.1. YOLOv2 is for images of 416 x 416. These layers
have the published sizes and operation counts, except for the operations of SqueezeNet and both
figures of YOLOv2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from liftpy.workloads.convolution import Convolution

FORM = re.compile(
    r"(?P<inputs>\d+)>(?P<outputs>\d+)@(?P<side>\d+)(?:k(?P<kernel>\d+))?(?:s(?P<stride>\d+))?"
    r"(?:p(?P<pad>\d+))?(?:x(?P<times>\d+))?"
)
"""A layer: `64>128@56k3s2p1x4` has 64 and 128 channels, 56 x 56 images, and occurs four times.

The kernel is 1 x 1, the stride 1 and the padding half of the kernel unless given.
"""

NETWORKS: Mapping[str, str] = {
    "vgg16": (
        "3>64@224k3 64>64@224k3 64>128@112k3 128>128@112k3 128>256@56k3 256>256@56k3x2 "
        "256>512@28k3 512>512@28k3x2 512>512@14k3x3 25088>4096@1 4096>4096@1 4096>1000@1"
    ),
    "resnet50": (
        "3>64@256k7s2 64>64@64 64>64@64k3x3 64>256@64x3 256>64@64x2 256>128@64 128>128@64k3s2 "
        "128>512@32x4 512>128@32x3 128>128@32k3x3 512>256@32 256>256@32k3s2 256>1024@16x6 "
        "1024>256@16x5 256>256@16k3x5 1024>512@16 512>512@16k3s2 512>2048@8x3 2048>512@8x2 "
        "512>512@8k3x2 2048>1000@1"
    ),
    "alexnet": (
        "3>96@227k11s4p0 96>256@27k5 256>384@13k3 384>384@13k3 384>256@13k3 9216>4096@1 "
        "4096>4096@1 4096>1000@1"
    ),
    "squeezenet": (
        "3>64@224k3s2p0 64>16@55 16>64@55x2 16>64@55k3x2 128>16@55 128>32@27 32>128@27x2 "
        "32>128@27k3x2 256>32@27 256>48@13 48>192@13x2 48>192@13k3x2 384>48@13 384>64@13 "
        "64>256@13x2 64>256@13k3x2 512>64@13 512>1000@13"
    ),
    "yolov2": (
        "3>32@416k3 32>64@208k3 64>128@104k3x2 128>64@104 128>256@52k3x2 256>128@52 256>512@26k3x3 "
        "512>256@26x2 512>1024@13k3x3 1024>512@13x2 1024>1024@13k3x2 512>64@26 1280>1024@13k3 "
        "1024>425@13"
    ),
}


def layers(network: str) -> Iterator[Convolution]:
    """The layers of a published network in order, with repetitions.

    >>> print(next(layers("alexnet")))
    convolution 3x227x227 -> 96 kernels 11x11, stride 4
    """
    for found in FORM.finditer(NETWORKS[network]):
        inputs, outputs, side, kernel, stride, times = (
            int(found[name] or 1)
            for name in ("inputs", "outputs", "side", "kernel", "stride", "times")
        )
        pad = kernel // 2 if found["pad"] is None else int(found["pad"])
        layer = Convolution(
            inputs, side, side, outputs, (kernel, kernel), (stride, stride), (pad, pad, pad, pad),
            layout="nchw",
        )  # fmt: skip
        yield from [layer] * times
