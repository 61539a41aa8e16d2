"""Connections: half of a request has an end, and no address takes the place of the others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
import uvicorn
from fastapi import FastAPI
from tests.web.conftest import with_deep

from karat.web.framework import connections
from karat.web.framework.connections import Bounded, Limits, most_open
from karat.web.framework.settings import Settings

PATIENCE_S = 0.4
HEAD = b"POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\n"
FORM = HEAD + b"content-type: application/x-www-form-urlencoded\r\ncontent-length: 1000\r\n\r\n"
WELL = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def site_settings(site_settings: Settings) -> Settings:
    """How the app is served: to clients that may not pause for long."""
    return replace(site_settings, patience_s=PATIENCE_S)


@contextmanager
def serving(app: FastAPI, limits: Limits) -> Iterator[int]:
    """The app over real sockets: its port."""
    how = {"log_level": "error", "lifespan": "off", "timeout_keep_alive": 1}
    Bounded.limits = limits
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=Bounded, **how))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < end
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)


def opened(port: int, sent: bytes = b"") -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), 10)
    line.sendall(sent)
    return line


def rest(line: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    said = b""
    try:
        while data := line.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    return said


def well(port: int) -> bytes:
    """What a client who asks properly is answered."""
    with opened(port, WELL.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")) as line:
        return rest(line).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        *with_deep(
            (b"", b""),
            (b"POST /sign", b"HTTP/1.1 408 "),
            (FORM, b"HTTP/1.1 408 "),
            (WELL + b"GET /hea", b"HTTP/1.1 200 "),
            (HEAD + b"x: y", b"HTTP/1.1 408 "),
        ),
        (FORM + b"name=anna", b"HTTP/1.1 408 "),
    ],
)
def test_half_a_request_has_an_end(app: FastAPI, sent: bytes, status: bytes) -> None:
    with serving(app, Limits(PATIENCE_S)) as port, opened(port, sent) as line:
        began = time.monotonic()
        said = rest(line)
        assert said[: len(status)] == status
        assert bool(said) is bool(status)
        assert time.monotonic() - began < 8  # on a busy machine; without an end it is for ever


@pytest.mark.parametrize("before", [WELL, *with_deep(b"", FORM.replace(b"/sign-in", b"/nothing"))])
def test_one_byte_after_another_is_no_help(app: FastAPI, before: bytes) -> None:
    """Of a first head, of one after an answer, and of a body that no one reads."""
    with serving(app, Limits(PATIENCE_S)) as port, opened(port, before) as line:
        if before:
            assert line.recv(65536)
        began = time.monotonic()
        assert dripped(line)
        assert time.monotonic() - began < 8


def dripped(line: socket.socket) -> bool:
    """Send one byte after another until the other end is gone; False after ten seconds."""
    try:
        for _ in range(200):
            line.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        return True
    return False


@pytest.mark.deep  # waits for a second
def test_a_body_that_is_slow_but_comes_is_read(app: FastAPI) -> None:
    with serving(app, Limits(PATIENCE_S)) as port, opened(port, FORM) as line:
        for _ in range(10):  # in all longer than a pause may be, and 500 bytes in a second
            line.sendall(b"a" * 100)
            time.sleep(0.1)
        said = line.recv(100)
        assert said.startswith(b"HTTP/1.1 4")
        assert not said.startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_is_not_read_has_an_end(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, was = threading.Event(), connections.Bounded.connection_lost

    def noted(self: connections.Bounded, exc: Exception | None) -> None:
        was(self, exc)
        lost.set()

    monkeypatch.setattr(connections.Bounded, "connection_lost", noted)

    with serving(app, Limits(PATIENCE_S)) as port:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        line.sendall(b"GET /static/karat.css HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 200)
        assert lost.wait(15)
        line.close()


def test_others_are_answered_while_many_wait(app: FastAPI) -> None:
    """More half requests than one address may have: the oldest make room."""
    with serving(app, Limits(30.0, most=8)) as port, ExitStack() as lines:
        first = [lines.enter_context(opened(port, b"POST /sign")) for _ in range(8)]
        assert well(port) == b"HTTP/1.1 200 OK"
        assert rest(first[0]).startswith(b"HTTP/1.1 503 ")
        for _ in range(40):
            lines.enter_context(opened(port, HEAD))
        assert well(port) == b"HTTP/1.1 200 OK"


def test_where_every_one_is_busy_one_more_is_refused(app: FastAPI) -> None:
    site = app.state.site
    app.state.site = replace(site, settings=replace(site.settings, patience_s=30.0))
    with serving(app, Limits(30.0, most=3)) as port, ExitStack() as lines:
        for _ in range(3):
            line = lines.enter_context(opened(port, FORM))
        time.sleep(0.5)  # the heads are read, and the bodies waited for
        assert well(port) == b"HTTP/1.1 503 Service Unavailable"
        line.sendall(b"a" * 1000)
        assert line.recv(100).startswith(b"HTTP/1.1 4")  # it is not cut by those who come after
        assert well(port) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "proxies", [("127.0.0.0/8", "10.0.0.1"), *with_deep((("127.0.0.1",),), (("*",),))]
)
def test_a_proxy_has_as_many_as_it_needs(app: FastAPI, proxies: tuple[str, ...]) -> None:
    with serving(app, Limits(30.0, 2, proxies)) as port, ExitStack() as lines:
        for _ in range(6):
            lines.enter_context(opened(port, FORM))
        assert well(port) == b"HTTP/1.1 200 OK"


def test_an_address_that_closes_is_forgotten(app: FastAPI) -> None:
    limits = Limits(30.0, 4)
    with serving(app, limits) as port:
        for _ in range(10):
            assert well(port) == b"HTTP/1.1 200 OK"
        for _ in range(100):
            if not limits.open:
                break
            time.sleep(0.05)
        assert limits.open == {}


def test_no_more_than_half_of_the_files_are_for_one_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    assert most_open(256) == 128
    assert most_open(20) == 20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert most_open(100_000) == 100_000


def test_of_ipv6_a_network_is_one() -> None:
    limits = Limits(1.0, proxies=("10.0.0.0/8", "fd00::/8"))
    assert limits.is_proxy("10.1.2.3")
    assert limits.is_proxy("fd00::7")
    assert not limits.is_proxy("fe80::1%eth0")
    assert connections._client("2001:db8::1") == connections._client("2001:db8::ffff")
    assert connections._client("2001:db8:1::1") != connections._client("2001:db8::1")
