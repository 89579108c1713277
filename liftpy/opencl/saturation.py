"""Conversions of floats to integers: they round toward zero, saturate, and convert NaN to 0.

OpenCL's `convert_int16_sat_rtz` computes this, but on Intel's CPU runtime a kernel that converts
each sum of 8 products takes several times as long with it as with `convert_int16_rtz`, whose result
is not defined for numbers beyond the range of the type. The functions here select the result by
comparisons, which take a few instructions. For types of 8 bits they save a few percent.
"""

from __future__ import annotations

import re

from liftpy.ir.types import I8, I16, I32, U8, U16, integer_range
from liftpy.opencl.c import vector_type

SATURATING = (I32, I16, U16, I8, U8)
"""The integer types to which a function here converts f32."""

RANGES = {vector_type(t.name, 1): integer_range(t) for t in SATURATING}

SATURATED = re.compile(r"\bsaturated_(int|u?short|u?char)(\d*)\(")

WIDE = """\
inline int{n} saturated_int{n}(float{n} x) {{
  const float{n} y = x > (float{n})(-2147483648.0f) ? x : (float{n})(-2147483648.0f);
  const int{n} r = y < (float{n})(2147483648.0f) ? convert_int{n}_rtz(y) : (int{n})(2147483647);
  return x == x ? r : (int{n})(0);
}}
"""
NARROW = """\
inline {t}{n} saturated_{t}{n}(float{n} x) {{
  const float{n} y = x > (float{n})({low}.0f) ? x : (float{n})({low}.0f);
  const float{n} z = y < (float{n})({high}.0f) ? y : (float{n})({high}.0f);
  return convert_{t}{n}(convert_int{n}_rtz({result}));
}}
"""


def saturation_helpers(text: str) -> list[str]:
    """The definitions of the functions that a text calls."""
    found = sorted(set(SATURATED.findall(text)))
    return [helper(t, width) for t, width in found]


def helper(t: str, width: str) -> str:
    """The function of an integer type, and of vectors of it."""
    if t == "int":
        return WIDE.format(n=width)
    low, high = RANGES[t]
    result = "z" if low == 0 else f"x == x ? z : (float{width})(0.0f)"
    return NARROW.format(t=t, n=width, low=low, high=high, result=result)
