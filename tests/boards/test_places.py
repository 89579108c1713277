"""Where what a board measured stands in a campaign that goes on."""

from dataclasses import replace

import pytest

from liftpy.boards.importing import import_results
from liftpy.boards.results import read_results
from liftpy.compile import compile_candidate
from liftpy.explore.campaign import identity_of
from liftpy.explore.compiling import source_sha
from liftpy.explore.outcome import Refused
from liftpy.explore.store import Store
from tests.errors.boards import PLAIN, SPACE, TILED, printed, row


@pytest.mark.parametrize(
    ("search", "places"), [("random", [0, 1]), ("guided", [-1, 0])], ids=["alike", "otherwise"]
)
def test_no_place_is_taken_that_the_campaign_will_give_to_another(tmp_path, search, places):
    path, text = tmp_path / "a.db", tmp_path / "results.csv"
    identity = identity_of(SPACE, 0, search=search)
    with Store.open(path, identity) as store:
        store.begin(PLAIN)
        store.end(PLAIN.key, Refused("too large"))
    kernels = compile_candidate(TILED.skeleton, TILED.assignment).source
    text.write_text(printed(row(TILED, source_sha(kernels), ordinal="1", outcome="refused")))
    import_results(path, read_results(text))
    other = next(c for c in SPACE.draws(0) if c.key not in (PLAIN.key, TILED.key))
    with Store.open(path, identity) as store:
        assert [row.ordinal for row in store.rows()] == places
        store.begin(replace(other, ordinal=max(places) + 1))
