"""Queries drawn from a log into a golden set, and drawn again a month later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.store.sql import queries
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.sampling import choose_queries, draw_queries, plan_queries, read_bands
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


def log(path: Path, counts: dict[str, int]) -> Path:
    """A log as CSV."""
    rows = "".join(f"{text},{count}\n" for text, count in counts.items())
    path.write_text(f"query,count\n{rows}", encoding="utf-8")
    return path


def asked(opened: Workspace) -> pl.DataFrame:
    """The queries of the golden set."""
    with opened.store.read() as c:
        return queries.frame(c, opened.golden.id)


def test_weights_stand_for_searches(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    counts = {"a": 70, "b": 20, "c": 10}
    made = choose_queries(shop, log(tmp_path / "log.csv", counts), 3, now=tick())
    assert (made.added, made.kept, made.gone.height) == (3, 0, 0)
    weight = dict(asked(shop).select("text", "weight").iter_rows())
    # All are drawn: each stands for its own searches, and the weights are 1 on average.
    assert weight == pytest.approx({"a": 2.1, "b": 0.6, "c": 0.3})


def test_drawn_again_a_query_that_is_still_asked_stays(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    first = {f"query {n}": 100 - n for n in range(60)}
    choose_queries(shop, log(tmp_path / "log.csv", first), 20, now=tick())
    (tmp_path / "own.jsonl").write_text('{"_id": "own", "text": "by hand"}\n', encoding="utf-8")
    import_from(shop, tmp_path / "own.jsonl", now=tick())
    before = set(asked(shop)["text"])
    again = choose_queries(shop, tmp_path / "log.csv", 20, now=tick())
    assert (again.added, again.kept, again.gone.height) == (0, 20, 0)
    fewer = {text: count for text, count in first.items() if text != min(before - {"by hand"})}
    later = choose_queries(shop, log(tmp_path / "log.csv", fewer), 20, now=tick())
    after = set(asked(shop)["text"])
    assert "by hand" in after
    assert min(before - {"by hand"}) not in after
    assert later.gone["query_id"].to_list()
    assert len(before & after) >= 17


def test_hard_queries_no_log_counted_come_without_a_weight(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    path = log(tmp_path / "log.csv", {"a": 70, "b": 20, "c": 10})
    made = choose_queries(shop, path, 2, now=tick(), hard=["c", "never asked"])
    assert made.added == 4
    frame = asked(shop).filter(pl.col("stratum") == "hard")
    weight = dict(frame.select("text", "weight").iter_rows())
    assert weight["never asked"] is None
    assert weight["c"] == pytest.approx(0.3)  # 10 of 100 searches, 3 queries that have a weight


def test_a_log_without_anything_is_refused(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query,count\n", encoding="utf-8")
    with pytest.raises(InputError):
        choose_queries(shop, tmp_path / "log.csv", 3, now=tick())
    assert asked(shop).height == 0


def test_what_people_said_of_a_query_stays_and_its_text_is_one_query(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    """Imported as "Red  Hat" with a need: the log's "red hat" is that query, drawn or not."""
    own = '{"_id": "mine", "text": "Red  Hat", "need": "a hat", "team": "x"}\n'
    (tmp_path / "own.jsonl").write_text(own, encoding="utf-8")
    import_from(shop, tmp_path / "own.jsonl", now=tick())
    counts = {"red hat": 50, "sock": 30, "glove": 20}
    choose_queries(shop, log(tmp_path / "log.csv", counts), 3, now=tick())
    found = asked(shop)
    assert found.height == 3
    row = found.row(by_predicate=pl.col("query_id") == "mine", named=True)
    assert (row["need"], row["team"], row["weight"]) == ("a hat", "x", pytest.approx(1.5))
    choose_queries(shop, log(tmp_path / "log.csv", {"sock": 30, "glove": 20}), 2, now=tick())
    row = asked(shop).row(by_predicate=pl.col("query_id") == "mine", named=True)
    assert (row["need"], row["weight"]) == ("a hat", None)  # it stays; no log speaks for it now


def test_a_sample_that_mostly_falls_out_is_kept_unless_that_is_wanted(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    choose_queries(
        shop, log(tmp_path / "log.csv", {f"query {n}": 9 for n in range(6)}), 6, now=tick()
    )
    said = "query,doc_id,grade\nquery 0,d,1\nquery 5,d,1\n"
    (tmp_path / "said.csv").write_text(said, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick(), rater="ann")
    other = log(tmp_path / "other.csv", {f"query {n}": 9 for n in range(4, 12)})
    before = asked(shop)
    with pytest.raises(
        UsageError, match=r"4 of the 6 queries drawn before .* 1 of them judged"
    ) as no:
        choose_queries(shop, other, 8, now=tick())
    assert "replace the sample" in str(no.value.fix)
    assert asked(shop).equals(before)
    made = choose_queries(shop, other, 8, now=tick(), replace=True)
    assert (made.gone.height, asked(shop).height) == (4, 8)
    # Half of it may go unasked.
    half = log(tmp_path / "half.csv", {f"query {n}": 9 for n in range(8, 14)})
    assert choose_queries(shop, half, 6, now=tick()).gone.height == 4


def test_how_a_log_was_read_is_told(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query;count\nwing;1.000\nflap;2\n", encoding="utf-8")
    made = choose_queries(shop, tmp_path / "log.csv", 2, now=tick())
    assert "semicolons" in made.log.notes[0]
    assert made.log.searches == 1002


def test_a_plan_says_what_will_be_done_and_does_nothing(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    path = log(tmp_path / "log.csv", {f"query {n}": 100 - n for n in range(60)})
    choose_queries(shop, path, 20, now=tick())
    before = asked(shop)
    drawn = draw_queries(shop, path, 12)
    plan = plan_queries(shop, drawn)
    assert asked(shop).equals(before)
    assert plan.lost is None
    done = choose_queries(shop, path, 12, now=tick())
    assert (plan.added, plan.kept) == (done.added, done.kept)
    assert plan.gone.equals(done.gone)
    few = draw_queries(shop, log(tmp_path / "other.csv", {"x": 2, "y": 1}), 2)
    lost = plan_queries(shop, few).lost
    assert lost is not None
    assert "12 of the 12 queries drawn before would be dropped" in lost.what


def test_bands_are_shares_or_fractions() -> None:
    assert read_bands(["head=1/4", " torso = 0.5"]) == {"head": 0.25, "torso": 0.5}
    assert read_bands([]) is None
    for wrong in ("head", "=1", "head=1/0", "head=most"):
        with pytest.raises(UsageError):
            read_bands([wrong])
