"""Storage types as C: conversions, and elements whose size no integer type of C has.

In a variable, a number of a storage type is an unsigned integer that holds its bits. If it has 3,
5, 6 or 7 bytes, arrays are arrays of bytes, and the upper bits of the variable are not defined.
Loads and stores access exactly the bytes of their elements: no buffer needs slack behind its end,
and work-items may store neighbouring elements.
"""

from __future__ import annotations

import re

from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import SCALARS, STORAGE, ScalarType
from liftpy.opencl.c import C, CallC, vector_type

WORDS = {32: "uint", 64: "ulong"}
"""The unsigned integers with as many bits as the base of a storage type."""

# --- conversions --------------------------------------------------------------------------------

CONVERSIONS = re.compile(r"\b(read|stored)_(\w+?)_(\d+)\(")
READ = """\
inline {base} read_{t}_{width}({bits} x) {{ return as_{base}({to_word}(x) << {dropped}); }}
"""
TRUNCATED = """\
inline {bits} stored_{t}_{width}({base} x) {{ return {to_bits}(as_{word}(x) >> {dropped}); }}
"""
NEAREST = """\
inline {bits} stored_{t}_{width}({base} x) {{
  const {word} b = as_{word}(x), kept = b >> {dropped};
  const {word} rounded = (b + ({word})({up}) + (kept & ({word})(1))) >> {dropped};
  return {to_bits}({choice});
}}
"""
HALF = {  # core OpenCL C, also without `cl_khr_fp16`
    "read": """\
inline {base} read_{t}_{width}({bits} x) {{ return vload_half{lanes}(0, (const half*)&x); }}
""",
    "stored": """\
inline {bits} stored_{t}_{width}({base} x) {{
  {bits} bits;
  vstore_half{lanes}_rte(x, 0, (half*)&bits);
  return bits;
}}
""",
}


def storage_helpers(text: str) -> list[str]:
    """The definitions of the conversions, loads and stores of storage types that a text calls."""
    if not any(verb in text for verb in ("read_", "stored_", "load_", "store_")):  # a quick test
        return []
    found = sorted(set(CONVERSIONS.findall(text)))
    made = [conversion(verb, SCALARS[name], int(width)) for verb, name, width in found]
    moves = sorted(set(MOVES.findall(text)))
    return [*made, *(MOVED[verb](name, space, int(width)) for verb, name, space, width in moves)]


def conversion(verb: str, t: ScalarType, width: int) -> str:
    """The definition of one conversion."""
    record, base = RECORDS[t.name], RECORDS[STORAGE[t].name]
    lanes = "" if width == 1 else str(width)
    word, bits = f"{WORDS[base.bits]}{lanes}", f"{record.c}{lanes}"
    quiet = f"kept | ({word})({record.quiet})"
    choice = f"select(rounded, {quiet}, isnan(x))" if lanes else f"isnan(x) ? {quiet} : rounded"
    form = READ if verb == "read" else NEAREST if record.nearest else TRUNCATED
    return (HALF[verb] if record.packed else form).format(
        t=t,
        width=width,
        lanes=lanes,
        base=vector_type(base.name, width),
        bits=bits,
        word=word,
        # Intel's compiler crashed on `convert_uint` of one lane in a loop that it vectorized
        to_word=f"convert_{word}" if lanes else f"({word})",
        to_bits=f"convert_{bits}" if lanes else f"({bits})",
        dropped=base.bits - record.bits,
        up=(1 << (base.bits - record.bits - 1)) - 1,
        choice=choice,
    )


# --- elements of bytes --------------------------------------------------------------------------

MOVES = re.compile(r"\b(load|store)_(\w+?)_(global|local)_(\d+)\(")
BLOCK = 16
"""The bytes of the longest vector."""


DIGITS = "0123456789abcdef"
"""The names of the lanes of a vector."""


def is_split(t: ScalarType) -> bool:
    """Whether an array of a type is an array of bytes in C."""
    return not RECORDS[t.name].is_whole


def element_c(t: ScalarType) -> str:
    """The C type of the elements of an array of a type."""
    return "uchar" if is_split(t) else RECORDS[t.name].c


def units(t: ScalarType) -> int:
    """The elements of C's array for one element of a type."""
    return RECORDS[t.name].bytes if is_split(t) else 1


def loaded(t: ScalarType, space: str, width: int, pointer: C) -> C:
    """A load of consecutive elements of bytes."""
    return CallC(f"load_{t}_{space}_{width}", (pointer,))


def kept(t: ScalarType, space: str, width: int, value: C, pointer: C) -> C:
    """A store of consecutive elements of bytes."""
    return CallC(f"store_{t}_{space}_{width}", (value, pointer))


def shape(name: str, width: int) -> tuple[int, int, int]:
    """The bytes of an element in memory and in a variable, and the lanes in a vector of bytes."""
    record = RECORDS[name]
    word = {"uint": 4, "ulong": 8}[record.c]
    return record.bytes, word, min(width, BLOCK // word)


def load_helper(name: str, space: str, width: int) -> str:
    """The definition of a load: a shuffle moves bytes of vectors to the lanes of their elements.

    A vector of bytes begins at its first element, or earlier, so that it does not end after the
    last one.
    """
    size, word, lanes = shape(name, width)
    kind = vector_type(name, width)
    head = f"inline {kind} load_{name}_{space}_{width}(__{space} const uchar* p) {{\n  return "
    if width == 1:
        return head + " | ".join(f"({kind})p[{k}] << {8 * k}" for k in range(size)) + ";\n}\n"
    total = width * size
    block = max(n for n in (2, 4, 8, BLOCK) if n <= total)
    parts: list[str] = []
    for start in range(0, total, lanes * size):
        first, last = min(start, total - block), start + lanes * size - block
        begins = [first] if last <= first else [first, last]
        places: list[int] = []
        for lane in range(lanes):
            for byte in range(word):
                at = start + lane * size + min(byte, size - 1)  # the upper bytes are not defined
                vector = next(k for k, b in enumerate(begins) if b <= at < b + block)
                places.append(vector * block + at - begins[vector])
        vectors = ", ".join(f"vload{block}(0, p + {begin})" for begin in begins)
        mask = f"(uchar{len(places)})({', '.join(map(str, places))})"
        verb = "shuffle" if len(begins) == 1 else "shuffle2"
        parts.append(f"as_{vector_type(name, lanes)}({verb}({vectors}, {mask}))")
    return f"{head}({kind})({', '.join(parts)});\n}}\n"


def store_helper(name: str, space: str, width: int) -> str:
    """The definition of a store: a shuffle moves the bytes of elements together."""
    size, word, lanes = shape(name, width)
    kind = vector_type(name, width)
    lines = [f"inline void store_{name}_{space}_{width}({kind} x, __{space} uchar* p) {{"]
    if width == 1:
        lines += [f"  p[{k}] = (uchar)(x >> {8 * k});" for k in range(size)]
        return "\n".join([*lines, "}\n"])
    for first in range(0, width, lanes):
        part = "x" if lanes == width else f"x.s{DIGITS[first : first + lanes]}"
        places = [lane * word + byte for lane in range(lanes) for byte in range(size)]
        at = 0
        while at < len(places):
            block = max(n for n in (2, 4, 8, BLOCK) if n <= len(places) - at)
            mask = f"(uchar{block})({', '.join(map(str, places[at : at + block]))})"
            packed = f"shuffle(as_uchar{lanes * word}({part}), {mask})"
            lines.append(f"  vstore{block}({packed}, 0, p + {first * size + at});")
            at += block
    return "\n".join([*lines, "}\n"])


MOVED = {"load": load_helper, "store": store_helper}
