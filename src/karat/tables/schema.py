"""Every column of every table: type, meaning, allowed values.

Ids are always strings: ``007`` stays ``007`` and ``NA`` stays ``NA``. Times are int64
microseconds UTC. Optional columns may be absent; ``Queries`` and ``Documents`` keep any other
columns as attributes to slice by.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.errors import UsageError

Scale = tuple[float, float]

_RANGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|:|\.\.)\s*(\d+(?:\.\d+)?)\s*")


def read_scale(value: Any) -> Scale:
    """Lowest and highest grade of a scale.

    Args:
        value: ``"0-3"``, or two numbers; 0 or more, in ascending order.

    Raises:
        UsageError: the value is neither, or the scale is empty.
    """
    fix = "the lowest and the highest grade, from 0 up: 0-3 on the command line, (0, 3) in Python"
    try:
        if isinstance(value, str):
            match = _RANGE.fullmatch(value)
            low, high = map(float, match.groups() if match else ())
        else:
            low, high = map(float, value)
    except (TypeError, ValueError):
        raise UsageError(f"{value!r} is not a scale", fix=fix) from None
    if not 0 <= low < high < math.inf:
        raise UsageError(f"the scale from {low:g} to {high:g} is empty", fix=fix)
    return low, high


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table."""

    name: str
    dtype: pl.DataType
    meaning: str
    optional: bool = False


QRELS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document judged for it"),
    Column(
        "grade",
        pl.Float64(),
        "how relevant it is; 0 is judged and not relevant; below 0 means pooled but not judged, "
        "as in TREC; fractions allowed",
    ),
    Column(
        "subtopic",
        pl.String(),
        "the part of the query the grade is about, for measures of diversity; a document may "
        "have several, and other measures use its best grade",
        optional=True,
    ),
)

RANKINGS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document returned for it"),
    Column("score", pl.Float64(), "the system's score, higher is better; never NaN"),
    Column("rank", pl.UInt32(), "from 1; score descending, then doc_id descending by bytes"),
)

ANSWERS = (
    Column("query_id", pl.String(), "the query asked"),
    Column("state", pl.String(), "ok | empty (an empty answer) | failed (no answer)"),
    Column("returned", pl.Int64(), "documents returned"),
    Column("latency_us", pl.Int64(), "time to the answer in microseconds", optional=True),
    Column("error", pl.String(), "why it failed", optional=True),
    Column(
        "repeated",
        pl.Int64(),
        "duplicate documents left out of the answer; null: none",
        optional=True,
    ),
)

QUERIES = (
    Column("query_id", pl.String(), "the query"),
    Column("text", pl.String(), "the text of the query", optional=True),
    Column("need", pl.String(), "the information need behind it", optional=True),
    Column(
        "weight",
        pl.Float64(),
        "its weight in every mean; 0: counts only in slices where all weights are 0",
        optional=True,
    ),
    Column("stratum", pl.String(), "the sampling stratum it was drawn from", optional=True),
    Column("origin", pl.String(), "log | interview | written | synthetic | clicks", optional=True),
    Column(
        "no_answer",
        pl.Boolean(),
        "true: the query has no right answer, and a good system returns nothing",
        optional=True,
    ),
)

DOCUMENTS = (
    Column("doc_id", pl.String(), "the document"),
    Column("parent_id", pl.String(), "the document this chunk is part of", optional=True),
    Column("title", pl.String(), "its title", optional=True),
    Column("text", pl.String(), "its text", optional=True),
)

PAIRS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document to be judged for it"),
)

JUDGMENTS = (
    Column("judgment", pl.Int64(), "number of the judgment; later ones have higher numbers"),
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document judged for it"),
    Column("grade", pl.Float64(), "how relevant it is; null for cannot_judge"),
    Column("state", pl.String(), "graded | cannot_judge"),
    Column("reason", pl.String(), "why it cannot be judged, or why this grade", optional=True),
    Column("rater", pl.String(), "who judged"),
    Column("source", pl.String(), "human | clicks | llm | import"),
    Column(
        "kind",
        pl.String(),
        "rating | repeat (a hidden repeat for the same rater) | gold (the grade was known) | "
        "adjudication (a disagreement settled)",
    ),
    Column("time_us", pl.Int64(), "when, in microseconds UTC"),
    Column("seconds", pl.Float64(), "how long it took", optional=True),
    Column("guideline", pl.String(), "version of the guideline in force", optional=True),
    Column("document_hash", pl.String(), "SHA-256 of the document as shown", optional=True),
)

EVENTS = (
    Column("user_bucket", pl.Int16(), "0-255: the first byte of SHA-1 of user_id"),
    Column("user_key", pl.Int64(), "its first eight bytes: the user in joins and windows"),
    Column("user_id", pl.String(), "user_id, else client_id, else session_id of the log"),
    Column("time_us", pl.Int64(), "when, in microseconds UTC"),
    Column(
        "tie",
        pl.Int64(),
        "order of simultaneous events of a user: by kind (search, impression, click, hide, "
        "heartbeat, cart, purchase, answer, other), position and content; unique together with "
        "user_key and time_us",
    ),
    Column("local_day", pl.Int32(), "the day in the log's time zone, in days since 1970-01-01"),
    Column("local_hour", pl.Int8(), "the hour in the log's time zone, 0-23"),
    Column(
        "kind",
        pl.String(),
        "search | impression | click | hide (a page was left) | heartbeat (a page is still "
        "open) | cart | purchase | answer (an answer was visible on the results page) | other",
    ),
    Column("action", pl.String(), "its name in the log"),
    Column("query_id", pl.String(), "the search it belongs to; null if not logged"),
    Column("session_id", pl.String(), "as logged; karat computes its own sessions"),
    Column("query", pl.String(), "the text of the query; searches only"),
    Column("query_key", pl.String(), "its normalised form, equal for equivalent spellings"),
    Column("doc_id", pl.String(), "the document seen, clicked, left, bought"),
    Column("position", pl.Int32(), "its position in the results, from 1; null if not logged"),
    Column("hits", pl.List(pl.String()), "documents returned, best first; searches only"),
    Column("returned", pl.Int32(), "number of them; searches only; null if not logged"),
    Column("total_hits", pl.Int64(), "documents that matched, as served; searches only"),
    Column("raw_hits", pl.Int64(), "documents that matched before any fallback; searches only"),
    Column("filtered", pl.Boolean(), "whether a filter was active; searches only"),
    Column("page", pl.Int32(), "page of the results, from 1; searches only"),
    Column("status", pl.String(), "ok | error | timeout; searches only"),
    Column("latency_us", pl.Int64(), "response time in microseconds; searches only"),
    Column("value", pl.Float64(), "amount paid; purchases only"),
    Column("arm", pl.String(), "arm of an experiment; null if none"),
    Column("bot", pl.Boolean(), "whether it is from a bot; bots are excluded from all metrics"),
    Column("import", pl.Int32(), "number of its import"),
)
"""As stored; any other column is an attribute of the log, a String, named ``attribute_NAME``."""

_WHERE = (
    Column("user_bucket", pl.Int16(), "as in events"),
    Column("user_key", pl.Int64(), "as in events"),
    Column("session", pl.Int64(), "number of the session of this user, from 1"),
)

SEARCHES = (
    *_WHERE,
    Column("intent", pl.Int64(), "number of the search intent of this user, from 1"),
    Column(
        "time_us",
        pl.Int64(),
        "time of its representative request: the first that was answered, else the first; never "
        "a query still being typed",
    ),
    Column("local_day", pl.Int32(), "as in events, of that request"),
    Column("local_hour", pl.Int8(), "as in events, of that request"),
    Column("arm", pl.String(), "as in events, of that request"),
    Column("query_key", pl.String(), "as in events, of that request"),
    Column("query", pl.String(), "as in events, of that request"),
    Column("requests", pl.Int64(), "requests in it: keystrokes, pages, filters"),
    Column("completed", pl.Int64(), "1: answered without error or timeout; else 0"),
    Column("error", pl.Int64(), "1: no request answered, the first an error; else 0"),
    Column("timeout", pl.Int64(), "1: no request answered, the first a timeout; else 0"),
    Column("zero", pl.Int64(), "1: no results served; 0: some; null: not completed, or unknown"),
    Column("zero_raw", pl.Int64(), "the same before any fallback"),
    Column("zero_filtered", pl.Int64(), "1: no results because of a filter; null as for zero"),
    Column(
        "items",
        pl.Int64(),
        "results seen, else the largest number returned by a request; at least the number "
        "clicked; null: unknown",
    ),
    Column("seen", pl.Int64(), "1: at least one of those; 0: none; null: unknown"),
    Column("clicks", pl.Int64(), "documents clicked, each once"),
    Column("clicked", pl.Int64(), "1: at least one; else 0"),
    Column("first_rank", pl.Int32(), "best position clicked, from 1; null without clicks"),
    Column("paul_5", pl.Float64(), "sum of 0.5^(position-1) over clicked results; 0 without"),
    Column("paul_9", pl.Float64(), "sum of 0.9^(position-1) over clicked results; 0 without"),
    Column("first_click_us", pl.Int64(), "from the request to the first click; null without"),
    Column("left_us", pl.Int64(), "from the request to the user's next or last event in session"),
    Column("sat", pl.Int64(), "1: a satisfied click; last clicks of unknown dwell count as one"),
    Column(
        "sat_low",
        pl.Int64(),
        "1: a certainly satisfied click, by dwell or because the document was put into the cart "
        "or bought; else 0",
    ),
    Column("sat_high", pl.Int64(), "1: a possibly satisfied click; else 0"),
    Column("quick_back", pl.Int64(), "1: a click followed by an immediate return; else 0"),
    Column("carts", pl.Int64(), "1: something was put into the cart; else 0"),
    Column("purchases", pl.Int64(), "1: something was bought; null while it still may be"),
    Column("revenue", pl.Float64(), "amount paid; null while it still may change"),
    Column(
        "answered",
        pl.Int64(),
        "1: an answer was visible for long enough; 0: none was; null: unknown for how long",
    ),
    Column("reformulated", pl.Int64(), "1: the next search is a reformulation; else 0"),
    Column("reformulation", pl.String(), "add | drop | substitute | respell | reorder; null"),
    Column("abandoned", pl.Int64(), "1: results seen and no action; null: not seen"),
    Column("abandoned_as", pl.String(), "zero | reformulated | terminal; null if not abandoned"),
    Column("good_low", pl.Int64(), "1: certainly a good abandonment; else 0"),
    Column("good_high", pl.Int64(), "1: possibly a good abandonment; else 0"),
    Column("latency_us", pl.Int64(), "response time of the representative request"),
)
"""One row for each search intent; attributes of its request are additional columns."""

CLICKS = (
    *_WHERE,
    Column("intent", pl.Int64(), "the search intent it belongs to"),
    Column("time_us", pl.Int64(), "when"),
    Column("local_day", pl.Int32(), "day of the search"),
    Column("local_hour", pl.Int8(), "hour of the search"),
    Column("arm", pl.String(), "arm of the search"),
    Column("query_key", pl.String(), "query of the search"),
    Column("doc_id", pl.String(), "the document"),
    Column("position", pl.Int32(), "best position it was clicked at, from 1; null if not logged"),
    Column("dwell_us", pl.Int64(), "dwell time, capped; a lower bound if censored"),
    Column("censored", pl.Int64(), "1: unknown when it was left; else 0"),
    Column("satisfied", pl.Int64(), "1: long dwell, cart or purchase; 0: not; null: unknown"),
)
"""One row for each document clicked in a search intent: its first click, at its best position."""

SESSIONS = (
    *_WHERE,
    Column("time_us", pl.Int64(), "of its first event"),
    Column("local_day", pl.Int32(), "of its first search"),
    Column("local_hour", pl.Int8(), "of its first search"),
    Column("arm", pl.String(), "of its first search"),
    Column("query_key", pl.String(), "of its first search"),
    Column("searches", pl.Int64(), "search intents in it"),
    Column("tasks", pl.Int64(), "chains of reformulations in it"),
    Column(
        "success",
        pl.Int64(),
        "1: a satisfied click, cart, purchase or answer; unknown last clicks and answers count as "
        "one; else 0",
    ),
    Column("success_low", pl.Int64(), "1: certainly one of these; else 0"),
    Column("success_high", pl.Int64(), "1: possibly one of these; else 0"),
)
"""One row for each session with a search; attributes of its first search are more columns."""

TABLES: dict[str, tuple[Column, ...]] = {
    "qrels": QRELS,
    "rankings": RANKINGS,
    "answers": ANSWERS,
    "queries": QUERIES,
    "documents": DOCUMENTS,
    "pairs": PAIRS,
    "judgments": JUDGMENTS,
    "events": EVENTS,
    "searches": SEARCHES,
    "clicks": CLICKS,
    "sessions": SESSIONS,
}
