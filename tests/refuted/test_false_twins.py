"""Laws that are almost right: each is refuted, with sizes to look at."""

import re
from dataclasses import replace

import pytest

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most, divides, equal
from liftpy.ir.expr import Literal, Param
from liftpy.ir.nat import nats, var
from liftpy.ir.types import F32, I32, ArrayType, TupleType
from liftpy.primitives import (
    AsScalar,
    AsVector,
    Concat,
    Drop,
    Iterate,
    PadMirror,
    PadWrap,
    Scan,
    SlideSeq,
    Take,
    Unslide,
    stride,
)
from liftpy.rewrite.rule import Assumption, Rule, ValueVar, index
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.notation import (
    S,
    T,
    U,
    V,
    array,
    fmap,
    fold,
    function,
    get,
    join,
    k,
    let,
    m,
    n,
    pad,
    pair,
    permuted,
    reorder,
    slide,
    split,
    transpose,
    unknown,
    zipped,
)
from liftpy.rewrite.rules.scalar import divided
from liftpy.semantics.prove import prove
from liftpy.semantics.real import BEYOND
from liftpy.semantics.refute import ELEMENTS_AGREE, REQUIRES, SIZES, lengths
from liftpy.semantics.smt import FEWER_STEPS
from liftpy.semantics.verdict import Proved, Refuted, Unknown, Vacuous

size, step, tile, p = nats("size step tile p")
left, right = var("left", None), var("right", None)
i = var("i")
c = ValueVar("c")
xs, xss = array("xs", T, n), array("xss", T, n, m)
scalars, rows = array("xs", S, n), array("xss", S, n, m)
z, start, x = Param("z", U), Param("z", S), Param("x", T)
e = Literal(ValueVar("e"), S)
f, g, op = unknown("f", U), unknown("g", T), unknown("f", S)
h, init, source = unknown("h", U), unknown("init", U), unknown("source", ArrayType(V, m))
windows = array("windows", T, n, size)
q, r, ONE = Param("q", F32), Param("r", F32), Literal(1.0, F32)
both, outer = Param("both", TupleType((U, U))), Param("outer", T)
ASSOCIATIVE, COMMUTATIVE = Assumption("associative", "f"), Assumption("commutative", "f")
NEUTRAL = Assumption("neutral", "f", "e")


def law(lhs, rhs, *where, **details):
    return Rule("false_twin", "refuted", lhs, rhs, where=where, **details)


def blocks(first, between):
    """A fold of folds over the chunks of `scalars`."""
    chunks = split(m, scalars)
    return fold(op, first, fmap(lambda chunk: fold(op, between, chunk), chunks, "chunk"))


def scan(body, init, array_):
    return call(Scan(function(body, a=init.type, x=array_.type.element)), init, array_)


def iterate(times, value):
    return call(Iterate(function(g, x=T), times), value)


def slide_seq(size_, step_):
    return call(SlideSeq(function(f, w=ArrayType(T, size_)), size_, step_), xs)


columns = transpose(rows)
reduce_split = RULES["reduce_split"]

FALSE = {
    "split join does not ask that the chunks fill the array": (
        law(xs, join(split(m, xs)), at_least(1, m)),
        REQUIRES,
    ),
    "a transposed array is not the array": (
        law(transpose(xss), xss, equal(n, m)),
        ELEMENTS_AGREE,
    ),
    "transposing does not keep the lengths": (law(transpose(xss), xss), SIZES),
    "slide tiling with Lift's guard: a tile may be longer than the array": (
        replace(RULES["slide_tiling"], where=(at_least(size + 1, tile),)),
        REQUIRES,
    ),
    "slide tiling with Lift's guard and fit, where the step does not divide": (
        replace(
            RULES["slide_tiling"],
            where=(
                at_least(size, tile),
                at_most(tile, n),
                divides(tile - (size - step), n - tile),
            ),
        ),
        SIZES,
    ),
    "slide tiling with a tile step that forgets the halo": (
        law(
            slide(size, 1, xs),
            join(fmap(lambda t: slide(size, 1, t), slide(tile, tile, xs), "t")),
            at_least(size, tile),
            divides(tile, n),
            equal(tile * 2, n),
        ),
        SIZES,
    ),
    "slide before split for a step other than 1": (
        law(
            split(m, slide(size, step, xs)),
            fmap(lambda t: slide(size, step, t), slide(size + m - 1, m, xs), "t"),
            divides(m, n - size + 1),
            at_least(1, m),
        ),
        SIZES,
    ),
    "pad of pad where the inner one crops": (
        replace(RULES["pad_of_pad"], where=()),
        ELEMENTS_AGREE,
    ),
    "pad of pad with two values": (
        law(pad(1, 1, c, pad(1, 1, ValueVar("d"), xs)), pad(2, 2, c, xs)),
        ELEMENTS_AGREE,
    ),
    "map of crop where it pads": (replace(RULES["map_of_crop"], where=()), ELEMENTS_AGREE),
    "pad on the other side": (
        law(pad(left, right, c, xs), pad(right, left, c, xs)),
        ELEMENTS_AGREE,
    ),
    "a stride is not its own inverse": (
        law(
            call(stride(m, m * p), call(stride(m, m * p), array("xs", T, m * p))),
            array("xs", T, m * p),
            at_least(2, m),
            at_least(2, p),
        ),
        ELEMENTS_AGREE,
    ),
    "a gather is not the scatter of the same function": (
        law(
            reorder((i + 1) % n, (i + n - 1) % n, xs),
            reorder((i + n - 1) % n, (i + 1) % n, xs),
            at_least(1, n),
        ),
        ELEMENTS_AGREE,
    ),
    "a gather after a map is not a scatter of the same function before it": (
        law(permuted(fmap(f, xs)), fmap(f, reorder(index("psi"), index("phi"), xs))),
        ELEMENTS_AGREE,
    ),
    "a gather undoes itself": (
        law(permuted(permuted(xs)), xs),
        ELEMENTS_AGREE,
    ),
    "permutations may change places": (
        law(
            reorder(index("rho"), index("tau"), permuted(xs)),
            permuted(reorder(index("rho"), index("tau"), xs)),
        ),
        ELEMENTS_AGREE,
    ),
    "a shift by two has the inverse of a shift by one": (
        law(
            reorder((i + 1) % n, (i + n - 1) % n, reorder((i + 1) % n, (i + n - 1) % n, xs)),
            reorder((i + 2) % n, (i + n - 1) % n, xs),
            at_least(1, n),
        ),
        REQUIRES,
    ),
    "a shift by k is a shift by one": (
        law(
            reorder((i + k) % n, (i + n * k - k) % n, xs),
            reorder((i + 1) % n, (i + n - 1) % n, xs),
            at_least(1, n),
            at_least(1, k),
        ),
        ELEMENTS_AGREE,
    ),
    "a reversed array is not the array": (
        law(reorder(n - 1 - i, n - 1 - i, xs), xs),
        ELEMENTS_AGREE,
    ),
    "functions are not applied in the other order": (
        law(fmap(g, fmap(unknown("h", T), xs), "y"), fmap(lambda x: unknown("h", T)(g(x)), xs)),
        ELEMENTS_AGREE,
    ),
    "the wrong component": (
        law(
            fmap(lambda t: get(0, t), zipped(xs, array("ys", T, n)), "t"),
            fmap(lambda x: x, array("ys", T, n)),
        ),
        ELEMENTS_AGREE,
    ),
    "zip of joins of other inner lengths": (
        law(
            zipped(join(xss), join(array("yss", U, k, p))),
            join(
                fmap(
                    lambda q: zipped(get(0, q), get(1, q)),
                    zipped(xss, array("yss", U, k, p)),
                    "q",
                )
            ),
        ),
        REQUIRES,
    ),
    "map interchange without the transpose": (
        law(
            fmap(lambda x: fmap(lambda y: unknown("h", V)(x, y), array("ys", U, m), "y"), xs),
            fmap(lambda y: fmap(lambda x: unknown("h", V)(x, y), xs), array("ys", U, m), "y"),
            equal(n, m),
        ),
        ELEMENTS_AGREE,
    ),
    "reduce split from a start that is not neutral": (
        law(
            fold(op, start, scalars),
            blocks(start, start),
            divides(m, n),
            assuming=(ASSOCIATIVE, NEUTRAL),
            proof="blocks",
        ),
        ELEMENTS_AGREE,
    ),
    "reduce split that starts every block, and not the whole, from the neutral element": (
        law(
            fold(op, start, scalars),
            blocks(e, e),
            divides(m, n),
            assuming=(ASSOCIATIVE, NEUTRAL),
            proof="blocks",
        ),
        ELEMENTS_AGREE,
    ),
    "reduce split without associativity": (
        replace(reduce_split, assuming=(NEUTRAL,)),
        ELEMENTS_AGREE,
    ),
    "reduce split of a commutative function that is not associative": (
        replace(reduce_split, assuming=(NEUTRAL, COMMUTATIVE)),
        ELEMENTS_AGREE,
    ),
    "reduce of the reversed array without commutativity": (
        law(
            fold(op, e, scalars),
            fold(op, e, reorder(n - 1 - i, n - 1 - i, scalars)),
            assuming=(ASSOCIATIVE, NEUTRAL),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "reduce by columns without commutativity": (
        law(
            fold(op, start, join(rows)),
            fold(op, start, join(columns)),
            at_least(1, n),
            at_least(1, m),
            assuming=(ASSOCIATIVE, NEUTRAL),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "reduce of vectors' lanes with a stride without commutativity": (
        replace(RULES["reduce_of_joined_transpose"], assuming=(ASSOCIATIVE,)),
        ELEMENTS_AGREE,
    ),
    "reduce of an unknown order without associativity": (
        replace(RULES["reduce_of_reorder"], assuming=(COMMUTATIVE,)),
        ELEMENTS_AGREE,
    ),
    "reduce of what is padded with something else than the neutral element": (
        replace(
            RULES["reduce_of_pad"],
            left=fold(op, start, pad(left, right, c, scalars)),
            where=(at_least(0, left), at_least(0, right)),
        ),
        ELEMENTS_AGREE,
    ),
    "reduce started from the neutral element, with what it started from at the end": (
        replace(RULES["reduce_start"], right=op(fold(op, e, scalars), start)),
        ELEMENTS_AGREE,
    ),
    "map and reduce exchanged where the operator mentions the outer element": (
        law(
            fmap(lambda x: fold(lambda a, y: h(a, y, x), init(x, outer), source(x), "y"), xs),
            fold(
                lambda a, column: fmap(
                    lambda t: h(get(0, t), get(1, t), outer), zipped(a, column), "t"
                ),
                fmap(lambda x: init(x, outer), xs),
                transpose(fmap(source, xs)),
                "column",
            ),
            at_least(1, n),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "reductions of arrays of different lengths as one over their zip": (
        law(
            pair(fold(f, z, xs), fold(unknown("g", V), Param("w", V), array("ys", T, m), "y")),
            fold(
                lambda a, t: pair(f(get(0, a), get(0, t)), unknown("g", V)(get(1, a), get(1, t))),
                pair(z, Param("w", V)),
                zipped(xs, array("ys", T, m)),
                "t",
            ),
            proof="lockstep",
        ),
        REQUIRES,
    ),
    "the second component of a reduction that feeds the first": (
        law(
            get(0, fold(lambda a, x: pair(h(get(0, a), get(1, a), x), get(1, a)), both, xs)),
            fold(lambda a, x: h(a, get(1, both), x), get(1, both), xs),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "crop of windows by as many elements": (
        replace(
            RULES["crop_of_slide"],
            right=slide(size, step, pad(left, right, c, xs)),
            where=(at_most(left, 0), at_most(right, 0)),
        ),
        SIZES,
    ),
    "windows of windows with the step of the outer ones": (
        law(
            slide(k, p, slide(size, step, xs)),
            fmap(lambda t: slide(size, step, t), slide((k - 1) * step + size, p, xs), "t"),
        ),
        SIZES,
    ),
    "a name for a part that is not everywhere": (
        law(
            let(Param("x", T), lambda x: g(g(x)), "x"),
            let(g(Param("x", T)), lambda y: g(g(y)), "y"),
        ),
        ELEMENTS_AGREE,
    ),
    "mirrored paddings add up": (
        law(
            call(PadMirror(size, step), call(PadMirror(tile, p), xs)),
            call(PadMirror(size + tile, step + p), xs),
            at_most(size + tile, n),
            at_most(step + p, n),
        ),
        ELEMENTS_AGREE,
    ),
    "wrapped paddings add up": (
        law(
            call(PadWrap(size, step), call(PadWrap(tile, p), xs)),
            call(PadWrap(size + tile, step + p), xs),
            at_least(1, n),
        ),
        ELEMENTS_AGREE,
    ),
    "clamped paddings add up where the inner one crops": (
        replace(RULES["pad_clamp_of_pad_clamp"], where=()),
        ELEMENTS_AGREE,
    ),
    "windows put back are the whole array": (
        law(
            call(Unslide(size, step), slide(size, step, xs)),
            xs,
        ),
        SIZES,
    ),
    "windows put back and taken again are the windows": (
        law(
            slide(size, step, call(Unslide(size, step), windows)),
            windows,
            at_least(1, n),
        ),
        ELEMENTS_AGREE,
    ),
    "windows that are put back one after another": (
        law(call(Unslide(size, step), windows), join(windows), at_least(1, n)),
        SIZES,
    ),
    "concat commutes": (
        law(
            call(Concat(), xs, array("ys", T, m)),
            call(Concat(), array("ys", T, m), xs),
        ),
        ELEMENTS_AGREE,
    ),
    "drop of windows by as many elements": (
        law(
            call(Drop(k), slide(size, step, xs)),
            slide(size, step, call(Drop(k), xs)),
        ),
        SIZES,
    ),
    "take of windows by as many steps": (
        law(
            call(Take(k), slide(size, step, xs)),
            slide(size, step, call(Take(k * step), xs)),
        ),
        REQUIRES,
    ),
    "exchanged folds without commutativity": (
        replace(RULES["reduce_exchange"], assuming=(ASSOCIATIVE, NEUTRAL)),
        ELEMENTS_AGREE,
    ),
    "a nest that starts every row anew": (
        law(
            fold(f, z, join(xss)),
            fold(lambda a, row: fold(f, z, row), z, xss, "row"),
            proof="nested",
        ),
        ELEMENTS_AGREE,
    ),
    "a nest over the columns": (
        law(
            fold(f, z, join(xss)),
            fold(lambda a, row: fold(f, a, row), z, transpose(xss), "row"),
            at_least(1, n),
            at_least(1, m),
            proof="nested",
        ),
        ELEMENTS_AGREE,
    ),
    "map and reduce interchanged over the rows of a square": (
        law(
            fmap(lambda row: fold(f, z, row), array("xss", T, n, n), "row"),
            fmap(lambda row: fold(f, z, row), transpose(array("xss", T, n, n)), "row"),
            at_least(1, n),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "a fold that forgets to map": (
        law(
            fold(unknown("f", T), Param("z", T), fmap(g, xs), "y"),
            fold(unknown("f", T), Param("z", T), xs),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "a fold with its arguments exchanged": (
        law(
            fold(op, start, scalars),
            fold(lambda a, x: op(x, a), start, scalars),
            assuming=(ASSOCIATIVE,),
            proof="lockstep",
        ),
        ELEMENTS_AGREE,
    ),
    "a scan with its arguments exchanged": (
        law(scan(op, start, scalars), scan(lambda a, x: op(x, a), start, scalars)),
        ELEMENTS_AGREE,
    ),
    "a scan as the folds of its elements alone": (
        law(scan(op, start, scalars), fmap(lambda x: op(start, x), scalars)),
        ELEMENTS_AGREE,
    ),
    "an iteration of one time more": (
        law(iterate(p, x), iterate(p + 1, x)),
        ELEMENTS_AGREE,
    ),
    "a window in registers that moves further than it is long": (
        law(fmap(f, slide(size, step, xs), "w"), slide_seq(size, step)),
        REQUIRES,
    ),
    "vectors that do not fill the array": (
        law(scalars, call(AsScalar(), call(AsVector(var("v")), scalars)), at_least(1, var("v"))),
        REQUIRES,
    ),
    "a product with the dividend's reciprocal": (
        law(divided(q, r), r * divided(ONE, q), proof="real"),
        ELEMENTS_AGREE,
    ),
    "a product with twice the reciprocal": (
        law(divided(q, r), q * divided(ONE + ONE, r), proof="real"),
        ELEMENTS_AGREE,
    ),
    "a product with the divisor": (law(divided(q, r), q * r, proof="real"), ELEMENTS_AGREE),
    "the reciprocal alone": (law(divided(q, r), divided(ONE, r), proof="real"), ELEMENTS_AGREE),
    "the reciprocal of a quotient": (
        law(divided(q, r), divided(ONE, divided(q, r)), proof="real"),
        ELEMENTS_AGREE,
    ),
}


UNREAL = {
    "what is divided and multiplied again": (divided(q, r) * r, q),
    "a reciprocal of a reciprocal": (divided(ONE, divided(ONE, r)), r),
    "a number by itself": (divided(q, q), ONE),
    "a quotient of a sum": (divided(q + r, r), divided(q, r) + ONE),
}


@pytest.mark.parametrize("claim", UNREAL)
def test_law_of_real_numbers_that_infinity_nan_or_a_zero_breaks_is_not_proved(claim):
    """It holds where no divisor is 0, and there it is not the same to the bit."""
    verdict = prove(law(*UNREAL[claim], proof="real"), FEWER_STEPS)
    assert isinstance(verdict, Unknown), verdict
    assert verdict.obligation == BEYOND


def test_integers_have_no_reciprocals():
    a, b = Param("a", I32), Param("b", I32)
    whole = law(divided(a, b), a * divided(Literal(1, I32), b), proof="real")
    assert isinstance(prove(whole), Unknown)
    assert isinstance(prove(replace(whole, proof="pointwise")), Refuted)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("claim", FALSE)
def test_false_law_is_refuted(claim):
    rule, obligation = FALSE[claim]
    verdict = prove(rule, FEWER_STEPS)
    assert isinstance(verdict, Refuted), verdict
    assert verdict.obligation == obligation, verdict
    assert re.search(r"\d" if lengths(rule) else "on the left", verdict.witness), verdict


def test_witness_is_an_array_of_more_than_8_elements_and_says_what_differs():
    verdict = prove(
        RULES["reduce_split"].__class__(
            "crop", "refuted", pad(left, 0, c, xs), pad(0, left, c, xs), where=(at_most(1, left),)
        )
    )
    assert isinstance(verdict, Refuted)
    sizes = dict(re.findall(r"(\w+) = (-?\d+)", verdict.witness))
    assert int(sizes["n"]) > 8
    assert "is c on the left" in verdict.witness or "is xs[" in verdict.witness


def test_law_between_different_types_is_refuted():
    verdict = prove(law(xs, fmap(f, xs)))
    assert isinstance(verdict, Refuted)
    assert verdict.obligation == SIZES


def test_law_about_no_array_of_a_useful_length_is_vacuous():
    verdict = prove(law(xs, reorder(n - 1 - i, n - 1 - i, xs), at_most(n, 1)))
    assert isinstance(verdict, Vacuous)
    assert "n <= 1" in verdict.reason


def test_true_law_by_the_wrong_method_is_unknown_not_refuted():
    verdict = prove(replace(RULES["reduce_split"], proof="lockstep"))
    assert isinstance(verdict, Unknown)


def test_law_whose_function_takes_arrays_is_proved_by_their_elements():
    row = unknown("rowwise", U)
    rule = law(fmap(row, join(split(m, xss)), "row"), fmap(row, xss, "row"), divides(m, n))
    assert isinstance(prove(rule), Proved)


def test_law_whose_function_takes_other_arrays_is_refuted():
    square = array("xss", T, n, n)
    row = unknown("rowwise", U)
    rule = law(fmap(row, square, "row"), fmap(row, transpose(square), "row"), at_least(1, n))
    assert isinstance(prove(rule), Refuted)


def test_law_whose_function_takes_folds_is_proved_by_lockstep():
    inner = unknown("h", V)
    rule = law(
        fmap(lambda row: inner(fold(f, z, fmap(g, row), "y")), xss, "row"),
        fmap(lambda row: inner(fold(lambda a, x: f(a, g(x)), z, row)), xss, "row"),
    )
    assert isinstance(prove(rule), Proved)


def test_accumulators_that_are_arrays_are_compared_whole():
    """A step that transposes its accumulator reads it elsewhere than it writes."""
    zs, xsss = array("zs", T, n, n), array("xsss", T, m, n, n)
    both = unknown("h", T)

    def add(a, x):
        return fmap(
            lambda rows: fmap(
                lambda t: both(get(0, t), get(1, t)), zipped(get(0, rows), get(1, rows)), "t"
            ),
            zipped(a, x),
            "rows",
        )

    plain = fold(add, zs, xsss)
    turned = fold(lambda a, x: add(transpose(a), x), zs, xsss)
    copied = fold(lambda a, x: add(transpose(transpose(a)), x), zs, xsss)
    assert isinstance(prove(law(plain, copied, at_least(1, n), proof="lockstep")), Proved)
    assert isinstance(prove(law(plain, turned, at_least(1, n), proof="lockstep")), Refuted)


def test_gather_by_a_permutation_and_its_inverse_is_the_identity():
    rotated = reorder((i + 1) % n, (i + n - 1) % n, xs)
    back = reorder((i + n - 1) % n, (i + 1) % n, rotated)
    assert isinstance(prove(law(back, xs, at_least(1, n))), Proved)


def test_exchange_over_no_rows_needs_a_neutral_element_too():
    """Without rows the columns are folded from `start`, which nothing declares neutral."""
    rule = replace(
        RULES["reduce_exchange"],
        left=fold(op, start, fmap(lambda row: fold(op, start, row), rows, "row"), "y"),
        right=fold(op, start, fmap(lambda c_: fold(op, start, c_), columns, "column"), "y"),
    )
    assert isinstance(prove(rule), Refuted)


@pytest.mark.parametrize("products", [515, 519])
def test_sums_in_f32_of_too_many_products_are_refuted(products):
    """518 products of a u8 and an i8 are exact only if no i8 is -128; 514 are for all."""
    known = RULES["sum_in_f32"]
    (limit,) = known.where
    wrong = replace(known, where=(at_most(limit.left, products * 255 * 128),))
    verdict = prove(wrong)
    assert isinstance(verdict, Refuted)
    assert "bound = " in str(verdict)
