"""The conditions on a skeleton's sizes, collected from its primitives, its rules and a device.

Each condition is stated once: by primitives in `requires`, by rules in `where`, by devices as
limits. This module only gathers the conditions, each with its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

from liftpy.constraints.device import Device, check_extensions
from liftpy.constraints.length import length, serial_length
from liftpy.constraints.statements import statements, sum_of
from liftpy.constraints.system import MEMORY_LIMIT, Clause, ConstraintSystem
from liftpy.errors import InternalError
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint, at_most, divides
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Extreme, Nat, nat, product
from liftpy.ir.place import asker
from liftpy.ir.polynomial import Atom, Monomial
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.types import (
    EXTENSIONS,
    I32,
    ArrayType,
    VectorType,
    components,
    size_bytes,
)
from liftpy.ir.walk import Path, children, every_part, has_call, scalars_in
from liftpy.kernels.chain import OUTPUT, Chain, Kernel, chain_of_skeleton
from liftpy.kernels.launch import LOCAL_ALIGNMENT
from liftpy.primitives import (
    AsScalar,
    MapSeqUnroll,
    ReduceVec,
    ToLocal,
)
from liftpy.primitives.lowered import TEXEL
from liftpy.primitives.vector import LANES_OF_A_DOT, LEAST_DOTS
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategy import Derivation

Asked: TypeAlias = tuple[Constraint, str]

UNROLL_LIMIT = 128
"""The most statements of straight-line code to which loops over a kernel's accumulators unroll.

Loops over private arrays are unrolled by the emitter. Drivers take minutes to compile kernels of
many thousand statements, and accumulators of more than sixty vectors are spilled. The limit is
raised by the same number for each value that a kernel names and holds in local memory, because
each has loops of its own.
"""

FIXED_UNROLL_LIMIT = 1024
"""`UNROLL_LIMIT` for a kernel whose number of statements depends on no tuning size.

No size makes its code shorter, so a slow build is better than a skeleton without points. The same
number bounds the statements of small arrays in a kernel that also has accumulators.
"""

CODE_LIMIT = 8192
"""The most statements that the code of a kernel may have in total (`liftpy.constraints.length`).

This is twice what the largest useful blocks within `UNROLL_LIMIT` take. The emitter stops beyond it
(`liftpy.loops.nest`), which no valid point can reach.
"""


@dataclass(frozen=True)
class Around:
    """The parts of a program that a stage does not see.

    `bytes` is the size of the buffers of other stages that are alive while the stage's kernels run,
    and `prepared` that of the constants that only the prepare phase reads. `temporary` has the
    stage's parameters that earlier stages store in each run and no later stage reads. `name` is the
    name of the stage's result.
    """

    bytes: int = 0
    temporary: frozenset[str] = frozenset()
    name: str = OUTPUT
    prepared: int = 0


ALONE = Around()


def collect(
    skeleton: Skeleton, device: Device, *, memory_limit: int | None = None, around: Around = ALONE
) -> ConstraintSystem:
    """The constraint system of a skeleton on a device.

    `memory_limit` bounds the bytes of global buffers that are live at any time of a run. Conditions
    that normal forms and ranges show to hold are left out; those shown to be broken stay, so that
    an empty space can be explained. A condition with several sources occurs once. Raises
    DeviceRefused if the device lacks a scalar type that the program computes in.
    """
    return collected(skeleton, device, around.name).within(around, memory_limit)


def collected(skeleton: Skeleton, device: Device, result: str = ALONE.name) -> Collected:
    """The conditions of a skeleton whose result has this name; recent ones are kept.

    A campaign collects those of direct forms first, and soon after those of the whole space.
    """
    known = _of_skeleton(skeleton)
    key = device, result
    if key not in known:
        known[key] = Collected(skeleton, device, result)
    return known[key]


@by_identity(1 << 11)
def _of_skeleton(_skeleton: Skeleton) -> dict[tuple[Device, str], Collected]:
    """The conditions of a skeleton, for the devices and names for which they were collected."""
    return {}


class Collected:
    """The conditions on a skeleton's sizes that do not depend on what other stages need.

    `result` is the name of its result. The conditions are collected on first use.
    """

    def __init__(self, skeleton: Skeleton, device: Device, result: str) -> None:
        self.skeleton = skeleton
        self.device = device
        self.chain = chain_of_skeleton(skeleton.program, result)
        self.ranges = {p.name: p.nat for p in skeleton.parameters}

    @cached_property
    def own(self) -> tuple[Asked, ...]:
        """The conditions that are not shown to hold, over variables with their ranges."""
        program = self.skeleton.program
        used = scalars_in(program.body)
        needed = [extension for t, extension in EXTENSIONS.items() if t in used]
        check_extensions(program.name, needed, self.device)
        rules = asked_by_rules(self.skeleton.derivation)
        device = asked_by_device(self.chain, self.device, self.ranges)
        others = undecided((*rules, *device), self.ranges)
        return (*asked_by_primitives(program, self.ranges), *others)

    def within(self, around: Around = ALONE, memory_limit: int | None = None) -> ConstraintSystem:
        """All conditions, as `collect` returns them."""
        total = asked_by_buffers(self.chain, self.device, around)
        limits = asked_by_memory_limit(self.chain, memory_limit, around)
        askers: dict[Constraint, dict[str, None]] = {}
        for constraint, who in (*self.own, *undecided((total, *limits), self.ranges)):
            askers.setdefault(constraint, {})[who] = None
        clauses = tuple(Clause(c, tuple(names)) for c, names in askers.items())
        return ConstraintSystem(self.skeleton.parameters, clauses)

    @cached_property
    def packed(self) -> int:
        """The most bytes that packed constants of the skeleton take while other stages run."""
        packed = (b for b in self.chain.buffers if b.role == "packed" and b.span is not None)
        total = sum_of(buffer.bytes for buffer in packed)
        most = total.substitute(self.ranges).bounds[1]
        if most is None:
            message = f"the constants of {self.skeleton.key} take {total} bytes: this has no bound"
            raise InternalError(message)
        return most


def undecided(asked: Iterable[Asked], ranges: Mapping[str, Nat]) -> Iterator[Asked]:
    """The conditions that are not shown to hold, over variables with their ranges."""
    known = tuple(ranges.items())
    for constraint, who in asked:
        if (ranged := in_ranges(constraint, known)) is not None:
            yield ranged, who


@lru_cache(maxsize=1 << 14)
def in_ranges(constraint: Constraint, ranges: tuple[tuple[str, Nat], ...]) -> Constraint | None:
    """The condition over variables with these ranges; None if it is shown to hold."""
    ranged = constraint.substitute(dict(ranges))
    return None if ranged.known() is True else ranged


def asked_by_primitives(program: Program, ranges: Mapping[str, Nat]) -> Iterator[Asked]:
    """What the primitives of a program require of their arguments, as `undecided`.

    The text that names a primitive is made only if one of its conditions is undecided.
    """
    who: dict[Path, str] = {}
    for path, condition in open_conditions(program.body.body):
        for ranged, _ in undecided([(condition, "")], ranges):
            if path not in who:
                who[path] = asker(program, path)
            yield ranged, who[path]


@by_identity(1 << 15)
def open_conditions(expr: Expr) -> tuple[tuple[Path, Constraint], ...]:
    """The conditions of primitives in an expression that are not evidently true, with their paths.

    The skeletons of a program share most of their parts, so those of a part are cached.
    """
    found: list[tuple[Path, Constraint]] = []
    if isinstance(expr, FunCall) and isinstance(expr.fun, Primitive):
        asked = expr.fun.conditions(*(a.type for a in expr.args))
        found += (((), condition) for condition in asked if condition.known() is not True)
    for position, part in enumerate(children(expr)):
        found += (((position, *path), c) for path, c in open_conditions(part))
    return tuple(found)


def asked_by_rules(derivation: Derivation) -> Iterator[Asked]:
    """The conditions that the rules of a derivation left open; steps count from 1."""
    for number, step in enumerate(derivation.steps, 1):
        for condition in step.conditions:
            yield condition, f"rule {step.rule} (step {number})"


def asked_by_device(cut: Chain, device: Device, ranges: Mapping[str, Nat]) -> Iterator[Asked]:
    """What a device requires of the kernels' launches and of each buffer."""
    written = {kernel.writes for kernel in cut.kernels}
    for kernel in cut.kernels:
        given = (size_bytes(p.type).names() for p in kernel.reads if p in written)
        names = frozenset[str]().union(*given)
        foreign = names - sizes_of(kernel.body) if names else names
        yield from asked_of_launch(kernel, device, ranges, foreign)
    for buffer in cut.buffers:
        for part in components(buffer.type):
            name = "".join([buffer.param.name, *(f".{k}" for k in part.path)])
            who = f"device largest buffer: {buffer.role} {name}"
            yield at_most(size_bytes(part.type), device.largest_buffer), who
            if any(buffer.param in kernel.images for kernel in cut.kernels):
                who = f"device images: {buffer.role} {name}"
                yield divides(TEXEL, product(part.shape)), who
                yield at_most(product(part.shape), TEXEL * device.image_texels), who


def asked_by_buffers(cut: Chain, device: Device, around: Around) -> Asked:
    """What a device requires of all buffers together."""
    total = sum_of(buffer.bytes for buffer in cut.buffers) + around.bytes + around.prepared
    return at_most(total, device.global_memory), "device global memory: all buffers"


def asked_of_launch(
    kernel: Kernel, device: Device, ranges: Mapping[str, Nat], foreign: frozenset[str]
) -> Iterator[Asked]:
    """What a device requires of one kernel.

    `foreign` are sizes of other kernels that occur in the types of what it reads, such as those in
    the length of a tiled result, which is the same for all of them. They are not chosen for this
    kernel, so its code is limited like that of a kernel without sizes.
    """
    demand = kernel.demand
    if demand.groups:
        local = demand.local_size()
        who = f"device work-group size of kernel {kernel.name}"
        yield at_most(product(local), device.max_work_group_size), who
        for dim, (extent, most) in enumerate(zip(local, device.max_work_item_sizes, strict=True)):
            who = f"device work-group size in dimension {dim} of kernel {kernel.name}"
            yield at_most(extent, most), who
        for row in demand.spread:
            yield at_most(row, local[0]), f"rows of subgroups in kernel {kernel.name}"
    who = f"device local memory of kernel {kernel.name}"
    between = (LOCAL_ALIGNMENT - 1) * max(0, demand.local_arrays - 1)  # unused, at most
    yield at_most(demand.local + between, device.local_memory), who
    yield at_most(demand.private, device.private_memory), f"private memory of kernel {kernel.name}"
    who = f"code size of kernel {kernel.name}"
    unrolled = statements(kernel.body)
    limit = UNROLL_LIMIT * (1 + held_values(kernel.body))
    if adds_dots_in_vectors(kernel.body):
        limit *= LEAST_DOTS
    if has_call(kernel.body, MapSeqUnroll):
        limit += min(unrolled.terms.get((), 0), FIXED_UNROLL_LIMIT)
    if unrolled.names() <= foreign:
        limit = max(limit, FIXED_UNROLL_LIMIT)
    yield at_most(unrolled, limit), who
    known = unrolled.substitute(ranges)
    rough = serial_length(kernel)
    if rough is None or not follows(rough.substitute(ranges), known, limit):
        for every in alternatives(length(kernel)):
            if not follows(every.substitute(ranges), known, limit):
                yield at_most(every, CODE_LIMIT), f"{who}, all statements"


def adds_dots_in_vectors(body: Expr) -> bool:
    """Whether sums of dot products are stored in vectors: then they are computed in vectors, too.

    See `liftpy.loops.superwords`: one statement takes the place of at least `LEAST_DOTS`.
    """
    if not has_call(body, ReduceVec):
        return False
    calls = [e for e in every_part(body) if isinstance(e, FunCall)]
    folded = (e.args[1].type for e in calls if isinstance(e.fun, ReduceVec))
    stored = (e.args[0].type for e in calls if isinstance(e.fun, AsScalar))
    vectors = (t.element for t in stored if isinstance(t, ArrayType))
    widths = (t.width.bounds[0] or 0 for t in vectors if isinstance(t, VectorType))
    return VectorType(I32, nat(LANES_OF_A_DOT)) in folded and max(widths, default=0) >= LEAST_DOTS


def sizes_of(body: Expr) -> frozenset[str]:
    """The variables in the sizes of a kernel's primitives, such as `split(kappa)`."""
    calls = (e.fun for e in every_part(body) if isinstance(e, FunCall))
    own = (n for fun in calls if isinstance(fun, Primitive) for n in fun.numbers().values())
    return frozenset(name for n in own for name in n.names())


def held_values(body: Expr) -> int:
    """How many values a kernel names and stores in local memory; each has code of its own."""
    if not has_call(body, ToLocal):
        return 0
    lets = (e for e in every_part(body) if isinstance(e, FunCall) and isinstance(e.fun, Lambda))
    stored = (arg for let in lets for arg in let.args if isinstance(arg, FunCall))
    return sum(isinstance(value.fun, ToLocal) for value in stored)


def asked_by_memory_limit(cut: Chain, memory_limit: int | None, around: Around) -> Iterator[Asked]:
    """The conditions that the live buffers of each kernel of a run stay within the limit."""
    if memory_limit is not None:
        outer = frozenset(b.param for b in cut.buffers if b.param.name in around.temporary)
        for kernel, live in zip(cut.run, cut.live_bytes(outer), strict=True):
            who = f"{MEMORY_LIMIT} while kernel {kernel.name} runs"
            yield at_most(live + around.bytes, memory_limit), who


# --- code size ------------------------------------------------------------------------------------


def alternatives(size: Nat) -> Iterator[Nat]:
    """The arguments of a maximum; a size that is none, itself.

    Conditions have no formula for a maximum. It is at most a limit if each argument is.

    >>> from liftpy.ir.nat import greatest, var
    >>> print(*alternatives(greatest(var("kappa") * 2, var("v"))), sep=", ")
    2*kappa, v
    """
    match [*size.terms.items()]:
        case [(((Extreme(largest=True) as extreme, 1),), 1)]:
            yield from alternatives(extreme.left)
            yield from alternatives(extreme.right)
        case _:
            yield size


def follows(every: Nat, unrolled: Nat, limit: int) -> bool:
    """Whether `every <= CODE_LIMIT` whenever `unrolled <= limit`, within the variables' ranges.

    Each product in `every` is compared with the product in `unrolled` that it exceeds by the least
    factor. A condition that follows tells nothing, and z3 would take seconds to see that.
    """
    sums = all(count > 0 for count in unrolled.terms.values())
    most = Fraction(0)
    for monomial, count in every.terms.items():
        bounds = [largest(monomial, ())]
        if sums:
            others = ((largest(monomial, m), c) for m, c in unrolled.terms.items())
            bounds += [b if b is None else b * limit / c for b, c in others]
        known = [b for b in bounds if b is not None]
        if not known:
            return False
        most += max(count, 0) * min(known)
    return most <= CODE_LIMIT


def largest(over: Monomial, under: Monomial) -> Fraction | None:
    """An upper bound on the quotient of two products; None if none is known."""
    exponents: dict[Atom, int] = dict(over)
    for factor, exponent in under:
        exponents[factor] = exponents.get(factor, 0) - exponent
    most = Fraction(1)
    for factor, exponent in exponents.items():
        low, high = factor.bounds
        if exponent and (low is None or low < (exponent < 0)):
            return None
        if exponent > 0 and high is None:
            return None
        most *= Fraction((high if exponent > 0 else low) or 0) ** exponent if exponent else 1
    return most
