"""The queries that a run answers worst, taken on top of a sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.errors import InputError, UsageError
from karat.store.sql import queries
from karat.tables import Run
from karat.workflows.golden.hard_queries import hard_queries
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.sampling import choose_queries
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater,reason\n"
RUN = Run.from_dict(
    {
        "q1": {"a": 1.0},  # right at once: not hard
        "q2": {"x": 2.0, "a": 1.0},  # RR 1/2
        "q3": {"x": 3.0, "y": 2.0, "a": 1.0},  # RR 1/3
        "q4": None,  # failed
        "q5": {},  # empty; not judged
        "q6": {"a": 1.0},  # not judged
        "q7": {"a": 1.0},  # judged, nothing relevant
    },
    "bm25",
)
WORST_FIRST = [
    ("q4", "got no answer"),
    ("q5", "answered with nothing"),
    ("q3", "RR 0.3333"),
    ("q2", "RR 0.5000"),
]


@pytest.fixture
def judged(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Seven queries, of which q5 and q6 have no grade, and q7 none above 0."""
    rows = "".join(f"q{n},text {n},a,{0 if n == 7 else 2},ann,\n" for n in (1, 2, 3, 4, 7))
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    more = "query_id,text\nq5,text 5\nq6,text 6\n"
    (tmp_path / "more.csv").write_text(more, encoding="utf-8")
    for name in ("said.csv", "more.csv"):
        import_from(shop, tmp_path / name, now=tick())
    return shop


def test_the_worst_come_first_with_the_reason(judged: Workspace) -> None:
    found = hard_queries(judged, RUN, measure="RR")
    assert found.frame.select("query_id", "reason").rows() == WORST_FIRST
    assert found.frame["text"].to_list() == ["text 4", "text 5", "text 3", "text 2"]
    assert (found.run, found.measure) == ("bm25", "RR")
    assert found.notes == [
        "1 query of the run without judgments: cannot be ranked",
        "1 query without a relevant document: cannot be ranked",
    ]
    fewer = hard_queries(judged, RUN, measure="RR", most=3)
    assert fewer.frame["query_id"].to_list() == ["q4", "q5", "q3"]
    assert "4 queries qualify: the 3 hardest are used" in fewer.notes


def test_judgments_may_come_from_a_file(shop: Workspace, tmp_path: Path) -> None:
    golden = karat.GoldenSet()
    for n in (1, 2, 3, 4):
        golden.add(f"text {n}", {"a": 2})
    golden.add("text 5")
    golden.add("bake a cake", no_answer=True, query_id="silent")
    golden.save(tmp_path / "g.json")
    run = Run.from_dict({**RUN.to_dict(), "silent": {}, "q4": None}, "bm25")
    found = hard_queries(shop, run, qrels=tmp_path / "g.json", measure="RR")
    assert found.frame.select("query_id", "reason").rows() == WORST_FIRST
    # q6 and q7 are not in the golden set; a query without a right answer may be answered so.
    assert found.notes == ["2 queries of the run without judgments: cannot be ranked"]


def test_what_cannot_be_ranked_is_refused(judged: Workspace) -> None:
    with pytest.raises(UsageError, match="higher NumRet is not better"):
        hard_queries(judged, RUN, measure="NumRet")
    with pytest.raises(UsageError, match="hard-most must be ≥ 1, got 0"):
        hard_queries(judged, RUN, most=0)
    good = Run.from_dict({f"q{n}": {"a": 1.0} for n in (1, 2, 3, 4)})
    with pytest.raises(InputError, match="no query of the run is hard by RR"):
        hard_queries(judged, good, measure="RR")


def test_without_any_grade_nothing_is_ranked(shop: Workspace) -> None:
    with pytest.raises(InputError, match="nothing is judged in the workspace"):
        hard_queries(shop, RUN)


def test_hard_queries_of_a_run_are_drawn_on_top(
    judged: Workspace, tick: Tick, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    rows = "".join(f"asked {n},{50 - n}\n" for n in range(30))
    log.write_text(f"query,count\n{rows}text 3,4\n", encoding="utf-8")
    found = hard_queries(judged, RUN, measure="RR", most=3)
    made = choose_queries(judged, log, 8, now=tick(), replace=True, hard=["mine"], hard_from=found)
    assert made.hard is found
    with judged.store.read() as c:
        frame = queries.frame(c, judged.golden.id).filter(pl.col("stratum") == "hard")
    assert set(frame["text"]) == {"mine", "text 3", "text 4", "text 5"}
    assert set(frame.filter(pl.col("weight") > 0)["text"]) == {"text 3"}  # the log holds it
