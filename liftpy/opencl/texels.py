"""Reads of images as C: a texel has four scalars, and an image is a view of a buffer.

A vector is read as whole texels (the verifier of the loop IR checks that its index is a multiple of
their length), and a scalar as one element of its texel.
"""

from __future__ import annotations

import re

from liftpy.ir.nat import Nat
from liftpy.ir.types import F16, F32
from liftpy.opencl.c import C_TYPES, C, CallC, Text, text_of, vector_type
from liftpy.opencl.indices import MAX_INT, index_c, magnitude
from liftpy.primitives.lowered import TEXEL
from liftpy.views.terms import Memory

READS = {F32.name: "read_imagef", F16.name: "read_imageh"}
"""The functions of OpenCL C that read a texel, by the types of its scalars."""

ELEMENTS = re.compile(r"\belement_of_texel_([a-z]+)\(")
ELEMENT = """\
inline {t} element_of_texel_{t}({t}4 texel, int k) {{
  return k < 2 ? (k == 0 ? texel.s0 : texel.s1) : (k == 2 ? texel.s2 : texel.s3);
}}
"""


def image_parameter(memory: Memory) -> str:
    """The declaration of an image as a parameter of a kernel."""
    return f"__read_only image1d_buffer_t {memory.name}"


def texels_c(memory: Memory, index: Nat, width: int) -> C:
    """The scalars of an image from an index on: one, or whole texels."""
    scalar = memory.scalar.name
    if width == 1:
        texel, place = texel_c(memory, index), index % TEXEL
        if place.constant is not None:
            return Text(f"{text_of(texel)}.s{place.constant}")
        return CallC(f"element_of_texel_{C_TYPES[scalar]}", (texel, Text(index_c(place))))
    each = tuple(texel_c(memory, index + k) for k in range(0, width, TEXEL))
    return each[0] if len(each) == 1 else CallC(f"({vector_type(scalar, width)})", each)


def texel_c(memory: Memory, index: Nat) -> C:
    """The texel of an image that has the scalar at an index.

    Coordinates of images are of type int, and the number of texels is: the index may be wider.
    """
    wide = magnitude(index) > MAX_INT
    place: C = Text(index_c(index // TEXEL, wide=wide))
    return CallC(
        READS[memory.scalar.name], (Text(memory.name), CallC("(int)", (place,)) if wide else place)
    )


def texel_helpers(text: str) -> list[str]:
    """The definitions of the functions that a text calls to select an element of a texel."""
    kinds = sorted(set(ELEMENTS.findall(text))) if "element_of_texel_" in text else []
    return [ELEMENT.format(t=t) for t in kinds]
