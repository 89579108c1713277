"""Cutting programs into stages, and the skeletons that stages make together."""

from collections.abc import Iterable
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Primitive, ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.walk import top_down
from liftpy.language.printing.show import show_static, statics
from liftpy.language.text.program import parse, show, show_expr
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import (
    composed,
    derived_once,
    examples,
    skeleton_named,
    skeletons,
    stage_skeletons,
)
from liftpy.rewrite.cuts import RESULT
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import MOST_OPTIONAL, Partition, other_algorithms
from liftpy.rewrite.stages import FUSED, HELD, STORED
from liftpy.rewrite.strategies.elementwise import recomputes
from liftpy.rewrite.strategy import Step, Success, replay, rule
from liftpy.semantics.evaluate import evaluate
from tests.fuzz.generator import inputs
from tests.fuzz.kinds import MAKERS

TWO = """def two(xs: [6][8]f32, ys: [6]f32) =
  let score = xs |> map(reduce(add, 0)) in zip(score, ys) |> map((a, b) => a * b)"""
CHAIN = """def chain(xs: [6]f32, ys: [6]f32) =
  let one = xs |> map(x => x + 1) in
  let two = one |> map(x => x * 3) in
  zip(two, ys) |> map((a, b) => a - b)"""


def nameless(expr: Expr, bound: tuple[Param, ...] = ()) -> object:
    """An expression without the names of what it binds: equal up to these, if they are equal."""
    match expr:
        case Param():
            places = [k for k, p in enumerate(reversed(bound)) if p == expr]
            return places[0] if places else expr
        case Literal(value, t):
            return "number", str(value), str(t)
        case Tuple(elements):
            return tuple(nameless(e, bound) for e in elements)
        case FunCall(fun, args):
            given = [nameless(a, bound) for a in args]
            match fun:
                case Lambda(params, body):
                    return "let", [p.type for p in params], nameless(body, (*bound, *params)), given
                case ScalarOp() | UserFun():
                    return fun, given
                case Primitive():
                    sizes = [show_static(fun, f.name) for f in statics(type(fun))]
                    inner = None
                    if fun.function is not None:
                        own = fun.function
                        inner = nameless(own.body, (*bound, *own.params))
                    return fun.name, sizes, inner, given
                case _:
                    pass
        case _:
            pass
    raise AssertionError(expr)


def named(text: str, **words: str) -> Partition:
    """The partition of a program with these words."""
    (found,) = [p for p in partitions(parse(text)) if dict(p.words) == words]
    return found


def cut(text: str) -> dict[str, bool]:
    """Every cut of a program, and whether it is optional: the one in which all are stored."""
    most = max(partitions(parse(text)), key=lambda p: len(p.stages))
    optional = dict(most.words)
    return {stage.name: stage.name in optional for stage in most.stages if stage.name != RESULT}


# --- where a program is cut -----------------------------------------------------------------------

CUTS: dict[str, tuple[str, dict[str, bool]]] = {
    "nothing named, no fold": (
        "def p(xs: [6]f32) = xs |> map(x => x + 1)",
        {},
    ),
    "a map that is named": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1) in a |> map(x => x * 3)""",
        {"a": True},
    ),
    "a value that takes no more memory than its constants": (
        """def p(xs: [6]f32, const w: [6][4]f32) =
        let a = w |> map(reduce(add, 0)) in zip(xs, a) |> map((x, a) => x * a)""",
        {"a": False},
    ),
    "a value that takes more memory than its constants": (
        """def p(xs: [6]f32, const w: [6]f32) =
        let a = w |> map(x => w |> map(y => x * y)) in
        zip(xs, a) |> map((x, a) => a |> map(a => x * a))""",
        {"a": True},
    ),
    "a layout that is named is no cut": (
        """def p(xs: [6][5]f32) =
        let a = xs |> transpose in a |> map(reduce(add, 0))""",
        {},
    ),
    "a map of folds that a map of folds reads": (
        """def p(xs: [6][8][4]f32) =
        xs |> map(map(reduce(add, 0))) |> map(reduce(maximum, 0))""",
        {"stage1": True},
    ),
    "a fold that makes the result": (
        "def p(xs: [6]f32) = xs |> map(x => x * x) |> reduce(add, 0)",
        {},
    ),
    "a let in the value of a let": (
        """def p(xs: [6]f32) =
        let a = (let b = xs |> map(x => x + 1) in b |> map(x => x * 3)) in a |> map(x => x - 2)""",
        {"b": True, "a": True},
    ),
    "a let that nothing reads": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1) in xs |> map(x => x - 2)""",
        {},
    ),
    "a name that is there again gets another": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1) in let a = a |> map(x => x * 3) in a |> map(x => x - 2)""",
        {"a": True, "stage1": True},
    ),
    "a parameter's name": (
        """def p(xs: [6]f32) =
        let xs = xs |> map(x => x + 1) in xs |> map(x => x * 3)""",
        {"stage1": True},
    ),
    "the name of the last stage": (
        """def p(xs: [6]f32) =
        let result = xs |> map(x => x + 1) in result |> map(x => x * 3)""",
        {"stage1": True},
    ),
    "maps that are named together": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1), b = xs |> map(x => x * 3) in
        zip(a, b) |> map((x, y) => x + y)""",
        {"a": True, "b": True},
    ),
    "scalars that are named are no cuts": (
        """def p(xs: [6]f32, a: f32) =
        let s = a * 3, t = a + 1 in let u = s / t in xs |> map(x => x * u + s)""",
        {},
    ),
    "a scalar that is named with a map": (
        """def p(xs: [6]f32, a: f32) =
        let s = a * 3, b = xs |> map(x => x + s) in b |> map(x => x * s)""",
        {"b": True},
    ),
    "scalars that are named in another value": (
        """def p(xs: [6]f32, a: f32) =
        let b = (let s = a * 3, t = a + 1 in xs |> map(x => x * s + t)) in b |> map(x => x - 2)""",
        {"b": True},
    ),
    "a tuple of a scalar and an array": (
        """def p(xs: [6]f32, a: f32) =
        let p = (a * 3, xs |> map(x => x + 1)) in p.1 |> map(x => x * p.0)""",
        {"stage1": True},
    ),
    "four that are named together, one of them a layout": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1), b = xs |> map(x => x * 3), c = xs |> split(2) |> join,
            d = xs |> map(x => x - 2) in
        zip(a, b, c, d) |> map((x, y, z, u) => x + y * z - u)""",
        {"a": True, "b": True, "d": True},
    ),
    "five that are named together lose their names": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1), b = xs |> map(x => x * 3), c = xs |> split(2) |> join,
            d = xs |> map(x => x - 2), e = xs |> map(x => x - 3) in
        zip(a, b, c, d, e) |> map((x, y, z, u, v) => x + y * z - u + v)""",
        {"stage1": True, "stage2": True, "stage3": True, "stage4": True},
    ),
    "maps that are named together in the value of a let": (
        """def p(xs: [6]f32) =
        let c = (let a = xs |> map(x => x + 1), b = xs |> map(x => x * 3) in
          zip(a, b) |> map((x, y) => x + y)) in c |> map(x => x - 2)""",
        {"a": True, "b": True, "c": True},
    ),
    "each part of a tuple of arrays": (
        """def p(xs: [6]f32) =
        let p = (xs |> map(x => x + 1), xs |> map(x => x * 3)) in
        zip(p.0, p.1) |> map((x, y) => x + y)""",
        {"stage1": True, "stage2": True},
    ),
    "an array of tuples is one value": (
        """def p(xs: [6]f32) =
        let p = xs |> map(x => (x + 1, x * 3)) in p |> map((x, y) => x + y)""",
        {"p": True},
    ),
    "what is read twice is stored": (
        """def p(xs: [6]f32) =
        let a = xs |> map(x => x + 1) in zip(a, a |> map(x => x * 3)) |> map((x, y) => x + y)""",
        {"a": False},
    ),
    "what a function reads is stored": (
        """def p(xs: [6]f32, ys: [4]f32) =
        let a = xs |> map(x => x + 1) in ys |> map(y => a |> map(x => x * y))""",
        {"a": False},
    ),
    "a number that a function reads is stored": (
        """def p(xs: [6]f32) =
        let s = xs |> reduce(add, 0) in xs |> map(x => x / s)""",
        {"s": False},
    ),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_program_is_cut_where(name: str) -> None:
    text, cuts = CUTS[name]
    assert cut(text) == cuts


def test_each_cut_is_fused_or_stored_the_fewest_stages_first() -> None:
    words = [tuple(dict(p.words).values()) for p in partitions(parse(CHAIN))]
    assert words[0] == (FUSED, FUSED)
    assert words[-1] == (STORED, STORED)
    assert set(words[1:3]) == {(FUSED, STORED), (STORED, FUSED)}
    assert [len(p.stages) for p in partitions(parse(CHAIN))] == [1, 2, 2, 3]


def test_a_stage_names_what_is_fused_into_it() -> None:
    found = named(CHAIN, one=FUSED, two=STORED)
    assert [(s.name, s.within) for s in found.stages] == [
        ("two", (("one", FUSED),)),
        (RESULT, ()),
    ]
    whole = named(CHAIN, one=FUSED, two=FUSED)
    assert [(s.name, s.within) for s in whole.stages] == [
        (RESULT, (("one", FUSED), ("two", FUSED)))
    ]


def test_a_chain_of_scalars_that_doubles_is_stored_in_between() -> None:
    lets = " in ".join(f"let s{k + 1} = s{k} * s{k}" for k in range(20))
    (found,) = partitions(parse(f"def p(xs: [6]f32, s0: f32) = {lets} in xs |> map(x => x * s20)"))
    assert 2 < len(found.stages) < 20


def test_a_loop_over_a_scalar_is_not_repeated_where_its_value_is_read() -> None:
    text = "let y = (x |> iterate(3, v => v * x)) in select(y <= 2, 2, y)"
    found = partitions(parse(f"def p(x: f32) = {text}"))
    assert {len(partition.stages) for partition in found} == {2}


def test_what_is_named_together_is_fused_one_by_one() -> None:
    text = CUTS["maps that are named together"][0]
    words = [tuple(dict(p.words).values()) for p in partitions(parse(text))]
    assert sorted(words) == sorted(product((STORED, FUSED), repeat=2))
    whole = named(text, a=FUSED, b=FUSED)
    assert not any(
        isinstance(e, FunCall) and isinstance(e.fun, Lambda) for _, e in top_down(whole.cut_form)
    )


def test_a_variable_of_a_let_that_another_value_reads_from_outside_is_renamed() -> None:
    """`let a = b, b = a in a - b` exchanges its variables."""
    program = parse("fun sub(x: f32, y: f32) = x - y\ndef p(a: f32, b: f32) = sub(a, b)")
    a, b = program.params
    exchanged = call(Lambda((a, b), program.body.body), b, a)
    result = rule("let_of_two")(exchanged)
    assert isinstance(result, Success)
    assert show_expr(result.expr) == "let a1 = b in let b1 = a in sub(a1, b1)"


def test_a_stages_parameters_are_what_it_reads() -> None:
    found = named(CHAIN, one=STORED, two=STORED)
    assert [[p.name for p in s.program.params] for s in found.stages] == [
        ["xs"],
        ["one"],
        ["ys", "two"],
    ]


def test_what_hangs_on_constants_alone_is_constant() -> None:
    text = """def p(xs: [6]f32, const w: [6]f32) =
      let u = w |> map(x => x * x) in zip(xs, u) |> map((x, y) => x + y)"""
    (made,) = partitions(parse(text))
    first, last = made.stages
    assert first.program.constants == {"w"}
    assert last.program.constants == {"u"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "zip(u, ys, zs) |> map((a, b, c) => a * c)",
            "zip(u, ys, zs) |> map(p => p.0 * p.2)",  # a zip of three is left as it is
        ),
        ("zip(zip(u, ys), zs) |> map(p => p.0.0 * p.1)", "zip(u, zs) |> map(p => p.0 * p.1)"),
        ("zip(zip(ys, u), zs) |> map(p => p.0.1 * p.1)", "zip(u, zs) |> map(p => p.0 * p.1)"),
        ("zip(zs, zip(ys, u)) |> map(p => p.0 - p.1.1)", "zip(zs, u) |> map(p => p.0 - p.1)"),
        (
            "zip(zip(ys, u), zs) |> map(p => let q = p.0 in q.1 - p.1)",
            "zip(u, zs) |> map(p => p.0 - p.1)",
        ),
        (
            "zip(zip(ys, u), zs) |> map(p => let q = p.0 in q.1 - p.1 * q.0)",
            "zip(zip(ys, u), zs) |> map(p => let q = p.0 in q.1 - p.1 * q.0)",
        ),
        ("zip(u, ys) |> map(p => p.0 + 1)", "u |> map(x => x + 1)"),
    ],
)
def test_a_stage_has_no_array_of_a_zip_that_its_map_does_not_read(text: str, read: str) -> None:
    program = parse(f"""def p(xs: [6]f32, ys: [6]f32, zs: [6]f32) =
      let u = xs |> scanSeq((a, x) => a + x, 0) in {text}""")
    found = [p.stages[-1] for p in partitions(program) if len(p.stages) > 1]
    assert found
    assert nameless(found[-1].program.body.body) == nameless(
        parse(f"def p(u: [6]f32, ys: [6]f32, zs: [6]f32) = {read}").body.body
    )


def test_the_result_by_tiles_does_not_read_the_weights_as_given() -> None:
    """They would be allocated during the run, beside the transformed ones."""
    text = """def p(xs: [16][4]f32, const w: [5][3][4]f32, b: [5]f32) =
      xs |> slide(3, 1) |> map(window => zip(w, b) |> map((kernel, bias) =>
        bias + (zip(window |> join, kernel |> join) |> map((x, k) => x * k) |> reduce(add, 0))))"""
    made = other_algorithms(parse(text))
    assert made
    for form in made:
        assert "w" not in {p.name for p in form.stages[-1].program.params}


COUNTED = parse("""def p(xs: [5][7]f32) =
  let counts = 1 |> repeat(5) |> pad(1, 1, 0) |> slide(3, 1) |> map(reduce(add, 0)) in
  let halves = counts |> map(n => n * 0.5) |> slide(2, 1) |> map(reduce(add, 0)) in
  zip(xs, counts, halves |> pad(1, 0, 3)) |> map(t => t.0 |> map(x => x * t.1 - t.2))""")
"""The folds of windows of ones, and folds of these."""


def test_folds_of_no_parameter_are_prepared_and_no_reader_repeats_them() -> None:
    (made,) = partitions(COUNTED)
    assert [(stage.name, stage.runs_once) for stage in made.stages] == [
        ("counts", True),
        ("halves", True),
        ("result", False),
    ]
    assert {s.family for s in stage_skeletons(made, made.stages[0])} == {"plain"}
    (first, *_) = examples(COUNTED)
    module = compile_candidate(first, {p.name: p.low for p in first.parameters})
    assert [k.phase for k in module.launches] == ["prepare", "prepare", "run"]


def test_another_variable_of_the_name_of_a_cut_is_none() -> None:
    """The value of the cut `a` binds an `a` of its own, which is not the cut."""
    text = """def p(x: [6]f32) =
      let a = x |> iterate(2, v => let a = v |> map(e => e * 2) in a |> map(e => e + 1))
      in a |> map(e => e * 3)"""
    assert {p.words for p in partitions(parse(text))} >= {(("a", STORED),)}


def products(name: str) -> Program:
    """Two products of matrices, the first of which is called so."""
    return parse(f"""def p(q: [4][3]f32, w: [6][3]f32, u: [3][6]f32) =
      let {name} = (q |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0))))
      in {name} |> map(a => u |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))""")


@pytest.mark.parametrize("name", ["rows", "v", "family", "result", "`a.b`", "`a; b`", "`a, b`"])
def test_a_cut_whose_name_means_something_else_in_settings_or_keys_has_a_number(name: str) -> None:
    program = products(name)
    words = {p.words for p in partitions(program)}
    assert words == {(("stage1", word),) for word in (FUSED, HELD, STORED)}
    for made in [*examples(program)][::27]:
        names = [n for n, _ in made.choices] + [p.name for p in made.parameters]
        assert len(set(names)) == len(names)
        again = skeleton_named(program, made.key)
        assert again is not None
        assert (again.key, again.words) == (made.key, made.words)


@pytest.mark.parametrize(("name", "cut"), [("a", "a"), ("p0", "p0"), ("p2", "p2"), ("q", "stage1")])
def test_the_settings_of_a_held_value_have_the_name_of_the_cut(name: str, cut: str) -> None:
    """Also where a function, or a parameter of the stage, has a variable of that name."""
    (whole,) = (p for p in partitions(products(name)) if dict(p.words) == {cut: HELD})
    for made in stage_skeletons(whole, whole.stages[0]):
        prefixes = {n.rpartition(".")[0] for n in made.words if "." in n}
        assert prefixes == {cut, RESULT}


# --- what is computed again -----------------------------------------------------------------------


def folded(times: int) -> str:
    """A chain of maps of folds, each over the whole of the one before."""
    text = "def p(xs: [5][5]f32) =\n"
    before = "xs"
    for k in range(times):
        text += f"  let a{k} = {before} |> map(r => xs |> map(c => zip(r, c) |> map(mul)"
        text += " |> reduce(add, 0))) in\n"
        before = f"a{k}"
    return text + f"  {before} |> map(reduce(add, 0))\n"


def test_a_fold_that_its_reader_repeats_is_computed_again() -> None:
    assert recomputes(parse("def p(xs: [5][5]f32) = xs |> map(reduce(add, 0))").body.body) == 0
    inside = "def p(xs: [5][5]f32, ys: [4]f32) = ys |> map(y => xs |> map(reduce(add, y)))"
    assert recomputes(parse(inside).body.body) == 0  # each depends on y
    again = "def p(xs: [5][5]f32, ys: [4]f32) = ys |> map(y => xs |> map(reduce(add, 0)))"
    assert recomputes(parse(again).body.body) == 1


def test_a_stage_computes_one_fused_cut_again_at_most() -> None:
    """Each is computed again by the next; the last one is read row by row."""
    offered = {tuple(word for _, word in p.words) for p in partitions(parse(folded(3)))}
    every = set(product((FUSED, STORED), repeat=3))
    assert every - offered == {(FUSED, FUSED, FUSED), (FUSED, FUSED, STORED)}


def long(count: int) -> str:
    """A chain of maps that are read element by element."""
    lets = [
        f"let a{k} = {f'a{k - 1}' if k else 'xs'} |> map(x => x + {k}) in" for k in range(count)
    ]
    return "\n".join(["def p(xs: [6]f32) =", *lets, f"a{count - 1} |> map(x => x * 3)"])


def test_folds_that_lanes_read_are_stored() -> None:
    text = """def p(xs: [8][6]f32) =
      xs |> map({}) |> asVector(2) |> map(mapVec(x => x * 3)) |> asScalar"""
    folded = parse(text.format("reduce(add, 0)"))
    assert [dict(p.words) for p in partitions(folded)] == [{"stage1": STORED}]
    rows = """def p(xs: [4][8][6]f32) = xs |> map(map(reduce(add, 0)))
      |> map(row => row |> asVector(2) |> map(mapVec(x => x * 3)))"""
    assert {p.words for p in partitions(parse(rows))} == {
        (("stage1", STORED),),
        (("stage1", HELD),),
    }


def test_all_combinations_of_a_few_cuts_are_offered() -> None:
    assert len(partitions(parse(long(MOST_OPTIONAL)))) == 2**MOST_OPTIONAL


def test_of_more_cuts_one_at_most_is_not_as_in_the_default() -> None:
    count = MOST_OPTIONAL + 3
    default, *others = partitions(parse(long(count)))
    assert {word for _, word in default.words} == {FUSED}
    assert len(others) == count
    for other in others:
        assert sum(a != b for a, b in zip(default.words, other.words, strict=True)) == 1


def test_the_default_stores_what_would_be_computed_again() -> None:
    default, *_ = partitions(parse(folded(MOST_OPTIONAL + 1)))
    assert STORED in {word for _, word in default.words}


# --- stages keep the meaning ----------------------------------------------------------------------


def replayed(start: Expr, steps: Iterable[Step]) -> Expr:
    """An expression after some steps."""
    return [start, *(after for _, after in replay(start, steps))][-1]


@pytest.mark.parametrize("name", CUTS)
def test_the_steps_of_a_partition_lead_to_its_form(name: str) -> None:
    for partition in partitions(parse(CUTS[name][0])):
        assert nameless(replayed(partition.program.body.body, partition.steps)) == nameless(
            partition.cut_form
        ), partition.words


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CUTS)
def test_the_steps_of_composed_skeletons_lead_to_their_programs(name: str) -> None:
    """Also where names of the stages' programs, derived once, are not those of the program."""
    for made in examples(parse(CUTS[name][0])):
        result = replayed(made.derivation.start, made.derivation.steps)
        assert nameless(result) == nameless(made.program.body.body), made.key


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CUTS)
def test_a_skeleton_is_found_by_its_key(name: str) -> None:
    program = parse(CUTS[name][0])
    found = [*islice(examples(program), 0, None, 5)]
    assert found
    for made in found:
        again = skeleton_named(program, made.key)
        assert again is not None
        assert (again, again.key) == (made, made.key)
    assert skeleton_named(program, "plain(pad=fused, map=never)") is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CUTS)
def test_the_program_of_a_composed_skeleton_is_read_back_from_its_text(name: str) -> None:
    for made in islice(examples(parse(CUTS[name][0])), 0, None, 3):
        text = show(made.program)  # sizes of stages are in backquotes
        assert nameless(parse(text).body.body) == nameless(made.program.body.body), text


# --- deriving once --------------------------------------------------------------------------------


def test_stages_that_are_equal_but_for_names_are_derived_once() -> None:
    program = parse("""def p(xs: [6][8]f32, ys: [6][8]f32) =
      let one = xs |> map(reduce(add, 0)) in let two = ys |> map(reduce(add, 0)) in
      zip(one, two) |> map((a, b) => a * b)""")
    found = next(p for p in partitions(program) if len(p.stages) == 3)
    one, two, _ = found.stages
    assert one.text == two.text
    derived_once.cache_clear()
    first = [*stage_skeletons(found, one)]
    missed = derived_once.cache_info().misses
    second = [*stage_skeletons(found, two)]
    assert derived_once.cache_info().misses == missed
    assert [s.key for s in first] == [s.key for s in second]
    assert all(p.name.startswith("one.") for s in first for p in s.parameters)
    assert all(p.name.startswith("two.") for s in second for p in s.parameters)
    assert any(s.parameters for s in first)


def test_a_stages_sizes_have_its_name_and_a_programs_do_not() -> None:
    whole = [s for s in skeletons(parse(TWO)) if s.parameters and s.family != "blocked"]
    assert whole
    assert not any("." in p.name for s in whole for p in s.parameters)
    found = named(TWO, score=STORED)
    made = [
        next(s for s in stage_skeletons(found, stage) if s.parameters) for stage in found.stages
    ]
    together = composed(found, made)
    names = [p.name for p in together.parameters]
    assert {name.partition(".")[0] for name in names} == {"score", RESULT}
    assert together.words["score"] == STORED
    assert together.words["score.family"] == made[0].family


# --- random programs ------------------------------------------------------------------------------


@pytest.mark.covering(4)
@pytest.mark.parametrize("start", range(0, 20, 5))
@pytest.mark.parametrize("kind", MAKERS)
def test_random_programs_keep_their_meaning_in_every_partition(kind: str, start: int) -> None:
    """As the steps say, and in numbers."""
    stages = 0
    for seed in range(start, start + 5):
        program = MAKERS[kind](seed)
        right = evaluate(program, *inputs(program).values())
        for partition in partitions(program):
            stages = max(stages, len(partition.stages))
            form = partition.cut_form
            after = replayed(program.body.body, partition.steps)
            assert nameless(after) == nameless(form), (seed, partition.words)
            instead = Program(program.name, Lambda(program.params, form), program.constants)
            equal(right, evaluate(instead, *inputs(program).values()))
    assert stages > (2 if kind == "stages" else 1)


def equal(one: Any, other: Any) -> None:
    """Fails where values, or tuples of them, differ."""
    if isinstance(one, tuple):
        for mine, theirs in zip(one, other, strict=True):
            equal(mine, theirs)
    else:
        np.testing.assert_array_equal(one, other)
