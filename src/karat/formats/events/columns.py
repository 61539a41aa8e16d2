"""What logs call their columns, and which of karat's they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# One place knows what tells robots from people; logs of queries and of events ask it alike.
from karat.golden.traffic import AGENTS, BOT_FLAGS, ROBOTS, YES

__all__ = [
    "AGENTS", "ANYWHERE", "BOT_FLAGS", "COLUMNS", "IGNORED", "LATENCIES", "NO", "ROBOTS", "YES",
]  # fmt: skip

NO = ("false", "no", "n", "0", "0.0")

QUERY, EVENT = "query_attributes.", "event_attributes."
OBJECT, POSITION = f"{EVENT}object.", f"{EVENT}position."

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "user_id": ("user_id", "user.id", "user", "uid", "user_token", f"{EVENT}user_id"),
        "client_id": (
            "client_id", "client", "visitor_id", "visitor", "device_id", "anonymous_id",
            "cookie_id", f"{QUERY}client_id", f"{EVENT}client_id",
        ),
        "session_id": (
            "session_id", "session", "visit_id", f"{EVENT}session_id", f"{QUERY}session_id",
        ),
        "time": (
            "time_us", "timestamp", "@timestamp", "time", "ts", "event_time", "event_timestamp",
            "datetime", "date_time", "created_at", "searched_at", "date",
        ),
        "action": ("action_name", "action", "event", "event_name", "event_type"),
        "kind": ("kind",),
        "query_id": ("query_id", "search_id"),
        "query": (
            "user_query", "query_text", "search_query", "search_term", "keyword", "keywords", "q",
            "query",
        ),
        "doc_id": (
            f"{OBJECT}object_id", f"{EVENT}object_id", f"{OBJECT}internal_id", "object.object_id",
            "object_id", "doc_id", "document_id", "docid", "item_id", "product_id", "sku",
            "result_id",
        ),
        "position": (
            f"{POSITION}ordinal", f"{POSITION}index", f"{EVENT}position", f"{EVENT}ordinal",
            "position.ordinal", "position.index", "position", "ordinal", "rank",
            "result_position",
        ),
        "hits": (
            "query_response_hit_ids", "query_response_objects_ids", "query_response_object_ids",
            "hit_ids", "result_ids", "doc_ids", "hits", "results",
        ),
    }
)  # fmt: skip
"""Column to its names, the surest first; UBI's stand before others'."""

ANYWHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "returned": ("returned", "returned_hits", "hits_returned", "num_returned"),
        "total_hits": (
            "total_hits", "num_results", "num_found", "numfound", "hits_total", "nb_hits",
            "nbhits", "total_results", "result_count", "results_count", "number_of_results",
        ),
        "raw_hits": ("raw_hits", "hits_raw", "total_hits_raw", "raw_total_hits"),
        "filtered": ("filtered", "is_filtered", "has_filters"),
        "filters": ("filters", "filter", "facets", "fq"),
        "page": ("page", "page_number"),
        "status": ("status", "search_status"),
        "error": ("error", "error_message", "failed"),
        "timeout": ("timeout", "timed_out", "timedout"),
        "value": ("revenue", "value", "order_value", "amount", "total_price", "price"),
        "arm": (
            "arm", "variant", "variation", "search_config", "treatment", "experiment_arm",
            "experiment", "experiment_id",
        ),
        "flag": BOT_FLAGS,
        "agent": AGENTS,
    }
)  # fmt: skip
"""The same of what stands beside, or in ``query_attributes`` or ``event_attributes``."""

LATENCIES: Mapping[str, float] = MappingProxyType(
    {
        "latency_us": 1.0, "latency_micros": 1.0, "took_us": 1.0, "duration_us": 1.0,
        "latency_ms": 1e3, "latency_millis": 1e3, "took_ms": 1e3, "duration_ms": 1e3,
        "response_time_ms": 1e3, "took": 1e3, "latency_s": 1e6, "latency_seconds": 1e6,
        "duration_s": 1e6, "response_time_s": 1e6, "latency": 1e3, "duration": 1e3,
        "response_time": 1e3,
    }
)  # fmt: skip
"""The same of latencies, each with its microseconds; one without a unit is taken for ms."""
GUESSED = ("latency", "duration", "response_time")

IGNORED = frozenset(
    {
        "_id", "_index", "_score", "_type", "_version", "sort", "id", "event_id", "message",
        "message_type", "object_id_field", "query_response_id", "ip", "ip_address", "client_ip",
        "user_bucket", "user_key", "tie", "local_day", "local_hour", "query_key", "import", "bot",
        "query", "user_query", "http_user_agent", "user_agent", "referer", "referrer", "url",
        "email",
    }
)  # fmt: skip
"""Never an attribute: what stands for one row only, what karat fills in, and what is personal."""
