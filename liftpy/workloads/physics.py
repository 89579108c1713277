"""Physics: interactions of each particle with all others, and a sum over frequencies."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    add,
    array_type,
    cos,
    let,
    map,
    mul,
    reduce,
    select,
    sin,
    sqrt,
    zip,
)
from liftpy.workloads.family import Family, define

SOFTENING = 0.01  # so that the force of a particle on itself is 0, not NaN


def nbody(name: str, n: int) -> Program:
    """The gravitational acceleration of each of `n` particles.

    `p: [n][3]` are positions, `m: [n]` masses; the result is `[n][3]`.
    """

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


def lennard_jones(name: str, n: int) -> Program:
    """The force on each of `n` atoms by the atoms nearer than a cutoff.

    `p: [n][3]` are positions; the result is `[n][3]`. The potential and its constants are those of
    SHOC's MD, which reads the neighbours from a list. This program does not use a list: it computes
    all pairs, and distant ones contribute 0.
    """
    repulsion, attraction, cutoff = 1.5, 2.0, 16.0

    def force(p: Expr, here: Expr) -> Expr:
        def interact(total: Expr, there: Expr) -> Expr:
            def push(d: Expr) -> Expr:
                def weight(r: Expr) -> Expr:
                    inverse = 1 / r
                    sixth = inverse * inverse * inverse
                    strength = inverse * sixth * (repulsion * sixth - attraction)
                    return select((r > 0) & (r < cutoff), strength, 0)

                r = d >> map(lambda x: x * x) >> reduce(add, 0) >> let(weight)
                return r >> let(lambda w: zip(total, d) >> map(lambda a, x: a + w * x))

            return zip(here, there) >> map(lambda a, b: a - b) >> let(push)

        return p >> reduce(interact, here >> map(lambda x: 0 * x))

    return define(
        name,
        lambda p: p >> map(lambda here: force(p, here)),
        p=array_type(F32, n, 3),
    )


def mriq(name: str, voxels: int, samples: int) -> Program:
    """The matrix Q of a magnetic resonance image (Parboil): real and imaginary parts.

    `v: [V][3]` are positions, `k: [K][3]` positions in the frequency domain, `phi: [K]` magnitudes.
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
        "md",
        ("N",),
        ((4096,),),
        "Lennard-Jones forces between {N} atoms nearer than a cutoff",
        lennard_jones,
        lambda n: 21 * n * n,
    ),
    Family(
        "mriq",
        ("V", "K"),
        ((32768, 512),),
        "[{V}] positions by [{K}] frequencies, real and imaginary part",
        mriq,
        lambda v, k: 18 * v * k,
    ),
)
