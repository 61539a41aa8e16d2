"""Limits on connections: how slow a client may be, and how many one address may open."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LOG = logging.getLogger("karat.web")
SLOWEST = 500
"""Bytes per second: a client at least this fast never times out."""
_WARN_S = 60.0  # between two warnings in the log
_RESPONSE = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@dataclass
class Limits:
    """What the connections of a process share."""

    # Seconds that a client may take to send the head of a request, and may pause while reading a
    # response
    patience_s: float
    most: int = 256
    proxies: Sequence[str] = ()
    # The connections of each address that is not a proxy's, oldest first
    open: dict[str, dict[Bounded, None]] = field(default_factory=dict, repr=False)
    warned_s: float = field(default=-_WARN_S, repr=False)

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a proxy, which serves many clients."""
        if "*" in self.proxies:
            return True
        ip = ipaddress.ip_address(address.partition("%")[0])
        return any(ip in ipaddress.ip_network(proxy) for proxy in self.proxies)


class Bounded(H11Protocol):
    """A connection with timeouts that uvicorn lacks.

    uvicorn closes a connection that is idle after a response, but waits forever for the first
    request and for a response to be read. ``middleware`` limits the body of a request.
    """

    limits: ClassVar[Limits]
    """Those of this process, set before the first connection."""
    _address: str | None = None
    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; if its address has too many, drop the one that is idle longest."""
        super().connection_made(transport)
        address = self.client[0] if self.client else None
        if address is not None and not self.limits.is_proxy(address):
            self._address = _client(address)
            connections = self.limits.open.setdefault(self._address, {})
            connections[self] = None
            if len(connections) > self.limits.most:
                self._warn()
                # There is always one to drop: this one is between requests itself.
                next(each for each in connections if each.is_between).drop()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        for timer in (self._head, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process data; the deadline for the rest of a head stays the same."""
        super().data_received(data)
        self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()
        self._await_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_reader()

    @property
    def is_between(self) -> bool:
        """Whether no request is under way: none has fully arrived, or the last was answered."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """Close it, because its address has too many."""
        self._leave()
        self._end(b"503 Service Unavailable" if self.cycle is None else None)

    def _leave(self) -> None:
        if self._address is None:
            return
        connections = self.limits.open[self._address]
        connections.pop(self, None)
        if not connections:
            del self.limits.open[self._address]
        self._address = None

    def _await_head(self) -> None:
        # After a response, uvicorn's own timer runs until data arrives.
        waits = self.is_between and self.timeout_keep_alive_task is None
        if waits and self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(self.limits.patience_s, self._no_head)
        elif not waits and self._head is not None:
            self._head.cancel()
            self._head = None

    def _no_head(self) -> None:
        # Browsers open spare connections: close those without data silently.
        begun = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        self._end(b"408 Request Timeout" if begun else None)

    def _await_reader(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        self._unread = self.transport.get_write_buffer_size()
        if self._unread:
            self._reading = self.loop.call_later(self.limits.patience_s, self._look_at_reader)

    def _look_at_reader(self) -> None:
        # If writing is not paused, we wait for the app, and new data may be in the buffer.
        waits = self.flow.write_paused or self.is_between
        least = SLOWEST * self.limits.patience_s
        if waits and self.transport.get_write_buffer_size() > max(0, self._unread - least):
            self.transport.abort()
        else:
            self._await_reader()

    def _end(self, status: bytes | None) -> None:
        if status is not None:
            self.transport.write(_RESPONSE % status)
        self.transport.close()
        self._await_reader()

    def _warn(self) -> None:
        now = self.loop.time()
        if now - self.limits.warned_s >= _WARN_S:
            self.limits.warned_s = now
            LOG.warning("%s has more than %s connections", self._address, self.limits.most)


def most_open(asked: int) -> int:
    """Limit of connections per address: as asked, but at most half of the open-file limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return asked
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return asked if files == resource.RLIM_INFINITY else max(1, min(asked, files // 2))


def _client(address: str) -> str:
    """What identifies a client: its IPv4 address, or its /64 network in IPv6."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
