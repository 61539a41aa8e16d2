"""Why a metric is unknown: the data that a log does not have."""

from __future__ import annotations

from karat.online.metrics.entry import Metric
from karat.tables.online.events import KINDS, EventLog

_WORDS = {
    "search": "searches",
    "impression": "impressions",
    "click": "clicks",
    "hide": "page hides",
    "heartbeat": "heartbeats",
    "cart": "carts",
    "purchase": "purchases",
    "answer": "answers",
    "other": "other events",
    "query": "texts of queries",
    "position": "positions",
    "hits": "lists of results",
    "returned": "numbers of results",
    "total_hits": "numbers of matches",
    "raw_hits": "numbers of matches before any fallback",
    "filtered": "filters",
    "status": "errors and timeouts (status)",
    "latency_us": "latencies",
    "value": "amounts paid",
}


def why_unknown(metric: Metric, log: EventLog) -> str:
    """The reason why a metric is unknown for a log; empty if it is known."""
    for need in metric.needs:
        either = need.split("|")
        if not any(_has(log, name) for name in either):
            words = [_WORDS.get(name, name) for name in either]
            if len(words) == 1:
                return f"the log has no {words[0]}"
            return f"the log has neither {', '.join(words[:-1])} nor {words[-1]}"
    return ""


def counted_over(metric: Metric) -> str:
    """The denominator of a ratio in words, from its definition."""
    return metric.definition.rpartition(" / ")[2].partition(";")[0]


def _has(log: EventLog, name: str) -> bool:
    return log.kinds.get(name, 0) > 0 if name in KINDS else name in log.known
