"""What to know before any number is read: how far a log can be trusted, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from karat.online.rules import Rules, duration_text
from karat.tables.days import day_text
from karat.tables.online.events import EventLog
from karat.tables.zones import local_time

WEEK = 7
"""Days of a period below which weekdays and weekends are not alike in it."""
SEVERAL_ARMS = 0.01
"""Share of users in several arms above which arms should not be compared."""
NIGHT = 2
"""Hours at either end of a day in which nothing need happen."""
NO_REAL_PEOPLE = "users were simulated: these numbers are of no real people"
_RESULTS = {"hits", "returned", "total_hits"}


def health(
    counts: Mapping[str, int],
    log: EventLog,
    rules: Rules,
    first_day: int | None = None,
    last_day: int | None = None,
) -> list[str]:
    """What bends the numbers of a period, in sentences; none if nothing is known to.

    Args:
        counts: Of the evidence: what was counted on the way.
        log: What the store holds.
        rules: Those the evidence was gathered by.
        first_day: First day asked for, in days since 1970-01-01; None: the first there is.
        last_day: Last day asked for; None: the last there is.
    """
    days = period(log, first_day, last_day)
    whole = days == (log.first_day, log.last_day)
    found = [*_people(counts, log, whole=whole), *_gaps(counts, log, rules)]
    if days is not None:
        found += _days(log, rules, *days)
    return found


def period(log: EventLog, first_day: int | None, last_day: int | None) -> tuple[int, int] | None:
    """First and last day of what was asked for that the log holds; None if it holds none of it."""
    if log.first_day is None or log.last_day is None:
        return None
    first = log.first_day if first_day is None else max(first_day, log.first_day)
    last = log.last_day if last_day is None else min(last_day, log.last_day)
    return (first, last) if first <= last else None


def _people(counts: Mapping[str, int], log: EventLog, *, whole: bool) -> Iterator[str]:
    if log.simulated:
        yield NO_REAL_PEOPLE
    if log.bots:
        share = _share(log.bots, log.rows)
        of = "events" if whole else "events of the whole log"  # a store counts them for all days
        yield f"robots made {log.bots:,} of {log.rows:,} {of} ({share}); they count nowhere"
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
            "typing, paging and repetitions are joined"
        )
    if derived:
        yield (
            f"{derived:,} of {searches:,} searches ({_share(derived, searches)}) "
            f"{'have' if derived > 1 else 'has'} no logged impressions: what was returned stands "
            f"for {'them' if derived > 1 else 'those'}"
        )
    yield from unknown_results(counts, log)
    unknown, events = counts.get("unknown_query_ids", 0), counts.get("events", 0)
    if unknown:
        yield (
            f"{unknown:,} of {events:,} events ({_share(unknown, events)}) name a search that is "
            "not in the log; they go to the one before them, or to none"
        )
    for kind, window in (("cart", rules.cart), ("purchase", rules.purchase)):
        lost = counts.get(f"unattributed_{kind}s", 0)
        if lost:
            several = lost > 1
            yield (
                f"{lost:,} {kind}{'s belong' if several else ' belongs'} to no search: no click or "
                f"impression of the document in the {duration_text(window)} before; "
                f"{'they count' if several else 'it counts'} nowhere"
            )


def unknown_results(counts: Mapping[str, int], log: EventLog) -> Iterator[str]:
    """That ZeroResults cannot see some searches, in a log that says of others what they found.

    Args:
        counts: Of the evidence.
        log: What the store holds.
    """
    unsaid, searches = counts.get("unknown_results", 0), counts.get("searches", 0)
    if unsaid and log.known & _RESULTS:
        yield (
            f"the log does not say whether {unsaid:,} of {searches:,} searches "
            f"({_share(unsaid, searches)}) found anything: ZeroResults leaves "
            f"{'them' if unsaid > 1 else 'it'} out"
        )


def _days(log: EventLog, rules: Rules, first: int, last: int) -> Iterator[str]:
    assert log.first_us is not None
    assert log.last_us is not None
    length = last - first + 1
    if length < WEEK:
        yield (
            f"{length} day{'s' * (length > 1)} {'are' if length > 1 else 'is'} no whole week: "
            "weekdays and weekends differ"
        )
    begins, ends = local_time(log.first_us, log.timezone), local_time(log.last_us, log.timezone)
    if first == log.first_day and begins.hour >= NIGHT:
        yield f"{day_text(first)} may not be whole: its first event is at {begins:%H:%M}"
    if last == log.last_day and ends.hour < 24 - NIGHT:
        yield f"{day_text(last)} may not be whole: its last event is at {ends:%H:%M}"
    open_since = local_time(log.last_us - rules.purchase, log.timezone).date()
    if log.kinds.get("purchase", 0) and day_text(last) >= open_since.isoformat():
        yield (
            f"searches of the last {duration_text(rules.purchase)} of the log do not count for "
            "Conversion and RevenuePerSearch: their purchases may still come"
        )


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"
