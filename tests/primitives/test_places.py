"""What follows from a layout's meaning, held against the elements that it gives at small sizes."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall
from liftpy.language.text.program import parse
from liftpy.primitives import LAYOUTS, PRIMITIVES, At, MemoryPrimitive
from liftpy.primitives.places import PlaceReader, argument, is_indirect
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.general import general

PLAIN = [
    "take(3)",
    "drop(2)",
    "slide(3, 2)",
    "split(2)",
    "gather(5, i => i + 3)",
    "gather(4, i => 7 - 2 * i)",
]
INDIRECT = [
    "pad(1, 1, 9)",
    "pad(-2, 3, 9)",
    "padClamp(1, 0)",
    "padMirror(0, 2)",
    "padWrap(0, 1)",
    "cover(3)",
    "coverOnce(3, 9)",
    "gather(8, i => i // 2)",
    "gather(8, i => 3 * i % 8)",
    "gather(8, i => max(i - 2, 0))",
]


@pytest.mark.parametrize("word", [*PLAIN, *INDIRECT])
def test_a_layout_is_indirect_where_its_indices_are_no_sums_of_multiples(word):
    """Of what is not, all neighbours are as far apart, in each dimension."""
    program = parse(f"def p(xs: [8]f32) = xs |> {word}")
    call = program.body.body
    assert isinstance(call, FunCall)
    assert is_indirect(call.fun, call.args[0].type) == (word in INDIRECT)
    places = np.asarray(evaluate(program, np.arange(8, dtype=np.float32)))
    apart = [np.diff(places, axis=k) for k in range(places.ndim)]
    even = all((np.diff(d, axis=k) == 0).all() for d in apart for k in range(places.ndim))
    assert even == (word in PLAIN)


def test_its_numbers_do_not_matter():
    """A choice does not come and go with them: `pad(0, 0, 0)` is a padding."""
    for word in ("pad(0, 0, 0)", "padClamp(0, 0)", "pad(-1, -1, 0)"):
        call = parse(f"def p(xs: [8]f32) = xs |> {word}").body.body
        assert isinstance(call, FunCall)
        assert is_indirect(call.fun, call.args[0].type)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_layouts_are_those_that_compute_nothing(name):
    """`generate` and `at` use numbers; memory is where a kernel puts what it computes."""
    primitive, params = general(PRIMITIVES[name])
    if type(primitive) in LAYOUTS:
        primitive.meaning(PlaceReader(), *(argument(p.type) for p in params))
    else:
        assert primitive.function is not None or isinstance(primitive, MemoryPrimitive | At)


def test_what_computes_is_seen():
    with pytest.raises(InternalError, match="computes something"):
        PlaceReader().operate("+", ())
