"""Laws of scans: a scan by chunks, each of which starts from the fold of all chunks before it.

    scan(f, z)(xs)  ==  the scans of the chunks of `xs`, joined; that of chunk `k` starts from the
                        fold of the first `k` chunks from `z`

Each chunk is folded to a total; the exclusive scan of the totals makes the values from which the
chunks start. The laws are those of a monoid: `f` is associative and `e` is neutral.
"""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, divides
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.nat import var
from liftpy.primitives import ExclusiveScan, Scan
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    S,
    array,
    fmap,
    fold,
    function,
    get,
    join,
    m,
    n,
    pad,
    split,
    unknown,
    zipped,
)

scalars, start = array("xs", S, n), Param("z", S)
extra = var("extra", None)
op, e = unknown("f", S), Literal(ValueVar("e"), S)
step = function(op, a=S, x=S)


def in_chunks(made: Scan | ExclusiveScan) -> Expr:
    """A scan by chunks of `m` elements."""
    chunks = split(m, scalars)
    totals = fmap(lambda chunk: fold(op, e, chunk), chunks, "chunk")
    begun = zipped(call(ExclusiveScan(step), start, totals), chunks)
    return join(fmap(lambda part: call(made, get(0, part), get(1, part)), begun, "part"))


def extension(name: str, made: Scan | ExclusiveScan) -> Rule:
    """The law that elements behind an array change no accumulator of its own elements."""
    longer = call(made, start, pad(0, extra, 0, scalars))
    where = (at_least(1, n), at_least(0, extra))
    own = pad(0, -extra, 0, longer)
    return Rule(name, "scan", call(made, start, scalars), own, where=where, tunes=("extra",))


SCAN_EXTENSION = extension("scan_extension", Scan(step))
EXCLUSIVE_SCAN_EXTENSION = extension("exclusive_scan_extension", ExclusiveScan(step))

SCAN_SPLIT, EXCLUSIVE_SCAN_SPLIT = (
    Rule(
        name,
        "scan",
        call(made, start, scalars),
        in_chunks(made),
        where=(divides(m, n),),
        assuming=(Assumption("associative", "f"), Assumption("neutral", "f", "e")),
        tunes=("m",),
        proof="chunks",
    )
    for name, made in (("scan_split", Scan(step)), ("exclusive_scan_split", ExclusiveScan(step)))
)

RULES = (
    SCAN_SPLIT,
    EXCLUSIVE_SCAN_SPLIT,
    SCAN_EXTENSION,
    EXCLUSIVE_SCAN_EXTENSION,
)
