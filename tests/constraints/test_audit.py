"""Whoever can refuse a candidate has a clause for it, or a reason for having none."""

from dataclasses import fields, replace

import pytest

from liftpy.constraints.audit import DEVICE, FORMS, Asks, Silent, asked_by_rule
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.system import MEMORY_LIMIT
from liftpy.ir.types import F32
from liftpy.ir.walk import top_down
from liftpy.language.embedded.lang import (
    add,
    array_type,
    as_image,
    as_scalar,
    as_vector,
    exclusive_scan_seq,
    generate,
    iterate_seq,
    join,
    map,
    map_glb,
    map_host,
    map_item,
    map_lcl,
    map_seq,
    map_seq_ahead,
    map_seq_unroll,
    map_subgroup,
    map_vec,
    map_wrg,
    program,
    reduce_by_index_atomic,
    reduce_by_index_seq,
    reduce_in_place,
    reduce_items,
    reduce_seq,
    reduce_seq_unroll,
    reduce_subgroups,
    reduce_vec,
    scan_seq,
    slide_seq,
    split,
    to_global,
    to_local,
    to_local_padded,
    to_private,
    to_streamed,
    to_subgroup,
    zip,
)
from liftpy.primitives import (
    PRIMITIVES,
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
    parallel,
)
from liftpy.primitives import lowered as forms
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.skeleton import Parameter
from liftpy.semantics.contract import general
from tests.constraints.skeletons import by_hand

N = Parameter("n", 1, 4096, "elements")
ROWS = array_type(F32, 64, N.nat)
TINY = replace(
    DEFAULT_DEVICE,
    max_work_group_size=2,
    max_work_item_sizes=(2, 2, 2),
    local_memory=8,
    largest_buffer=8,
    global_memory=8,
    private_memory=8,
)
"""A device whose every limit some size of `n` breaks."""
BUFFERS = ("device largest buffer", "device global memory", MEMORY_LIMIT)

twice = lambda x: x + x
rows = lambda f: lambda xs: xs >> map_glb(0, f)
added = lambda acc, row: zip(acc, row) >> map_seq(lambda x, y: x + y)


def divided_by_total(row):
    """A row divided by a sum that subgroups fold."""
    total = row >> map_lcl(0, twice) >> reduce_subgroups(add, 0.0)
    return row >> map_lcl(0, lambda x: x / total)


def summed_by_items(row):
    """Products of a row and a column that subgroups hold, by each work-item of a group of eight."""
    held, column = to_subgroup(row), to_subgroup(row >> split(1)) >> join
    return generate(8, lambda i: i) >> map_lcl(
        0, lambda i: zip(held, column) >> reduce_seq(lambda total, p: total + p[0] * p[1], 0.0)
    )


def summed_by_subgroup(row):
    """A row and its sum by the work-items of a subgroup."""
    total = row >> map_item(twice) >> reduce_items(add, 0.0)
    return row >> map_item(lambda x: x + total)


BODIES = {
    MapSeq: rows(map_seq(twice)),
    MapSeqUnroll: rows(map_seq_unroll(twice)),
    MapSeqAhead: rows(map_seq_ahead(twice)),
    MapHost: lambda xs: xs >> map_host(lambda x: x >> map_glb(0, twice)),
    MapGlb: rows(map_glb(1, twice)),
    MapWrg: lambda xs: xs >> map_wrg(0, map_wrg(1, lambda x: x + x)),
    MapLcl: lambda xs: xs >> map_wrg(0, map_lcl(0, twice)),
    MapVec: rows(lambda row: row >> as_vector(4) >> map_seq(map_vec(twice)) >> as_scalar()),
    MapSubgroup: lambda xs: xs >> split(1) >> map_wrg(0, map_subgroup(8, map_item(twice))),
    MapItem: lambda xs: xs >> split(1) >> map_wrg(0, map_subgroup(8, map_item(twice))),
    ReduceSubgroups: lambda xs: xs >> map_wrg(0, divided_by_total),
    ReduceItems: lambda xs: xs >> split(1) >> map_wrg(0, map_subgroup(8, summed_by_subgroup)),
    ReduceVec: rows(lambda row: row >> as_vector(4) >> map_seq(reduce_vec(add, 0.0))),
    ToGlobal: lambda xs: to_global(xs >> map_glb(0, map_seq(twice))) >> map_glb(0, map_seq(twice)),
    ToStreamed: lambda xs: (
        to_streamed(xs >> map_glb(0, map_seq(twice))) >> map_glb(0, map_seq(twice))
    ),
    ToLocal: lambda xs: (
        xs >> map_wrg(0, lambda row: to_local(row >> map_lcl(0, twice)) >> map_lcl(0, twice))
    ),
    ToLocalPadded: lambda xs: (
        xs
        >> map_wrg(
            0, lambda row: row >> map_lcl(0, twice) >> to_local_padded(1) >> map_lcl(0, twice)
        )
    ),
    ToPrivate: rows(lambda row: to_private(row >> map_seq(twice)) >> map_seq(twice)),
    ToSubgroup: lambda xs: xs >> map_wrg(0, summed_by_items),
    IterateSeq: rows(lambda row: row >> iterate_seq(3, map_seq(twice))),
    AsImage: lambda xs: xs >> as_image() >> map_glb(0, map_seq(twice)),
    ReduceByIndexAtomic: lambda _: (
        generate(N.nat, lambda i: (i, i))
        >> map_glb(0, lambda pair: pair)
        >> reduce_by_index_atomic(add, 0, bins=4)
    ),
    ReduceByIndexSeq: rows(
        lambda row: row >> map(lambda x: (0, x)) >> reduce_by_index_seq(add, 0.0, bins=4)
    ),
}


FOLDS = {
    ReduceSeq: reduce_seq,
    ReduceSeqUnroll: reduce_seq_unroll,
    ReduceInPlace: reduce_in_place,
    ScanSeq: scan_seq,
    ExclusiveScanSeq: exclusive_scan_seq,
}


def example(form):
    """A program in which the form handles `n` elements, and the buffers do too."""
    if form in FOLDS:
        fold = FOLDS[form]

        @program
        def folded(zero: array_type(F32, N.nat), xs: array_type(F32, 64, 7, N.nat)):
            return xs >> map_glb(0, lambda block: block >> fold(added, zero))

        return by_hand(folded, N)
    if form is SlideSeq:

        @program
        def slid(xs: array_type(F32, 64, 4096)):
            total = lambda window: window >> reduce_seq(add, 0.0)
            return xs >> map_glb(0, lambda row: row >> slide_seq(N.nat, 1, total))

        return by_hand(slid, N)
    body = BODIES[form]

    @program
    def made(xs: ROWS):
        return body(xs)

    return by_hand(made, N)


def askers(skeleton, device=TINY):
    """Who asks something that depends on a size, or that is broken whatever the sizes are."""
    return {a for c in collect(skeleton, device, memory_limit=8).clauses for a in c.askers}


ROOMS = {forms.__name__, parallel.__name__}
LOWERED = [p for p in PRIMITIVES.values() if p.__module__ in ROOMS]


def test_every_lowered_form_has_its_word():
    assert set(FORMS) == set(LOWERED)
    assert set(BODIES) | set(FOLDS) | {SlideSeq} == set(LOWERED)


@pytest.mark.parametrize("form", LOWERED, ids=lambda p: p.name)
def test_a_form_asks_what_it_says_and_no_more(form):
    skeleton = example(form)
    limits = {
        a
        for a in askers(skeleton)
        if a.startswith(("device", "private", "code", MEMORY_LIMIT)) and not a.startswith(BUFFERS)
    }
    word = FORMS[form]
    if isinstance(word, Silent):
        assert word.because
        assert not limits
        return
    found = askers(skeleton)
    for by in word.by:
        assert any(a.startswith(by) for a in found), (by, found)
    there = {type(e.fun) for _, e in top_down(skeleton.program.body.body) if hasattr(e, "fun")}
    words = [w for f, w in FORMS.items() if f in there and isinstance(w, Asks)]
    assert all(a.startswith(tuple(by for w in words for by in w.by)) for a in limits)


def test_every_fact_of_a_device_has_its_word():
    assert set(DEVICE) == {f.name for f in fields(Device)}


OTHER = {
    "type": "CPU",
    "opencl_c": "OpenCL C 3.0",
    "compute_units": 99,
    "vector_width": 16,
    "ordinal": 3,
    "extensions": (),
    "max_work_item_sizes": (3, 2, 2),
}
"""Another value of each fact; where none is given, one more, or another word."""


@pytest.mark.parametrize("fact", DEVICE)
def test_a_fact_of_a_device_asks_what_it_says(fact):
    now = getattr(TINY, fact)
    other = OTHER.get(fact, now + 1 if isinstance(now, int) else "other")
    assert other != now
    changed = replace(TINY, **{fact: other})
    differ = set()
    for form in LOWERED:
        before = {(c.constraint, a) for c in collect(example(form), TINY).clauses for a in c.askers}
        after = {
            (c.constraint, a) for c in collect(example(form), changed).clauses for a in c.askers
        }
        differ |= {a for _, a in before ^ after}
    word = DEVICE[fact]
    if isinstance(word, Silent):
        assert word.because
        assert not differ
    else:
        assert differ
        assert all(a.startswith(word.by) for a in differ)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_has_conditions_or_says_why_not(name):
    """`tests/contracts` proves that each is needed and that no other is."""
    primitive, params = general(PRIMITIVES[name])
    conditions = tuple(primitive.requires(*(p.type for p in params)))
    assert bool(conditions) != bool(primitive.unconditional)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_conditions_or_a_proof_without(name):
    rule = RULES[name]
    word = asked_by_rule(rule)
    assert isinstance(word, Asks) == bool(rule.where)


def test_all_are_counted():
    """Changes with every primitive, rule, form and fact: each was looked at."""
    silent = [w for w in (*FORMS.values(), *DEVICE.values()) if isinstance(w, Silent)]
    assert len(FORMS) + len(DEVICE) - len(silent) == 26
    assert all(w.because for w in silent)
    asking = sum(isinstance(asked_by_rule(r), Asks) for r in RULES.values())
    assert 0 < asking < len(RULES)
