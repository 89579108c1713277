"""False laws whose fault stands behind a name: in an array, or a fold, that a function is given.

Each step reads `g(repeat(k, a), ...)` or a fold over `repeat(k, a)`, `a` an accumulator, so that
the term of the step mentions `a` nowhere. Every proof method meets such a law.
"""

import pytest

from liftpy.errors import InternalError
from liftpy.ir.call import call
from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Literal, Param
from liftpy.ir.types import F32
from liftpy.primitives import Concat, ExclusiveScan, Reduce, Repeat, Scan
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.notation import (
    S,
    array,
    element_of,
    fmap,
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
    transpose,
    unknown,
    zipped,
)
from liftpy.rewrite.rules.scalar import divided
from liftpy.semantics.dependence import dependence, replaced
from liftpy.semantics.prove import METHODS, prove
from liftpy.semantics.refute import contradiction, points, with_permutations
from liftpy.semantics.smt import FEWER_STEPS, Terms
from liftpy.semantics.symbolic import SymbolicReader
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown

xs, ys, xss = array("xs", S, n), array("ys", S, m), array("xss", S, n, m)
start = Param("start", S)
k3, r3 = unknown("k", S), unknown("r", S)
e, f, g, h = Literal(ValueVar("e"), S), unknown("f", S), unknown("g", S), unknown("h", S)
ASSOCIATIVE, COMMUTATIVE = Assumption("associative", "f"), Assumption("commutative", "f")
NEUTRAL = Assumption("neutral", "f", "e")
MONOID = (ASSOCIATIVE, NEUTRAL)
ABELIAN = (ASSOCIATIVE, COMMUTATIVE, NEUTRAL)
d, FINITE = Literal(ValueVar("d"), S), Assumption("finite", "f", "d")
RESCALES = (Assumption("rescales", "r", "k"), Assumption("keeps", "r", "e"))


def fold(body, init, xs, a="a", x="x"):
    return call(Reduce(function(body, **{a: init.type, x: element_of(xs)})), init, xs)


def copies(a):
    return call(Repeat(k), a)


def in_array(a, x):
    """A function of `x` and of an array made of `a`."""
    return g(copies(a), x)


def in_fold(a, x):
    """A fold over an array made of `a`, from `x`."""
    return fold(h, x, copies(a), "s", "q")


def law(left, right, method, *assuming):
    where = tuple(at_least(1, size) for size in (n, m, k))
    return Rule("hidden", "refuted", left, right, where, assuming, proof=method)


def exchanged(hidden):
    def rows(xss):
        def row(acc, row):
            inner = fold(lambda b, x: let(hidden(acc, x), lambda z: f(b, z), "z"), e, row, "b")
            return let(inner, lambda y: f(acc, y), "y")

        return fold(row, e, xss, "acc", "row")

    return law(rows(xss), rows(transpose(xss)), "exchange", *ABELIAN)


def exchanged_start(hidden):
    """The inner fold begins with something of the outer accumulator."""

    def rows(xss):
        def row(acc, row):
            inner = fold(f, hidden(acc, e), row, "b")
            return let(inner, lambda y: f(acc, y), "y")

        return fold(row, e, xss, "acc", "row")

    return law(rows(xss), rows(transpose(xss)), "exchange", *ABELIAN)


def exchanged_outside(hidden):
    """The outer step reads the accumulator a second time."""

    def rows(xss):
        def row(acc, row):
            inner = fold(f, e, row, "b")
            return let(inner, lambda y: f(hidden(acc, acc), y), "y")

        return fold(row, e, xss, "acc", "row")

    return law(rows(xss), rows(transpose(xss)), "exchange", *ABELIAN)


def in_blocks(method):
    def law_of(hidden):
        flat = fold(lambda a, x: f(a, hidden(a, x)), start, join(xss))

        def row(acc, row):
            return fold(lambda b, x: f(b, hidden(acc, x)), acc, row, "b")

        return law(flat, fold(row, start, xss, "acc", "row"), method, *MONOID)

    return law_of


def in_blocks_after(hidden):
    """What is done with a block's result reads it a second time."""

    def row(acc, row):
        return let(fold(f, e, row, "b"), lambda y: f(acc, hidden(y, y)), "y")

    return law(fold(f, e, join(xss)), fold(row, e, xss, "acc", "row"), "blocks", *MONOID)


def in_chunks(before, within):
    """The law that a scan of joined chunks consists of scans of the chunks.

    `before` makes the hidden term in the steps of the chunks before one, `within` in its own. Both
    take the accumulator, that from which the chunk begins, and an element.
    """

    def scan(kind, body, init, xs, x="x"):
        return call(kind(function(body, **{f"s{x}": init.type, x: element_of(xs)})), init, xs)

    def law_of(hidden):
        def folded(acc, row):
            return fold(lambda b, x: f(b, before(hidden, b, acc, x)), acc, row, "b", "q")

        def chunk(part):
            first, row = get(0, part), get(1, part)
            return scan(Scan, lambda a, x: f(a, within(hidden, a, first, x)), first, row, "y")

        begun = zipped(scan(ExclusiveScan, folded, start, xss, "row"), xss)
        whole = scan(Scan, lambda a, x: f(a, hidden(a, x)), start, join(xss))
        return law(whole, join(fmap(chunk, begun, "part")), "chunks")

    return law_of


def right(hidden, acc, _first, x):
    return hidden(acc, x)


def wrong(hidden, _acc, first, x):
    return hidden(first, x)


def carried(hidden):
    def folded(init):
        return fold(lambda a, x: f(a, hidden(a, x)), init, xs)

    return law(folded(start), f(start, folded(e)), "carried", *MONOID)


def carried_twice(hidden):
    """The other side is a function of the fold that reads it behind a name as well."""
    right = let(fold(f, e, xs), lambda y: f(start, hidden(y, y)), "y")
    return law(fold(f, start, xs), right, "carried", *MONOID)


def idle(hidden):
    def folded(xs):
        return fold(lambda a, x: f(a, hidden(a, x)), start, xs)

    return law(folded(xs), folded(pad(0, 2, ValueVar("e"), xs)), "idle", NEUTRAL)


def sequel(hidden):
    def step(a, x):
        return f(a, hidden(a, x))

    whole = fold(step, start, call(Concat(), xs, ys))
    first = fold(step, start, xs)
    after = let(first, lambda s: fold(lambda a, x: f(a, hidden(s, x)), s, ys), "s0")
    return law(whole, after, "sequel")


def reordered(hidden):
    def folded(xs):
        return fold(lambda a, x: f(a, hidden(a, x)), start, xs)

    return law(folded(permuted(xs)), folded(xs), "permuted", *ABELIAN)


def online(hidden):
    """What is accumulated for `m` reads it a second time, beside what is rescaled."""

    def step(m, s, x):
        return k3(m, s, hidden(m, x))

    first = fold(f, start, xs)
    left = let(first, lambda m: fold(lambda s, x: step(m, s, x), e, xs), "m")

    def pairs(p, x):
        m, s = get(0, p), get(1, p)
        return let(f(m, x), lambda n: pair(n, step(n, r3(m, n, s), x)), "n")

    return law(left, get(1, fold(pairs, pair(start, e), xs, "p")), "online", *RESCALES)


def rescaled(hidden):
    """As `online`, for rows of which each has an `m` of its own."""

    def of_row(m, row):
        return fold(lambda s, x: k3(m, s, hidden(m, x)), e, row, "s")

    def sums(m, made):
        return fold(h, start, fmap(made, xss, "row"), "t", "y")

    own = lambda row: fold(f, start, row)
    left = let(start, lambda m: sums(m, lambda row: of_row(m, row)), "m")
    right = let(start, lambda m: sums(m, lambda row: r3(own(row), m, of_row(own(row), row))), "m")
    return law(left, right, "rescaled", *RESCALES)


def in_step(hidden):
    left = fold(lambda a, x: f(a, hidden(a, x)), start, xs)
    return law(left, fold(lambda a, x: f(a, hidden(start, x)), start, xs), "lockstep")


def pointwise(method):
    def law_of(hidden):
        left, right = (fmap(lambda x, y=y: hidden(x if y else e, x), xs) for y in (1, 0))
        return law(left, right, method)

    return law_of


FALSE = {
    "exchange": exchanged,
    "exchange, where the inner fold begins": exchanged_start,
    "exchange, beside the inner fold": exchanged_outside,
    "blocks": in_blocks("blocks"),
    "blocks, after a block": in_blocks_after,
    "nested": in_blocks("nested"),
    "chunks": in_chunks(right, wrong),
    "chunks, in those before": in_chunks(wrong, right),
    "carried": carried,
    "carried, in what is made of the fold": carried_twice,
    "idle": idle,
    "sequel": sequel,
    "permuted": reordered,
    "online": online,
    "rescaled": rescaled,
    "lockstep": in_step,
    "pointwise": pointwise("pointwise"),
    "definition": pointwise("definition"),
}


LONG = {"permuted"}  # 2 of its cases take as long as the 34 others
SOAK = pytest.mark.soak


def test_every_method_meets_a_law_with_a_hidden_fault():
    assert {name.split(",")[0] for name in FALSE} == set(METHODS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("hidden", [in_array, in_fold], ids=["array", "fold"])
@pytest.mark.parametrize("fault", [pytest.param(n, marks=SOAK if n in LONG else ()) for n in FALSE])
def test_a_fault_behind_a_name_is_refuted(fault, hidden):
    """Not proved, and no InternalError: the method sees the fault before numbers do."""
    verdict = prove(FALSE[fault](hidden), FEWER_STEPS)
    assert isinstance(verdict, Refuted), verdict


def test_the_exchange_of_folds_is_proved_where_nothing_is_hidden():
    assert isinstance(prove(exchanged(lambda acc, x: g(copies(x), x))), Proved)


def test_a_scan_of_chunks_is_proved_where_nothing_is_wrong():
    assert isinstance(prove(in_chunks(right, right)(g)), Proved)


# --- the net under the methods -------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_proves_what_is_false_is_a_defect_of_liftpy(method, monkeypatch):
    """Every method in turn believes all that it is asked."""
    monkeypatch.setitem(METHODS, method, lambda proof, left, right, hypotheses: None)
    monkeypatch.setattr("liftpy.semantics.agree.Proof.same_scalar", lambda *_: None)
    false = next(law for name, law in FALSE.items() if name.split(",")[0] == method)
    with pytest.raises(InternalError, match=rf"'{method}', but an example refutes it\n.*k = 2"):
        prove(false(in_array))


def test_a_false_law_of_real_numbers_that_is_proved_is_a_defect_of_liftpy(monkeypatch):
    monkeypatch.setattr("liftpy.semantics.prove.show_real", lambda rule, proof: None)
    x, y = Param("x", F32), Param("y", F32)
    with pytest.raises(InternalError, match="'real', but an example refutes it"):
        prove(Rule("hidden", "refuted", divided(x, y), divided(y, x), proof="real"))


def test_a_law_of_real_numbers_names_nothing():
    """It is of scalars, so no fault can stand behind a name."""
    x = Param("x", F32)
    total = fold(lambda a, q: a + q, x, array("qs", F32, n), "a", "q")
    product = x * divided(Literal(1.0, F32), total)
    verdict = prove(Rule("hidden", "refuted", divided(x, total), product, proof="real"))
    assert isinstance(verdict, Unknown)


def test_every_rule_is_tried_after_its_proof():
    for name, rule in RULES.items():
        assert list(points(with_permutations(rule)[0])), name


@pytest.mark.parametrize(
    "assuming", [(), *((law,) for law in (*ABELIAN, *RESCALES, FINITE)), MONOID, RESCALES]
)
def test_numbers_tell_laws_apart(assuming):
    """A function keeps the laws that it is tried with, and no other."""
    a, b, c, x = (Param(name, S) for name in "abcx")
    laws = {
        "associative": (f(f(a, b), c), f(a, f(b, c))),
        "commutative": (f(a, b), f(b, a)),
        "neutral": (f(e, a), a),
        "finite": (f(d, a), a),
        "rescales": (r3(a, b, k3(a, c, x)), k3(b, r3(a, b, c), x)),
        "keeps": (r3(a, b, e), e),
    }
    for name, (left, right) in laws.items():
        kept = contradiction(Rule("law", "refuted", left, right, assuming=assuming)) is None
        assert kept == any(assumption.law == name for assumption in assuming), name


# --- what a term depends on ----------------------------------------------------------------------


def test_a_term_depends_on_what_stands_behind_its_names():
    reader = SymbolicReader(Terms())
    one, two = (reader.leaf(name, S) for name in ("one", "two"))
    inner = reader.name(reader.fold(n, two, lambda i, a: reader.operate("+", (a, one))), one.sort())
    outer = reader.operate("*", (reader.name((inner, two), one.sort()), two))
    assert {one, two, inner} <= dependence(reader, outer)
    assert reader.leaf("three", S) not in dependence(reader, outer)
    with pytest.raises(Open, match="one stands behind the name"):
        replaced(reader, outer, one, two)
    assert replaced(reader, reader.operate("*", (one, two)), one, two).arg(0).eq(two)
