"""Both worlds in words."""

from __future__ import annotations

from dataclasses import replace

from karat.reports.online.offline_correlation import OF_FEW, remarks, to_markdown
from karat.tables.online.offline_correlation import (
    Concord,
    JudgedAndSearched,
    MetricValue,
    OfflineCorrelation,
    WorldSlice,
)


def concord(n: int, spearman: float | None = 0.5, part: str | None = None) -> Concord:
    return Concord(
        measure="nDCG@10", metric="CTR", direction="higher", slice=part, weighting="queries", n=n,
        spearman=spearman, spearman_low=None, spearman_high=None,
        kendall=spearman, kendall_low=None, kendall_high=None,
    )  # fmt: skip


def both(*rows: Concord) -> OfflineCorrelation:
    whole = WorldSlice(
        slice=None, queries=12, searches=300, offline={"nDCG@10": 0.5}, weighted={"nDCG@10": 0.5},
        online={"CTR": MetricValue(0.25, None, None, 300)}, p50_ms=None, p95_ms=None,
    )  # fmt: skip
    return OfflineCorrelation(
        run="old", measures=("nDCG@10",), metrics=("CTR",), by="class", queries=[], slices=[whole],
        concord=rows, discord=[], discord_slices=[], judged_only=0, searched_only=0,
        searched_only_searches=0, min_searches=10, enough=12, rules="", period=None, notes=[],
        simulated=False,
    )  # fmt: skip


def test_a_correlation_of_few_queries_is_said_to_mean_little() -> None:
    assert "fewer than 10 queries" in OF_FEW
    assert OF_FEW in remarks(both(concord(9)))
    assert OF_FEW in remarks(both(concord(12), concord(4, part="code")))
    assert OF_FEW not in remarks(both(concord(10)))
    assert OF_FEW not in remarks(both(concord(12), concord(1, None, "code")))  # there is none


def test_markdown_says_so_too() -> None:
    found = both(concord(3))
    assert OF_FEW in to_markdown(replace(found, queries=[_row()]))


def _row() -> JudgedAndSearched:
    return JudgedAndSearched(
        query_id="q1", text="rope", slice="a", searches=30, users=9, offline={"nDCG@10": 0.5},
        online={"CTR": MetricValue(0.25, None, None, 30)}, p50_ms=None, p95_ms=None, position=None,
    )  # fmt: skip
