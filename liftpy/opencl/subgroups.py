"""Folds and broadcasts by subgroups as C, on devices with subgroups and without.

On a device without them, each work-item is a subgroup of its own: the code is correct, but folds
by a group are slow.
"""

from __future__ import annotations

import re

from liftpy.ir.operators import OPERATORS
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import INTEGERS, ScalarType
from liftpy.opencl.c import vector_type
from liftpy.primitives.subgroups import SUBGROUP_TYPES

SUBGROUP_IDS = {
    "sgid": "subgroup_id",
    "slid": "subgroup_local_id",
    "sgsz": "subgroup_size",
    "sgct": "subgroup_count",
}
"""The C functions that return the ids, the size and the number of subgroups."""

CALLS = tuple(f"= {name}()" for name in SUBGROUP_IDS.values())
"""How kernels declare these."""

COUNT_CALL = "subgroup_count()"
"""The number of subgroups of a group. Only kernels call it: Mesa crashes if a helper does."""

FOLDS = re.compile(r"\b(subgroups?)_(add|max|min)_([a-z]+)\(")
BROADCASTS = re.compile(r"\bsubgroup_broadcast_([a-z]+)\(")
NAMES = {"+": "add", "max": "max", "min": "min"}
"""The names of the operators in OpenCL's subgroup functions."""

HAS_SUBGROUPS = "HAS_SUBGROUPS"
"""The macro that the build options define for a device with subgroups (`opencl.session`)."""

IDS = f"""\
#ifdef {HAS_SUBGROUPS}
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#ifdef cl_intel_subgroups
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#endif
#define subgroup_id() ((int)get_sub_group_id())
#define subgroup_local_id() ((int)get_sub_group_local_id())
#define subgroup_count() ((int)get_num_sub_groups())
#else
#define subgroup_id() ((int)get_local_id(0))
#define subgroup_local_id() 0
#define subgroup_count() ((int)get_local_size(0))
#endif
"""
FOLD = """\
inline {t} subgroup_{name}_{t}({t} x) {{
#ifdef {has}
  return {reduced};
#else
  return x;
#endif
}}
"""
RESULTS = """\
inline {t} subgroups_{name}_{t}(__local const {t}* results, int count) {{
  {t} folded = results[0];
  for (int k = 1; k < count; k++) {{
    folded = {step};
  }}
  return folded;
}}
"""

SIZE = f"""\
#ifdef {HAS_SUBGROUPS}
/* Mesa's get_sub_group_size() is that of a full subgroup, also in the last one of a group. */
#define subgroup_rest() \\
  ((int)(get_local_size(0) - get_sub_group_id() * get_max_sub_group_size()))
#define subgroup_size() min((int)get_sub_group_size(), subgroup_rest())
#else
#define subgroup_size() 1
#endif
"""
BROADCAST = f"""\
inline {{t}} subgroup_broadcast_{{t}}({{t}} x, int item) {{{{
#ifdef {HAS_SUBGROUPS}
  return sub_group_broadcast(x, item);
#else
  return x;
#endif
}}}}
"""


def subgroup_call(op: str, t: ScalarType) -> str:
    """The function that folds the values of a subgroup."""
    return f"subgroup_{NAMES[op]}_{vector_type(t.name, 1)}"


def results_call(op: str, t: ScalarType) -> str:
    """The function that folds the results of all subgroups."""
    return f"subgroups_{NAMES[op]}_{vector_type(t.name, 1)}"


def broadcast_call(t: ScalarType) -> str:
    """The function that returns one work-item's value to all work-items of its subgroup."""
    return f"subgroup_broadcast_{vector_type(t.name, 1)}"


def subgroup_helpers(text: str) -> list[str]:
    """The definitions of the subgroup functions that a text calls."""
    found = set(FOLDS.findall(text))
    types = {vector_type(t.name, 1): t for t in SUBGROUP_TYPES}
    folds = [
        fold_c(template, op, types[t])
        for op, name in NAMES.items()
        for t in sorted({t for _, called, t in found if called == name})
        for template, kind in ((FOLD, "subgroup"), (RESULTS, "subgroups"))
        if (kind, name, t) in found
    ]
    broadcasts = [BROADCAST.format(t=t) for t in sorted(set(BROADCASTS.findall(text)))]
    if not (folds or broadcasts or any(call in text for call in CALLS)):
        return []
    sizes = [SIZE] if "subgroup_size()" in text else []
    return [IDS, *folds, *sizes, *broadcasts]


def fold_c(template: str, op: str, t: ScalarType) -> str:
    """A function that folds values of a type by an operator; sums of integers wrap around."""
    kind, record = vector_type(t.name, 1), OPERATORS[op]
    whole = t in INTEGERS
    wraps = whole and record.wraps and RECORDS[t.name].signed

    def unsigned(text: str) -> str:
        return f"as_u{kind}({text})" if wraps else text

    def back(text: str) -> str:
        return f"as_{kind}({text})" if wraps else text

    one, two = unsigned("folded"), unsigned("results[k]")
    written = (whole and record.c_integers) or record.c
    step = f"{written}({one}, {two})" if written.isidentifier() else f"{one} {written} {two}"
    reduced = f"sub_group_reduce_{NAMES[op]}({unsigned('x')})"
    return template.format(
        t=kind, name=NAMES[op], has=HAS_SUBGROUPS, reduced=back(reduced), step=back(step)
    )
