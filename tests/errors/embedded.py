"""Programs written in Python as one would guess, and refused: their bodies, a case each.

A body stands in a file of its own, so that its line and its carets are those of the message.
"""

import linecache
import math
import operator
from collections.abc import Callable
from pathlib import Path

import numpy as np

import liftpy as lp
from liftpy.ir.call import FunCall
from liftpy.ir.types import F32, TupleType
from liftpy.language.embedded.prelude import SUM

Case = Callable[[Path], object]
TWELVE = "lp.array(lp.f32, 12)"
WHOLE = "lp.array(lp.i32, 12)"
ROWS = "lp.array(lp.f32, 3, 4)"
OPEN = "lp.array(lp.f32, lp.size('n'))"
NAMES = {"lp": lp, "np": np, "math": math, "operator": operator, "TupleType": TupleType}


def run(name: str, source: str) -> object:
    """Runs a text of Python as a file of this name."""
    file = f"{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), {**NAMES, "__name__": name})  # noqa: S102
    return None


def program(name: str, body: str, xs: str) -> Case:
    """A program of one array `xs` with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"@lp.program\ndef f(xs: {xs}):\n{lines}\n"
    return lambda _: run(name, source)


def mapped(name: str, body: str, xs: str = TWELVE) -> Case:
    """A program that maps an expression in `x` over `xs`."""
    return program(name, f"return xs >> lp.map(lambda x: {body})", xs)


#: Expressions in an element `x` of an array of f32.
SCALARS = {
    "truth_value": "x if x < 0 else -x",
    "truth_value_of_a_chain": "lp.select(0 < x < 1, x, 0)",
    "truth_value_of_and": "lp.select(x > 0 and x < 1, x, 0)",
    "truth_value_of_not": "lp.select(not x > 0, x, 0)",
    "truth_value_of_max": "max(x, 0)",
    "truth_value_of_min": "min(x, 0)",
    "truth_value_of_any": "any([x > 0])",
    "truth_value_of_equality": "x if x == 1 else 0",
    "function_of_math": "math.exp(x)",
    "function_of_math_that_is_missing": "math.gamma(x)",
    "float_of_an_expression": "float(x)",
    "int_of_an_expression": "int(x)",
    "range_of_an_expression": "sum(range(x))",
    "rounded_to_digits": "round(x, 2)",
    "power_with_a_modulus": "pow(x, 2, 5)",
    "divmod_of_an_expression": "divmod(x, 2)[0]",
    "shifted_expression": "x << 2",
    "bits_of_a_float_by_a_sign": "x & 1",
    "bits_of_a_float_shifted_right": "x >> 2",
    "formatted_expression": "float(f'{x:.2f}')",
    "function_of_numpy_that_is_missing": "np.cbrt(x)",
    "function_of_numpy_with_options": "np.exp(x, dtype=np.float32)",
    "expression_in_an_array": "np.array([x, x])",
    "array_beside_an_expression": "x * np.ones(3)",
    "list_beside_an_expression": "x * [1, 2]",
    "called_expression": "x(1)",
    "condition_that_is_known": "lp.select(True, x, 0)",
    "result_of_text": "'x'",
    "result_that_is_missing": "None",
    "result_that_is_a_function": "lp.sqrt",
    "word_of_two_for_one": "lp.add(x) + x",
    "user_function_of_too_few": "lp.fun('g', {'y': lp.f32, 'z': lp.f32}, lambda y, z: y - z)(x)",
    "scalar_with_an_index": "x[0]",
    "conversion_to_a_type_of_numpy": "lp.convert(x, np.int32)",
    "power_written_as_in_other_languages": "x ^ 2",
    "expression_for_a_size": "lp.iota(x)",
    "size_beside_an_expression": "x / lp.size('n')",
    "fun_that_mentions_another_value": "lp.fun('g', {'y': lp.f32}, lambda y: x + y)(x)",
}
#: Bodies of a program over `xs`, an array of twelve f32.
ARRAYS = {
    "dimension_of_no_launch": "return xs >> lp.map_glb(5, lambda x: x + 1)",
    "array_taken_apart": "first, *rest = xs\nreturn first",
    "builtin_map": "return list(map(lambda x: x + 1, xs))",
    "builtin_zip": "return [x * y for x, y in zip(xs, xs)]",
    "builtin_sum": "return sum(xs)",
    "builtin_max": "return max(xs)",
    "loop_over_an_array": "total = 0\nfor x in xs:\n    total = total + x\nreturn total",
    "search_in_an_array": "return xs if 3 in xs else -xs",
    "assignment_to_an_element": "xs[0] = 1\nreturn xs",
    "function_of_numpy_on_an_array": "return np.exp(xs)",
    "sum_of_numpy": "return np.sum(xs)",
    "method_of_numpy": "return xs.sum()",
    "attribute_of_numpy": "return xs.shape[0]",
    "arithmetic_of_arrays": "return xs * 2",
    "matrix_product": "return xs @ xs",
    "index_outside": "return xs[12]",
    "index_of_text": "return xs['a']",
    "index_that_is_computed": "return xs[xs[0]]",
    "index_after_a_slice": "return xs[1:3, 0]",
    "slice_backwards": "return xs[::-1]",
    "slice_of_nothing": "return xs[5:5]",
    "slice_to_a_fraction": "return xs[: 1.5]",
    "component_outside": "return (xs >> lp.map(lambda x: (x, x)) >> lp.unzip())[2]",
    "statement_without_return": "xs >> lp.map(lambda x: x + 1)",
    "array_in_the_parentheses": "return lp.map(lambda x: x + 1, xs)",
    "array_for_a_function": "return lp.map(xs)",
    "array_for_a_size": "return lp.split(xs)",
    "text_for_a_size": "return xs >> lp.split('4')",
    "fraction_for_a_size": "return xs >> lp.split(2.0)",
    "word_without_its_arguments": "return xs >> lp.split",
    "word_with_a_number_too_few": "return xs >> lp.take()",
    "generate_of_an_expression": "return lp.generate(3, xs)",
    "padding_that_is_no_number": "return xs >> lp.pad(1, 1, xs)",
    "border_with_too_few_amounts": "return xs >> lp.pad_clamp2d(1, 1)",
    "number_for_a_function": "return xs >> lp.map(3)",
    "number_for_a_stage": "return xs >> 3",
    "number_given_to_a_stage": "return 3 >> lp.map(lambda x: x + 1)",
    "number_given_to_a_word": "return lp.join()(3)",
    "number_for_an_array": "return lp.zip(xs, 3)",
    "word_over_a_number": "return lp.map(lambda x: x)(3)",
    "function_of_too_many": "return xs >> lp.map(lambda x, y: x)",
    "section_as_operator": "return xs >> lp.reduce(lp.split(2), 0)",
    "fun_of_two_as_map": "return xs >> lp.map(lp.add)",
    "scalar_mapped": "return xs >> lp.map(lp.map(lambda x: x))",
    "permutation_without_inverse": "return xs >> lp.reorder(3 * lp.var('i') % 7)",
    "divisor": "return xs >> lp.split(5)",
    "program_in_a_program": (
        "@lp.program\ndef g(ys: lp.array(lp.f32, 12)):\n    return ys\nreturn g(xs)"
    ),
    "fold_from_a_function": "return xs >> lp.reduce(0, lp.add)",
    "index_of_an_array_of_numpy": "return xs[np.array([0, 1])]",
    "deletion_of_an_element": "del xs[0]\nreturn xs",
    "array_of_numpy_given_to_a_stage": "return np.ones(100) >> lp.map(lp.exp)",
    "list_of_expressions_for_an_array": "return lp.zip([xs, xs], xs)",
    "scalar_word_of_an_array": "return xs >> lp.exp",
    "loop_of_a_thousand": "x = xs[0]\nfor _ in range(1000):\n    x = x + xs[0]\nreturn x",
    "recursion_without_end": "def f(x):\n    return f(x + 1)\nreturn xs >> lp.map(f)",
    "parameter_that_escapes": (
        "seen = []\n"
        "ys = xs >> lp.map(lambda x: seen.append(x) or x)\n"
        "return ys >> lp.map(lambda y: y + seen[0])"
    ),
    "let_of_two_functions": "return lp.let(lambda x: x, lambda x: x)",
    "fold_from_text": "return xs >> lp.reduce(lp.add, 'a')",
    "fold_with_max": "return xs >> lp.reduce(max, 0)",
    "result_of_a_generator": "return (x for x in range(3))",
}
CASES: dict[str, Case] = {
    **{name: mapped(name, body) for name, body in SCALARS.items()},
    **{name: program(name, body, TWELVE) for name, body in ARRAYS.items()},
    "element_outside_of_its_function": program(
        "element_outside_of_its_function",
        "kept = []\nxs >> lp.map(lambda x: kept.append(lp.exp(x)) or x)\n"
        "return xs >> lp.map(lambda y: y + kept[0])",
        TWELVE,
    ),
    "expression_that_is_too_deep": program(
        "expression_that_is_too_deep",
        "def chain(x):\n    for _ in range(1000):\n        x = x + 1\n    return x\n"
        "return xs >> lp.map(chain)",
        TWELVE,
    ),
    "too_many_shared_parts": program(
        "too_many_shared_parts",
        "squares = [xs >> lp.map(lambda x, k=k: x**2 + k) for k in range(500)]\n"
        "pairs = [lp.zip(s, s) >> lp.map(lp.add) for s in squares]\n"
        "while len(pairs) > 1:\n"
        "    pairs = [lp.zip(*pairs[k : k + 2]) >> lp.map(lp.add) if pairs[k + 1 :] else pairs[k]\n"
        "             for k in range(0, len(pairs), 2)]\n"
        "return pairs[0]",
        TWELVE,
    ),
    "negative_power_of_integers": mapped("negative_power_of_integers", "x ** -1", WHOLE),
    "floor_division_of_integers": mapped("floor_division_of_integers", "x // 2", WHOLE),
    "number_that_could_be_whole": mapped(
        "number_that_could_be_whole", "lp.select(x == 3, 1, 0)", WHOLE
    ),
    "length_that_is_open": program("length_that_is_open", "return xs >> lp.split(len(xs))", OPEN),
    "fold_of_integers_from_a_fraction": program(
        "fold_of_integers_from_a_fraction", "return xs >> lp.reduce(lp.add, 0.5)", WHOLE
    ),
    "fold_of_arrays_from_a_number": program(
        "fold_of_arrays_from_a_number",
        "return xs >> lp.reduce(lambda a, _: a, (0, 0))",
        f"lp.array(TupleType(({ROWS}, lp.f32)), 4)",
    ),
    "operands_of_two_types": program(
        "operands_of_two_types",
        "return lp.zip(lp.iota(12), xs) >> lp.map(lambda i, x: i * x)",
        TWELVE,
    ),
    "fraction_beside_an_integer": mapped("fraction_beside_an_integer", "x * 0.5", WHOLE),
    "root_of_whole_numbers": mapped("root_of_whole_numbers", "np.sqrt(x)", WHOLE),
    "parameter_by_name_only": lambda _: run(
        "parameter_by_name_only", f"@lp.program\ndef f(*, xs: {TWELVE}):\n    return xs\n"
    ),
    "result_of_no_type": lambda _: run(
        "result_of_no_type", f"@lp.program\ndef f(xs: {TWELVE}) -> np.float32:\n    return xs\n"
    ),
    "function_that_is_not_a_program": lambda _: run(
        "function_that_is_not_a_program",
        f"def f(xs: {TWELVE}):\n    return xs\nlp.compile(f)\n",
    ),
    "text_that_is_not_read": lambda _: run("text_that_is_not_read", "lp.space('dot.lift')\n"),
    "function_that_is_evaluated": lambda _: run(
        "function_that_is_evaluated",
        f"def f(xs: {TWELVE}):\n    return xs\nlp.evaluate(f, np.ones(12))\n",
    ),
    "length_of_none": lambda _: run("length_of_none", "lp.array(lp.f32, 0)\n"),
    "parameter_with_a_default": lambda _: run(
        "parameter_with_a_default",
        f"@lp.program\ndef f(xs: {TWELVE}, k: lp.f32 = 2.0):\n    return xs\n",
    ),
    "number_of_another_type": lambda _: run(
        "number_of_another_type",
        "@lp.program\ndef f(n: lp.i32):\n    return n + 1\nf(2.5)\n",
    ),
    "number_outside_its_type": lambda _: run(
        "number_outside_its_type",
        "@lp.program\ndef f(n: lp.i32):\n    return n + 1\nf(1 << 40)\n",
    ),
    "program_that_is_called_as_a_decorator": lambda _: run(
        "program_that_is_called_as_a_decorator",
        f"@lp.program()\ndef f(xs: {TWELVE}):\n    return xs\n",
    ),
    "program_of_no_function": lambda _: run("program_of_no_function", "lp.program(3)\n"),
    "storage_of_a_type_that_computes": lambda _: run(
        "storage_of_a_type_that_computes", "lp.to_storage([1.0], lp.f32)\n"
    ),
    "storage_of_text": lambda _: run("storage_of_text", "lp.to_storage(['1'], lp.bf16)\n"),
    "storage_of_rows_of_two_lengths": lambda _: run(
        "storage_of_rows_of_two_lengths", "lp.to_storage([[1], [2, 3]], lp.bf16)\n"
    ),
    "bits_of_another_type": lambda _: run(
        "bits_of_another_type", "lp.from_storage(np.ones(3), lp.bf16)\n"
    ),
    "storage_in_no_type": lambda _: run(
        "storage_in_no_type",
        "p = lp.parse('def f(x: [4]f32) = x |> map(a => a * 2)')\n"
        "lp.with_storage(p, {'x': 'bf16, f8'})\n",
    ),
    "storage_of_a_value_named_like_a_setting": lambda _: run(
        "storage_of_a_value_named_like_a_setting",
        "p = lp.parse('def f(v: [4]f32) = v |> map(a => a * 2)')\n"
        "lp.space(p, 'profile:xeon-silver-4208', storage={'v': 'bf16'})\n",
    ),
    "arrays_by_name": lambda _: run(
        "arrays_by_name", f"@lp.program\ndef f(xs: {TWELVE}):\n    return xs\nf(xs=np.ones(12))\n"
    ),
    "rows_of_two_lengths": lambda _: run(
        "rows_of_two_lengths",
        f"@lp.program\ndef f(xs: {TWELVE}):\n    return xs\nf([[1], [2, 3]])\n",
    ),
    "array_of_another_type": lambda _: run(
        "array_of_another_type",
        f"@lp.program\ndef f(xs: {TWELVE}):\n    return xs\nf(np.ones(12))\n",
    ),
    "parameter_without_a_type": lambda _: run(
        "parameter_without_a_type", "@lp.program\ndef doubled(xs):\n    return xs\n"
    ),
    "call_without_its_arguments": lambda _: FunCall(SUM.variants[F32], ()),
    "array_of_no_type": lambda _: run("array_of_no_type", "lp.array(float, 3)\n"),
    "result_of_another_type": lambda _: run(
        "result_of_another_type",
        f"@lp.program\ndef f(xs: {TWELVE}) -> lp.f64:\n    return xs >> lp.reduce(lp.add, 0)\n",
    ),
}
