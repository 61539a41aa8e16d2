"""Webhooks, against a server on this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from karat.clients import webhook
from karat.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
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
        if code == 2:  # begin, and drip: each byte comes soon enough, and there is no end
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            with suppress(OSError):
                while not self.server.hang.wait(0.01):
                    self.wfile.write(b".")
            return
        if code == 3:  # more than anybody wants to hold
            self.wfile.write(b"HTTP/1.1 500 Oh\r\nContent-Length: 99999999999\r\n\r\n")
            with suppress(OSError):
                while not self.server.hang.is_set():
                    self.wfile.write(b"." * 65536)
            return
        if code == 4:  # another protocol
            self.wfile.write(b"220 smtp ready\r\n")
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


def test_what_is_no_text_is_posted_all_the_same(receiver: Receiver) -> None:
    """A file's name in Latin-1, and a secret in it."""
    assert webhook.post(receiver.url, {"text": "caf\udce9"}, secret="\udce9").delivered
    [(_, headers, body)] = receiver.came
    assert json.loads(body) == {"text": "caf?"}
    mac = hmac.new(b"\xe9", body, hashlib.sha256).hexdigest()
    assert headers[webhook.SIGNATURE.lower()] == f"sha256={mac}"


def test_without_a_secret_there_is_no_signature(receiver: Receiver) -> None:
    assert webhook.post(receiver.url, EVENT, secret="").delivered
    assert webhook.SIGNATURE.lower() not in receiver.came[0][1]


def test_the_receiver_of_the_how_to_knows_what_is_ours(receiver: Receiver) -> None:
    """The code that docs/how-to/trend.md gives, over what came through a real socket."""
    page = (ROOT / "docs/how-to/trend.md").read_text(encoding="utf-8")
    [code] = [b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "is_ours" in b]
    names: dict[str, Any] = {}
    exec(code, names)
    webhook.post(receiver.url, EVENT, secret="hush")
    [(_, headers, body)] = receiver.came
    header = headers[webhook.SIGNATURE.lower()]
    assert names["is_ours"](body, header, "hush")
    assert not names["is_ours"](body + b" ", header, "hush")
    assert not names["is_ours"](body, header, "hash")


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


@pytest.mark.parametrize(("minutes", "least", "most"), [(60, 30, 30), (-60, 0.5, 0.5)])
def test_a_wait_until_a_date(receiver: Receiver, minutes: int, least: float, most: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
    receiver.answers = [(429, {"Retry-After": date}), (429, {"Retry-After": "soon"})]
    waits: list[float] = []
    assert webhook.post(receiver.url, EVENT, sleep=waits.append).tries == 3
    assert least <= waits[0] <= most
    assert waits[1] == 1.0, "as if it had asked for nothing"


@pytest.mark.parametrize(
    "location", ["http://[", "file:///etc/passwd", "//a\x1b[2J/", "http://a:b/"]
)
def test_where_a_redirect_leads_is_not_even_looked_at(receiver: Receiver, location: str) -> None:
    receiver.answers = [(302, {"Location": location})]
    delivery = webhook.post(receiver.url, EVENT)
    assert (delivery.delivered, delivery.status, delivery.tries) == (False, 302, 1)


def test_an_answer_that_drips_or_never_ends_is_given_up(receiver: Receiver) -> None:
    receiver.answers = [(2, {}), (3, {})]
    began = time.monotonic()
    delivery = webhook.post(receiver.url, EVENT, timeout=0.2, tries=2, sleep=lambda _: None)
    assert time.monotonic() - began < 2
    assert (delivery.delivered, delivery.status, delivery.tries) == (False, 500, 2)
    receiver.answers = [(2, {})]
    dripped = webhook.post(receiver.url, EVENT, timeout=0.1, tries=1)
    assert dripped.reason == "127.0.0.1: no response within 0.1 s"


def test_another_protocol_and_a_strange_code(receiver: Receiver) -> None:
    receiver.answers = [(4, {}), (600, {})]
    delivery = webhook.post(receiver.url, EVENT, tries=2, sleep=lambda _: None)
    assert (delivery.status, delivery.reason) == (600, "127.0.0.1: status 600")


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
    assert "no response" in late.reason
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


def test_a_message_for_slack(receiver: Receiver) -> None:
    lines = ["CTR <fell> & fell", *(f"line {at}" for at in range(30))]
    event = {"event": "online.worse", "time": "2026-11-21T03:00:00Z", "karat": "1.0"}
    message = webhook.formed(event | {"text": "CTR <fell>", "lines": lines}, "slack")
    assert webhook.post(receiver.url, message).delivered
    [(_, _, body)] = receiver.came
    sent = json.loads(body)
    assert set(sent) == {"text", "blocks"}
    assert sent["text"] == "CTR &lt;fell&gt;"
    sections = [each["text"] for each in sent["blocks"] if each["type"] == "section"]
    # Slack takes 50 blocks: 19 lines, and how many more there are.
    assert len(sections) == 20
    assert sections[0] == {"type": "mrkdwn", "text": "CTR &lt;fell&gt; &amp; fell"}
    assert sections[-1]["text"] == "and 12 more"
    [context] = sent["blocks"][20:]
    assert context["elements"][0]["text"] == "online.worse · 2026-11-21T03:00:00Z · karat 1.0"
    assert webhook.formed(EVENT, "json") == EVENT
    turned = webhook.formed(event | {"text": "rel\u202egap\u2066x"}, "slack")
    assert turned["text"] == "rel\ufffdgap\ufffdx"
    only = webhook.formed(event | {"text": "x" * 9000}, "slack")
    assert len(only["blocks"][0]["text"]["text"]) < 3000, "Slack's limit"
