"""trec_eval's lines, also of measures it has not."""

from __future__ import annotations

from karat.reports.writers.trec import lines
from karat.tables import Run
from karat.workflows.offline.evaluate import evaluate

QRELS = {"q10": {"a": 1}, "q9": {"a": 1}, "bare": {"a": 0}}
RUN = Run.from_dict({"q10": {"a": 1.0}, "q9": {"b": 2.0, "a": 1.0}, "z": {"a": 1.0}})


def test_names_are_padded_to_22_and_topics_go_by_bytes() -> None:
    results = evaluate(QRELS, RUN, ["NumRet", "RR", "Judged@5"], per_query=True)
    assert list(lines(results, "run", per_query=True, runid="tag")) == [
        "num_ret               \tq10\t1",
        "recip_rank            \tq10\t1.0000",
        "Judged@5              \tq10\t1.0000",
        "num_ret               \tq9\t2",
        "recip_rank            \tq9\t0.5000",
        "Judged@5              \tq9\t0.5000",
        "runid                 \tall\ttag",
        "num_ret               \tall\t3",
        "recip_rank            \tall\t0.7500",
        "Judged@5              \tall\t0.7500",
    ]


def test_what_has_no_value_has_no_line() -> None:
    results = evaluate({"q": {"a": 0}}, {"q": {"a": 1.0}}, ["RR"], per_query=True)
    assert list(lines(results, "run", per_query=True)) == []


def test_one_run_at_a_time() -> None:
    other = Run.from_dict({"q9": {"a": 1.0}, "q10": {"a": 1.0}}, name="other")
    results = evaluate(QRELS, [RUN, other], ["RR"])
    assert list(lines(results, "other")) == ["recip_rank            \tall\t1.0000"]
