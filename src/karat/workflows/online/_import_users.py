"""Whose an event is: which id of a log names users, so that searches and clicks meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from karat.formats.events.flatten import Reading
from karat.formats.events.log import peek
from karat.formats.events.rows import IDS
from karat.formats.events.tally import Tally

_LOOKED_AT = 12  # files
_MOST = 0.5  # share of rows that an id stands on, to be that of most
_HARDLY = 0.05
_ALL = (*IDS, "query_id")
_WORDS = {"user_id": "user", "client_id": "client", "session_id": "session", "query_id": "query"}


def order_of_ids(paths: Sequence[Path], reading: Reading) -> tuple[tuple[str, ...], str]:
    """Which id is taken for a user's first.

    UBI's records of queries name a client and no user, while its events may name both: by the user
    id, no click would ever meet its search. So the first id that both have is taken.

    Args:
        paths: The files of the import; some are looked into.
        reading: The rules.

    Returns:
        The ids in order, and a sentence if that is not the usual one.
    """
    step = max(1, len(paths) // _LOOKED_AT)
    searches = dict.fromkeys(_ALL, 0)
    others = dict(searches)
    rows = [0, 0]
    look = Reading(reading.now, reading.zone, reading.mapped)
    for path in paths[::step][:_LOOKED_AT]:
        frame = peek(path, look)
        if frame is None:
            continue
        logged = pl.col("kind") == "search"
        for at, (counts, part) in enumerate(
            ((searches, frame.filter(logged)), (others, frame.filter(~logged)))
        ):
            rows[at] += part.height
            for name in _ALL:
                counts[name] += part.height - part[name].null_count()
    if not rows[0] or not rows[1]:
        return IDS, ""

    def shared(name: str) -> float:
        return min(searches[name] / rows[0], others[name] / rows[1])

    best = next((name for name in IDS if shared(name) > _MOST), IDS[0])
    if max(map(shared, IDS)) < _HARDLY and shared("query_id") > _MOST:
        best = "query_id"
    if best == "query_id":
        return (best, *IDS), (
            "searches and other events share no id but that of the query: each search was taken "
            "for a user of its own, and what is said of sessions and users holds for none"
        )
    if best == IDS[0]:
        return IDS, ""
    order = (best, *(name for name in IDS if name != best))
    skipped = [name for name in IDS[: IDS.index(best)] if searches[name] or others[name]]
    if not skipped:
        return order, ""
    fewer = " and ".join(f"{_WORDS[name]} ids" for name in skipped)
    said = f"users are told by {_WORDS[best]} ids: searches and other events do not share {fewer}"
    return order, said


def with_user(frame: pl.DataFrame, order: Sequence[str], tally: Tally) -> pl.DataFrame:
    """Put into ``user_id`` whose each event is, and count where it is told by another id.

    Args:
        frame: With the ids as logged, and ``query_id``.
        order: Ids in the order in which they are taken.
        tally: Gets the counts.
    """
    names = list(dict.fromkeys([*order, "query_id"]))
    told = pl.coalesce(pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in names)
    users = ["query:" + pl.col(name) if name == "query_id" else pl.col(name) for name in names]
    for name, count in frame.select(told.alias("told"))["told"].value_counts().iter_rows():
        if name != order[0]:
            tally.assumed[f"user {name}"] += count
    return frame.with_columns(user_id=pl.coalesce(users)).drop("client_id")


SAID = {
    "user user_id": "events without the id that tells users in this log, whose user id was "
    "taken instead: {}",
    "user client_id": "events without a user id, whose client was taken for the user: {}",
    "user session_id": "events without a user or client id, whose session was taken for the user: "
    "{}",
    "user query_id": "events without a user, client or session id, whose search was taken for a "
    "user of its own: {}",
}
"""What a tally's ``assumed`` says, in words."""
