"""The buffers that a kernel reads through images."""

from __future__ import annotations

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.types import components
from liftpy.ir.walk import every_part, has_call
from liftpy.primitives import AsImage
from liftpy.primitives.lowered import TEXEL_SCALARS
from liftpy.primitives.work import computes


def images_of(body: Expr, reads: frozenset[Param]) -> frozenset[Param]:
    """The buffers that a kernel's body reads through images.

    Raises TypeRefused if `asImage` is applied to anything but buffers that the kernel only reads,
    or if their scalars are of a type without texels.
    """
    found: set[Param] = set()
    for part in every_part(body) if has_call(body, AsImage) else ():
        if not (isinstance(part, FunCall) and isinstance(part.fun, AsImage)):
            continue
        (array,) = part.args
        if not array.free or not array.free <= reads or computes(array):
            raise TypeRefused(
                f"{AsImage.name} needs an array in a buffer that its kernel only reads, and got "
                f"one of type {array.type} that is computed, or that depends on a variable of a "
                "function: apply it to a parameter of the program, or to the result of toGlobal "
                "outside of all parallel maps"
            )
        for param in array.free:
            for component in components(param.type):
                if component.scalar not in TEXEL_SCALARS:
                    raise TypeRefused(
                        f"{AsImage.name} cannot read {param.name}, of {component.scalar}: texels "
                        f"are of {' or '.join(map(str, TEXEL_SCALARS))}. Leave out "
                        f"{AsImage.name}, or convert the array and store the result with toGlobal"
                    )
        found |= array.free
    return frozenset(found)
