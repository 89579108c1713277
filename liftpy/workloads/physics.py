"""Physics: what each particle feels from all others."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from liftpy.ir.expr import Expr, Program
from liftpy.ir.types import F32
from liftpy.primitives.lang import add, array_type, cos, let, map, mul, reduce, sin, sqrt, zip
from liftpy.workloads.family import Family, define

SOFTENING = 0.01  # so that a particle feels nothing from itself


def nbody(name: str, n: int) -> Program:
    """The acceleration of each of `n` particles by gravity: `p: [n][3]`, `m: [n]` give `[n][3]`."""

    def acceleration(p: Expr, m: Expr, here: Expr) -> Expr:
        def attract(total: Expr, there: Expr) -> Expr:
            def pull(d: Expr) -> Expr:
                r = d >> map(lambda x: x * x) >> reduce(add, SOFTENING)
                weight = r >> let(lambda r: there[1] / (r * sqrt(r)))
                return weight >> let(lambda w: zip(total, d) >> map(lambda a, x: a + w * x))

            return zip(here, there[0]) >> map(lambda a, b: b - a) >> let(pull)

        return zip(p, m) >> reduce(attract, here >> map(lambda x: 0 * x))

    return define(
        name,
        lambda p, m: p >> map(lambda here: acceleration(p, m, here)),
        p=array_type(F32, n, 3),
        m=array_type(F32, n),
    )


def mriq(name: str, voxels: int, samples: int) -> Program:
    """The matrix Q of a magnetic resonance image (Parboil): real and imaginary parts.

    `v: [V][3]` are places, `k: [K][3]` are places in the frequency domain, `phi: [K]` magnitudes.
    """

    def q(v: Expr, k: Expr, phi: Expr, part: Callable[[Expr], Expr]) -> Expr:
        def sample(there: Expr, magnitude: Expr) -> Expr:
            angle = zip(v, there) >> map(mul) >> reduce(add, 0)
            return magnitude * part(angle * (2 * pi))

        return zip(k, phi) >> map(sample) >> reduce(add, 0)

    return define(
        name,
        lambda v, k, phi: v >> map(lambda here: (q(here, k, phi, cos), q(here, k, phi, sin))),
        v=array_type(F32, voxels, 3),
        k=array_type(F32, samples, 3),
        phi=array_type(F32, samples),
    )


FAMILIES = (
    Family(
        "nbody",
        ("N",),
        ((4096,),),
        "gravity between {N} particles",
        nbody,
        lambda n: 19 * n * n,
    ),
    Family(
        "mriq",
        ("V", "K"),
        ((32768, 512),),
        "[{V}] places by [{K}] frequencies, real and imaginary part",
        mriq,
        lambda v, k: 18 * v * k,
    ),
)
