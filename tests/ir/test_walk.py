from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda
from liftpy.ir.walk import has_call
from liftpy.language.text.program import parse
from liftpy.primitives import AnyMap, Map, Reduce, Scan


def test_a_call_is_found_in_arguments_functions_and_tuples():
    body = parse("def p(xs: [3][5]f32) = xs |> map(x => x |> reduce(add, 0)) |> map(x => (x, x))")
    expr = body.body.body
    assert has_call(expr, Reduce)
    assert has_call(expr, Scan, Reduce)
    assert has_call(expr, Map)
    assert has_call(expr, AnyMap)
    assert not has_call(expr, Scan)
    assert not has_call(expr, Lambda)


def test_a_let_is_a_call_of_a_function():
    body = parse("def p(xs: [3]f32) = let y = xs |> map(x => x * 2) in zip(y, y)").body.body
    assert isinstance(body, FunCall)
    assert has_call(body, Lambda)
    assert not has_call(body.args[0], Lambda)
    assert not has_call(body.args[0].args[0], Map)
