"""What a newcomer writes, and is refused: whole files of Python, a case each.

`FUNCTIONS` are bodies of a program over `xs`, an array of twelve f32, where a size `n` is in sight;
`FILES` are files of their own.
"""

from tests.errors.embedded import TWELVE, Case, run

FUNCTIONS = {
    # functions of Python that are named like words
    "python_map": "return xs >> map(lambda x: x + 1)",
    "python_map_of_nothing": "return xs >> map(lambda x: x, [])",
    "python_filter": "return xs >> filter(lambda x: x > 0)",
    "python_zip": "return xs >> zip([1], [2])",
    "python_reversed": "return xs >> reversed",
    "python_enumerate": "return xs >> enumerate",
    "python_slice": "return xs >> slice(1, 3)",
    "python_reversed_called": "return reversed(xs)",
    "function_of_two_after_an_array": "return xs >> (lambda x, y: x)",
    "numpy_with_too_few": "return xs >> lp.map(lambda x: np.power(x))",
    "type_after_an_array": "return xs >> lp.i32",
    # stages and words as values
    "number_plus_a_stage": "return 1 + lp.map(lambda x: x)",
    "stage_times_two": "return lp.join() * 2",
    "number_plus_a_word": "return 1 + lp.join",
    "element_of_a_stage": "return lp.map(lambda x: x)[0]",
    "word_before_an_array": "return lp.exp >> xs",
    "stage_before_an_array": "return lp.map(lambda x: x) >> xs",
    "numpy_on_a_stage": "return np.exp(lp.map(lambda x: x))",
    "stage_of_two_arrays": "return lp.map(lambda x, y: x)(xs, xs)",
    "assignment_into_numpy": "out = np.zeros(3)\nout[0] = xs[0]\nreturn xs",
    "comparison_with_a_stage": "return lp.map(lambda x: x) < 3",
    # index functions
    "index_compared": "return xs >> lp.gather(3, lambda i: i if i > 3 else 0)",
    "index_equal_to_a_number": "return xs >> lp.gather(3, lambda i: 0 if i == 1 else i)",
    "index_divided": "return xs >> lp.gather(3, lambda i: i / 2)",
    "index_times_a_fraction": "return xs >> lp.gather(3, lambda i: 0.5 * i)",
    "index_under_a_root": "return xs >> lp.gather(3, lambda i: np.sqrt(i))",
    "index_function_of_math": "import math\nreturn xs >> lp.gather(3, lambda i: math.sqrt(i))",
    "index_function_of_two": "return xs >> lp.gather(3, lambda i, j: i)",
    "index_function_without_result": "return xs >> lp.gather(3, lambda i: None)",
    "index_function_of_values": "return xs >> lp.gather(3, lp.exp)",
    "attribute_of_an_index": "return xs >> lp.gather(3, lambda i: i.numpy())",
    "index_in_a_set": "return xs >> lp.gather(3, lambda i: 0 if i in {1, 2} else i)",
    "index_of_bits": "return xs >> lp.gather(3, lambda i: i & 1)",
    "index_to_a_power_of_itself": "return xs >> lp.gather(3, lambda i: 2**i)",
    "index_function_that_is_text": "return xs >> lp.gather(3, 'i')",
    "index_beside_an_element": "return xs >> lp.map(lambda x: xs >> lp.gather(3, lambda i: i * x))",
    "index_beside_a_fraction_for_numpy": "return xs >> lp.gather(3, lambda i: np.maximum(i, 0.5))",
    # sizes in Python code
    "size_with_an_array_for_numpy": "return lp.iota(np.maximum(n, np.ones(3)))",
    "size_to_a_fraction": "return lp.iota(n ** 0.5)",
    "size_to_a_negative_power": "return lp.iota(n ** -1)",
    "number_divided_by_a_size": "return lp.iota(12 / n)",
    "size_compared_with_a_fraction": "return xs if n > 0.5 else xs",
    "range_of_a_size": "return [xs for _ in range(n)]",
    "size_compared": "return xs if n > 3 else xs",
    "size_as_a_truth": "return xs if n else xs",
    "size_equal_to_a_number": "return xs if n == 3 else xs",
    "size_divided": "return xs >> lp.split(n / 2)",
    "size_times_a_fraction": "return xs >> lp.split(n * 1.5)",
    "root_of_a_size": "return xs >> lp.map(lambda x: x / np.sqrt(n))",
    "size_times_an_element": "return xs >> lp.map(lambda x: n * x)",
    "size_with_an_array_of_numpy": "return lp.iota(n + np.ones(3))",
    "loop_over_a_size": "return [xs for _ in n]",
    "zeros_of_a_size": "return np.zeros(n)",
    "size_from_maximum": "return lp.iota(np.maximum(n, 3))",
    "size_from_max": "return lp.iota(max(n, 3))",
    "index_divided_by_zero": "return xs >> lp.gather(3, lambda i: i // 0)",
    "remainder_of_an_index_by_zero": "return xs >> lp.gather(3, lambda i: i % 0)",
    "size_that_is_returned": "return n",
    "expression_as_a_key": "return {1: xs}[xs[0]]",
    "type_that_is_called": "return xs >> lp.map(lambda x: lp.i32(x))",
    "reduce_of_functools": "import functools\nreturn xs >> functools.reduce(lp.add, 0)",
    "rounded_by_numpy": "return xs >> lp.map(lambda x: np.round(x))",
    "converted_by_numpy": "return xs >> lp.map(lambda x: np.float32(x))",
    "list_of_one": "return [xs]",
    "tuple_of_one": "return xs >> lp.map(lambda x: (x,))",
    "stride_after_an_array": "return xs >> lp.stride(3, 12)",
    "stage_beside_an_array": "return xs | lp.map(lambda x: x)",
    "text_beside_an_element": "return xs >> lp.map(lambda x: x + 'a')",
    "larger_of_an_array": "return lp.larger(xs, 0)",
    "iota_of_a_negative_number": "return lp.iota(-3)",
    "full_of_none": "return lp.full(0, 1)",
    "fold_from_an_array": "return xs >> lp.reduce(lp.add, xs)",
    # truths that were silent
    "element_in_a_set": "return xs if xs[0] in {1, 2} else -xs",
    "element_in_a_list": "return xs if xs[0] in [1, 2] else -xs",
    "element_in_a_dictionary": "return xs if xs[0] in {1: 2} else -xs",
    # words that are given something else
    "join_of_a_vector": "return xs >> lp.join()",
    "transpose_of_a_vector": "return xs >> lp.transpose()",
    "slice_beyond_the_end": "return xs >> lp.slice(8, 7)",
    "pad2d_of_a_vector": "return xs >> lp.pad2d(1, 1, 1, 1)",
    "pad_clamp2d_of_a_vector": "return xs >> lp.pad_clamp2d(1, 1, 1, 1)",
    "slide2d_of_a_vector": "return xs >> lp.slide2d(3)",
    "slide2d_that_is_too_large": "return xs >> lp.split(4) >> lp.slide2d(5)",
    "permute_of_a_vector": "return xs >> lp.permute(1, 0)",
    "map2d_of_a_vector": "return xs >> lp.map2d(lambda x: x)",
    "addition_of_arrays_by_a_word": "return lp.add(xs, xs)",
    "power_of_math": "import math\nreturn xs >> lp.map(lambda x: math.pow(x, 3))",
    "bins_without_a_number": "return lp.zip(xs, xs) >> lp.reduce_by_index(lp.add, 0)",
    "fold_with_its_arguments_swapped": "return xs >> lp.scan(0, lp.add)",
    "iterate_with_its_arguments_swapped": "return xs >> lp.iterate(lp.map(lambda x: x), 3)",
    "scalar_for_a_size": "return xs >> lp.take(xs[0])",
    "permute_with_text": "return xs >> lp.permute('a', 'b')",
    "component_that_is_text": "return xs >> lp.get('a')",
    "windows_of_one_number": "return xs >> lp.split(4) >> lp.slide2d_rect(3, 1)",
    "generate_of_a_type_of_numpy": "return lp.generate(3, lambda i: i, np.int32)",
    "evaluated_inside": "return lp.evaluate(xs)",
    "let_of_a_keyword": "return lp.let(lambda y: y, y=xs)",
    "let_of_text": "return lp.let('y', xs, lambda y: y)",
    "full_of_text": "return lp.full(3, 'a')",
    # functions of Python that are passed to a word
    "map_of_a_function_of_math": "import math\nreturn xs >> lp.map(math.exp)",
    "fold_by_a_function_of_math": "import math\nreturn xs >> lp.reduce(math.hypot, 0)",
    "fold_by_max_of_python": "return xs >> lp.reduce(max, -np.inf)",
    "map_of_a_type_of_python": "return xs >> lp.map(float)",
    # operations of Python on the values themselves
    "assignment_to_an_attribute": "xs.total = 1\nreturn xs",
    "deletion_of_an_attribute": "del xs.type\nreturn xs",
    "assignment_to_a_type": "lp.f32.name = 'f'\nreturn xs",
    "size_with_a_format": "return xs >> lp.take(f'{n:d}')",
    "tuples_of_tuples": "for _ in range(60):\n    xs = (xs, xs)\nreturn xs",
    "pickled_expression": "import pickle\nreturn pickle.dumps(xs)",
}
PROGRAM = f"@lp.program\ndef f(xs: {TWELVE}):\n    return xs\n"
FILES = {
    "program_of_a_program": "@lp.program\n" + PROGRAM,
    "program_of_a_partial_function": (
        "from functools import partial\nlp.program(partial(lambda a, xs: xs, 1))\n"
    ),
    "result_that_no_memory_holds": (
        "@lp.program\ndef f(x: lp.f32):\n    return lp.full(10**13, x)\nf(1)\n"
    ),
    "pickled_program": PROGRAM + "import pickle\npickle.dumps(f)\n",
    "show_of_a_function": "def f(x):\n    return x\nlp.show(f)\n",
    "compiled_with_a_number": PROGRAM + "lp.compile(f, 3)\n",
    "explored_with_text": PROGRAM + "lp.explore(f, samples='5')\n",
    "explored_with_an_unknown_option": PROGRAM + "lp.explore(f, sample=5)\n",
    "parsed_number": "lp.parse(3)\n",
    "workload_of_a_number": "lp.workload(7)\n",
    "size_of_a_number": "lp.size(3)\n",
    "size_without_a_name": "lp.size()\n",
    "size_that_is_no_name": "lp.size('1n')\n",
    "size_with_a_range_backwards": "lp.size('n', 4, 1)\n",
    "product_of_many_sizes": (
        "length = 1\nfor i in range(30):\n    length *= lp.size(f'n{i}') + 1\n"
    ),
    "sizes_that_are_a_number": PROGRAM + "lp.space(f, sizes=3)\n",
    "evaluated_number": "lp.evaluate(3)\n",
    "array_without_lengths": "lp.array(lp.f32)\n",
    "array_of_a_type_of_numpy": "lp.array(np.float32, 3)\n",
    "array_with_its_arguments_swapped": "lp.array(3, lp.f32)\n",
    "array_of_a_fraction": "lp.array(lp.f32, 2.5)\n",
    "fun_of_too_few": "lp.fun('g', {'x': lp.f32}, lambda x, y: x + y)\n",
    "fun_of_a_list": "lp.fun('g', [lp.f32], lambda x: x)\n",
    "fun_of_a_type_of_numpy": "lp.fun('g', {'x': np.float32}, lambda x: x)\n",
    "fun_without_a_function": "lp.fun('g', {'x': lp.f32}, 3)\n",
    "fun_with_a_number_as_its_name": "lp.fun(3, {'x': lp.f32}, lambda x: x)\n",
    "fun_with_laws_in_text": (
        "lp.fun('g', {'x': lp.f32, 'y': lp.f32}, lambda x, y: x + y, laws='associative')\n"
    ),
    "fun_with_a_law_of_two": "lp.fun('g', {'x': lp.f32}, lambda x: -x, laws=(lp.ASSOCIATIVE,))\n",
    "neutral_of_text": "lp.neutral('0')\n",
    "fun_without_parameters": "lp.fun('g', {}, lambda: 3)\n",
    "fun_plus_one": "lp.fun('g', {'x': lp.f32}, lambda x: x) + 1\n",
    "program_plus_one": PROGRAM + "f + 1\n",
    "type_that_is_not_defined": "@lp.program\ndef f(xs: 'foo'):\n    return xs\n",
    "open_expression_evaluated": "lp.evaluate(lp.iota(lp.size('n')))\n",
    "stride_that_does_not_divide": "lp.stride(3, 4)\n",
    "device_of_a_number": "lp.find_device(3)\n",
    "proof_of_a_name": "lp.prove('map_fusion')\n",
    "campaign_of_a_number": "lp.Campaign.read(3)\n",
    "setting_of_a_fraction": PROGRAM + "lp.space(f, fixed={'pad': 3.5})\n",
    "sample_of_a_negative_number": PROGRAM + "lp.space(f).sample(-1)\n",
    "sample_of_text": PROGRAM + "lp.space(f).sample('1')\n",
    "tuple_that_is_declared": (
        f"@lp.program\ndef f(xs: {TWELVE}) -> (lp.f32, lp.i32):\n    return xs[0], xs[1]\n"
    ),
    "result_declared_with_python": (
        f"@lp.program\ndef f(xs: {TWELVE}) -> float:\n    return xs[0]\n"
    ),
    "parameter_of_a_type_of_numpy": "@lp.program\ndef f(x: np.float32):\n    return x\n",
    "stride_of_text": "lp.stride('a', 4)\n",
    "program_with_too_few_arrays": PROGRAM + "f()\n",
    "kernel_with_too_few_arrays": PROGRAM + "lp.compile(f)()\n",
    "kernel_of_another_shape": PROGRAM + "lp.compile(f)(np.ones(3, np.float32))\n",
    "kernel_of_another_type": PROGRAM + "lp.compile(f)(np.ones(12))\n",
    "list_of_another_type": (
        "@lp.program\ndef f(xs: lp.array(lp.i32, 2)):\n    return xs\nf([1.5, 2.5])\n"
    ),
    "sizes_that_are_open": (
        "@lp.program\ndef f(xs: lp.array(lp.f32, lp.size('n'))):\n    return xs\nlp.compile(f)\n"
    ),
}


def function(name: str, body: str) -> Case:
    """A program of one array `xs` with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"n = lp.size('n')\n@lp.program\ndef f(xs: {TWELVE}):\n{lines}\n"
    return lambda _: run(name, source)


def file(name: str, source: str) -> Case:
    """A file of its own."""
    return lambda _: run(name, source)


CASES: dict[str, Case] = {
    **{name: function(name, body) for name, body in FUNCTIONS.items()},
    **{name: file(name, source) for name, source in FILES.items()},
}
