"""Built-in programs by name: `vgg16/7`, `matmul/64x48x80`, `stencil/jacobi5`.

Each is one algorithmic expression in the embedded form; its name contains the sizes.
"""

from __future__ import annotations

import difflib

from liftpy.errors import UnknownName
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.workloads import convolution as convolutions
from liftpy.workloads import (
    finance,
    learning,
    linear,
    networks,
    physics,
    pool_gradients,
    pooling,
    stencils,
)
from liftpy.workloads.convolution import Convolution, convolution
from liftpy.workloads.family import Family, Workload
from liftpy.workloads.linear import matmul
from liftpy.workloads.networks import ALEXNET, INCEPTIONV3, MOBILENET, RESNET50, VGG16, Network

__all__ = [
    "ALEXNET",
    "FAMILIES",
    "INCEPTIONV3",
    "MOBILENET",
    "RESNET50",
    "VGG16",
    "Convolution",
    "Workload",
    "convolution",
    "matmul",
    "workload",
    "workloads",
]

#: Every family by the prefix of its names, in the order of `liftpy workloads`.
FAMILIES: dict[str, Family | Network] = {
    f.name: f
    for f in (
        *networks.NETWORKS,
        *convolutions.FAMILIES,
        *pooling.FAMILIES,
        *pool_gradients.FAMILIES,
        *linear.FAMILIES,
        *stencils.FAMILIES,
        *physics.FAMILIES,
        *learning.FAMILIES,
        *finance.FAMILIES,
    )
}


@entry("lp.workloads")
def workloads() -> tuple[Workload, ...]:
    """The built-in programs, in the order of `liftpy workloads`.

    >>> lp.workloads()[0].name
    'vgg16/0'
    """
    return tuple(w for family in FAMILIES.values() for w in family.workloads())


@entry("lp.workload")
def workload(name: str) -> Program:
    """The built-in program of this name; UnknownName, with the known names, if there is none.

    >>> lp.workload("dot/1024")
    <Program dot_1024(xs: [1024]f32, ys: [1024]f32) -> f32>
    """
    path, colon, options = name.partition(":")
    head, _, rest = path.partition("/")
    if head not in FAMILIES:
        variant, _, rest = rest.partition("/")
        head = f"{head}/{variant}"
    if head in FAMILIES:
        return FAMILIES[head].program(f"{rest}{colon}{options}")
    head = head.removesuffix("/")
    near = difflib.get_close_matches(name, [w.name for w in workloads()], n=3, cutoff=0.5)
    near = near or difflib.get_close_matches(head, list(FAMILIES), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    families = ", ".join(FAMILIES)
    message = (
        f"no built-in program {name!r}{hint}\n"
        f"  known programs: {families}; `liftpy workloads` lists them with their sizes"
    )
    raise UnknownName(message)
