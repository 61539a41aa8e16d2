"""Connections: how long a client may take, and how many one address may have open."""

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
MOST = 256
"""Open connections of one address, unless the command says otherwise."""
SLOWEST = 500
"""Bytes per second: a client as fast as this may take as long as it needs."""
_SAID_S = 60.0  # between two lines of the log
_ANSWER = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@dataclass
class Limits:
    """What the connections of a process share.

    Attributes:
        patience_s: Seconds that a client may take to send the head of a request, and may pause in
            reading an answer.
        most: Open connections of one address.
        proxies: Addresses and networks that have as many as they need; ``*`` for all.
        open: The connections of each address that is no proxy's, the oldest first.
        said_s: When the log was last told of too many.
    """

    patience_s: float
    most: int = MOST
    proxies: Sequence[str] = ()
    open: dict[str, dict[Bounded, None]] = field(default_factory=dict, repr=False)
    said_s: float = field(default=-_SAID_S, repr=False)

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a proxy, behind which are many people."""
        if "*" in self.proxies:
            return True
        found = ipaddress.ip_address(address.partition("%")[0])
        return any(found in ipaddress.ip_network(each) for each in self.proxies)


class Bounded(H11Protocol):
    """A connection whose other end has to go on.

    uvicorn closes what is idle after an answer; it waits for the first request without end, and for
    an answer to be read. The body of a request has a deadline where it is read, in ``guards``.
    """

    limits: ClassVar[Limits]
    _address: str | None = None
    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; where its address has too many, the one that waited longest goes."""
        super().connection_made(transport)
        address = self.client[0] if self.client else None
        if address is not None and not self.limits.is_proxy(address):
            self._address = _one(address)
            there = self.limits.open.setdefault(self._address, {})
            there[self] = None
            if len(there) > self.limits.most:
                self._say()
                # It is itself between requests: the last of those that may go.
                next(each for each in there if each.is_between).drop()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        self._leave()
        for timer in (self._head, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the rest of a head is waited for no longer than before."""
        super().data_received(data)
        self._await_head()

    def on_response_complete(self) -> None:
        """Wait for the answer to be read, where it is not yet."""
        super().on_response_complete()
        self._await_head()
        self._await_reader()

    def pause_writing(self) -> None:
        """Wait for some of an answer to be read before more of it goes out."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Go on: some was read."""
        super().resume_writing()
        self._await_reader()

    @property
    def is_between(self) -> bool:
        """Whether no request is under way: none has come whole, or the last is answered."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """End it, for there are too many of its address."""
        self._leave()
        self._end(b"503 Service Unavailable" if self.cycle is None else None)

    def _leave(self) -> None:
        if self._address is None:
            return
        there = self.limits.open[self._address]
        there.pop(self, None)
        if not there:
            del self.limits.open[self._address]
        self._address = None

    def _await_head(self) -> None:
        # After an answer uvicorn's own timer runs, until something comes.
        waits = self.is_between and self.timeout_keep_alive_task is None
        if waits and self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(self.limits.patience_s, self._no_head)
        elif not waits and self._head is not None:
            self._head.cancel()
            self._head = None

    def _no_head(self) -> None:
        # Browsers open connections for later: of what asks nothing, nothing is said.
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
        # Where more may be written, it is the app that is waited for, and new data may be there.
        waits = self.flow.write_paused or self.is_between
        least = SLOWEST * self.limits.patience_s
        if waits and self.transport.get_write_buffer_size() > max(0, self._unread - least):
            self.transport.abort()
        else:
            self._await_reader()

    def _end(self, status: bytes | None) -> None:
        if status is not None:
            self.transport.write(_ANSWER % status)
        self.transport.close()
        self._await_reader()

    def _say(self) -> None:
        now = self.loop.time()
        if now - self.limits.said_s >= _SAID_S:
            self.limits.said_s = now
            LOG.warning("%s has more than %s connections", self._address, self.limits.most)


def bounded(limits: Limits) -> type[Bounded]:
    """The protocol of a process, as ``uvicorn.Config(http=…)`` takes it."""

    class Connection(Bounded):
        pass

    Connection.limits = limits
    return Connection


def most_open(asked: int) -> int:
    """Connections of one address: so many, but at most half of the files a process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return asked
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return asked if files == resource.RLIM_INFINITY else max(1, min(asked, files // 2))


def _one(address: str) -> str:
    """What one client has: an address, or of IPv6 the network of its lower half."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
