"""Where what a board measured stands in a campaign that goes on."""

import itertools

from liftpy.boards.bundle import Bundle, write
from liftpy.boards.importing import import_results
from liftpy.boards.results import read_results
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.campaign.store import Store
from liftpy.explore.exploring import explore
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.outcome import Refused
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from tests.boards.ran import run
from tests.errors.boards import PLAIN, SPACE, TILED, printed, row


def results(path, *candidates):
    """A file with these results: all were refused."""
    rows = [
        row(c, source_sha(compile_candidate(c.skeleton, c.assignment).source), outcome="refused")
        for c in candidates
    ]
    path.write_text(printed(*rows))
    return read_results(path)


def test_no_place_is_taken_that_the_campaign_will_give_to_another(tmp_path):
    path, text = tmp_path / "a.db", tmp_path / "results.csv"
    drawn = list(itertools.islice(SPACE.draws(0), 6))
    first, *_, fourth, fifth = (c for c in drawn if c.key not in (PLAIN.key, TILED.key))
    with Store.open(path, identity_of(SPACE, 0, search="random")) as store:
        store.begin(first)
        store.end(first.key, Refused("too large"))
    import_results(path, results(text, fifth, TILED))
    import_results(path, results(text, PLAIN, fourth))
    with Store.open(path, identity_of(SPACE, 0, search="random")) as store:
        assert [row.id for row in store.rows()] == [
            c.key for c in (PLAIN, fourth, fifth, TILED, first)
        ]
        assert store.strangers() == {c.key for c in (PLAIN, fourth, fifth, TILED)}
        store.begin(next(c for c in drawn if c.ordinal == first.ordinal + 1))


def test_a_campaign_goes_on_after_one_candidate_was_imported(board, pocl, tmp_path):
    """Chosen, exported, run on a board, imported: then drawn for, from the beginning."""
    program = parse("def double(xs: [12]f32) = xs |> map(x => x + x)")
    space = space_of(program, pocl)
    whole = space.sample(5, 0)
    chosen = space.candidate(whole[3].assignment)
    write(Bundle(identity_of(space, 0, search="random"), (chosen,)), tmp_path / "bundle")
    (tmp_path / "results.csv").write_text(run(board, tmp_path / "bundle").stdout)
    path = tmp_path / "board.db"
    import_results(path, read_results(tmp_path / "results.csv"))
    (before,) = Campaign.read(path).rows
    assert (before.id, before.ordinal, before.outcome) == (chosen.key, -1, "measured")
    tried, told = [], []

    def progress(now):
        told.append(now.done)
        if now.outcome is not None:
            tried.append(now.candidate.key)

    found = explore(program, 3, 0, path, pocl, search="random", progress=progress, again=False)
    assert [row.id for row in found.rows] == [chosen.key, *(c.key for c in whole[:3])]
    assert max(told) == 3, "what was imported is not one of the three"
    found = explore(program, 5, 0, path, pocl, search="random", progress=progress, again=False)
    assert [row.id for row in found.rows] == [c.key for c in whole]
    assert [row.ordinal for row in found.rows] == list(range(5)), "it has the place of its draw"
    assert tried == [c.key for c in whole if c.key != chosen.key], "and was not measured again"
    assert max(told) == 5
    assert found.rows[3].times_ns == before.times_ns
