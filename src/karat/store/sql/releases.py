"""The ledger of releases, append-only; and the lease of who moves one on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from karat.store.sql.schema import release_event, release_lease

Content = Mapping[str, Any]
_SKEW_US = 60_000_000


class Taken(Exception):
    """Another event has this number."""


def names(c: sa.Connection) -> list[str]:
    """The releases, the latest first."""
    first = sa.select(release_event.c.release).where(release_event.c.seq == 1)
    ordered = first.order_by(release_event.c.at_us.desc(), release_event.c.release)
    return list(c.execute(ordered).scalars())


def openings(c: sa.Connection) -> dict[str, Content]:
    """The content of the first event of each release, the latest first."""
    first = sa.select(release_event.c.release, release_event.c.content)
    first = first.where(release_event.c.seq == 1).order_by(release_event.c.at_us.desc())
    return {row[0]: row[1] for row in c.execute(first)}


def in_flight(c: sa.Connection) -> list[str]:
    """The releases that are not over, or whose switch has not followed; the latest first."""
    event = release_event.c
    ended = sa.select(event.release).where(event.kind.in_(("finished", "rolled_back")))
    newest = sa.select(event.release, sa.func.max(event.seq)).group_by(event.release)
    followed = sa.select(event.release).where(
        sa.tuple_(event.release, event.seq).in_(newest),
        event.kind.in_(("finished", "switched")),
        event.release.in_(ended),
    )
    over = set(c.execute(followed).scalars())
    return [name for name in names(c) if name not in over]


def events(c: sa.Connection, name: str) -> list[Content]:
    """The content of the events of a release, in order."""
    chosen = sa.select(release_event.c.content).where(release_event.c.release == name)
    return list(c.execute(chosen.order_by(release_event.c.seq)).scalars())


def append(
    c: sa.Connection, name: str, seq: int, *, at_us: int, kind: str, content: Content
) -> None:
    """Append an event; raises Taken if its number is taken."""
    values = {"release": name, "seq": seq, "at_us": at_us, "kind": kind, "content": content}
    try:
        c.execute(sa.insert(release_event).values(values))
    except sa.exc.IntegrityError:
        raise Taken from None


def take(c: sa.Connection, name: str, holder: str, *, now: int, until: int) -> bool:
    """Take the lease of a release, unless another holds it."""
    # One that ends later than any of now is of a clock that was ahead.
    ended = sa.or_(release_lease.c.until_us <= now, release_lease.c.until_us > until + _SKEW_US)
    mine = sa.or_(ended, release_lease.c.holder == holder)
    renewed = sa.update(release_lease).where(release_lease.c.release == name, mine)
    if c.execute(renewed.values(holder=holder, until_us=until)).rowcount:
        return True
    known = sa.select(release_lease.c.release).where(release_lease.c.release == name)
    if c.execute(known).first() is not None:
        return False
    c.execute(sa.insert(release_lease).values(release=name, holder=holder, until_us=until))
    return True


def give_back(c: sa.Connection, name: str, holder: str) -> None:
    """End a lease."""
    own = (release_lease.c.release == name, release_lease.c.holder == holder)
    c.execute(sa.delete(release_lease).where(*own))
