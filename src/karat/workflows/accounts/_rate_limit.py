"""Rate limit of sign-in: after repeated failures the next attempt has to wait."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import sqlalchemy as sa

from karat.store.sql import sessions

_WINDOW_US = 3_600_000_000


@dataclass(frozen=True)
class Limit:
    """How long the next attempt waits after failures under a key."""

    free: int
    longest_s: int


LIMITS = {"pair": Limit(5, 900), "name": Limit(100, 60)}
"""For a name from one address (``pair``), and from all addresses (``name``). The latter is
generous, as strangers could lock the owner out with it, but limits attacks from many addresses."""
CROWD = 100  # failures per hour after which an address counts as attacking, or as shared by many
WARY = Limit(2, 900)
"""For a name from such an address. Failures under other names do not count: behind an untrusted
proxy all users share one address, and a stranger could lock them all out."""


@dataclass(frozen=True)
class Try:
    """An attempt to sign in, and the keys it counts under."""

    keys: dict[str, str]  # by kind: `pair` (always the first), `name`, `address`
    time_us: int  # microseconds UTC


def try_of(name: str, address: str, now: int, *, known: bool = False) -> Try:
    """An attempt to sign in; an IPv6 /64 network counts as one address.

    Every customer of a provider has such a network, of 2^64 addresses. All malformed addresses
    count as one: a proxy may pass on what a client made up. If ``known``, this browser signed in
    under this name before: failures elsewhere do not delay it, and its own do not count elsewhere.
    """
    place = _network(address)
    if known:
        return Try({"pair": f"known {place} {name}"}, now)
    keys = {"pair": f"pair {place} {name}", "address": f"address {place}", "name": f"name {name}"}
    return Try(keys, now)


def wait(c: sa.Connection, tried: Try) -> int:
    """Seconds that an attempt has to wait; if 0, it may go ahead and is recorded as failed.

    It is recorded before the password is verified, in a serial transaction, so parallel attempts
    all count. ``forgive`` removes it if the password was right.
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
    """Delete a successful attempt, and earlier failures of this name from this address."""
    keys = list(tried.keys.values())
    sessions.forget(c, keys, tried.time_us, tried.time_us - _WINDOW_US)


def cancel(c: sa.Connection, tried: Try) -> None:
    """Delete an attempt whose password was not verified; earlier failures still count."""
    sessions.take_back(c, list(tried.keys.values()), tried.time_us)


def _network(address: str) -> str:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "none"
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def _due(count: int, last: int, limit: Limit, now: int) -> int:
    """Seconds until the next attempt: one second after the last failure, then two, four, …"""
    if count < limit.free:
        return 0
    pause: int = min(limit.longest_s, 2 ** min(count - limit.free, 12))
    return max(0, -(-(last + pause * 1_000_000 - now) // 1_000_000))
