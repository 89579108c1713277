"""export and import, as typed."""

import csv
import statistics
from pathlib import Path

from liftpy.explore.campaign.store import Store
from liftpy.opencl.devices import find_device
from tests.boards.ran import run


def rows(path: Path) -> list[dict[str, str]]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def test_a_batch_comes_back_as_a_campaign(liftpy, board):
    """The draws are those of `space --draw`; times and kernels survive; all can be replayed."""
    words = ["tiny.lift", "--set", "pad=copy", "--seed", "3", "--device", "pocl"]
    made = liftpy("export", *words, "--batch", "4", "-o", "bundle", "--json").json
    drawn = liftpy("space", *words, "--draw", "4", "--json").json
    assert [c["id"] for c in made["candidates"]] == [c["id"] for c in drawn]
    printed = run(board, Path("bundle"))
    assert printed.returncode == 0, printed.stderr
    Path("results.csv").write_text(printed.stdout)
    assert liftpy("import", "new.db", "results.csv", "--json").json["outcomes"] == {"measured": 4}

    kept = {row["id"]: row for row in liftpy("candidates", "new.db", "--json").json}
    for number, row in enumerate(rows(Path("results.csv"))):
        runs = [sum(map(int, r.split())) for r in row["times_ns"].split(";")]
        assert kept[row["candidate"]]["time_ns"] == round(statistics.median(runs)) > 0
        line = 8 + 2 * number
        assert f"imported from results.csv, line {line} (" in kept[row["candidate"]]["reason"]
    front = liftpy("pareto", "new.db", "--json").json
    assert front["device"]["fingerprint"] == find_device("pocl").fingerprint
    assert {row["id"] for row in front["front"]} <= kept.keys()
    assert liftpy("replay", "new.db", front["front"][0]["id"], "--json").json["identical"]


def test_a_campaign_takes_in_what_the_same_device_found(liftpy, board):
    """What is imported has no place until the campaign draws it; then it is not measured."""
    Path("thrice.lift").write_text("def thrice(x: [12]f32) = x |> map(x => x * 3)")
    words = ["thrice.lift", "--device", "pocl", "--seed", "3"]
    explored = liftpy("explore", *words, "--search", "random", "-n", "1", "--db", "c.db")
    assert explored.code == 0, explored.err
    liftpy("export", *words, "--batch", "3", "-o", "bundle")
    Path("two.csv").write_text(run(board, Path("bundle"), "--skip", "1").stdout)
    assert liftpy("import", "c.db", "two.csv").code == 0
    before = Path("c.db").read_bytes()
    again = liftpy("import", "c.db", "two.csv")
    assert again.code == 1
    assert "two.csv, line 8: candidate" in again.err
    assert Path("c.db").read_bytes() == before
    with Store.read(Path("c.db")) as store:
        assert [row.ordinal for row in store.rows()] == [-2, -1, 0]
        imported = [row.times_ns for row in store.rows()[:2]]
    resumed = liftpy("explore", *words, "--search", "random", "-n", "3", "--db", "c.db")
    assert "3 of 3 candidates" in resumed.out
    with Store.read(Path("c.db")) as store:
        assert [row.ordinal for row in store.rows()] == [0, 1, 2]
        assert [
            row.times_ns[: len(t)] for row, t in zip(store.rows()[1:], imported, strict=True)
        ] == imported

    id_ = liftpy("candidates", "c.db", "--json").json[0]["id"]
    liftpy("export", "c.db", id_[:6], "-o", "one")
    Path("one.csv").write_text(run(board, Path("one")).stdout)
    assert [row["candidate"] for row in rows(Path("one.csv"))] == [id_]
    assert "already has an outcome in c.db" in liftpy("import", "c.db", "one.csv").err
    assert liftpy("import", "other.db", "one.csv").code == 0
