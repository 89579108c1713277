"""The distinct convolution layers of published networks, by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from liftpy.errors import UnknownName
from liftpy.ir.program import Program
from liftpy.workloads.convolution import EPILOGUES, LAYOUTS, Convolution, convolution, same
from liftpy.workloads.family import Workload, options_of, refused_option, written


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of a network: `vgg16/7`, `vgg16/7:nchw:relu`; the default is the first layer."""

    name: str
    layers: dict[int, Convolution]

    @property
    def form(self) -> str:
        """The pattern of its names."""
        return f"{self.name}/LAYER{written(LAYOUTS[1:], EPILOGUES)}"

    def workloads(self) -> tuple[Workload, ...]:
        """The programs of all layers."""
        return tuple(
            Workload(f"{self.name}/{i}", str(layer), layer.flops, self.form)
            for i, layer in self.layers.items()
        )

    def program(self, rest: str) -> Program:
        """The layer named by `rest`; UnknownName, with the known numbers, if there is none."""
        text, layout, epilogue = options_of(rest, LAYOUTS, EPILOGUES)
        number = int(text) if text.isdecimal() else next(iter(self.layers)) if not text else -1
        if number not in self.layers:
            known = f"has layers {', '.join(map(str, self.layers))}"
            why = refused_option(text, LAYOUTS, EPILOGUES) or known
            raise UnknownName(f"no built-in program '{self.name}/{rest}': {self.form} {why}")
        layer = self.layers[number]
        words = [self.name, str(number)]
        if layout == "nchw":
            layer = replace(layer, layout="nchw")
            words.append(layout)
        if epilogue:
            layer = replace(layer, epilogue="relu")
            words.append(epilogue)
        return convolution(layer, "_".join(words))


def square(
    channels: int, side: int, kernels: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> Convolution:
    """A layer on a square image, padded by half a kernel."""
    return Convolution(
        channels,
        side,
        side,
        kernels,
        (kernel, kernel),
        (stride, stride),
        same(kernel),
        groups=groups,
    )


def numbered(layers: Iterable[Convolution]) -> dict[int, Convolution]:
    """Distinct layers, numbered from 0 in the order of their first occurrence."""
    return dict(enumerate(dict.fromkeys(layers)))


#: The nine distinct convolution layers of VGG-16, by index in PyTorch's features
#: (specs: lift-convolution, Table 3).
VGG16: dict[int, Convolution] = {
    0: square(3, 224, 64),
    2: square(64, 224, 64),
    5: square(64, 112, 128),
    7: square(128, 112, 128),
    10: square(128, 56, 256),
    12: square(256, 56, 256),
    17: square(256, 28, 512),
    19: square(512, 28, 512),
    24: square(512, 14, 512),
}

#: The convolution layers of AlexNet in one tower (Krizhevsky 2014), by index in PyTorch's features.
ALEXNET: dict[int, Convolution] = {
    0: Convolution(3, 224, 224, 64, (11, 11), (4, 4), (2, 2, 2, 2)),
    3: square(64, 27, 192, 5),
    6: square(192, 13, 384),
    8: square(384, 13, 256),
    10: square(256, 13, 256),
}


def resnet50() -> Iterator[Convolution]:
    """ResNet-50 (He et al. 2016, Table 1): 7x7, then four stages of bottleneck blocks.

    The first block of a stage halves the image in its 3x3 layer and in its shortcut, as in PyTorch.
    """
    yield square(3, 224, 64, 7, 2)
    channels, side = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            yield square(channels, side, width, 1)
            yield square(width, side, width, 3, stride)
            yield square(width, side // stride, 4 * width, 1)
            if not block:
                yield square(channels, side, 4 * width, 1, stride)
            channels, side = 4 * width, side // stride


def mobilenet() -> Iterator[Convolution]:
    """MobileNet (Howard et al. 2017, Table 1): depthwise 3x3 and 1x1 in turn."""
    yield square(3, 224, 32, 3, 2)
    channels, side = 32, 112
    for kernels, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        yield square(channels, side, channels, 3, stride, groups=channels)
        side //= stride
        yield square(channels, side, kernels, 1)
        channels = kernels


def inceptionv3() -> Iterator[Convolution]:
    """Inception-v3 (Szegedy et al. 2016, Table 1), for images of 299 x 299, as in torchvision.

    Its modules have kernels of 1x1, 3x3, 5x5, and of one row or one column. The auxiliary
    classifier is left out.
    """
    yield Convolution(3, 299, 299, 32, (3, 3), (2, 2))
    yield Convolution(32, 149, 149, 32, (3, 3))
    yield square(32, 147, 64)
    yield square(64, 73, 80, 1)
    yield Convolution(80, 73, 73, 192, (3, 3))
    for channels, pooled in ((192, 32), (256, 64), (288, 64)):
        yield from (square(channels, 35, kernels, 1) for kernels in (64, 48, 64, pooled))
        yield square(48, 35, 64, 5)
        yield square(64, 35, 96)
        yield square(96, 35, 96)
    yield Convolution(288, 35, 35, 384, (3, 3), (2, 2))
    yield square(288, 35, 64, 1)
    yield square(64, 35, 96)
    yield Convolution(96, 35, 35, 96, (3, 3), (2, 2))
    for width in (128, 160, 160, 192):
        yield from (square(768, 17, kernels, 1) for kernels in (192, width, width, 192))
        yield from (row_of(width, 17, kernels, 7) for kernels in (width, width, 192))
        yield from (column_of(width, 17, kernels, 7) for kernels in (width, width, 192))
    yield from (square(768, 17, 192, 1) for _ in range(2))
    yield row_of(192, 17, 192, 7)
    yield column_of(192, 17, 192, 7)
    yield Convolution(192, 17, 17, 320, (3, 3), (2, 2))
    yield Convolution(192, 17, 17, 192, (3, 3), (2, 2))
    for channels in (1280, 2048):
        yield from (square(channels, 8, kernels, 1) for kernels in (320, 384, 448, 192))
        for _ in range(2):
            yield row_of(384, 8, 384, 3)
            yield column_of(384, 8, 384, 3)
        yield square(448, 8, 384)


def row_of(channels: int, side: int, kernels: int, length: int) -> Convolution:
    """A layer of kernels of one row, on a square image padded so that its size is kept."""
    padding = (0, 0, length // 2, length // 2)
    return Convolution(channels, side, side, kernels, (1, length), padding=padding)


def column_of(channels: int, side: int, kernels: int, length: int) -> Convolution:
    """A layer of kernels of one column, on a square image padded so that its size is kept."""
    padding = (length // 2, length // 2, 0, 0)
    return Convolution(channels, side, side, kernels, (length, 1), padding=padding)


RESNET50, MOBILENET = numbered(resnet50()), numbered(mobilenet())
INCEPTIONV3 = numbered(inceptionv3())

NETWORKS = (
    Network("vgg16", VGG16),
    Network("alexnet", ALEXNET),
    Network("resnet50", RESNET50),
    Network("mobilenet", MOBILENET),
    Network("inceptionv3", INCEPTIONV3),
)
