"""The C of an index has the value of the index, although C's division truncates."""

import re

import pytest
import z3

from liftpy.ir.nat import greatest, least, var
from liftpy.opencl.indices import HELPERS, index_c
from liftpy.semantics.smt import ask
from tests.ir.laws import GIVEN, LAWS, X, Y


class C:
    """An integer of C without overflow: a term of z3 whose `/` and `%` truncate."""

    def __init__(self, term):
        self.term = term

    def __add__(self, other):
        return C(self.term + of(other))

    def __sub__(self, other):
        return C(self.term - of(other))

    def __mul__(self, other):
        return C(self.term * of(other))

    def __neg__(self):
        return C(-self.term)

    def __ge__(self, other):
        return self.term >= of(other)

    def __truediv__(self, other):
        """z3's quotient rounds down if the divisor is positive, as all divisors are here."""
        n, d = self.term, of(other)
        return C(z3.If(n >= 0, n / d, -(-n / d)))

    def __mod__(self, other):
        return self - (self / other) * other


def of(value):
    return value.term if isinstance(value, C) else z3.IntVal(value)


def chosen(condition, yes, no):
    return C(z3.If(condition, of(yes), of(no)))


def helpers():
    """The functions of `HELPERS`, read from their C text."""
    found = {}

    def function(text):
        body = eval(f"lambda a, b: {text}", {**found, "chosen": chosen})  # noqa: S307
        return lambda a, b: body(C(of(a)), C(of(b)))

    for name, body in re.findall(r"inline long (\w+)\(long a, long b\) { return (.*); }", HELPERS):
        text = re.sub(r"^(.*) \? (.*) : (.*)$", r"chosen(\1, \2, \3)", body)
        found[name] = function(text)
    assert set(found) == {"floor_div", "floor_mod"}
    return found


def read(text, **variables):
    """The term of an index that is printed as C; a conversion `(int)(x)` changes nothing."""
    scope = {
        **helpers(),
        "min": lambda a, b: chosen(of(b) >= of(a), a, b),
        "max": lambda a, b: chosen(of(a) >= of(b), a, b),
        "int": lambda value: value,
        **{name: C(z3.Int(name)) for name in variables.get("names", ())},
    }
    return of(eval(text, scope))  # noqa: S307


def equal(text, meant, names, facts):
    return ask([*facts, read(text, names=names) != meant]).status == "unsat"


@pytest.mark.parametrize("low", [None, 0])
@pytest.mark.parametrize("law", LAWS)
def test_the_c_of_a_simplified_index_has_its_value(law, low):
    """With variables of any sign, whose quotients call a helper, and with non-negative ones."""
    simplified, meant = LAWS[law]
    facts = [*GIVEN]
    if low is not None:
        simplified = simplified.substitute({"x": var("x", low), "y": var("y", low)})
        facts += [low <= X, low <= Y]
    assert equal(index_c(simplified), meant, simplified.names(), facts), index_c(simplified)


def test_both_ways_to_print_a_quotient_are_tried():
    texts = {low: index_c((var("x", low) + 3) // 4) for low in (None, 0)}
    assert texts == {None: "floor_div(x + 3, 4)", 0: "((x + 3) / 4)"}
    assert index_c(least(var("x", None), greatest(var("y"), 1))).count("(int)") == 4


def test_a_plain_division_of_a_negative_number_would_be_found_wrong():
    assert not equal("(x / 4)", X / 4, "x", [])
    assert not equal("(x % 4)", X % 4, "x", [])
    assert equal("(x / 4)", X / 4, "x", [X >= 0])


@pytest.mark.parametrize(
    ("helper", "meant"), [("floor_div", lambda a, b: a / b), ("floor_mod", lambda a, b: a % b)]
)
def test_a_helper_rounds_down_for_every_number_and_positive_divisor(helper, meant):
    a, b, quotient = z3.Ints("a b quotient")
    floor = [b >= 1, b * quotient <= a, a < b * quotient + b]
    value = {"floor_div": quotient, "floor_mod": a - b * quotient}[helper]
    assert equal(f"{helper}(a, b)", value, "ab", floor)
    assert equal(f"{helper}(a, 7)", meant(a, 7), "a", [])
