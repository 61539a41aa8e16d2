"""Clicks of a log as evidence for grades: which documents were shown for a query, and clicked.

A click counts if the user stayed long enough. What says nothing about a query, or should not be
kept, is left out and counted: searches of bots, and those in which somebody typed an e-mail
address or a number of theirs.
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
    """What a log says about one query.

    Attributes:
        key: Its folded text, under which spellings are equal.
        text: How it was spelt most often.
        clicked: Documents with a click that counts, in the order of the log.
        shown: Documents shown, those included.
        rows: Rows of the log that it was made of.
    """

    key: str
    text: str
    clicked: list[str]
    shown: list[str]
    rows: int


@dataclass(frozen=True, slots=True)
class Clicks:
    """What a log says about its queries.

    Attributes:
        queries: In the order in which the log first names them.
        rows: Rows of the log.
        clicks: Clicks that count.
        short_clicks: Clicks after which the user came back too soon; they do not count.
        unknown_dwell: Clicks that count, and of which nothing says how long the user stayed.
        left_out: Rows that were left out, by the reason.
        notes: What a person should know of it, in sentences.
    """

    queries: list[LoggedQuery]
    rows: int
    clicks: int
    short_clicks: int
    unknown_dwell: int
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


def clicks_of(log: pl.DataFrame, *, dwell_s: float, source: str = "the log") -> Clicks:
    """What a log says about each of its queries.

    Args:
        log: A row for each document shown (``query``, ``doc_id``, ``clicked``, ``shown``,
            ``dwell_s`` in seconds, null where it is not known) or for each search (``query``,
            ``clicked_docs``: ids, or seconds by id; ``shown_docs``: ids). Columns that flag bots
            or name user agents tell bots.
        dwell_s: Seconds that a user must have stayed for a click to count.
        source: What messages call it.

    Raises:
        InputError: a column is missing, or a value cannot be read.
    """
    names = _named(log, source)
    people, bots, told = without_bots(_counted(log))
    left_out: Counter[str] = Counter({"bot": bots} if bots else {})
    notes = [] if told else ["Nothing in the log tells bots from people: none were left out."]
    texts = [_text(value) for value in people[names["text"]].to_list()]
    keys = folded(texts)
    personal = {text: _personal(text) for text in set(texts)}
    spelt: dict[str, Counter[str]] = {}
    rows: Counter[str] = Counter()
    seen: dict[str, dict[str, bool]] = {}
    clicks = short_clicks = unknown_dwell = 0
    places = _searches(people, names, source)
    for key, text, documents in zip(keys, texts, places, strict=True):
        why = "no query" if not key else personal[text] or ("" if documents else "no document")
        if why:
            left_out[why] += 1
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
    """The documents that each row of a log tells of."""
    columns = {what: log[name].to_list() for what, name in names.items()}
    for at in range(log.height):
        row = {what: values[at] for what, values in columns.items()}
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
    found = [_seconds(each) for each in (value if several else [value])]
    if found == [None] or (not found and not clicks):
        return [None] * clicks
    if len(found) != clicks:
        raise ValueError(
            f"dwell_s has {len(found)} values for {clicks} clicked documents; expected one each"
        )
    return found


def _of_document(row: Mapping[str, Any]) -> list[_Shown]:
    doc, dwell = _id(row["doc_id"]), _seconds(row.get("dwell_s"))
    clicked = _flag(row["clicked"], "clicked") if "clicked" in row else dwell is not None
    shown = clicked or _flag(row.get("shown", True), "shown")
    return [(doc, clicked, dwell)] if doc and shown else []


def _named(log: pl.DataFrame, source: str) -> dict[str, str]:
    """The column of each kind that the log has."""
    there = {plain(name): name for name in log.columns}
    found = {
        what: next(there[each] for each in spelt if each in there)
        for what, spelt in _COLUMNS.items()
        if any(each in there for each in spelt)
    }
    for name in found.values():
        if isinstance(log.schema[name], pl.Struct):  # it gives each row the ids of all others
            raise InputError(f"column {name!r} holds objects", file=source, fix="write it as JSON")
    of_search = {"clicked_docs", "shown_docs"} & set(found)
    wanted: list[tuple[str, ...]] = [("text",)]
    wanted += [("shown_docs",), ("clicked_docs",)] if of_search else [("doc_id",)]
    wanted += [] if of_search else [("clicked", "dwell_s")]
    for either in wanted:
        if not set(either) & set(found):
            name = "query" if either == ("text",) else either[0]
            near = nearest(name, log.columns, 1)
            columns = ", ".join(map(repr, log.columns[:12])) or "none"
            raise InputError(
                f"no column {name!r}; there are {columns}"
                + (f"; did you mean {near[0]!r}?" if near else ""),
                file=source,
                fix=_FIX,
            )
    return found


def _counted(log: pl.DataFrame) -> pl.DataFrame:
    """The log with one search for each row, whatever it counts itself."""
    return log.with_columns(count=pl.lit(1, pl.Int64))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _personal(text: str) -> str:
    """What is personal in a text; empty if nothing is."""
    kinds = [_PERSONAL[each.kind] for each in find(text) if each.kind in _PERSONAL]
    return kinds[0] if kinds else ""


def _ids(value: Any, what: str) -> dict[str, float | None]:
    """Documents with the seconds that a user stayed, from a list, a mapping or JSON of either."""
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
    said = "" if value is None else str(value).strip().casefold()
    if said not in (*YES, *NO):
        raise ValueError(f"{what} is {short(value)}, neither true nor false")
    return said in YES


def _seconds(value: Any) -> float | None:
    """How long a user stayed; None where it is not known, which pandas writes as NaN."""
    said = value.strip() if isinstance(value, str) else value
    if said in (None, "") or (isinstance(said, float) and math.isnan(said)):
        return None
    try:
        number = float(said) if isinstance(said, str) else number_of(said)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"dwell_s is {short(value)}, not a number of seconds from 0 up")
    return number
