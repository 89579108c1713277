"""What requires something of the constraint system, and what does not, with the reason.

Primitives state this themselves by `requires` or `unconditional`, and rules by `where` or a proof
without conditions. This module states what lowered forms and facts of a device require beyond that.
A test checks that all of them have an entry, so a new one without an entry fails by name
(tests/constraints/test_audit.py). `liftpy space --audit` shows the constraint audit of a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from liftpy.constraints.system import MEMORY_LIMIT
from liftpy.ir.call import FunCall
from liftpy.ir.primitive import Primitive
from liftpy.ir.walk import every_part
from liftpy.primitives import (
    AsImage,
    ExclusiveScanSeq,
    IterateSeq,
    MapGlb,
    MapHost,
    MapItem,
    MapLcl,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapSubgroup,
    MapVec,
    MapWrg,
    ReduceByIndexAtomic,
    ReduceByIndexSeq,
    ReduceInPlace,
    ReduceItems,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceSubgroups,
    ReduceVec,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToLocal,
    ToLocalPadded,
    ToPrivate,
    ToStreamed,
    ToSubgroup,
)
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.skeleton import Skeleton


@dataclass(frozen=True)
class Asks:
    """Requires something: its clauses have a source that begins with one of these."""

    by: tuple[str, ...]

    def asked(self, asker: str) -> bool:
        """Whether a source of a clause begins with one of these, compared by whole words."""
        return any(re.match(rf"{re.escape(by.strip())}(?!\w)", asker) for by in self.by)


@dataclass(frozen=True)
class Silent:
    """Requires nothing, for this reason."""

    because: str


WORK_GROUP = "device work-group size"
LOCAL = "device local memory"
PRIVATE = "private memory"
CODE = "code size"
LARGEST = "device largest buffer"
TOTAL = "device global memory"
IMAGES = "device images"

FORMS: dict[type[Primitive], Asks | Silent] = {
    MapSeq: Silent("a loop may take any number of steps, and holds no memory"),
    MapSeqAhead: Silent("a hint takes no memory"),
    MapSeqUnroll: Asks((CODE,)),
    MapHost: Silent("the host may launch kernels any number of times"),
    MapGlb: Silent("a launch may have any number of work-items, and the driver groups them"),
    MapWrg: Silent("a launch may have any number of work-groups"),
    MapLcl: Asks((WORK_GROUP,)),
    MapSubgroup: Asks((WORK_GROUP,)),
    MapItem: Asks((WORK_GROUP,)),
    MapVec: Silent("every device has vectors of each width that `asVector` allows"),
    ReduceSeq: Asks((PRIVATE, CODE)),
    ReduceSeqUnroll: Asks((PRIVATE, CODE)),
    ReduceInPlace: Silent("its accumulator is where `toGlobal`, `toLocal` or the result is"),
    ReduceSubgroups: Asks((WORK_GROUP, LOCAL)),
    ReduceItems: Asks((WORK_GROUP,)),
    ReduceVec: Silent("it folds the lanes of one vector, sixteen at most"),
    ReduceByIndexAtomic: Silent(
        "its bins are in a buffer, and OpenCL 1.2 has the atomic functions"
    ),
    ReduceByIndexSeq: Silent("its bins are where `toGlobal`, `toPrivate` or the result is"),
    ScanSeq: Asks((PRIVATE, CODE)),
    ExclusiveScanSeq: Asks((PRIVATE, CODE)),
    IterateSeq: Asks((PRIVATE, CODE)),
    SlideSeq: Asks((PRIVATE, CODE)),
    ToGlobal: Asks((LARGEST, TOTAL, MEMORY_LIMIT)),
    ToStreamed: Asks((LARGEST, TOTAL, MEMORY_LIMIT)),
    ToLocal: Asks((LOCAL,)),
    ToLocalPadded: Asks((LOCAL,)),
    ToPrivate: Asks((PRIVATE, CODE)),
    ToSubgroup: Asks((WORK_GROUP, PRIVATE, CODE)),
    AsImage: Asks((IMAGES,)),
}
"""What each lowered form requires of the device it runs on."""

IDENTITY = Silent("it only identifies the device")

DEVICE: dict[str, Asks | Silent] = {
    "name": IDENTITY,
    "vendor": IDENTITY,
    "platform": IDENTITY,
    "driver_version": IDENTITY,
    "ordinal": IDENTITY,
    "type": Silent("the limits express the differences between processors and GPUs"),
    "opencl_c": Silent("all kernels are OpenCL C 1.2, which every device compiles"),
    "compute_units": Silent(
        "more groups than units wait, fewer leave units idle: only speed depends on it"
    ),
    "vector_width": Silent("the driver splits wider vectors: only speed depends on it"),
    "extensions": Silent("a program that needs a missing extension is refused as a whole"),
    "profile": IDENTITY,
    "private_memory": Asks((PRIVATE,)),
    "max_work_group_size": Asks((WORK_GROUP,)),
    "max_work_item_sizes": Asks((WORK_GROUP,)),
    "local_memory": Asks((LOCAL,)),
    "largest_buffer": Asks((LARGEST,)),
    "global_memory": Asks((TOTAL,)),
    "image_texels": Asks((IMAGES,)),
}
"""What each fact of a device requires of a program's sizes."""


def asked_by_rule(rule: Rule) -> Asks | Silent:
    """What a rule requires of the sizes it is applied to: the conditions in its `where`."""
    if rule.where:
        return Asks((f"rule {rule.name} ",))
    return Silent("it is proved for all sizes without a condition")


def asked_by_primitive(primitive: type[Primitive]) -> Asks | Silent:
    """What a primitive requires of the sizes in its arguments, beyond its lowered form."""
    if primitive.unconditional:
        return Silent(primitive.unconditional)
    return Asks((primitive.name,))


def audit(skeletons: Iterable[Skeleton]) -> Iterator[tuple[str, str, Asks | Silent]]:
    """Yield the kind, the name and the requirement of all that could require something."""
    kinds: dict[type[Primitive], None] = {}
    rules: dict[str, None] = {}
    for skeleton in skeletons:
        calls = (e for e in every_part(skeleton.program.body.body) if isinstance(e, FunCall))
        kinds |= {type(e.fun): None for e in calls if isinstance(e.fun, Primitive)}
        rules |= {step.rule: None for step in skeleton.derivation.steps}
    for kind in sorted(kinds, key=lambda kind: kind.name):
        yield "primitive", kind.name, asked_by_primitive(kind)
        if kind in FORMS:
            yield "lowered form", kind.name, FORMS[kind]
    for name in sorted(rules):
        yield "rule", name, asked_by_rule(RULES[name])
    for fact, word in DEVICE.items():
        if word is not IDENTITY:
            yield "device", fact, word
