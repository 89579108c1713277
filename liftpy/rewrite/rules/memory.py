"""Copies, and the memory in which a value is stored. Sound because storing changes no value."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Param
from liftpy.ir.nat import var
from liftpy.primitives import (
    AsImage,
    ToGlobal,
    ToLocal,
    ToLocalPadded,
    ToPrivate,
    ToStreamed,
    ToSubgroup,
)
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, array, fmap, n, unknown

xs, x = array("xs", T, n), Param("x", T)
f = unknown("f", U)
SPACES = {
    "global": ToGlobal(),
    "streamed": ToStreamed(),
    "local": ToLocal(),
    "private": ToPrivate(),
}

gap = var("gap", None)

MAP_COPY = Rule("map_copy", "memory", xs, fmap(lambda x: x, xs))

TO_GLOBAL, TO_STREAMED, TO_LOCAL, TO_PRIVATE = (
    Rule(f"to_{space}", "memory", x, call(store, x), proof="definition")
    for space, store in SPACES.items()
)

TO_LOCAL_PADDED = Rule(
    "to_local_padded",
    "memory",
    xs,
    call(ToLocalPadded(gap), xs),
    where=(at_least(0, gap),),
    tunes=("gap",),
    proof="definition",
)

TO_SUBGROUP = Rule("to_subgroup", "memory", xs, call(ToSubgroup(), xs), proof="definition")

#: A kernel reads a stored array through an image.
AS_IMAGE = Rule("as_image", "memory", xs, call(AsImage(), xs))

#: A value that is not stored is computed where it is used.
GLOBAL_DROPPED, STREAMED_DROPPED, LOCAL_DROPPED, PRIVATE_DROPPED = (
    Rule(f"{space}_dropped", "memory", call(store, x), x, proof="definition")
    for space, store in SPACES.items()
)

#: An array is stored by storing its elements one by one.
GLOBAL_OF_MAP, STREAMED_OF_MAP, LOCAL_OF_MAP, PRIVATE_OF_MAP = (
    Rule(
        f"{space}_of_map",
        "memory",
        call(store, fmap(f, xs)),
        fmap(lambda x, store=store: call(store, f(x)), xs),
    )
    for space, store in SPACES.items()
)

RULES = (
    MAP_COPY,
    TO_GLOBAL,
    TO_STREAMED,
    TO_LOCAL,
    TO_LOCAL_PADDED,
    TO_PRIVATE,
    TO_SUBGROUP,
    AS_IMAGE,
    GLOBAL_DROPPED,
    STREAMED_DROPPED,
    LOCAL_DROPPED,
    PRIVATE_DROPPED,
    GLOBAL_OF_MAP,
    STREAMED_OF_MAP,
    LOCAL_OF_MAP,
    PRIVATE_OF_MAP,
)
