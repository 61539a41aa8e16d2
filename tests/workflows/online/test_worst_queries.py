"""Worst queries of a log, and the way from them into a golden set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.formats.tables.query_log import read_query_log
from karat.online.evidence import Evidence
from karat.online.rules import DAY, MINUTE, SECOND
from karat.store.sql import queries as stored_queries
from karat.tables.golden.golden_sets import Exchange
from karat.tables.online.events import EventLog
from karat.tables.online.worst_queries import WorstQueries
from karat.tables.schema import QUERIES
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.golden.sampling import choose_queries
from karat.workflows.online import worst_queries as worst
from karat.workflows.online.evidence import gather
from karat.workflows.online.worst_queries import to_golden, worst_queries, write_log
from karat.workflows.workspace.workspace import Workspace

LogOf = Callable[..., EventLog]
START = 20_777 * DAY + 9 * 60 * MINUTE


class Session:
    """Events of one person, a minute between searches."""

    def __init__(self, user: str, **attributes: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self._user, self._time, self._more = user, START, attributes

    def search(self, query: str, found: int = 10, status: str = "ok") -> Session:
        self._time += MINUTE
        self.rows.append({
            "user_id": self._user, "time_us": self._time, "kind": "search", "query": query,
            "query_id": f"{self._user}-{len(self.rows)}", "returned": found, "total_hits": found,
            "status": status, **self._more,
        })  # fmt: skip
        return self

    def click(self, seconds: int) -> Session:
        """A click on the last results, left after so long by hiding the page."""
        search = next(row for row in reversed(self.rows) if row["kind"] == "search")
        at = {"user_id": self._user, "query_id": search["query_id"], "doc_id": "d"}
        self.rows.append(at | {"kind": "click", "time_us": self._time + SECOND, "position": 1})
        gone = {"kind": "hide", "time_us": self._time + (1 + seconds) * SECOND}
        self.rows.append(at | gone)
        return self


def people() -> list[dict[str, Any]]:
    """Twelve people.

    - ``cms`` (typed "CMS" by 3, "cms" by 1): 4 searches, all in vain, 2 of them then "wordpress".
    - ``pump``: 5 searches: 2 satisfied (40 s), 1 unsatisfied (5 s), 1 left without a click, 1 said
      again as "pump 12v".
    - ``pump 12v``: 1 search, satisfied.
    - ``wordpress``: 2 searches, both satisfied.
    - ``pipe``: 3 searches, all satisfied; and 1 that ended in an error.
    """
    sessions = [
        Session("a", attribute_shop="north").search("CMS", 0).search("wordpress").click(40),
        Session("b", attribute_shop="north").search("CMS", 0).search("WordPress").click(40),
        Session("c", attribute_shop="south").search("CMS", 0),
        Session("d", attribute_shop="south").search("cms", 0),
        Session("e", attribute_shop="north").search("pump").click(40),
        Session("f", attribute_shop="north").search("pump").click(40),
        Session("g", attribute_shop="north").search("pump").click(5),
        Session("h", attribute_shop="south").search("pump"),
        Session("i", attribute_shop="south").search("pump").search("pump 12v").click(40),
        Session("j", attribute_shop="south").search("pipe").click(40),
        Session("k", attribute_shop="south").search("pipe").click(40),
        Session("l").search("pipe").click(40).search("pipe", 0, status="error"),
    ]
    return [row for session in sessions for row in session.rows]


@pytest.fixture(scope="module")
def log(log_of: LogOf) -> EventLog:
    return log_of(people())


_FOUND: dict[str, WorstQueries] = {}
_EVIDENCE: dict[str, Evidence] = {}


def found(log: EventLog, engine: str = "polars", **how: Any) -> WorstQueries:
    """What is worst, found once for each way of asking; orders and limits are of one evidence."""
    asked = f"{log.folder} {engine} {how}"
    part = {name: how[name] for name in how if name not in {"sort", "min_searches", "limit"}}

    def gathered(*given: Any) -> Evidence:
        of = f"{log.folder} {engine} {part}"
        if of not in _EVIDENCE:
            _EVIDENCE[of] = gather(*given)
        return _EVIDENCE[of]

    if asked not in _FOUND:
        with open_engine(engine) as opened, pytest.MonkeyPatch.context() as patch:
            patch.setattr(worst, "gather", gathered)
            _FOUND[asked] = worst_queries(log, opened, **how)
    return _FOUND[asked]


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
def test_counts_by_hand(log: EventLog, engine: str) -> None:
    done = found(log, engine)
    by_query = {row.query: row for row in done.queries}
    cms, pump = by_query["cms"], by_query["pump"]
    assert (cms.text, cms.searches, cms.users, cms.failed, cms.zero) == ("CMS", 4, 4, 4, 4)
    assert (cms.reason, cms.by_failure["zero results"]) == ("zero results", 4)
    # Both spellings are one query, and it is nothing like cms in words.
    assert cms.next_queries == (("WordPress", 2),)
    assert (cms.clicked, cms.satisfied) == (None, None)  # nobody saw a result: null, not 0
    assert (pump.searches, pump.users, pump.failed) == (5, 5, 3)
    assert pump.by_failure == {
        "zero results": 0,
        "reformulated": 1,
        "clicks without satisfaction": 1,
        "nobody clicks": 1,
    }
    assert (pump.reformulated, pump.abandoned, pump.terminal, pump.zero) == (1, 2, 1, 0)
    assert pump.next_queries == (("pump 12v", 1),)
    assert (pump.clicked, pump.satisfied) == (pytest.approx(3 / 5), pytest.approx(2 / 5))
    # Of 15 searches that were answered (the error is none), 4 + 3 failed.
    assert (done.searches, done.failed, done.share) == (15, 7, pytest.approx(7 / 15))
    assert done.all_queries == 5
    assert done.queries[0].query == "cms"
    for row in done.queries:
        assert row.lost == pytest.approx(row.searches * row.share)
        assert row.low <= row.share <= row.high


def test_orders_and_limits(log: EventLog) -> None:
    assert [row.query for row in found(log, sort="zero").queries] == ["cms"]
    assert [row.query for row in found(log, sort="abandoned").queries] == ["pump"]
    assert [row.query for row in found(log, sort="reformulated").queries] == ["pump"]
    few = found(log, min_searches=4)
    assert [row.query for row in few.queries] == ["cms", "pump"]
    assert few.hidden == 3
    assert len(found(log, limit=1).queries) == 1
    with pytest.raises(UsageError, match="did you mean lost"):
        found(log, sort="losst")
    with pytest.raises(UsageError, match="--min-searches 1"):
        found(log, min_searches=0)


def test_slices(log: EventLog) -> None:
    done = found(log, by="shop")
    groups = {group.slice.get("shop"): group for group in done.groups}
    # North: cms twice in vain, wordpress twice, pump 3 of which 1 failed. South: cms twice, pump
    # left and said again, pump 12v, pipe twice. Nobody said where the other pipe was.
    assert (groups["north"].searches, groups["north"].failed) == (7, 3)
    assert (groups["south"].searches, groups["south"].failed) == (7, 4)
    assert (groups[None].searches, groups[None].failed) == (1, 0)
    cells = {(row.query, row.slice.get("shop")): row for row in done.queries}
    assert cells["cms", "south"].failed == 2
    classes = pl.DataFrame(
        {"query_id": ["1", "2"], "text": ["CMS", "pump"], "class": ["code", "name"]}
    )
    done = found(log, by="class", queries=classes)
    assert {row.slice.get("class") for row in done.queries if row.query == "cms"} == {"code"}
    with pytest.raises(UsageError, match="needs the class"):
        found(log, by="class")
    with pytest.raises(UsageError, match="give one dimension"):
        found(log, by="query")
    with pytest.raises(UsageError, match="did you mean shop"):
        found(log, by="shops")


def test_without_clicks_and_hits_it_says_what_it_cannot(log_of: LogOf) -> None:
    rows = [row for row in people() if row["kind"] == "search"]
    done = found(log_of(rows))
    assert any("no clicks" in note for note in done.notes)
    # cms 4 in vain; pump said again; "pipe" is searched for twice and is one search.
    assert {row.query: row.failed for row in done.queries if row.failed} == {"cms": 4, "pump": 1}
    bare = [
        {key: row[key] for key in ("user_id", "time_us", "kind", "query", "query_id")}
        for row in rows
    ]
    done = found(log_of(bare))
    assert all(row.zero is None for row in done.queries)
    assert any("zero-result searches are unknown" in note for note in done.notes)


@pytest.mark.parametrize(
    "name",
    deep_but(["worst.csv"], ["worst.csv", "worst.tsv", "worst.jsonl", "worst.csv.gz"]),
)
def test_the_export_is_a_query_log(log: EventLog, tmp_path: Path, name: str) -> None:
    done = found(log, by="shop")
    write_log(done, tmp_path / name)
    rows = {row["text"]: row for row in read_query_log(tmp_path / name).iter_rows(named=True)}
    assert rows["CMS"]["count"] == 4  # two of each shop
    assert list(rows["CMS"]) == ["text", "count", "why"]
    # A few words, so that it is an attribute to slice by, and not a sentence of its own for each.
    whys = {text: row["why"] or "" for text, row in rows.items()}
    assert whys == {
        "CMS": "zero results",
        "pump": "reformulated",
        "pump 12v": "",
        "pipe": "",
        "WordPress": "",
    }


def test_the_export_can_be_drawn_from(log: EventLog, tmp_path: Path, shop: Workspace) -> None:
    write_log(found(log), tmp_path / "worst.csv")
    chosen = choose_queries(shop, tmp_path / "worst.csv", 5, now=1_900_000_000_000_000)
    assert chosen.added == 5
    with shop.store.read() as connection:
        kept = stored_queries.frame(connection, shop.golden.id)
    counts = dict(zip(kept["text"], kept["count"], strict=True))
    assert counts == {"CMS": 4, "pump": 5, "pipe": 3, "WordPress": 2, "pump 12v": 1}
    assert "why" in kept.columns


def test_export_refuses_what_it_cannot_write(log: EventLog, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"use one of \.csv, \.tsv, \.jsonl"):
        write_log(found(log), tmp_path / "worst.xlsx")
    with pytest.raises(InputError, match="nothing to write"):
        write_log(found(log, min_searches=100), tmp_path / "worst.csv")
    assert not list(tmp_path.iterdir())


def test_into_the_golden_set(log: EventLog, shop: Workspace, tick: Callable[[], int]) -> None:
    known = pl.DataFrame({"query_id": ["mine"], "text": ["PUMP"]})
    import_exchange(shop, Exchange("queries", queries=known), file="f", sha256="0" * 64, now=tick())
    taken = to_golden(shop, found(log, min_searches=4), now=tick())
    assert taken.queries == 1  # cms; pump is there, in capitals
    with shop.store.read() as connection:
        kept = {
            row["query_id"]: row
            for row in stored_queries.frame(connection, shop.golden.id).iter_rows(named=True)
        }
    assert taken.exchange.assumed == ["1 query exists already, left unchanged"]
    mine = {name: value for name, value in kept["mine"].items() if value not in (None, False)}
    assert mine == {"query_id": "mine", "text": "PUMP"}
    cms = next(row for row in kept.values() if row["text"] == "CMS")
    assert (cms["count"], cms["origin"]) == (4, "clicks")
    # Once more: nothing is new. A sample of another log lets them stay.
    again = to_golden(shop, found(log, min_searches=4), now=tick())
    assert again.queries == again.changed == 0
    assert again.exchange.assumed == ["2 queries exist already, left unchanged"]


def test_one_query_has_no_interval(log_of: LogOf) -> None:
    rows = [*Session("a").search("cms", 0).rows, *Session("b").search("cms").click(40).rows]
    done = found(log_of(rows))
    only = done.queries[0]
    # Nothing says how shares differ by query: half of two searches, and nobody knows how sure.
    assert (only.share, only.low, only.high, done.prior) == (0.5, None, None, None)


def test_only_a_part(log: EventLog) -> None:
    south = found(log, only={"shop": "south"})
    # cms twice in vain, pump left and said again; pump 12v and pipe twice served.
    assert (south.searches, south.failed) == (7, 4)
    cms = next(row for row in south.queries if row.query == "cms")
    # Only in the north was it said again; "CMS" and "cms" were typed once each.
    assert (cms.searches, cms.next_queries) == (2, ())
    assert "only searches with shop=south are counted" in south.notes
    nowhere = found(log, only={"shop": None})
    assert (nowhere.searches, nowhere.failed) == (1, 0)
    classes = pl.DataFrame({"query_id": ["1"], "text": ["CMS"], "class": ["code"]})
    code = found(log, only={"class": "code"}, queries=classes)
    assert [(row.query, row.searches) for row in code.queries] == [("cms", 4)]
    assert code.queries[0].text == "CMS"


def test_hostile_texts_come_back_as_they_were(log_of: LogOf, tmp_path: Path) -> None:
    texts = ['=cmd|"/c calc"!A1', "a,b;c\td", "“quoted”", "<script>", "naïve ﬁle", "-1"]
    rows = [row for i, text in enumerate(texts) for row in Session(f"u{i}").search(text, 0).rows]
    done = found(log_of(rows))
    assert len(done.queries) == len(texts)
    for name in ("w.csv", "w.jsonl"):
        write_log(done, tmp_path / name)
        read = read_query_log(tmp_path / name)["text"].to_list()
        assert sorted(read) == sorted(row.text for row in done.queries)
    json.dumps(done.to_dict(), allow_nan=False)


def test_a_log_without_texts(log_of: LogOf) -> None:
    rows = [{"user_id": "a", "time_us": START, "kind": "click", "doc_id": "d", "query_id": "1"}]
    with pytest.raises(InputError, match="no texts of queries"):
        found(log_of(rows))


def test_origin_is_one_the_schema_names() -> None:
    origin = next(column for column in QUERIES if column.name == "origin")
    assert worst._ORIGIN in origin.meaning.split(" | ")
