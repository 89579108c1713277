"""Scalar operators as C, on scalars and on vectors.

A truth value is 0 or 1: an `int` in a scalar expression, a `uchar` in memory and in vectors.
`ir.primitive.ScalarOp` decides what C leaves open: integers are added and multiplied as unsigned
numbers, which wrap around, and divided by a helper unless the divisor is a harmless constant. The
count of a shift is reduced to the number of bits, which C does for the promoted type only.
"""

from __future__ import annotations

import math
import re

from liftpy.ir.operators import COMPARISONS, OPERATORS, SHIFTS
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.scalars import stored_bits
from liftpy.ir.types import (
    BOOL,
    F32,
    FLOATS,
    INTEGERS,
    SCALAR_BYTES,
    SCALARS,
    STORAGE,
    ScalarType,
    integer_range,
)
from liftpy.loops.values import (
    Const,
    Operate,
    Value,
)
from liftpy.opencl.c import C, CallC, Infix, Prefix, Ternary, Text, vector_type
from liftpy.opencl.saturation import SATURATING

#: The binary operators on numbers that C writes as infix operators.
INFIX = frozenset(
    name
    for name, record in OPERATORS.items()
    if record.arity == 2 and record.operands != "bools" and not record.c.isidentifier()
)
#: The functions of OpenCL C 1.2 that apply an operator to a number in memory atomically.
ATOMIC = {
    "+": "atomic_add",
    "min": "atomic_min",
    "max": "atomic_max",
    "bitAnd": "atomic_and",
    "bitOr": "atomic_or",
    "bitXor": "atomic_xor",
}
MASKS = {1: "char", 2: "short", 4: "int", 8: "long"}


def literal_c(value: float, t: ScalarType) -> C:
    """A constant."""
    if t == BOOL:
        return Text(str(int(value)))
    if t in INTEGERS:
        return Text(whole_c(int(value), t))
    if t in STORAGE:
        return Text(f"({RECORDS[t.name].c}){stored_bits(value, t):#x}")
    if math.isnan(value):
        return constant_of("NAN", t)
    if math.isinf(value):
        return constant_of("INFINITY" if value > 0 else "(-INFINITY)", t)
    text = repr(float(value)) + RECORDS[t.name].suffix
    return Text(text if math.copysign(1, value) > 0 else f"({text})")


def constant_of(name: str, t: ScalarType) -> C:
    """One of C's float constants, which are f32, in a given type."""
    return Text(name if t.name == "f32" else f"({vector_type(t.name, 1)}){name}")


def whole_c(value: int, t: ScalarType) -> str:
    """An integer literal of a type; C has no negative ones, and none shorter than an `int`."""
    record = RECORDS[t.name]
    lowest = record.signed and value == integer_range(t)[0]
    text = f"{value + lowest}{record.suffix}" + (" - 1" if lowest else "")
    text = text if value >= 0 else f"({text})"
    return f"({record.c}){text}" if is_narrow(t) else text


def is_narrow(t: ScalarType) -> bool:
    """Whether C promotes the integers of a type to `int`."""
    return t in INTEGERS and RECORDS[t.name].bits < RECORDS["i32"].bits


def operator_c(op: str, args: list[C], values: tuple[Value, ...], width: int = 1) -> C:
    """An operator applied to operands that are given as C, on `width` lanes."""
    t = values[-1].type
    if op in SCALARS:
        return convert(args[0], t, SCALARS[op], width)
    if op == "select":
        return Ternary(condition(args[0], values[0], t, width), args[1], args[2])
    record = OPERATORS[op]
    if record.operands == "bools":
        return logical(op, args, width)
    if op in COMPARISONS:
        return truth(Infix(record.c, *args), width)
    if op in SHIFTS:
        args = [args[0], counted(args[1], values[1], t, width)]
    if t in INTEGERS and record.wraps:
        return wrapped(op, args, t, width)
    if op in {"/", "%"} and t in INTEGERS:
        return divided(op, args, values[1], t, width)
    if op == "abs" and t in INTEGERS:  # OpenCL's abs returns an unsigned integer
        if not RECORDS[t.name].signed:
            return args[0]
        args, record = [args[0], wrapped("neg", args, t, width)], OPERATORS["max"]
    written = (t in INTEGERS and record.c_integers) or record.c
    if not written.isidentifier():
        plain = Infix(written, *args) if len(args) > 1 else Prefix(written, args[0])
        promoted = record.operands == "integers" and is_narrow(t) and width == 1
        return CallC(f"({vector_type(t.name, 1)})", (plain,)) if promoted else plain
    if is_narrow(t) and width == 1:  # in C, a choice between short integers is an int
        args = [
            CallC(f"({vector_type(t.name, 1)})", (a,)) if isinstance(a, Ternary) else a
            for a in args
        ]
    return CallC(written, tuple(args))


def wrapped(op: str, args: list[C], t: ScalarType, width: int) -> C:
    """An operator on integers whose result wraps around.

    It is computed in unsigned integers, for one lane of 16 bits in `uint`: `int`, to which C would
    promote them, does not hold all products, nor 8-bit numbers that are shifted several times.
    """
    signed = vector_type(t.name, width)
    unsigned = signed if not RECORDS[t.name].signed else f"u{signed}"
    if width == 1 and is_narrow(t) and (RECORDS[t.name].bits == 16 or op in SHIFTS):
        unsigned = "uint"
    if unsigned == signed and not (is_narrow(t) and width == 1):
        return of_unsigned(op, args, unsigned)
    cast, back = (
        (f"({unsigned})", f"({signed})") if width == 1 else (f"as_{unsigned}", f"as_{signed}")
    )

    def bits(c: C) -> C:
        if isinstance(c, CallC) and c.function == back and isinstance(c.args[0], Infix):
            return c.args[0]  # made here, of unsigned numbers
        return CallC(cast, (c,))

    return CallC(back, (of_unsigned(op, [*map(bits, args)], unsigned),))


def of_unsigned(op: str, args: list[C], unsigned: str) -> C:
    """An operator on unsigned numbers, of which C has no negation."""
    if op == "neg":
        return Infix("-", Text(f"({unsigned})0"), args[0])
    return Infix(OPERATORS[op].c, *args) if len(args) > 1 else Prefix(OPERATORS[op].c, args[0])


def counted(count: C, value: Value, t: ScalarType, width: int) -> C:
    """The count of a shift, modulo the number of bits of its type."""
    last = RECORDS[t.name].bits - 1
    if isinstance(value, Const) and 0 <= value.value <= last:
        return count
    mask = literal_c(last, t)
    if width > 1:
        mask = CallC(f"({vector_type(t.name, width)})", (mask,))
    return Infix("&", count, mask)


def divided(op: str, args: list[C], divisor: Value, t: ScalarType, width: int) -> C:
    """A quotient or a remainder of integers."""
    kind = vector_type(t.name, width)
    if isinstance(divisor, Const) and divisor.value not in {0, -1}:
        plain = Infix(OPERATORS[op].c_integers or OPERATORS[op].c, *args)
        return CallC(f"({kind})", (plain,)) if is_narrow(t) and width == 1 else plain
    return CallC(f"{'quotient' if op == '/' else 'rest'}_{kind}", tuple(args))


def truth(comparison: C, width: int) -> C:
    """A comparison as truth values; a comparison of vectors is a mask of 0 and -1."""
    if width == 1:
        return comparison
    kind = vector_type(BOOL.name, width)
    return Infix("&", CallC(f"convert_{kind}", (comparison,)), CallC(f"({kind})", (Text("1"),)))


def logical(op: str, args: list[C], width: int) -> C:
    """`and`, `or`, `not`."""
    record = OPERATORS[op]
    if width == 1:
        return Infix(record.c, *args) if len(args) > 1 else Prefix(record.c, args[0])
    true = CallC(f"({vector_type(BOOL.name, width)})", (Text("1"),))
    return Infix(record.c_vectors, args[0], *(args[1:] or [true]))


def condition(c: C, value: Value, t: ScalarType, width: int) -> C:
    """A truth value as the condition of a choice between values of type `t`.

    Vectors need a mask with lanes as wide as the values'. A comparison of such lanes is one.
    """
    is_vector = not (isinstance(value, Const) or width == 1)
    if not is_vector:
        return c
    if (
        isinstance(value, Operate)
        and value.op in COMPARISONS
        and SCALAR_BYTES[value.parts[0].type.name] == SCALAR_BYTES[t.name]
        and isinstance(c, Infix)
        and isinstance(c.left, CallC)
    ):
        return c.left.args[0]
    mask = f"{MASKS[SCALAR_BYTES[t.name]]}{width}"
    return Infix("!=", CallC(f"convert_{mask}", (c,)), CallC(f"({mask})", (Text("0"),)))


def convert(c: C, given: ScalarType, wanted: ScalarType, width: int) -> C:
    """A conversion; see `ir.primitive.ScalarOp`."""
    kind = vector_type(wanted.name, width)
    if given == wanted:
        return c
    if wanted == BOOL:
        zero = literal_c(0, given)
        other = zero if width == 1 else CallC(f"({vector_type(given.name, width)})", (zero,))
        return truth(Infix("!=", c, other), width)
    if given == F32 and wanted in SATURATING:
        return CallC(f"saturated_{kind}", (c,))
    if wanted in INTEGERS and given in FLOATS:
        if not RECORDS[wanted.name].signed:  # Intel's compiler makes the largest number of NaN
            c = CallC("fmax", (c, literal_c(0, given)))
        return CallC(f"convert_{kind}_sat_rtz", (c,))
    if given in STORAGE or wanted in STORAGE:
        stored, verb = (given, "read") if given in STORAGE else (wanted, "stored")
        return CallC(f"{verb}_{stored}_{width}", (c,))
    return CallC(f"convert_{kind}", (c,))


# --- division -----------------------------------------------------------------------------------

DIVISIONS = re.compile(r"\b(?:quotient|rest)_(u?(?:char|short|int|long)\d*)\(")
HELPER = """\
inline {t} quotient_{t}({t} a, {t} b) {{
  const {t} divisor = (b == ({t})(0)) || (b == ({t})(-1)) ? ({t})(1) : b;
  const {t} minus = as_{t}((u{t})((u{t})(0) - as_u{t}(a)));
  return b == ({t})(0) ? ({t})(0) : (b == ({t})(-1) ? minus : ({t})(a / divisor));
}}
inline {t} rest_{t}({t} a, {t} b) {{
  const {t} divisor = (b == ({t})(0)) || (b == ({t})(-1)) ? ({t})(1) : b;
  return b == ({t})(0) ? a : ({t})(a % divisor);
}}
"""
UNSIGNED_HELPER = """\
inline {t} quotient_{t}({t} a, {t} b) {{
  const {t} divisor = b == ({t})(0) ? ({t})(1) : b;
  return b == ({t})(0) ? ({t})(0) : ({t})(a / divisor);
}}
inline {t} rest_{t}({t} a, {t} b) {{
  const {t} divisor = b == ({t})(0) ? ({t})(1) : b;
  return b == ({t})(0) ? a : ({t})(a % divisor);
}}
"""


def division_helpers(text: str) -> list[str]:
    """The definitions of the division helpers that a text calls."""
    if "quotient_" not in text and "rest_" not in text:  # a quick test
        return []
    found = sorted(set(DIVISIONS.findall(text)))
    return [(UNSIGNED_HELPER if t.startswith("u") else HELPER).format(t=t) for t in found]


# --- stores past the caches ---------------------------------------------------------------------

STREAMS = re.compile(r"\bstream_([a-z]+)(\d+)\(")
STREAMING = """\
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define HAS_STREAMED
#endif
#endif
"""
STREAM = """\
inline void stream_{t}{width}({t}{width} value, __global {t}* place) {{
#ifdef HAS_STREAMED
  __builtin_nontemporal_store(value, (__global {t}{width}*)place);
#else
  vstore{width}(value, 0, place);
#endif
}}
"""


def stream_helpers(text: str) -> list[str]:
    """The definitions of the streamed stores that a text calls."""
    kinds = sorted(set(STREAMS.findall(text))) if "stream_" in text else []
    return [STREAMING, *(STREAM.format(t=t, width=width) for t, width in kinds)] if kinds else []


# --- prefetch hints -----------------------------------------------------------------------------

FETCHES = re.compile(r"\bfetch_([a-z]+)\(")
FETCHING = """\
#ifdef __has_builtin
#if __has_builtin(__builtin_prefetch) && !defined(__NV_CL_C_VERSION)
#if defined(__SPIR32__) || defined(__SPIR64__) || defined(__SPIRV32__) || defined(__SPIRV64__)
#define IS_SPIR
#endif
#if defined(__SPIR__) || !defined(IS_SPIR)
#define HAS_FETCH
#endif
#endif
#endif
"""
"""Mesa compiles for SPIR (from version 25 on for SPIR-V) without defining `__SPIR__`, and its
translator to SPIR-V terminates the process at Clang's hint. Intel's runtime, which also compiles
for SPIR but defines `__SPIR__`, has no such translator. NVIDIA's compiler has the hint but refuses
its argument, which is in another address space there."""
FETCH = """\
inline void fetch_{t}(__global const {t}* place) {{
#ifdef HAS_FETCH
  __builtin_prefetch((const void*)(size_t)place);
#endif
}}
"""


def fetch_helpers(text: str) -> list[str]:
    """The definitions of the prefetch hints that a text calls."""
    kinds = sorted(set(FETCHES.findall(text))) if "fetch_" in text else []
    return [FETCHING, *(FETCH.format(t=t) for t in kinds)] if kinds else []
