"""Every convolution of seven networks of the ONNX Model Zoo, in order, with repetitions.

These are the 393 layers of Ferrari et al. (TACO 2023), for models that are judged over whole
networks. They are not built-in programs: `networks.py` has the distinct layers of networks by
number. The paper does not say which SqueezeNet it has: the table has 1.0; `squeezenet11` has the
layers of 1.1. If a stage of ResNet halves the image, its first 1x1 has the stride, as in these
models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from liftpy.workloads.convolution import Convolution
from liftpy.workloads.networks import square


def vgg16() -> Iterator[Convolution]:
    """VGG-16 (Simonyan and Zisserman 2015, configuration D)."""
    channels, side = 3, 224
    for kernels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            yield square(channels, side, kernels)
            channels = kernels
        side //= 2


def resnet18() -> Iterator[Convolution]:
    """ResNet-18 (He et al. 2016): two blocks of two 3x3 in each stage."""
    yield square(3, 224, 64, 7, 2)
    channels, side = 64, 56
    for stage in range(4):
        width = 64 << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            if stride > 1:
                yield square(channels, side, width, 1, stride)
            yield square(channels, side, width, 3, stride)
            channels, side = width, side // stride
            yield square(channels, side, width)


def bottlenecks(counts: Iterable[int]) -> Iterator[Convolution]:
    """A ResNet of bottleneck blocks (He et al. 2016)."""
    yield square(3, 224, 64, 7, 2)
    channels, side = 64, 56
    for stage, blocks in enumerate(counts):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            if not block:
                yield square(channels, side, 4 * width, 1, stride)
            yield square(channels, side, width, 1, stride)
            side //= stride
            yield square(width, side, width)
            yield square(width, side, 4 * width, 1)
            channels = 4 * width


def stem() -> Iterator[Convolution]:
    """The first layers of GoogleNet and InceptionV2."""
    yield square(3, 224, 64, 7, 2)
    yield square(64, 56, 64, 1)
    yield square(64, 56, 192)


GOOGLENET_MODULES = (
    (28, ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64))),
    (
        14,
        (
            (192, 96, 208, 16, 48, 64),
            (160, 112, 224, 24, 64, 64),
            (128, 128, 256, 24, 64, 64),
            (112, 144, 288, 32, 64, 64),
            (256, 160, 320, 32, 128, 128),
        ),
    ),
    (7, ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))),
)
"""Sides of images, and for each module the kernels of 1x1, 3x3 after 1x1, 5x5 after 1x1, 1x1."""


def googlenet() -> Iterator[Convolution]:
    """GoogleNet (Szegedy et al. 2015, Table 1), without the auxiliary classifiers."""
    yield from stem()
    channels = 192
    for side, modules in GOOGLENET_MODULES:
        for one, before3, three, before5, five, pooled in modules:
            yield from (square(channels, side, n, 1) for n in (one, before3, before5, pooled))
            yield square(before3, side, three)
            yield square(before5, side, five, 5)
            channels = one + three + five + pooled


INCEPTION_MODULES = (
    (28, ((64, 64, 64, 64, 96, 32), (64, 64, 96, 64, 96, 64), (0, 128, 160, 64, 96, 0))),
    (
        14,
        (
            (224, 64, 96, 96, 128, 128),
            (192, 96, 128, 96, 128, 128),
            (160, 128, 160, 128, 160, 96),
            (96, 128, 192, 160, 192, 96),
            (0, 128, 192, 192, 256, 0),
        ),
    ),
    (7, ((352, 192, 320, 160, 224, 128), (352, 192, 320, 192, 224, 128))),
)
"""As above, with two 3x3 in place of 5x5; a module without 1x1 has stride 2 in its last layers."""


def inceptionv2() -> Iterator[Convolution]:
    """Inception-v2, which is GoogleNet with batch normalization (Ioffe and Szegedy 2015)."""
    yield from stem()
    channels = 192
    for side, modules in INCEPTION_MODULES:
        for one, before, three, twice, double, pooled in modules:
            stride = 1 if one else 2
            yield from (square(channels, side, n, 1) for n in (one, before, twice, pooled) if n)
            yield square(before, side, three, 3, stride)
            yield square(twice, side, double)
            yield square(double, side, double, 3, stride)
            channels = (one + three + double + pooled) if one else (three + double + channels)


FIRES = (16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)
"""The kernels of the 1x1 at the beginning of each module of SqueezeNet, and of those after it."""


def fires(channels: int, sides: Iterable[int]) -> Iterator[Convolution]:
    """The modules of SqueezeNet on images of these sides, and the last layer."""
    side = 0
    for side, (squeezed, expanded) in zip(sides, FIRES, strict=True):
        yield square(channels, side, squeezed, 1)
        yield square(squeezed, side, expanded, 1)
        yield square(squeezed, side, expanded)
        channels = 2 * expanded
    yield square(channels, side, 1000, 1)


def squeezenet10() -> Iterator[Convolution]:
    """SqueezeNet 1.0 (Iandola et al. 2016, Table 1)."""
    yield Convolution(3, 224, 224, 96, (7, 7), (2, 2))
    yield from fires(96, (54, 54, 54, 27, 27, 27, 27, 13))


def squeezenet11() -> Iterator[Convolution]:
    """SqueezeNet 1.1, which its authors published as a faster variant."""
    yield Convolution(3, 224, 224, 64, (3, 3), (2, 2))
    yield from fires(64, (55, 55, 27, 27, 13, 13, 13, 13))


MODEL_ZOO: dict[str, tuple[Convolution, ...]] = {
    "googlenet": tuple(googlenet()),
    "inceptionv2": tuple(inceptionv2()),
    "resnet18": tuple(resnet18()),
    "resnet50": tuple(bottlenecks((3, 4, 6, 3))),
    "resnet152": tuple(bottlenecks((3, 8, 36, 3))),
    "squeezenet": tuple(squeezenet10()),
    "vgg16": tuple(vgg16()),
}
