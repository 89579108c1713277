"""File names from a program's names: safe, short, distinct."""

import string

from hypothesis import given
from hypothesis import strategies as some

from liftpy.files.naming import LONGEST, RESERVED, file_names

names = some.lists(
    some.one_of(
        some.text("aZ09 _éßİﬁ漢😀\u0301", max_size=8),
        some.text("aAbB_-./\\\0 ~$`'\"\x1b\n\u2028", max_size=6),
        some.sampled_from(sorted(RESERVED)),
        some.integers(50, 300).map("x".__mul__),
    ),
    max_size=6,
)


@given(names)
def test_any_names_become_distinct_names_of_files_in_one_folder(given_names):
    made = file_names(given_names)
    assert len({name.casefold() for name in made}) == len(given_names)
    allowed = {*string.ascii_letters, *string.digits, "_", "-"}
    for name in made:
        assert name
        assert set(name) <= allowed
        assert not name.startswith("-")
        assert len(name) <= LONGEST + 9
        assert name.casefold() not in RESERVED


def test_the_names_that_people_write_stay():
    assert file_names(["x", "weights", "b_1", "Xs"]) == ["x", "weights", "b_1", "Xs"]


def test_a_name_that_looks_like_the_changed_one_of_another_is_changed_too():
    (changed,) = file_names(["a b"])
    both = file_names(["a b", changed])
    assert both[0] == changed
    assert both[1] != changed
