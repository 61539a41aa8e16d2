"""Tries to come in: many that failed make the next one wait."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import sqlalchemy as sa

from karat.store.sql import sessions

_WINDOW_US = 3_600_000_000


@dataclass(frozen=True)
class Limit:
    """What failures under a key cost.

    Attributes:
        free: Failures in an hour that cost nothing.
        longest_s: Seconds that the next try waits at most.
    """

    free: int
    longest_s: int


LIMITS = {"pair": Limit(5, 900), "name": Limit(100, 60)}
"""For a name from one address, and a name from everywhere. The last is generous, for strangers
could keep the name's owner out by it; but it holds against many addresses at once."""
CROWD = 100
"""Failures in an hour after which an address is one that guesses, or one that many share."""
WARY = Limit(2, 900)
"""For a name from such an address. Nobody waits for what was tried under other names: behind a
proxy that is not believed all come from one address, and a stranger would keep them all out."""


@dataclass(frozen=True)
class Try:
    """A try, under the keys it counts for.

    Attributes:
        keys: By kind: ``pair``, which stands first, ``name``, ``address``.
        time_us: When, microseconds UTC.
    """

    keys: dict[str, str]
    time_us: int


def try_of(name: str, address: str, now: int, *, known: bool = False) -> Try:
    """The try of a name from an address; an IPv6 network of 64 bits is one address.

    Whoever has such a network, as every customer of a provider does, has 2^64 addresses. What is no
    address at all is one too: a proxy may hand on whatever a stranger made up.

    Args:
        name: Whose.
        address: Where it came from.
        now: Microseconds UTC.
        known: Whether the browser came in under this name before: nothing that others did keeps
            it out, and it does not count for them.
    """
    place = _network(address)
    if known:
        return Try({"pair": f"known {place} {name}"}, now)
    keys = {"pair": f"pair {place} {name}", "address": f"address {place}", "name": f"name {name}"}
    return Try(keys, now)


def wait(c: sa.Connection, tried: Try) -> int:
    """Seconds that a try has to wait; 0 if it may go ahead, and it is then counted as failed.

    It is counted before anybody looks whether it is right, and one after the other: many at once
    are many. ``forgive`` takes it back if it was right.

    Args:
        c: A write transaction.
        tried: The try.
    """
    sessions.in_turn(c)
    since = tried.time_us - _WINDOW_US
    failed = {kind: sessions.failures(c, key, since) for kind, key in tried.keys.items()}
    crowded = failed.pop("address", (0, 0))[0] >= CROWD
    limits = LIMITS | ({"pair": WARY} if crowded else {})
    seconds = max(_due(*failed[kind], limits[kind], tried.time_us) for kind in failed)
    if not seconds:
        sessions.failed(c, list(tried.keys.values()), tried.time_us)
    return seconds


def forgive(c: sa.Connection, tried: Try) -> None:
    """The try was right: it and what failed of this name from this address are forgotten."""
    keys = list(tried.keys.values())
    sessions.forget(c, keys, tried.time_us, tried.time_us - _WINDOW_US)


def take_back(c: sa.Connection, tried: Try) -> None:
    """Nobody looked whether the try was right: it counts for nothing, and all others do."""
    sessions.take_back(c, list(tried.keys.values()), tried.time_us)


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "none"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def _due(count: int, last: int, limit: Limit, now: int) -> int:
    """Seconds until the next try is due: a second after the last, two, four, …"""
    if count < limit.free:
        return 0
    pause: int = min(limit.longest_s, 2 ** min(count - limit.free, 12))
    return max(0, -(-(last + pause * 1_000_000 - now) // 1_000_000))
