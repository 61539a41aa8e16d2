"""Judging queue: the order of pairs, validation of submissions, and progress.

These are the rules; the store has the slots. All randomness comes from hashes of the golden set's
salt, so every machine decides the same, and decisions can be reproduced. Repeats and gold items
stay hidden from raters: they come at unpredictable places and count in the progress like every
other judgment.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from hashlib import blake2b, sha256
from heapq import merge
from itertools import count, islice, takewhile
from statistics import median
from typing import Any, cast

from karat.errors import UsageError, check_known
from karat.tables.judgments import STATES
from karat.tables.schema import Scale
from karat.tables.workspace import ORDERS, Order

Pair = tuple[str, str]  # a query's id and a document's

MODULUS = 2_147_483_647  # a prime: (shuffle x a + b) % MODULUS is a permutation, and fits 64 bits
REPEAT_GAP = 20  # least number of judgments between a rating and its repeat
REASONS = {
    "query_unclear": "the query is unclear",
    "document_empty": "the document is empty or cannot be read",
    "language": "it is in a language I do not read",
    "needs_expert": "it needs an expert",
    "other": "another reason",
}
"""Why a pair cannot be judged; ``other`` needs an explanation."""

_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_LEASE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", re.IGNORECASE)
_LONGEST_REASON = 4000
_RECENT = 50  # judgments from which a rater's current pace is estimated
_LEAST_TIMED = 5


@dataclass(frozen=True, slots=True)
class Submission:
    """A validated judgment of a pair."""

    state: str  # `graded` | `cannot_judge`
    grade: float | None  # the grade; None if it could not be judged
    # Free text or None; for `cannot_judge` one of `REASONS`, optionally with an explanation:
    # `other: the link is dead`
    reason: str | None


def shuffle_keys(salt: str, rater: str) -> tuple[int, int]:
    """The rater's a and b of the order (shuffle x a + b) % MODULUS.

    Returns:
        a from 1 to MODULUS - 1 and b from 0 to MODULUS - 1, integers.
    """
    a = _number("order a", salt, rater) % (MODULUS - 1) + 1
    return a, _number("order b", salt, rater) % MODULUS


def shuffle_number(salt: str, *ids: str) -> int:
    """The number of a pair, or of a query, from which every rater's order is computed.

    Returns:
        From 0 to MODULUS - 1. Two pairs may have the same one; their order is then undefined.
    """
    return _number("shuffle", salt, *ids) % MODULUS


def place(shuffle: int, keys: tuple[int, int]) -> int:
    """The place of a ``shuffle_number`` in the order of ``shuffle_keys``; the lowest is first.

    The database computes the same in SQL: nothing exceeds 63 bits.
    """
    a, b = keys
    return (shuffle * a + b) % MODULUS


@dataclass(frozen=True, slots=True)
class Standing:
    """A rater's progress with respect to the hidden repeats and gold items that fall due.

    With the order ``query`` they come only between queries, where another query's pair is
    inconspicuous; with ``mixed`` every pair is a query of its own. What falls due within a query
    comes at its end. The share is exact except for ``REPEAT_GAP`` and the last query, after which
    no hidden items come.
    """

    done: int  # judgments of any kind, hidden ones too, that the rater has given and not withdrawn
    # `done` when the first pair of the current query was shown; -1 if no pair was judged yet.
    # Places up to this one are settled.
    since: int
    repeats: int = 0  # repeats given since
    golds: int = 0  # gold items given since


def standing(kinds: Sequence[tuple[str, str]], done: int, order: str) -> Standing:
    """A rater's standing, from their judgments.

    Args:
        kinds: Kind (``rating``, ``repeat``, ``gold``) and query of each judgment, the newest first;
            those before the current query may be left out.
        done: As in ``Standing``.
        order: ``query`` or ``mixed``.
    """
    present, length, since = None, 0, -1
    given: Counter[str] = Counter()
    behind: Counter[str] = Counter()  # hidden ones, of this query if a rating of it precedes them
    for kind, query in kinds:
        length += 1
        if kind != "rating":
            behind[kind] += 1
            continue
        if present is not None and (query != present or order == "mixed"):
            break
        present, since = query, done - length
        given, behind = given + behind, Counter()
    if present is None:
        given = behind
    return Standing(done, since, given["repeat"], given["gold"])


def repeat_owed(salt: str, rater: str, at: Standing, repeats: float) -> bool:
    """Whether a hidden repeat is due, between two queries.

    In each block of 1 / repeats + 1 judgments one place, chosen by hash, is a repeat: one for every
    1 / repeats ratings. None comes among the first ``REPEAT_GAP`` judgments.

    Args:
        salt: The golden set's salt.
        rater: Name of the rater.
        at: The rater's standing.
        repeats: Share of pairs that a rater sees again, from 0 to 0.5.

    Raises:
        UsageError: the share is out of range.
    """
    return _fallen_due("repeat", salt, rater, at, repeats) > at.repeats


def gold_owed(salt: str, rater: str, at: Standing, golds: float) -> bool:
    """Whether a gold item is due, between two queries; as ``repeat_owed``.

    Gold items may come from the start. If a repeat is due too, the repeat comes first.

    Raises:
        UsageError: the share is out of range.
    """
    return _fallen_due("gold", salt, rater, at, golds) > at.golds


def repeat_of(
    salt: str, rater: str, history: Sequence[Pair], never: Collection[Pair] = ()
) -> Pair | None:
    """Which of the rater's own pairs to repeat, by hash, at least ``REPEAT_GAP`` judgments old.

    Args:
        salt: The golden set's salt.
        rater: Name of the rater.
        history: The pairs of the rater's judgments of any kind, oldest first; a duplicate was
            already repeated.
        never: Pairs not to repeat: those that could not be judged, and gold items.

    Returns:
        The pair, or None if there is none.
    """
    times, excluded = Counter(history), set(never)
    old = history[: max(len(history) - REPEAT_GAP, 0)]
    candidates = [pair for pair in old if times[pair] == 1 and pair not in excluded]
    return min(
        candidates, key=lambda pair: (_number("which", salt, rater, *pair), pair), default=None
    )


def left(
    salt: str,
    rater: str,
    at: Standing,
    runs: Sequence[int],
    *,
    repeats: float,
    golds: float = 0,
    known: int = 0,
) -> int:
    """How many judgments the rater has left, future hidden ones included.

    Hidden items are counted from the start, so the number falls by one with each judgment of any
    kind, and progress does not reveal them.

    Args:
        salt: The golden set's salt.
        rater: Name of the rater.
        at: The rater's standing.
        runs: Open pairs of this rater, query by query in order; the first number is of the current
            query, 0 if it is at its end. With the order ``mixed`` all others are 1.
        repeats: As in ``repeat_owed``.
        golds: As in ``gold_owed``.
        known: Gold items that the rater has not judged.
    """
    present, *later = runs or (0,)
    coming = [run for run in later if run]
    total = present + sum(coming)
    if not coming:  # no hidden items come after the last pair
        return total
    at = replace(at, done=at.done + present)
    while True:
        if repeat_owed(salt, rater, at, repeats):
            at = replace(at, done=at.done + 1, repeats=at.repeats + 1)
        elif known and gold_owed(salt, rater, at, golds):
            at = replace(at, done=at.done + 1, golds=at.golds + 1)
            known -= 1
        else:
            break
        total += 1
    # What falls due after this boundary between queries has all been given at the last one.
    first, last = at.done + 1, at.done + sum(coming[:-1])
    due = merge(
        _places("repeat", salt, rater, repeats, max(first, REPEAT_GAP + 1)),
        islice(_places("gold", salt, rater, golds, first), known),
    )
    for place in due:
        if place > last:
            break
        last += 1
        total += 1
    return total


def seconds_left(left: int, seconds: Sequence[float | None]) -> float | None:
    """Estimated time left: the number of judgments left times the rater's median.

    Args:
        left: Judgments left.
        seconds: Duration of the rater's judgments, oldest first; the last 50 count.

    Returns:
        Seconds; None if fewer than five judgments were timed.
    """
    timed = [time for time in seconds[-_RECENT:] if time is not None and math.isfinite(time)]
    return left * median(timed) if len(timed) >= _LEAST_TIMED else None


def progress_line(done: int, left: int, seconds: Sequence[float | None] = ()) -> str:
    """``40 of 100 judged, about 12 minutes left``; another line if nothing is left.

    Args:
        done: Judgments given, of any kind.
        left: Judgments left (``left``).
        seconds: As in ``seconds_left``.
    """
    if not left:
        return f"all {done} judged: nothing left" if done else "nothing to judge"
    line = f"{done} of {done + left} judged"
    about = seconds_left(left, seconds)
    return line if about is None else f"{line}, about {_duration(about)} left"


def checked_order(order: str) -> Order:
    """A validated order of a queue.

    Raises:
        UsageError: unknown order.
    """
    check_known(
        str(order),
        ORDERS,
        f"order {order!r} is neither query nor mixed",
        'order = "query" shows a query\'s documents together, "mixed" shuffles all',
    )
    return cast("Order", order)


def read_lease(value: Any) -> int:
    """How long a pair is reserved for a rater: ``10 min``, ``90 s``, ``1 hour``.

    Returns:
        Microseconds, from 10 seconds to 24 hours.

    Raises:
        UsageError: not a duration, or out of range.
    """
    match = _LEASE.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise UsageError(f"lease {value!r} is not a duration", fix='lease = "10 min"')
    seconds = float(match[1]) * unit
    if not 10 <= seconds <= 86_400:
        raise UsageError(
            f"a lease of {value.strip()} is not between 10 s and 24 h", fix='lease = "10 min"'
        )
    return round(seconds * 1_000_000)


def checked_submission(
    state: str,
    grade: float | None,
    reason: str | None,
    *,
    scale: Scale,
    grades: Collection[float] = (),
) -> Submission:
    """A rater's judgment, validated.

    Args:
        state: ``graded`` | ``cannot_judge``.
        grade: With ``graded``, and only then.
        reason: With ``cannot_judge`` one of ``REASONS``, optionally a colon and an explanation;
            otherwise free text.
        scale: Lowest and highest grade.
        grades: The allowed grades; if empty, any on the scale.

    Raises:
        UsageError: an unknown state, a missing or unknown grade, or an unknown reason.
    """
    if state not in STATES:
        raise UsageError(f"state {state!r} is neither graded nor cannot_judge")
    words = _checked_words(reason)
    if state == "cannot_judge":
        if grade is not None:
            raise UsageError(f"a pair that cannot be judged has no grade, not {grade:g}")
        return Submission(state, None, _checked_reason(words))
    low, high = scale
    named = ", ".join(f"{each:g}" for each in sorted(grades)) or f"{low:g} to {high:g}"
    if grade is None:
        raise UsageError("the grade is missing", fix=f"give one of {named}, or a reason")
    on_scale = not isinstance(grade, bool) and low <= grade <= high
    if not on_scale or (grades and grade not in grades):
        raise UsageError(f"grade {grade:g} is not on the scale", fix=f"give one of {named}")
    return Submission(state, float(grade), words)


def _checked_reason(words: str | None) -> str:
    choices = ", ".join(REASONS)
    if words is None:
        raise UsageError("cannot_judge needs a reason", fix=f"one of {choices}")
    code, colon, more = (part.strip() for part in words.partition(":"))
    check_known(
        code,
        REASONS,
        f"unknown reason {code[:60]!r}",
        f"one of {choices}; an explanation may follow: other: the link is dead",
    )
    if code == "other" and not more:
        raise UsageError("the reason other needs an explanation", fix="other: the link is dead")
    return f"{code}{colon} {more}" if more else code


def _checked_words(reason: str | None) -> str | None:
    words = " ".join((reason or "").split())
    if "\0" in words or any("\ud800" <= letter <= "\udfff" for letter in words):
        raise UsageError("the reason holds characters that cannot be stored")
    if len(words) > _LONGEST_REASON:
        raise UsageError(
            f"the reason has {len(words)} characters, more than {_LONGEST_REASON}", fix="shorten it"
        )
    return words or None


def _fallen_due(what: str, salt: str, rater: str, at: Standing, share: float) -> int:
    """How many places after ``at.since`` have fallen due."""
    first = max(at.since + 1, REPEAT_GAP + 1 if what == "repeat" else 0)
    places = _places(what, salt, rater, share, first)
    return sum(1 for _ in takewhile(lambda place: place <= at.done, places))


def _places(what: str, salt: str, rater: str, share: float, first: int) -> Iterator[int]:
    """The places from ``first`` on that fall due: one, by hash, in each block of 1 / share + 1."""
    if not 0 <= share <= 0.5:
        raise UsageError(f"the share {share} is not from 0 to 0.5", fix="0.05 is one in twenty")
    if not (exact := _exact(share)):
        return
    # A block has exactly (p + q) / p places; -(-a // b) rounds up.
    p, whole = exact.numerator, exact.numerator + exact.denominator
    for block in count(first * p // whole):
        start, end = -(-block * whole // p), -(-(block + 1) * whole // p)
        at = start + _number(what, salt, rater, str(block)) % (end - start)
        if at >= first:
            yield at


@cache
def _exact(share: float) -> Fraction:
    return Fraction(share).limit_denominator(1_000_000)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return "a minute"
    if minutes < 100:
        return f"{minutes} minutes"
    return f"{seconds / 3600:.1f} hours"


def _number(*parts: str) -> int:
    """64 bits of a hash; salts and ids contain no NUL, so the joined parts are unambiguous."""
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Claim:
    """A pair of the queue, leased to a rater, with the texts to show."""

    slot_id: int  # its slot, for `judgments.submit`
    kind: str  # `rating` | `repeat` | `gold` | `adjudication`; hidden from raters
    query_id: str
    doc_id: str  # the document
    leased_until_us: int  # when the lease expires, microseconds UTC
    query_text: str | None
    need: str | None  # the information need behind it
    title: str | None  # title of the document
    text: str | None  # its text; None if the document is not in the store
    url: str | None
    document_sha256: str | None  # hash of the document as shown, for `submit(shown=…)`
    guideline: str  # current version of the guideline, for `submit(guideline=…)`
    guideline_text: str
    # Attributes of the document, by name
    attributes: Mapping[str, Any] = field(default_factory=dict)


MOST_PUT_OFF = 3
"""Maximum number of snoozed disagreements of a rater, who has read the votes of each."""


@dataclass(frozen=True)
class Progress:
    """How far a rater is in the queue."""

    done: int  # judgments given, including repeats and gold items
    left: int  # judgments left, as far as known now
    total: int  # `done` plus `left`
    later: int  # pairs among those left that are snoozed
    seconds: tuple[float | None, ...]  # durations of the newest judgments, oldest first, at most 50


class TooManyPutOff(UsageError):
    """The rater has snoozed too many disagreements."""


class LeaseLost(UsageError):
    """The rater does not have the pair any more, or there is no disagreement to settle."""


class Overtaken(LeaseLost):
    """A late submission: its judgment was corrected or withdrawn, or another pair was judged."""


def pair_key(query_id: str, doc_id: str) -> str:
    """A key of a pair, for ``submit(pair_shown=…)``: 32 hexadecimal digits."""
    return sha256(json.dumps([query_id, doc_id]).encode()).hexdigest()[:32]
