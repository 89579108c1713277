"""Laws of padClamp, padMirror and padWrap. Only successive clamped paddings can be merged."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least
from liftpy.ir.nat import nat, var
from liftpy.primitives import PadClamp, PadMirror, PadWrap
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, array, fmap, n, unknown, zipped

left, right = var("left", None), var("right", None)
a, b = var("a", None), var("b", None)
xs, ys = array("xs", T, n), array("ys", U, n)
f = unknown("f", U)
BORDERS = {"clamp": PadClamp, "mirror": PadMirror, "wrap": PadWrap}

PAD_CLAMP_OF_PAD_CLAMP = Rule(
    "pad_clamp_of_pad_clamp",
    "border",
    call(PadClamp(left, right), call(PadClamp(a, b), xs)),
    call(PadClamp(left + a, right + b), xs),
    where=(at_least(0, a), at_least(0, b)),
)

PAD_NOTHINGS = tuple(
    Rule(f"pad_{border}_nothing", "border", call(pad(nat(0), nat(0)), xs), xs)
    for border, pad in BORDERS.items()
)

PADS_OF_MAP = tuple(
    Rule(
        f"pad_{border}_of_map",
        "border",
        call(pad(left, right), fmap(f, xs)),
        fmap(f, call(pad(left, right), xs)),
    )
    for border, pad in BORDERS.items()
)

MAPS_OF_PAD = tuple(
    Rule(f"map_of_pad_{border}", "border", rule.right, rule.left)
    for border, rule in zip(BORDERS, PADS_OF_MAP, strict=True)
)

PADS_OF_ZIP = tuple(
    Rule(
        f"pad_{border}_of_zip",
        "border",
        call(pad(left, right), zipped(xs, ys)),
        zipped(call(pad(left, right), xs), call(pad(left, right), ys)),
    )
    for border, pad in BORDERS.items()
)

RULES = (PAD_CLAMP_OF_PAD_CLAMP, *PAD_NOTHINGS, *PADS_OF_MAP, *MAPS_OF_PAD, *PADS_OF_ZIP)
