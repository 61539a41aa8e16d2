"""Webhooks, against a server on this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from karat.connectors import webhook
from karat.errors import UsageError

EVENT = {"event": "trend.drift", "text": "nDCG@10 “fell”"}


class Receiver(ThreadingHTTPServer):
    """Answers as told, and keeps what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.came: list[tuple[str, dict[str, str], bytes]] = []
        self.hang = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook/token"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.server.came.append((self.path, headers, body))
        code, more = self.server.answers.pop(0) if self.server.answers else (204, {})
        if code == 0:  # hang up
            self.close_connection = True
            return
        if code == 1:  # say nothing for a while
            self.server.hang.wait(5)
            return
        self.send_response(code)
        for key, value in more.items():
            self.send_header(key, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.hang.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_event_arrives_signed(receiver: Receiver) -> None:
    delivery = webhook.post(receiver.url, EVENT, secret="hush")
    assert delivery == webhook.Delivery(True, 204, 1)
    [(path, headers, body)] = receiver.came
    assert path == "/hook/token"
    assert json.loads(body) == EVENT
    assert headers["content-type"].startswith("application/json")
    mac = hmac.new(b"hush", body, hashlib.sha256).hexdigest()
    assert headers[webhook.SIGNATURE.lower()] == f"sha256={mac}"


def test_a_known_signature() -> None:
    # RFC 4231, test case 2.
    wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert webhook.sign(b"what do ya want for nothing?", "Jefe") == f"sha256={wanted}"


def test_without_a_secret_there_is_no_signature(receiver: Receiver) -> None:
    assert webhook.post(receiver.url, EVENT, secret="").delivered
    assert webhook.SIGNATURE.lower() not in receiver.came[0][1]


def test_it_is_tried_again_with_the_same_body(receiver: Receiver) -> None:
    receiver.answers = [(503, {}), (0, {}), (429, {"Retry-After": "7"})]
    waits: list[float] = []
    delivery = webhook.post(receiver.url, EVENT, secret="hush", sleep=waits.append)
    assert (delivery.delivered, delivery.tries) == (True, 4)
    assert waits == [0.5, 1.0, 7.0]
    assert len({body for _, _, body in receiver.came}) == 1
    assert len({headers[webhook.DELIVERY.lower()] for _, headers, _ in receiver.came}) == 1


def test_a_long_wait_is_not_waited_and_tries_end(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Retry-After": "86400"})] * 9
    waits: list[float] = []
    delivery = webhook.post(receiver.url, EVENT, tries=3, sleep=waits.append)
    assert (delivery.delivered, delivery.status, delivery.tries) == (False, 503, 3)
    assert waits == [30.0, 30.0]
    assert "503 Service Unavailable" in delivery.reason
    assert "token" not in delivery.reason, "a path can be a secret"


def test_a_refusal_is_not_tried_again(receiver: Receiver) -> None:
    receiver.answers = [(401, {})]
    delivery = webhook.post(receiver.url, EVENT)
    assert (delivery.delivered, delivery.status, delivery.tries) == (False, 401, 1)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(receiver: Receiver, code: int) -> None:
    other = Receiver()
    try:
        receiver.answers = [(code, {"Location": other.url.replace("127.0.0.1", "localhost")})]
        delivery = webhook.post(receiver.url, EVENT, secret="hush")
        assert (delivery.delivered, delivery.status, delivery.tries) == (False, code, 1)
        assert "redirects are not followed (to localhost)" in delivery.reason
        assert not other.came
    finally:
        other.server_close()


def test_nobody_there_and_nobody_who_answers(receiver: Receiver) -> None:
    waits: list[float] = []
    receiver.answers = [(1, {})] * 2
    late = webhook.post(receiver.url, EVENT, timeout=0.05, tries=2, sleep=waits.append)
    assert (late.delivered, late.status, late.tries) == (False, None, 2)
    assert "no answer" in late.reason
    gone = Receiver()
    gone.server_close()
    absent = webhook.post(gone.url, EVENT, tries=2, sleep=waits.append)
    assert (absent.delivered, absent.status, absent.tries) == (False, None, 2)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://a/b", "hook", "http://", "http://[", "http://a:x/", "http://a b/",
     "https://user:secret@host/", "https://a/\r\nX: y", "https://ä/"],
)  # fmt: skip
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        webhook.post(url, EVENT)
    assert "secret" not in str(refused.value)
