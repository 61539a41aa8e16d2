"""The rows behind a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.online.metrics.registry import all_metrics
from karat.tables.online.events import EventLog
from karat.workflows.online import facts
from karat.workflows.online.facts import look
from karat.workflows.online.reducers import FactsOf, facts_of


@pytest.fixture(scope="module")
def log(stored: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """The golden log."""
    made: EventLog = stored.store(tmp_path_factory.mktemp("golden"), stored.golden_events())
    return made


@pytest.fixture(params=[1_000_000, pytest.param(25, marks=pytest.mark.deep)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Polars, in one batch and in several."""
    with open_engine(rows_at_once=request.param) as opened:
        yield opened


@pytest.mark.parametrize(
    "engine", [25, pytest.param(1_000_000, marks=pytest.mark.deep)], indirect=True
)
def test_newest_first_and_some_at_a_time(log: EventLog, engine: Engine) -> None:
    whole, count = look(log, engine, "searches", {})
    assert count == whole.height == 12
    assert whole["time_us"].is_sorted(descending=True)
    assert {"query", "attribute_device", "abandoned_as"} <= set(whole.columns)
    page, again = look(log, engine, "searches", {}, limit=3, offset=2)
    assert again == 12
    assert page.equals(whole.slice(2, 3))


def test_a_slice_and_what_a_metric_counts_in_it(log: EventLog, engine: Engine) -> None:
    searches, count = look(log, engine, "searches", {"arm": "a", "day": "2026-11-20"})
    # ada's three and dan's first.
    assert (count, searches["query_key"].to_list()) == (
        4,
        ["rope", "red shoes", "shoes red", "shoes"],
    )
    clicked, _ = look(log, engine, "searches", {"arm": "a"}, only="CTR")
    assert clicked["query_key"].to_list() == ["rope", "shoes"]
    # "shoes red" found nothing, so click-through does not count it.
    others, _ = look(log, engine, "searches", {"arm": "a"}, only="!CTR")
    assert others["query_key"].to_list() == ["red shoes"]
    clicks, count = look(log, engine, "clicks", {"query": "lamp"}, only="Dwell")
    assert (count, clicks["doc_id"].to_list()) == (2, ["d6", "d5"])
    cord, _ = look(log, engine, "sessions", {"device": None, "hour": "10"})
    assert cord["query_key"].to_list() == ["cord"]  # 09:00 UTC, without a device
    classes = pl.DataFrame({"query_key": ["tent"], "class": ["camp"]})
    camp, _ = look(log, engine, "sessions", {"class": "camp"}, classes=classes)
    assert camp["searches"].to_list() == [4]


def test_nothing_there_has_the_same_columns(
    log: EventLog, stored: ModuleType, tmp_path: Path, engine: Engine
) -> None:
    whole, _ = look(log, engine, "searches", {})
    none, count = look(log, engine, "searches", {"query": "no such query"})
    assert (count, none.schema) == (0, whole.schema)
    empty = stored.store(tmp_path / "empty", stored.golden_events().clear())
    nothing, count = look(empty, engine, "searches", {})
    assert (count, nothing.schema) == (0, whole.schema)


@pytest.mark.parametrize(
    ("where", "only", "said"),
    [
        ({"devise": "x"}, None, "did you mean device"),
        ({"day": "yesterday"}, None, "'yesterday' is not a valid day"),
        ({"hour": "noon"}, None, "'noon' is not a valid hour"),
        ({"class": "x"}, None, "needs the class of each query"),
        ({}, "Dwell", "Dwell is computed over clicks, not searches"),
        ({}, "CTTR", "did you mean CTR"),
    ],
)
def test_what_cannot_be_asked_is_said(
    log: EventLog, where: dict[str, str | None], only: str | None, said: str
) -> None:
    with open_engine() as engine, pytest.raises(UsageError, match=said):
        look(log, engine, "searches", where, only=only)


def test_without_answers_in_a_log_any_search_that_was_left_may_have_been_answered(
    stored: ModuleType, tmp_path: Path
) -> None:
    events = stored.golden_events().filter(pl.col("kind") != "answer")
    with open_engine() as engine:
        found, _ = look(stored.store(tmp_path, events), engine, "searches", {})
    left = found["abandoned_as"].eq_missing("terminal").cast(pl.Int64)
    assert left.sum() > 0
    assert found["good_high"].to_list() == left.to_list()
    assert found["good_low"].sum() == 0


def test_every_metric_leads_to_rows(
    log: EventLog, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_log: list[FactsOf] = []

    def once(*of: Any) -> FactsOf:
        if not of_log:
            of_log.append(facts_of(*of))
        return of_log[0]

    if not deep:  # those of the whole log, of which each metric counts some
        monkeypatch.setattr(facts, "facts_of", once)
    with open_engine() as engine:
        for number, metric in enumerate(all_metrics()):
            table = metric.compute.facts
            both = (metric.name, f"!{metric.name}")  # the rest of the same column
            for only in both if deep else both[number % 2 :][:1]:
                look(log, engine, table, {}, only=only, limit=1)
        _, sessions = look(log, engine, "sessions", {}, limit=1)
        assert look(log, engine, "sessions", {}, only="SessionsPerUser", limit=1)[1] == sessions
