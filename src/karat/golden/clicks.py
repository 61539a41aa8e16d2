"""Clicks of a log as evidence for grades: the documents shown and clicked for each query.

A click counts if the user stayed long enough. Searches of bots and searches with personal data
(e-mail addresses, phone, card and account numbers) are left out and counted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.errors import InputError, nearest
from karat.golden.pii import find
from karat.golden.query import number_of, short
from karat.golden.traffic import folded, without_bots
from karat.tables.column_names import DOC_ID, SPELLINGS, plain
from karat.tables.queries import NO, YES

_COLUMNS = {
    "text": (*SPELLINGS["queries"]["text"], "user_query", "q", "search_query", "search_term"),
    # docno before docid, which PyTerrier numbers anew in each frame.
    "doc_id": ("doc_id", "docno", "document", *DOC_ID),
    "clicked": ("clicked", "click", "is_clicked"),
    "shown": ("shown", "impression", "displayed"),
    "dwell_s": ("dwell_s", "dwell", "dwell_seconds", "dwell_time_s"),
    "clicked_docs": ("clicked_docs", "clicked_documents", "clicked_ids"),
    "shown_docs": ("shown_docs", "shown_documents", "shown_ids"),
}
_PERSONAL = {"email": "e-mail address", "iban": "account number", "card": "card number"} | {
    "phone": "phone number"
}
_FIX = (
    "a row for each document shown: query, doc_id, clicked, dwell_s; or a row for each search: "
    "query, clicked_docs, shown_docs"
)


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """One query of a log."""

    key: str  # its folded text, which is equal for all spellings
    text: str  # the most frequent spelling
    clicked: list[str]  # documents with a click that counts, in the order of the log
    shown: list[str]  # documents shown, the clicked ones included
    rows: int  # its rows in the log


@dataclass(frozen=True, slots=True)
class Clicks:
    """The queries of a log, with counts."""

    queries: list[LoggedQuery]  # in the order of their first rows
    rows: int  # rows of the log
    clicks: int
    short_clicks: int  # clicks after which the user came back too soon; they do not count
    unknown_dwell: int  # clicks that count although their dwell time is unknown
    left_out: Mapping[str, int]  # reason to number of rows left out
    notes: tuple[str, ...]  # notes for the user, in sentences


def clicks_of(log: pl.DataFrame, *, dwell_s: float, source: str = "the log") -> Clicks:
    """The documents shown and clicked for each query of a log.

    Args:
        log: A row for each document shown (``query``, ``doc_id``, ``clicked``, ``shown``,
            ``dwell_s`` in seconds, null if unknown) or for each search (``query``,
            ``clicked_docs``: ids, or seconds by id; ``shown_docs``: ids). Bots are detected by
            columns that flag them or name user agents.
        dwell_s: Least dwell time of a click that counts, in seconds.
        source: Name of the log in messages.

    Raises:
        InputError: a column is missing, or a value cannot be read.
    """
    names = _named(log, source)
    # A row is one search; a count of its own is ignored.
    people, bots, bot_columns = without_bots(log.with_columns(count=pl.lit(1, pl.Int64)))
    left_out: Counter[str] = Counter({"bot": bots} if bots else {})
    notes = (
        []
        if bot_columns
        else ["No bots were left out: the log has no column that marks them (is_bot, user_agent)."]
    )
    texts = [_text(value) for value in people[names["text"]].to_list()]
    keys = folded(texts)
    personal = {text: _personal(text) for text in set(texts)}
    spelt: dict[str, Counter[str]] = {}
    rows: Counter[str] = Counter()
    seen: dict[str, dict[str, bool]] = {}
    clicks = short_clicks = unknown_dwell = 0
    places = _searches(people, names, source)
    for key, text, documents in zip(keys, texts, places, strict=True):
        reason = "no query" if not key else personal[text] or ("" if documents else "no document")
        if reason:
            left_out[reason] += 1
            continue
        spelt.setdefault(key, Counter())[text.strip()] += 1
        rows[key] += 1
        of_query = seen.setdefault(key, {})
        for doc_id, clicked, dwell in documents:
            counts = clicked and (dwell is None or dwell >= dwell_s)
            clicks += counts
            short_clicks += clicked and not counts
            unknown_dwell += counts and dwell is None
            of_query[doc_id] = of_query.get(doc_id, False) or counts
    queries = [
        LoggedQuery(
            key,
            spelt[key].most_common(1)[0][0],
            [doc for doc, clicked in documents.items() if clicked],
            list(documents),
            rows[key],
        )
        for key, documents in seen.items()
    ]
    return Clicks(
        queries, log.height, clicks, short_clicks, unknown_dwell, dict(left_out), tuple(notes)
    )


_Shown = tuple[str, bool, float | None]
"""A document, whether it was clicked, and for how many seconds the user stayed."""


def _searches(log: pl.DataFrame, names: Mapping[str, str], source: str) -> Iterator[list[_Shown]]:
    """The documents of each row of a log."""
    columns = {role: log[name].to_list() for role, name in names.items()}
    for at in range(log.height):
        row = {role: values[at] for role, values in columns.items()}
        try:
            yield _of_search(row) if "shown_docs" in row else _of_document(row)
        except ValueError as error:
            query = short(row["text"])
            raise InputError(f"row {at + 1} (query {query}): {error}", file=source) from None


def _of_search(row: Mapping[str, Any]) -> list[_Shown]:
    clicked, shown = (
        _ids(row["clicked_docs"], "clicked_docs"),
        _ids(row["shown_docs"], "shown_docs"),
    )
    if row.get("dwell_s") is not None:
        clicked = dict(zip(clicked, _dwells(row["dwell_s"], len(clicked)), strict=True))
    return [(doc, doc in clicked, clicked.get(doc)) for doc in dict.fromkeys([*shown, *clicked])]


def _dwells(value: Any, clicks: int) -> list[float | None]:
    """Seconds for each document clicked, in their order."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"dwell_s is {short(value)}, not a list of seconds") from None
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    dwells = [_seconds(dwell) for dwell in (value if several else [value])]
    if dwells == [None] or (not dwells and not clicks):
        return [None] * clicks
    if len(dwells) != clicks:
        raise ValueError(
            f"dwell_s has {len(dwells)} values for {clicks} clicked documents; expected one each"
        )
    return dwells


def _of_document(row: Mapping[str, Any]) -> list[_Shown]:
    doc, dwell = _id(row["doc_id"]), _seconds(row.get("dwell_s"))
    clicked = _flag(row["clicked"], "clicked") if "clicked" in row else dwell is not None
    shown = clicked or _flag(row.get("shown", True), "shown")
    return [(doc, clicked, dwell)] if doc and shown else []


def _named(log: pl.DataFrame, source: str) -> dict[str, str]:
    """The log's column for each role."""
    by_plain = {plain(name): name for name in log.columns}
    named = {
        role: next(by_plain[spelling] for spelling in spellings if spelling in by_plain)
        for role, spellings in _COLUMNS.items()
        if any(spelling in by_plain for spelling in spellings)
    }
    for name in named.values():
        if isinstance(log.schema[name], pl.Struct):  # it gives each row the ids of all others
            raise InputError(f"column {name!r} holds objects", file=source, fix="write it as JSON")
    of_search = {"clicked_docs", "shown_docs"} & set(named)
    required: list[tuple[str, ...]] = [("text",)]
    required += [("shown_docs",), ("clicked_docs",)] if of_search else [("doc_id",)]
    required += [] if of_search else [("clicked", "dwell_s")]
    for either in required:
        if not set(either) & set(named):
            name = "query" if either == ("text",) else either[0]
            near = nearest(name, log.columns, 1)
            columns = ", ".join(map(repr, log.columns[:12])) or "none"
            raise InputError(
                f"no column {name!r}; there are {columns}"
                + (f"; did you mean {near[0]!r}?" if near else ""),
                file=source,
                fix=_FIX,
            )
    return named


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _personal(text: str) -> str:
    """The first kind of personal data in a text; empty if there is none."""
    kinds = [_PERSONAL[each.kind] for each in find(text) if each.kind in _PERSONAL]
    return kinds[0] if kinds else ""


def _ids(value: Any, what: str) -> dict[str, float | None]:
    """Document to dwell time in seconds, from a list, a mapping or JSON of either."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text) if text.startswith(("[", "{")) else [text] if text else []
        except ValueError:
            raise ValueError(f"{what} is {short(text)}, not a list of ids") from None
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_id(doc): _seconds(dwell) for doc, dwell in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(f"{what} is {short(value)}, not a list of ids")
    return {_id(doc): None for doc in value}


def _id(value: Any) -> str:
    if isinstance(value, bool | float) or not isinstance(value, str | int | None):
        raise ValueError(f"the doc_id is {short(value)}, not text")
    return "" if value is None else str(value).strip()


def _flag(value: Any, what: str) -> bool:
    text = "" if value is None else str(value).strip().casefold()
    if text not in (*YES, *NO):
        raise ValueError(f"{what} is {short(value)}, neither true nor false")
    return text in YES


def _seconds(value: Any) -> float | None:
    """Dwell time; None if unknown, which pandas writes as NaN."""
    value = value.strip() if isinstance(value, str) else value
    if value in (None, "") or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        number = float(value) if isinstance(value, str) else number_of(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"dwell_s is {short(value)}, not a number of seconds from 0 up")
    return number
