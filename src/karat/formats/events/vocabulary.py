"""The names that logs use for karat's columns and kinds of event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from karat.golden.traffic import AGENTS, BOT_FLAGS, ROBOTS, YES
from karat.tables.online.events import Kind

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
"""Column to the names logs use for it, most specific first; UBI's names come first."""

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
"""The same for columns at the top level, in ``query_attributes`` or in ``event_attributes``."""

LATENCIES: Mapping[str, float] = MappingProxyType(
    {
        "latency_us": 1.0, "latency_micros": 1.0, "took_us": 1.0, "duration_us": 1.0,
        "latency_ms": 1e3, "latency_millis": 1e3, "took_ms": 1e3, "duration_ms": 1e3,
        "response_time_ms": 1e3, "took": 1e3, "latency_s": 1e6, "latency_seconds": 1e6,
        "duration_s": 1e6, "response_time_s": 1e6, "latency": 1e3, "duration": 1e3,
        "response_time": 1e3,
    }
)  # fmt: skip
"""Latency columns and their unit in microseconds; a name without a unit means milliseconds."""
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
"""Never attributes: values unique to a row, columns that karat fills in, and personal data."""

ACTIONS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "search": ("search", "query", "search_request", "search_submit", "submit_search"),
        "impression": (
            "impression", "impressions", "item_impression", "product_impression",
            "result_impression", "view_item_list", "seen", "in_viewport", "viewport",
        ),
        "click": (
            "click", "click_through", "clickthrough", "clicked", "item_click", "product_click",
            "result_click", "search_click", "hit_click", "document_click", "select_item",
            "select_content", "open", "result_open",
        ),
        "hide": (
            "hide", "page_hide", "pagehide", "visibilitychange", "visibility_change",
            "visibility_hidden", "hidden", "unload", "beforeunload", "page_leave", "page_exit",
            "page_close", "leave", "close",
        ),
        "heartbeat": (
            "heartbeat", "heart_beat", "checkin", "check_in", "ping", "still_here", "watch",
            "page_ping",
        ),
        "cart": (
            "add_to_cart", "addtocart", "cart_add", "add_to_basket", "add_to_bag", "cart",
            "basket", "product_added", "item_add_to_cart",
        ),
        "purchase": (
            "purchase", "purchased", "product_purchase", "item_purchase", "buy", "bought",
            "order", "order_completed", "transaction", "checkout_completed",
        ),
        "answer": (
            "answer", "answer_view", "answer_visible", "answer_shown", "answer_impression",
            "answer_box", "featured_snippet",
        ),
    }
)  # fmt: skip
"""Kind to the actions that mean it, compared in snake case.

``view`` is not included: it is an impression in one log and a page view after a click in another.
"""


def snake(name: str) -> str:
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[\s\-:/]+", "_", spaced).casefold()


KINDS_BY_ACTION: Mapping[str, str] = MappingProxyType(
    {action: kind for kind, actions in ACTIONS.items() for action in actions}
)


def kind_of(action: str, own: Mapping[str, str]) -> str | None:
    """The kind of an action, or None if unknown; ``own`` (from a mapping) takes precedence."""
    return own.get(action) or KINDS_BY_ACTION.get(snake(action).replace(".", "_"))
