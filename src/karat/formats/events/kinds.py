"""What logs call what users do, and which of karat's kinds that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from karat.tables.online.events import Kind

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
"""Kind to what it is called; case, ``-``, spaces and capitals within do not matter.

``view`` is none of them: it is an impression in one log, and the page behind a click in another.
"""


def snake(name: str) -> str:
    """A name in small letters, with ``_`` between its words."""
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[\s\-:/]+", "_", spaced).casefold()


KINDS_BY_ACTION: Mapping[str, str] = MappingProxyType(
    {action: kind for kind, actions in ACTIONS.items() for action in actions}
)


def kind_of(action: str, own: Mapping[str, str]) -> str | None:
    """The kind of an action; None if it is none of karat's.

    Args:
        action: As the log calls it.
        own: What a mapping says, which stands above.
    """
    return own.get(action) or KINDS_BY_ACTION.get(snake(action).replace(".", "_"))
