"""Images of buffers: what a launch passes to a kernel that reads a buffer in texels.

An image shares the memory of its buffer: what kernels store in the buffer, later kernels read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from liftpy.constraints.device import Device
from liftpy.errors import DeviceRefused
from liftpy.ir.types import F16, F32, SCALAR_BYTES
from liftpy.opencl.driver import OpenDevice, cl
from liftpy.opencl.kernel import Buffer, Launch, Module
from liftpy.primitives.lowered import TEXEL

CHANNELS = {F32.name: "FLOAT", F16.name: "HALF_FLOAT"}
"""The types of the channels of a texel in OpenCL, by the types of its scalars."""


def texels(buffer: Buffer) -> int:
    """The texels of the image of a buffer."""
    return math.prod(buffer.shape) // TEXEL


def texel_bytes(module: Module, launch: Launch, name: str) -> int:
    """The bytes of a texel of a buffer that a launch reads through an image; otherwise 0."""
    if name not in launch.images:
        return 0
    return TEXEL * SCALAR_BYTES[module.buffer(name).scalar]


def image_of(on: OpenDevice, memory: cl.Buffer, buffer: Buffer) -> Any:
    """The image of a buffer that is at the beginning of a memory. Raises cl.Error.

    PoCL 3.1 makes no image of a part of a buffer.
    """
    kind = getattr(cl.channel_type, CHANNELS[buffer.scalar])
    form = cl.ImageFormat(cl.channel_order.RGBA, kind)
    flags = cl.mem_flags.READ_ONLY
    return cl.create_image(on.context, flags, form, shape=(texels(buffer),), buffer=memory)


def imaged(module: Module) -> Iterator[Buffer]:
    """The buffers of a module that kernels read through images, each once."""
    names = dict.fromkeys(name for launch in module.launches for name in launch.images)
    return map(module.buffer, names)


def check_images(module: Module, device: Device) -> None:
    """Refuse a module that reads larger images than the device has, or any if it has none."""
    for buffer in imaged(module):
        if texels(buffer) > device.image_texels:
            most = f"has images of at most {device.image_texels} texels of a buffer"
            raise DeviceRefused(
                f"{module.name} reads {buffer.name} through an image of {texels(buffer)} texels; "
                f"{device.name} ({device.platform}) "
                f"{most if device.image_texels else 'has no images'}. Choose a candidate without "
                "the choice `images`, or leave out asImage."
            )
