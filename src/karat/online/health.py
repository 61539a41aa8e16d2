"""Data quality of an event log, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from karat.online.rules import Rules, duration_text
from karat.tables.days import day_text, local_time
from karat.tables.online.events import EventLog

WEEK = 7  # shortest period in days with weekdays and weekends in proportion
SEVERAL_ARMS = 0.01  # share of users in several arms above which arms should not be compared
NIGHT = 2  # hours at either end of a day that may have no events
NO_REAL_PEOPLE = "users were simulated: these numbers are not of real users"
_RESULTS = {"hits", "returned", "total_hits"}


def health(
    counts: Mapping[str, int],
    log: EventLog,
    rules: Rules,
    first_day: int | None = None,
    last_day: int | None = None,
) -> list[str]:
    """Notes on what affects the metrics of a period, in sentences.

    Args:
        counts: ``Evidence.counts``.
        log: Summary of the event log.
        rules: The rules of the evidence.
        first_day: First requested day, in days since 1970-01-01; None for the first of the log.
        last_day: Last requested day; None for the last of the log.
    """
    days = period(log, first_day, last_day)
    whole = days == (log.first_day, log.last_day)
    notes = [*_people(counts, log, whole=whole), *_gaps(counts, log, rules)]
    if days is not None:
        notes += _days(log, rules, *days)
    return notes


def period(log: EventLog, first_day: int | None, last_day: int | None) -> tuple[int, int] | None:
    """First and last requested day that the log has; None if it has none of them."""
    if log.first_day is None or log.last_day is None:
        return None
    first = log.first_day if first_day is None else max(first_day, log.first_day)
    last = log.last_day if last_day is None else min(last_day, log.last_day)
    return (first, last) if first <= last else None


def period_text(
    log: EventLog, first_day: int | None, last_day: int | None
) -> tuple[str, str] | None:
    """``period`` as dates."""
    days = period(log, first_day, last_day)
    return None if days is None else (day_text(days[0]), day_text(days[1]))


def _people(counts: Mapping[str, int], log: EventLog, *, whole: bool) -> Iterator[str]:
    if log.simulated:
        yield NO_REAL_PEOPLE
    if log.bots:
        share = _share(log.bots, log.rows)
        of = "events" if whole else "events of the whole log"  # a store counts them for all days
        yield f"bots made {log.bots:,} of {log.rows:,} {of} ({share}); they are excluded"
    several, users = counts.get("users_in_several_arms", 0), counts.get("users", 0)
    if several:
        much = several > SEVERAL_ARMS * users
        yield (
            f"{several:,} of {users:,} users ({_share(several, users)}) were in several arms"
            + ("; that is more than 1 %: do not compare the arms" if much else "")
        )


def _gaps(counts: Mapping[str, int], log: EventLog, rules: Rules) -> Iterator[str]:
    derived, searches = counts.get("derived_items", 0), counts.get("searches", 0)
    requests = counts.get("requests", 0)
    if requests > searches:
        yield (
            f"{requests:,} requests are {searches:,} search{'es' * (searches != 1)}: "
            "typing, paging and repetitions are merged"
        )
    if derived:
        yield (
            f"{derived:,} of {searches:,} searches ({_share(derived, searches)}) "
            f"{'have' if derived > 1 else 'has'} no logged impressions: the number of returned "
            "documents is used instead"
        )
    yield from unknown_results(counts, log)
    unknown, events = counts.get("unknown_query_ids", 0), counts.get("events", 0)
    if unknown:
        yield (
            f"{unknown:,} of {events:,} events ({_share(unknown, events)}) name a search that is "
            "not in the log; they are attributed to the search before them, or to none"
        )
    for kind, window in (("cart", rules.cart), ("purchase", rules.purchase)):
        lost = counts.get(f"unattributed_{kind}s", 0)
        if lost:
            several = lost > 1
            yield (
                f"{lost:,} {kind}{'s' * several} could not be attributed to a search: no click or "
                f"impression of the document in the {duration_text(window)} before; "
                f"{'they are' if several else 'it is'} excluded"
            )


def unknown_results(counts: Mapping[str, int], log: EventLog) -> Iterator[str]:
    """A note on searches without a number of results, if other searches have one.

    Args:
        counts: ``Evidence.counts``.
        log: Summary of the event log.
    """
    unknown, searches = counts.get("unknown_results", 0), counts.get("searches", 0)
    if unknown and log.known & _RESULTS:
        yield (
            f"the number of results is unknown for {unknown:,} of {searches:,} searches "
            f"({_share(unknown, searches)}): ZeroResults excludes "
            f"{'them' if unknown > 1 else 'it'}"
        )


def _days(log: EventLog, rules: Rules, first: int, last: int) -> Iterator[str]:
    assert log.first_us is not None
    assert log.last_us is not None
    length = last - first + 1
    if length < WEEK:
        yield (
            f"{length} day{'s' * (length > 1)} {'are' if length > 1 else 'is'} less than a week: "
            "weekdays and weekends differ"
        )
    begins, ends = local_time(log.first_us, log.timezone), local_time(log.last_us, log.timezone)
    if first == log.first_day and begins.hour >= NIGHT:
        yield f"{day_text(first)} may be incomplete: its first event is at {begins:%H:%M}"
    if last == log.last_day and ends.hour < 24 - NIGHT:
        yield f"{day_text(last)} may be incomplete: its last event is at {ends:%H:%M}"
    open_since = local_time(log.last_us - rules.purchase, log.timezone).date()
    if log.kinds.get("purchase", 0) and day_text(last) >= open_since.isoformat():
        yield (
            f"searches of the last {duration_text(rules.purchase)} of the log do not count for "
            "Conversion and RevenuePerSearch: their purchases may still come"
        )


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"
