"""Grades from clicks: a search whose order misleads, the naive rule, and a golden set's queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau
from tests.click_traffic import traffic
from tests.event_stores import keep_events
from tests.misleading_clicks import write_pages

from karat.errors import CannotTell, InputError, UsageError
from karat.formats.own.click_grades import click_grades_file, read_click_grades
from karat.tables.golden.golden_sets import Exchange
from karat.tables.online.events import EventLog
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.online.click_judgments import judge_clicks
from karat.workflows.workspace.workspace import Workspace


def taus(path: Path, truth: np.ndarray) -> tuple[float, float]:
    """Mean Kendall's τ of a query's documents with the truth: of the relevance, and of raw CTR."""
    frame = read_click_grades(path)[0].with_columns(ctr=pl.col("clicked") / pl.col("shown"))
    found: list[tuple[float, float]] = []
    for part in frame.partition_by("query_id"):
        query = int(part["query_id"][0][1:])
        true = truth[query, [int(doc[1:]) for doc in part["doc_id"]]]
        found.append(tuple(kendalltau(part[name], true).statistic for name in ("value", "ctr")))
    return tuple(np.mean(found, axis=0))


@pytest.mark.parametrize("model", ["PBM", "DBN"])
def test_an_order_that_misleads_is_seen_through(tmp_path: Path, model: str) -> None:
    truth = write_pages(tmp_path / "log.txt", pages=6_000, queries=20, swaps=0.3)
    found = judge_clicks(tmp_path / "log.txt", model, file=tmp_path / "g.parquet", now=7)
    relevance, ctr = taus(tmp_path / "g.parquet", truth)
    assert found.pages == 6_000
    assert found.impressions == 60_000
    assert sum(row.pairs for row in found.by_grade) == found.graded
    assert ctr < 0.7
    # Users here look at each rank by itself. DBN, for which a click below means that all above was
    # looked at, is wrong about them, and PBM right.
    assert relevance > (0.8 if model == "PBM" else ctr)
    if model == "PBM":
        assert found.graded == 200
        assert found.overrated[0].rank < 3
        assert found.underrated[0].rank > 5
        _, origin = read_click_grades(tmp_path / "g.parquet")
        assert (origin.model, origin.identified, origin.made_us) == ("PBM", True, 7)


@pytest.mark.deep
def test_200_000_sessions(tmp_path: Path) -> None:
    truth = write_pages(tmp_path / "log.txt", pages=200_000, queries=500, swaps=0.3)
    judge_clicks(tmp_path / "log.txt", file=tmp_path / "g.parquet")
    relevance, ctr = taus(tmp_path / "g.parquet", truth)
    print(f"Kendall's τ with the truth: PBM {relevance:.3f}, raw CTR {ctr:.3f}")
    assert relevance > 0.87
    assert ctr < 0.70
    write_pages(tmp_path / "same.txt", pages=200_000, queries=500, swaps=0.0)
    with pytest.raises(CannotTell):
        judge_clicks(tmp_path / "same.txt", file=tmp_path / "h.parquet")


def test_a_log_without_swaps_is_refused_except_for_the_naive_rule(tmp_path: Path) -> None:
    truth = write_pages(tmp_path / "log.txt", pages=2_000, queries=10, swaps=0.0)
    for model in ("PBM", "SDBN"):
        with pytest.raises(CannotTell, match="ranks 2-10 were never shown at another rank") as said:
            judge_clicks(tmp_path / "log.txt", model, file=tmp_path / "g.parquet")
        assert said.value.exit_code == 3
    assert not (tmp_path / "g.parquet").exists()
    found = judge_clicks(tmp_path / "log.txt", "Naive", file=tmp_path / "g.parquet")
    assert (found.origin.model, found.origin.identified) == ("naive", False)
    assert "the naive rule takes position for relevance" in found.notes
    relevance, ctr = taus(tmp_path / "g.parquet", truth)
    assert relevance == ctr  # without times, a click is a satisfied one


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("DCTR", "DCTR takes position for relevance"),
        ("COEC", "COEC estimates a ratio of clicks"),
        ("GCTR", "GCTR does not distinguish documents"),
        ("PBMM", "unknown click model 'PBMM'; did you mean PBM"),
    ],
)
def test_models_that_make_no_grades(tmp_path: Path, model: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judge_clicks(tmp_path / "none.txt", model, file=tmp_path / "g.parquet")


def test_what_is_refused_before_the_log_is_read(tmp_path: Path) -> None:
    none = tmp_path / "none.txt"
    with pytest.raises(UsageError, match="nowhere to write"):
        judge_clicks(none)
    with pytest.raises(UsageError, match="cannot tell the format"):
        judge_clicks(none, file=tmp_path / "g.trec")
    with pytest.raises(UsageError, match="not ascending"):
        judge_clicks(none, file=tmp_path / "g.csv", cuts=[0.5, 0.1])
    with pytest.raises(UsageError, match="no log was given"):
        judge_clicks(file=tmp_path / "g.csv")
    for least in (0.0, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="is not a number above 0"):
            judge_clicks(none, file=tmp_path / "g.csv", least=least)
    with pytest.raises(UsageError, match="unknown click model 'naif'") as error:
        judge_clicks(none, "naif", file=tmp_path / "g.csv")
    assert error.value.nearest == ("naive",)
    assert error.value.fix == "use one of PBM, Cascade, SDBN, DBN, naive"
    with pytest.raises(UsageError, match="SDBN does not use searches in random order"):
        judge_clicks(none, "SDBN", file=tmp_path / "g.csv", randomised="a=b")


def test_cut_points_give_the_scale_of_a_file(tmp_path: Path) -> None:
    write_pages(tmp_path / "log.txt", pages=2_000, queries=10, swaps=0.5)
    found = judge_clicks(tmp_path / "log.txt", file=tmp_path / "g.csv", cuts=[0.25], least=1)
    assert found.origin.grades == (0.0, 1.0)
    assert found.too_few == 0
    with pytest.raises(InputError, match="no pair of a known query was looked at 1e\\+06 times"):
        judge_clicks(tmp_path / "log.txt", file=tmp_path / "h.csv", least=1e6)
    with pytest.raises(UsageError, match="randomised needs an event log"):
        judge_clicks(tmp_path / "log.txt", file=tmp_path / "h.csv", randomised="order=random")


def test_grades_of_a_golden_set_are_next_to_its_store(
    shop: Workspace, tmp_path: Path, tick: Callable[[], int]
) -> None:
    write_pages(tmp_path / "log.txt", pages=2_000, queries=10, swaps=0.5)
    # q0 by its text, however it is written; q3 by its id; the other eight are not in the set.
    queries = pl.DataFrame({"query_id": ["first", "q3"], "text": [" Q0", "another text"]})
    import_exchange(shop, Exchange("csv", queries=queries), file="f", sha256="0", now=tick())
    seen = judge_clicks(tmp_path / "log.txt", workspace=shop, preview=True, now=tick())
    path = click_grades_file(shop.workspace.root, "shop")
    assert seen.file is None
    assert not path.exists()
    found = judge_clicks(tmp_path / "log.txt", workspace=shop, now=tick())
    assert found.file == str(path)
    assert found.by_grade == seen.by_grade
    assert (found.unmatched_queries, found.unmatched_pairs, found.pairs) == (8, 80, 100)
    frame, origin = read_click_grades(path)
    assert set(frame["query_id"]) == {"first", "q3"}
    assert frame.height == found.graded == origin.pairs
    assert origin.grades == [0.0, 1.0, 2.0, 3.0]
    texts = {row.query_id: row.text for row in (*found.overrated, *found.underrated)}
    assert texts.get("first", "q0") == "q0"
    with pytest.raises(UsageError, match="expected 3 cut points for the grades 0 to 3"):
        judge_clicks(tmp_path / "log.txt", workspace=shop, cuts=[0.5], now=tick())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """Events of two days; half of the searches in random order, the others always in one."""
    return keep_events(tmp_path_factory.mktemp("clicks") / "log", traffic(3_000, random=0.5))


def test_events_and_searches_in_random_order(log: EventLog, tmp_path: Path) -> None:
    by_model = judge_clicks(log, file=tmp_path / "a.parquet", least=1)
    random = judge_clicks(log, file=tmp_path / "b.parquet", least=1, randomised="order=random")
    assert by_model.origin.propensities is None
    assert random.origin.propensities == "randomised"
    assert random.origin.log == str(log.folder)
    frames = [read_click_grades(tmp_path / name)[0] for name in ("a.parquet", "b.parquet")]
    both = frames[0].join(frames[1], on=["query_id", "doc_id"], suffix="_b")
    assert both.height == frames[0].height == 48  # six queries of eight documents
    assert (both["value"] - both["value_b"]).abs().max() < 0.2  # type: ignore[operator]
    assert set(both["query_id"]) == {f"query {i}" for i in range(6)}  # folded texts


def test_older_pages_count_less(log: EventLog, tmp_path: Path) -> None:
    whole = judge_clicks(log, file=tmp_path / "a.parquet", least=1)
    recent = judge_clicks(log, file=tmp_path / "b.parquet", least=1, half_life="1d")
    shown = [read_click_grades(tmp_path / f"{name}.parquet")[0]["shown"].sum() for name in "ab"]
    assert shown[1] < shown[0]
    assert recent.impressions == whole.impressions  # never weighted
    assert recent.origin.half_life_us == 86_400_000_000
    assert "pages count half after 24 h, by the log's last day" in recent.notes


def test_the_naive_rule_has_bounds_where_the_end_of_a_click_is_not_logged(
    log: EventLog, tmp_path: Path
) -> None:
    found = judge_clicks(log, "naive", file=tmp_path / "a.parquet", least=1)
    frame, _ = read_click_grades(tmp_path / "a.parquet")
    assert (frame["value"] == frame["ci_low"]).all()
    assert (frame["ci_low"] < frame["ci_high"]).any()  # every last click may have satisfied
    assert sum(row.uncertain for row in found.by_grade) > 0
    assert frame["logit_se"].null_count() == frame.height
