"""What has no gradient, and is refused: programs in text and in Python, and by the command."""

from __future__ import annotations

import liftpy as lp
from tests.errors.embedded import Case

XS = "def p(xs: [6]f32, n: i32) = "


def refused(text: str, **options: object) -> Case:
    """The gradient of a program with this text."""
    return lambda _: lp.gradient(lp.parse(text), **options)


def of_python(_folder: object) -> object:
    """A program in Python has no place in a text: a part is named as it is written."""

    @lp.program
    def steps(xs: lp.array(lp.f32, 6)):
        return xs >> lp.map(lambda x: lp.floor(x) * x)

    return lp.gradient(steps)


CASES: dict[str, Case] = {
    # parameters
    "gradient_to_an_unknown_parameter": refused(XS + "xs", wrt="sx"),
    "gradient_to_a_parameter_that_is_no_name": refused(XS + "xs", wrt=["xs", 3]),
    "gradient_to_a_parameter_of_a_constant": refused("def p() = 3", wrt="xs"),
    "gradient_to_an_integer": refused(XS + "xs |> map(x => x * f32(n))", wrt=["xs", "n"]),
    "gradient_to_an_integer_of_integers": refused("def p(n: [3]i32) = n", wrt="n"),
    "gradient_to_a_pair_with_an_integer": refused(
        "def p(ps: [3](f32, i32), a: f32, b: f32) = ps |> map(p => p.0)", wrt="ps"
    ),
    "gradient_to_nothing": refused(XS + "xs", wrt=[]),
    "gradient_to_nothing_of_integers": refused("def p(n: [3]i32) = n", wrt=[]),
    "gradient_of_integers": refused("def p(n: [3]i32, m: i32) = n |> map(k => f32(k + m))"),
    "gradient_of_a_program_without_parameters": refused("def p() = generate(3, i => f32(i))"),
    # results
    "gradient_of_an_integer_result": refused(XS + "(n, xs |> map(x => i32(x)))"),
    "gradient_of_a_stored_result": refused("def p(xs: [3]f32) = xs |> map(bf16)"),
    "gradient_of_a_component_that_is_missing": refused(XS + "(xs, n)", of=2),
    "gradient_of_a_negative_component": refused(XS + "(xs, n)", of=-1),
    "gradient_of_a_component_of_an_array": refused(XS + "xs", of=0),
    "gradient_of_an_integer_component": refused(XS + "(xs, n)", of=1),
    # parts without a derivative
    "gradient_through_floor": refused(XS + "xs |> map(x => floor(x) * x)"),
    "gradient_through_ceil": refused(XS + "xs |> map(ceil)"),
    "gradient_through_round": refused(XS + "xs |> map(x => round(x) * x)"),
    "gradient_through_a_remainder": refused(XS + "xs |> map(x => x % 2)"),
    "gradient_through_a_remainder_by_it": refused(XS + "xs |> map(x => 2 % x)"),
    "gradient_through_a_user_function": refused(
        "fun steps(x: f32) = floor(x) * x\ndef p(xs: [6]f32) = xs |> map(x => steps(x))"
    ),
    "gradient_through_floor_in_python": of_python,
    "gradient_through_an_integer": refused(XS + "xs |> map(x => f32(i32(x)) * x)"),
    "gradient_through_an_integer_of_a_pair": refused(
        "def p(x: f32) = let w = (x, i32(x)) in w.0 * f32(w.1)"
    ),
    "gradient_through_an_integer_with_a_name": refused(
        "def p(x: f32) = let k = i32(x) + 1i32 in f32(k) * x"
    ),
    "gradient_through_a_truth_value": refused(XS + "xs |> map(x => f32(x < 1) * x)"),
    "gradient_of_a_lowered_program": refused(XS + "xs |> mapGlb(0, x => x * x)"),
    "gradient_of_a_value_in_a_memory": refused(XS + "xs |> map(x => x * x) |> toGlobal"),
    "gradient_of_vectors": refused(XS + "xs |> asVector(2) |> map(reduceVec(add, 0))"),
    "gradient_of_a_vector_result": refused(XS + "xs |> asVector(2)"),
    # data-dependent indices
    "gradient_to_an_index": refused(
        "def p(t: [7]f32, is: [5]i32) = is |> map(i => t |> at(i))", wrt=["is"]
    ),
    "gradient_through_an_index": refused("def p(t: [7]f32, x: f32) = t |> at(i32(x))", wrt="x"),
    "gradient_through_a_named_index": refused(
        "def p(t: [7]f32, x: f32) = let i = i32(x) in (t |> at(i)) * x", wrt="x"
    ),
    "gradient_through_an_index_of_a_function": refused(
        "fun bin(x: f32) = i32(x)\ndef p(t: [7]f32, x: f32) = (t |> at(bin(x))) * x", wrt="x"
    ),
    "gradient_through_indices_of_bins": refused(
        "def p(xs: [5]f32) = zip(xs |> map(i32), xs) |> reduceByIndex(add, 0 |> repeat(7))"
    ),
    "gradient_of_a_product_by_index": refused(
        "def p(is: [5]i32, xs: [5]f32) = zip(is, xs) |> reduceByIndex(mul, 1 |> repeat(7))"
    ),
    # layouts
    "gradient_through_chunks_of_unknown_number": refused(
        "size n: 3..64\ndef p(xs: [n]f32) = xs |> cover(3) |> map(reduce(add, 0))"
    ),
    "gradient_through_a_border_of_unknown_size": refused(
        "size n: 1..64\nsize k: 0..2\ndef p(xs: [n]f32) = xs |> padClamp(k, k)"
    ),
    "gradient_through_an_array_repeated_often": refused(XS + "xs |> padWrap(7, 0)"),
}
