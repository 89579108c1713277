"""The part of ids and counters for which guards hold, against evaluating them one by one."""

from fractions import Fraction

import pytest

from liftpy.ir.nat import var
from liftpy.loops.tree import (
    Block,
    For,
)
from liftpy.loops.values import (
    All,
    Both,
    Fails,
    RangeTest,
)
from liftpy.traffic.guards import share

ROW, J, LID, WID, GID = (var(name, 0, 6) for name in ("i", "j", "lid0", "wid0", "gid0"))
IDS = {"lid0": 5, "wid0": 3, "gid0": 15}
LOOPS = [For("i", 1, 7, 2, Block()), For("j", "lid0", 7, 5, Block())]
EARLY, LATE = All((RangeTest(ROW + WID, 5),)), All((RangeTest(2 * LID - WID - 3),))
EITHER = Fails(All((RangeTest(ROW + WID, 5), RangeTest(2 * LID - WID - 3))))


def counted(holds):
    found = [holds(i, lid, wid) for i in (1, 3, 5) for lid in range(5) for wid in range(3)]
    return Fraction(sum(found), len(found))


def early(i, lid, wid):
    return i + wid < 5


def late(i, lid, wid):
    return 2 * lid - wid - 3 >= 0


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ([(EARLY, True)], early),
        ([(EARLY, False)], lambda *at: not early(*at)),
        ([(EARLY, True), (LATE, False)], lambda *at: early(*at) and not late(*at)),
        ([(EITHER, True)], lambda *at: not (early(*at) and late(*at))),
        ([(Both(EARLY, Fails(LATE)), True)], lambda *at: early(*at) and not late(*at)),
    ],
)
def test_the_part_is_that_of_the_values(conditions, holds):
    assert 0 < share(conditions, IDS, LOOPS) == counted(holds) < 1


def test_what_is_not_evaluated_counts_as_holding():
    far = All((RangeTest(var("@0", 0, 6) - 3),))
    group = All((RangeTest(GID - LID - 1),))  # a global id depends on a local one
    shared = All((RangeTest(J - LID - 1),))  # the counter begins at the id
    for condition in (far, group, shared):
        assert share([(condition, True)], IDS, LOOPS) == 1
    assert share([(All((RangeTest(GID - 3),)), True)], {"gid0": 1 << 20}, ()) == 1
    assert share([(All((RangeTest(J - 3),)), True)], IDS, LOOPS) == Fraction(4, 7)
