"""ELEVATE's combinators: each does what its law says, and a failure tells its reason."""

import json

import numpy as np
import pytest

from liftpy.compile import compile_to_kernel
from liftpy.errors import RuleRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Literal, Param
from liftpy.ir.nat import var
from liftpy.ir.walk import at, top_down_from
from liftpy.ir.walk import top_down as parts
from liftpy.language.text.program import parse, show_expr
from liftpy.primitives import Map, Reduce, Split
from liftpy.rewrite import strategy as st
from liftpy.rewrite.strategy import Failure, Success, rule
from tests.fuzz.generator import make

TEXT = "def p(xs: [12]f32) = xs |> map(x => x + 1) |> map(x => x * 2) |> reduce(add, 5)"
PROGRAM = parse(TEXT)
SUM = PROGRAM.body.body
MAPS = SUM.args[1]
XSS = parse("def p(xss: [6][4]f32) = xss |> map(map(x => x + 1)) |> map(map(x => x * 2))").body.body


def is_map(expr):
    return isinstance(expr, FunCall) and isinstance(expr.fun, Map)


def is_literal(expr):
    return isinstance(expr, Literal)


def bigger(expr):
    """A strategy in plain Python: a literal plus one. It is no rule, so it leaves no step."""
    if not is_literal(expr):
        return Failure("bigger", "no literal here")
    return Success(Literal(expr.value + 1, expr.type))


def literals(expr):
    return [part.value for _, part in parts(expr) if is_literal(part)]


def after(strategy, expr=SUM):
    """The literals of what a strategy makes: 5 is in the reduction, 1 and 2 in the maps."""
    result = strategy(expr)
    assert isinstance(result, Success), result
    return literals(result.expr)


def reason(strategy, expr=SUM):
    result = strategy(expr)
    assert isinstance(result, Failure)
    return str(result)


def rules(strategy, expr=SUM):
    result = strategy(expr)
    assert isinstance(result, Success), result
    return [step.rule for step in result.steps]


def test_the_literals_that_the_tests_below_count():
    assert literals(SUM) == [5, 1, 2]


# --- on one expression ---------------------------------------------------------------------------


def test_identity_and_fail():
    assert st.identity(SUM) == Success(SUM)
    assert reason(st.fail("not today")) == "fail: not today"


def test_seq_stops_at_the_first_failure():
    assert (
        rules(st.seq(rule("reduce_map_fusion"), rule("reduce_map_fusion")))
        == ["reduce_map_fusion"] * 2
    )
    assert (
        reason(st.seq(rule("reduce_map_fusion"), rule("map_fusion"))) == "map_fusion: no map here"
    )


def test_choose_takes_the_first_and_tells_all_reasons():
    assert rules(st.choose(rule("map_fusion"), rule("reduce_map_fusion"))) == ["reduce_map_fusion"]
    both = reason(st.choose(rule("map_fusion"), bigger))
    assert both == "choose: map_fusion: no map here; bigger: no literal here"


def test_attempt_never_fails():
    assert st.attempt(rule("map_fusion"))(SUM) == Success(SUM)
    assert rules(st.attempt(rule("reduce_map_fusion"))) == ["reduce_map_fusion"]


def test_repeat_goes_on_until_failure():
    assert rules(st.repeat(rule("reduce_map_fusion"))) == ["reduce_map_fusion"] * 2
    assert rules(st.repeat(rule("map_fusion"))) == []


def test_repeat_n_fails_where_it_cannot_go_on():
    assert rules(st.repeat_n(2, rule("reduce_map_fusion"))) == ["reduce_map_fusion"] * 2
    assert "reduce_map_fusion" in reason(st.repeat_n(3, rule("reduce_map_fusion")))
    assert st.repeat_n(0, rule("map_fusion"))(SUM) == Success(SUM)


def test_repeat_names_the_rules_that_go_round():
    swap = st.seq(st.argument(rule("transpose_introduction")), st.argument(rule("transpose_twice")))
    with pytest.raises(RuleRefused, match="by: transpose_introduction > transpose_twice"):
        st.repeat(swap)(XSS)


def test_repeat_of_what_changes_nothing_is_refused():
    with pytest.raises(RuleRefused, match="without a change"):
        st.repeat(st.attempt(rule("map_fusion")))(SUM)


def test_repeat_without_a_cycle_ends_when_fuel_does():
    with pytest.raises(RuleRefused, match=r"after 9 steps.*map_copy, map_copy"):
        st.repeat(rule("map_copy"), fuel=9)(MAPS)


def test_conditions():
    assert rules(st.where(is_map, rule("map_fusion")), MAPS) == ["map_fusion"]
    assert isinstance(st.where(is_map, st.identity)(SUM), Failure)
    assert st.satisfies(is_map)(MAPS) == Success(MAPS)
    assert "applies" in reason(st.not_(rule("map_fusion")), MAPS)
    assert st.not_(rule("map_fusion"))(SUM) == Success(SUM)
    assert rules(st.if_then_else(rule("map_fusion"), st.identity, rule("reduce_map_fusion"))) == [
        "reduce_map_fusion"
    ]
    assert st.if_then_else(rule("map_fusion"), st.identity, st.fail())(MAPS) == Success(MAPS)
    assert st.is_equal_to(MAPS)(MAPS) == Success(MAPS)
    assert isinstance(st.is_equal_to(MAPS)(SUM), Failure)
    assert st.contains(is_map)(SUM) == Success(SUM)
    no_split = st.contains(lambda e: isinstance(e, FunCall) and isinstance(e.fun, Split))
    assert reason(no_split) == "contains: no part satisfies it"


def test_peek_and_debug_look_on():
    seen, written = [], []
    assert st.peek(seen.append)(SUM) == Success(SUM)
    assert seen == [SUM]
    applied = st.debug("fuse", rule("reduce_map_fusion"), written.append)(SUM)
    assert applied == rule("reduce_map_fusion")(SUM)
    st.debug("fuse", rule("map_fusion"), written.append)(SUM)
    assert written == ["fuse: reduce_map_fusion\n", "fuse: failed: map_fusion: no map here\n"]


# --- at parts ------------------------------------------------------------------------------------


def test_known_parts():
    assert rules(st.argument(rule("map_fusion"), 1)) == ["map_fusion"]
    assert st.argument(rule("map_fusion"), 1)(SUM).steps[0].path == (1,)
    assert "there is no argument 2" in reason(st.argument(rule("map_fusion"), 2))
    assert after(st.argument(bigger)) == [6, 1, 2]
    assert st.body(rule("map_fusion"))(XSS).strategy == "map_fusion"
    assert rules(st.seq(rule("map_fusion"), st.body(rule("map_fusion"))), XSS) == ["map_fusion"] * 2
    assert "does not call a function" in reason(st.body(st.identity), PROGRAM.params[0])
    let = parse("def p(xs: [5]f32) = let s = xs |> reduce(add, 0) in s + 1").body.body
    assert after(st.body(st.innermost(bigger)), let) == [0, 2]
    assert isinstance(st.function(st.identity)(let), Failure)
    assert st.function(st.identity)(MAPS) == Success(MAPS)


def test_one_level():
    assert after(st.one(bigger)) == [6, 1, 2]
    assert "bigger: no literal here" in reason(st.one(bigger), MAPS)
    pair = parse("def p(x: f32) = ((1, 2), x)").body.body
    assert after(st.all_(bigger), pair.elements[0]) == [2, 3]
    assert "does not apply to part 1" in reason(st.all_(bigger))
    assert after(st.some(bigger), pair.elements[0]) == [2, 3]
    assert after(st.some(st.outermost(bigger))) == [6, 2, 2]
    assert "some" in reason(st.some(bigger), PROGRAM.params[0])
    assert st.all_(bigger)(PROGRAM.params[0]) == Success(PROGRAM.params[0])


def test_at_one_place_found_from_outside_or_inside():
    assert after(st.top_down(bigger)) == [6, 1, 2]
    assert after(st.bottom_up(bigger)) == [6, 1, 2]
    fused = rule("map_fusion")
    three = parse("def p(xs: [7]f32) = xs |> map(x => x + 1) |> map(x => x * 2) |> map(x => x - 3)")
    outer, inner = st.outermost(fused)(three.body.body), st.innermost(fused)(three.body.body)
    assert outer.steps[0].path == ()
    assert inner.steps[0].path == (0,)
    assert "first failure: map_fusion" in reason(st.outermost(fused), MAPS.args[0])
    only_reduce = lambda e: isinstance(e, FunCall) and isinstance(e.fun, Reduce)
    assert isinstance(st.outermost(fused, only_reduce)(SUM), Failure)


def test_position_counts_parts_and_skip_counts_places():
    numbers = [part for _, part in parts(SUM)]
    assert after(st.position(1, bigger)) == [6, 1, 2]
    assert numbers[1] == Literal(5.0, numbers[1].type)
    assert isinstance(st.position(0, bigger)(SUM), Failure)
    assert "fewer than 100" in reason(st.position(99, bigger))
    assert [after(st.skip(k, bigger)) for k in range(3)] == [[6, 1, 2], [5, 2, 2], [5, 1, 3]]
    assert isinstance(st.skip(3, bigger)(SUM), Failure)


def test_on_every_part():
    assert after(st.try_all(bigger)) == [6, 2, 3]
    assert st.try_all(st.fail())(SUM) == Success(SUM)
    assert isinstance(st.all_top_down(bigger)(SUM), Failure)
    assert isinstance(st.all_bottom_up(bigger)(SUM), Failure)
    assert after(st.all_top_down(st.attempt(bigger))) == [6, 2, 3]
    assert after(st.all_bottom_up(st.attempt(bigger))) == [6, 2, 3]
    assert after(st.down_up(st.attempt(bigger))) == [7, 3, 4]
    assert after(st.down_up(st.attempt(bigger), st.identity)) == [6, 2, 3]


def test_on_many_parts():
    for many in (st.some_td, st.some_bu, st.everywhere):
        assert after(many(bigger)) == [6, 2, 3]
        assert isinstance(many(st.fail())(SUM), Failure)
    assert after(st.all_td(bigger)) == [6, 2, 3]
    assert st.all_td(st.fail())(SUM) == Success(SUM)
    nested = st.where(is_map, rule("map_to_seq"))
    assert len(rules(st.some_td(nested), XSS)) == 1
    assert len(rules(st.everywhere(nested), XSS)) == 4
    innermost_only = st.some_bu(nested)(XSS)
    assert [step.path for step in innermost_only.steps] == [(0, 1), (1,)]


SIMPLER = ("map_fusion", "let_inline", "transpose_twice", "pad_of_pad", "reduce_map_fusion")
LOWER = ("map_to_seq", "reduce_to_seq")


def test_normalize_takes_the_steps_that_a_search_from_the_root_takes():
    """Rules that apply inside and outside of what others changed, on random programs."""
    strategy = st.choose(*map(rule, (*SIMPLER, *LOWER)))
    taken = 0
    for seed in range(10):
        body = make(seed).body.body
        found = st.normalize(strategy)(body)
        wanted = st.repeat(st.outermost(strategy))(body)
        assert found == wanted, seed
        taken += len(found.steps) > 3
    assert taken > 2


def test_a_search_from_a_part_visits_what_contains_it_or_comes_later():
    for seed in range(30):
        body = make(seed).body.body
        every = [*parts(body)]
        for place, (path, _) in enumerate(every):
            wanted = [p for p, _ in every[:place] if path[: len(p)] == p]
            wanted += [p for p, _ in every[place:]]
            found = [*top_down_from(body, path)]
            assert [p for p, _ in found] == wanted
            assert all(at(body, p) is part for p, part in found)


def test_everywhere_does_not_nest_without_end():
    with pytest.raises(RuleRefused, match=r"never ends.* by: map_copy"):
        st.everywhere(rule("map_copy"))(MAPS)


# --- derivations ---------------------------------------------------------------------------------


def test_a_derivation_is_stored_and_replays_with_open_sizes():
    m = var("m", 1, 64)
    strategy = st.seq(
        rule("reduce_split", m=m), st.outermost(rule("split_join", m=m.exact_div(2) * 2 - m + 3))
    )
    derivation = st.derive(SUM, strategy)
    text = st.to_json(PROGRAM, derivation)
    program, again = st.from_json(text)
    assert program == PROGRAM
    assert again == derivation
    assert dict(again.steps[0].sizes)["m"].bounds == (1, 64)
    assert again.conditions == derivation.conditions


def test_a_stored_negative_size_is_read():
    crop = parse("def p(xs: [12]f32) = xs |> pad(-3, 4, 0)")
    derivation = st.derive(crop.body.body, rule("pad_apart", a=0, b=6))
    assert st.from_json(st.to_json(crop, derivation))[1] == derivation


def test_a_stored_derivation_with_another_result_is_refused():
    derivation = st.derive(SUM, rule("reduce_map_fusion"))
    data = json.loads(st.to_json(PROGRAM, derivation))
    wrong = {**data, "result": data["result"].replace("5", "6")}
    with pytest.raises(RuleRefused, match="gives a different result"):
        st.from_json(json.dumps(wrong))
    lost = {**data, "steps": [{**data["steps"][0], "path": [1]}]}
    with pytest.raises(RuleRefused, match=r"step reduce_map_fusion at \(1,\)"):
        st.from_json(json.dumps(lost))


def test_a_derivation_prints_each_step():
    lines = str(st.derive(SUM, rule("reduce_map_fusion"))).splitlines()
    assert lines[0] == f"  {show_expr(SUM)}"
    assert lines[1] == "1. reduce_map_fusion at top"


def test_a_reduction_with_a_stride_is_derived():
    """Its work-items read neighbours: element i of each chunk, not a chunk each."""
    both = st.seq(rule("reduce_split", m=4), rule("reduce_exchange"))
    program = parse("def p(xs: [12]f32) = xs |> reduce(add, 5)")
    made = st.derive(program.body.body, both).result
    assert show_expr(made) == (
        "xs |> split(4) |> transpose |> map(column => column |> reduce(add, 0)) |> reduce(add, 5)"
    )


def test_an_unknown_rule_is_refused():
    with pytest.raises(RuleRefused, match="no rule is named map_fussion"):
        rule("map_fussion")


# --- compiling -----------------------------------------------------------------------------------


def in_loops(expr):
    """A strategy of a user's own, in plain Python."""
    return st.normalize(st.choose(rule("reduce_to_seq"), rule("map_to_seq")))(expr)


def test_a_program_compiles_with_a_strategy_of_ones_own(runtime):
    program = parse("def p(xs: [97]f32) = xs |> map(x => x * 2) |> map(x => x - 3)")
    strategy = st.seq(rule("map_fusion"), rule("map_to_glb_0"), in_loops)
    kernel = compile_to_kernel(program, strategy=strategy, device=runtime)
    xs = np.arange(97, dtype=np.float32)
    np.testing.assert_array_equal(kernel(xs), xs * 2 - 3)
    assert kernel.assignment == {"family": "own"}
    kernel.close()


def test_a_size_left_open_needs_a_range(runtime):
    program = parse("def p(xs: [96]f32) = xs |> map(x => x * 2)")
    with pytest.raises(RuleRefused, match=r"give it one, as in var\('m', 1, 64\)"):
        compile_to_kernel(program, strategy=rule("split_join", m=var("m")), device=runtime)


def test_a_strategy_that_fails_stops_the_compilation(runtime):
    program = parse("def p(xs: [96]f32) = xs |> map(x => x * 2)")
    with pytest.raises(RuleRefused, match="the derivation stopped: map_fusion: no map here"):
        compile_to_kernel(program, strategy=rule("map_fusion"), device=runtime)


def test_expressions_of_the_tests_are_what_they_are_taken_for():
    assert isinstance(PROGRAM.params[0], Param)
    assert is_map(MAPS)
