"""The C functions for dot products of 8-bit integers, by whichever instruction a driver offers."""

from __future__ import annotations

import re

from liftpy.opencl.scalars import vector_type
from liftpy.primitives.vector import LANES_OF_A_DOT

DOTS = re.compile(r"\bdot_([iu]8)_([iu]8)\(")
DOT_FEATURE = "__opencl_c_integer_dot_product_input_4x8bit"
"""The macro that a driver with `cl_khr_integer_dot_product` defines for OpenCL C 3.0."""
ARM_DOTS = """\
#ifdef cl_arm_integer_dot_product_int8
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_int8 : enable
#endif
"""
DOT = """\
inline int dot_{t}_{u}({x} x, {y} y) {{
#if defined({feature})
  return (int)dot(x, y);
{arm}#else
  const int4 products = convert_int4(x) * convert_int4(y);
  return products.x + products.y + products.z + products.w;
#endif
}}
"""
OF_ARM = """\
#elif defined(cl_arm_integer_dot_product_int8)
  return (int)arm_dot(x, y);
"""
"""`arm_dot` takes two vectors of the same type."""


SUMS_OF_DOTS = re.compile(r"\bdots_([iu]8)_([iu]8)_(\d+)\(")
BYTE_DOTS = "LIFTPY_BYTE_DOTS"
"""The macro that says how a driver for x86 processors gives their dot products of bytes
(`liftpy.opencl.byte_dots`)."""
LABEL, ASSEMBLY = 1, 2
"""Its values: LLVM's intrinsic by the label of a function, and inline assembly."""
INSTRUCTION = """\
#if {macro} == {label}
typedef char bytes_{n} __attribute__((ext_vector_type({bytes})));
int{n} vpdpbusd_{n}(int{n}, bytes_{n}, bytes_{n}) __asm__("llvm.x86.avx512.vpdpbusd.{bits}");
#endif
"""
OF_LANES = """\
inline int{n} dots_{t}_{u}_{n}(int{n} sum, {x} x, uint{n} w) {{
{instruction}#if defined({feature})
  return as_int{n}(as_uint{n}(sum) + as_uint{n}((int{n})({dots})));
#else
  const uint{n} products = {products};
  return as_int{n}(as_uint{n}(sum) + products);
#endif
}}
"""
BY_INSTRUCTION = """\
#if {macro} == {label}
  return vpdpbusd_{n}(sum, __builtin_astype({one}, bytes_{n}), __builtin_astype({two}, bytes_{n}));
#elif {macro} == {assembly}
  const int{n} one = {one}, two = {two};
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(one), "v"(two));
  return sum;
#endif
"""
"""The instruction multiplies unsigned bytes, `one`, by signed ones, `two`."""


def sums_of_dots_helpers(text: str) -> list[str]:
    """The definitions of the vectors of dot products of integers that a text calls."""
    found = sorted({(t, u, int(n)) for t, u, n in SUMS_OF_DOTS.findall(text)})
    if not found:
        return []
    widths = sorted({n for t, u, n in found if t != u})
    known = {"macro": BYTE_DOTS, "label": LABEL, "assembly": ASSEMBLY}
    declared = [INSTRUCTION.format(n=n, bytes=4 * n, bits=32 * n, **known) for n in widths]
    return [*declared, *(sum_of_dots_helper(t, u, n) for t, u, n in found)]


def sum_of_dots_helper(t: str, u: str, n: int) -> str:
    """The definition of a vector plus a dot product for each lane, of types `t` and `u`."""
    x, w = f"(int{n})(as_int(x))", f"as_int{n}(w)"
    one, two = (x, w) if t == "u8" else (w, x)
    by_instruction = BY_INSTRUCTION.format(
        n=n, one=one, two=two, macro=BYTE_DOTS, label=LABEL, assembly=ASSEMBLY
    )
    lanes = [f"w.s{k:x}" for k in range(n)]
    each = (f"dot(x, as_{vector_type(u, LANES_OF_A_DOT)}({lane}))" for lane in lanes)
    bytes_of = "({} >> 24)" if u == "u8" else f"as_uint{n}(as_int{n}({{}}) >> 24)"
    return OF_LANES.format(
        n=n,
        t=t,
        u=u,
        x=vector_type(t, LANES_OF_A_DOT),
        feature=DOT_FEATURE,
        instruction=by_instruction if t != u else "",
        dots=", ".join(each),
        products=" + ".join(
            f"(uint)x.s{k} * {bytes_of.format(f'(w << {24 - 8 * k})')}"
            for k in range(LANES_OF_A_DOT)
        ),
    )


def dot_helpers(text: str) -> list[str]:
    """The definitions of the dot products of integers that a text calls."""
    found = sorted(set(DOTS.findall(text))) if "dot_" in text else []
    made = [
        DOT.format(
            t=t,
            u=u,
            x=vector_type(t, LANES_OF_A_DOT),
            y=vector_type(u, LANES_OF_A_DOT),
            feature=DOT_FEATURE,
            arm=OF_ARM if t == u else "",
        )
        for t, u in found
    ]
    return [ARM_DOTS, *made] if made else []
