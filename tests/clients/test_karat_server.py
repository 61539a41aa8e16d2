"""The client, against a karat that is served on this machine, and against servers that are none."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest
import uvicorn
from fastapi import FastAPI

import karat
from karat import Client, InputError, KaratError, MissingExtra, UsageError
from karat.store.sql import people
from karat.tables import Pairs, Qrels, Run
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.workflows.workspace.workspace import make_workspace, open_workspace

SCOPES = ["judge", "read", "write"]
BASE = "/search/karat"
CSV = "query_id,query,doc_id,grade,rater\n" + "".join(
    f"q{q},query {q},d{d},{(q + d + r) % 4},{name}\n"
    for q in range(1, 5)
    for d in range(1, 5)
    for r, name in enumerate(("ann", "ben"))
)


@dataclass
class Served:
    """A karat on a free port."""

    url: str
    token: str
    app: FastAPI


def serve(app: Any) -> tuple[uvicorn.Server, threading.Thread, str]:
    """Start a server on a free port; the address is known when this returns."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, thread, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A workspace behind a proxy's path, with a token of an engineer."""
    root = tmp_path_factory.mktemp("served") / "shop"
    make_workspace(root, now=1, name="shop", environment={})
    with open_workspace(root, now=1, environment={}) as opened, opened.store.begin() as c:
        people.add(c, "egon", "engineer", None, 1)
    app = create_app(Settings(root, base=BASE))
    server, thread, url = serve(app)
    site = app.state.site
    token = site.accounts.make_token(site.accounts.by_name("egon"), "t", SCOPES).text
    yield Served(url + BASE, token, app)
    server.should_exit = True
    thread.join(10)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def client(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of it; the golden set is judged and has a run by now."""
    path = tmp_path_factory.mktemp("sent") / "ratings.csv"
    path.write_text(CSV)
    with Client(served.url, served.token) as made:
        assert made.import_file("shop", path)["judgments"] == 32
        made.upload_run(run_of("old", 1))
        yield made


def run_of(name: str, step: int) -> Run:
    """A run that returns d1 to d5 for each query, or the other way round."""
    docs = [f"d{d}" for d in range(1, 6)][::step]
    return Run.from_dict(
        {f"q{q}": {doc: 5.0 - at for at, doc in enumerate(docs)} for q in range(1, 5)}
    ).named(name)


def test_it_is_of_the_door_and_takes_address_and_token_of_the_environment(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_URL", served.url + "/")
    monkeypatch.setenv("KARAT_TOKEN", served.token)
    with karat.Client() as made:
        assert made.me()["name"] == "egon"
        assert served.token not in repr(made)


def test_tables_are_frames_of_their_own_types(client: Client) -> None:
    judgments = client.judgments("shop")
    assert judgments.height == 32
    assert judgments.schema["grade"] == pl.Float64
    assert judgments.schema["reason"] == pl.String  # though nobody gave one
    assert client.judgments("shop", rater="ann", grade=">=3").height == 4  # one of each query
    assert client.pairs("shop").height == 16
    assert set(client.queries("shop")["text"]) == {f"query {q}" for q in range(1, 5)}
    assert client.documents("shop").columns == ["doc_id", "title", "text", "sha256"]
    assert client.query("shop", "q1")["query"]["text"] == "query 1"
    assert client.pair("shop", "q1", "d1")["doc_id"] == "d1"
    assert client.disagreements("shop", between="import").height == 0
    with pytest.raises(InputError, match="no events were imported yet"):
        client.clicks("shop", cuts=[0.1, 0.2, 0.3])
    for click_grades in (client.add_clicks, client.queue_clicks):
        with pytest.raises(InputError, match="no events were imported yet"):
            click_grades("shop", model="naive")
    for asked in (client.doubts, client.queue_doubts):
        with pytest.raises(UsageError, match="no judge"):
            asked("shop", ["cheap"])


def test_numbers_are_those_of_the_same_grades_and_run_here(client: Client) -> None:
    qrels = client.qrels("shop")
    assert isinstance(qrels, Qrels)
    assert qrels.scale == (0.0, 3.0)
    here = karat.evaluate(qrels, run_of("old", 1), ["nDCG@5", "RR@10"], bounds=True).to_dict()
    there = client.evaluate("old", ["nDCG@5", "RR@10"])
    assert [row["value"] for row in there["results"]] == pytest.approx(
        [row["value"] for row in here["results"]], abs=1e-12
    )
    assert there["results"][0]["n"] == 4


def test_a_run_goes_and_comes_back_with_what_failed(client: Client, tmp_path: Path) -> None:
    sent = Run.from_dict({"q1": {"d1": 2.0, "d2": 1.0}, "q2": None, "q3": {}}).named("mine")
    kept = client.upload_run(sent)
    assert (kept["name"], kept["rows"]) == ("mine", 2)
    back = client.download_run(kept["id"])
    assert back.name == "mine"
    assert back.to_dict() == sent.to_dict()
    states = dict(back.answers.select("query_id", "state").iter_rows())
    assert states == {"q1": "ok", "q2": "failed", "q3": "empty"}
    path = tmp_path / "bm25.trec"
    path.write_text("q1 Q0 d3 1 2 x\n")
    assert client.upload_run(path)["name"] == "bm25"
    assert client.run(kept["id"])["sha256"] == kept["sha256"]
    assert {"mine", "bm25", "old"} <= {row["name"] for row in client.runs()}
    again = client.upload_run(sent, "nightly")
    assert (again["id"], again["name"], again["also"]) == (kept["id"], "nightly", ["mine"])
    assert client.evaluate("nightly", "P@3")["results"][0]["run"] == "nightly"
    with pytest.raises(UsageError, match="has been replaced by another"):
        client.remove_run(kept | {"sha256": "0" * 64})
    client.remove_run(again)
    with pytest.raises(UsageError, match="there is no run"):
        client.run(kept["id"])


def test_the_whole_way_of_a_release(client: Client, tmp_path: Path) -> None:
    client.upload_run(run_of("new", -1), "new")
    assert client.coverage("shop", ["new"], k=5)["runs"][0]["unjudged"] == 4  # d5 of each query
    assert client.pool("shop", ["new"], k=1)["added"] == 4
    pairs = Pairs(pl.DataFrame({"query_id": ["q1"], "doc_id": ["d9"]}))
    assert client.queue("shop", pairs)["added"] == 1
    assert client.to_judge()[0]["left"] == 5
    card = client.claim("shop")
    assert card is not None
    number = client.submit("shop", card, 3, reason="it is", seconds=1)
    assert client.progress("shop")["newest"] == number
    assert client.undo("shop", number)["grade"] == 3
    client.later("shop", card)
    compared = client.compare("old", "new", "nDCG@5")
    assert compared["differences"][0]["verdict"] in {"better", "worse", "cannot tell"}
    [row] = client.comparisons()
    assert row["state"] == "done"
    assert client.comparison_queries(row["id"], outcome="worse")["difference"].max() < 0  # type: ignore[operator]
    with pytest.raises(UsageError, match="a comparison needs the run 'new'"):
        client.remove_run(row["runs"][1]["id"])
    with pytest.raises(UsageError, match="has been replaced by another"):
        client.remove_comparison(row | {"created_us": 1})
    client.remove_comparison(row)
    assert client.comparisons() == []
    policy = '[[rule]]\nmeasure = "nDCG@5"\nmax_drop = 0.9\n'
    (tmp_path / "gate.toml").write_text(policy)
    gated = client.gate(tmp_path / "gate.toml", "new", "old")
    assert gated == client.gate(policy, "new", "old")
    assert gated["verdict"] in {"pass", "cannot_tell", "fail"}
    made = client.freeze("shop", "2027-01")
    assert client.edition("shop", "2027-01")["sha256"] == made["sha256"]
    assert [row["name"] for row in client.editions("shop")] == ["2027-01"]
    assert client.grades("shop", "2027-01").equals(client.grades("shop"))
    assert client.diff("shop", "2027-01")["grades"] == []
    told = client.export("shop", tmp_path / "set.zip", edition="2027-01")
    assert told["format"] == "beir"
    assert (tmp_path / "set.zip").read_bytes()[:2] == b"PK"
    assert not list(tmp_path.glob(".*"))
    assert client.status("shop")["edition"] == "2027-01"
    assert client.agreement("shop")["pairs"] == 16
    assert client.plan(0.1)["difference"] == 0.1
    assert client.measure("MRR")["symbol"] == "RR"


def test_errors_are_those_of_karat_in_the_words_of_the_server(
    client: Client, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"no golden set 'shob'.*did you mean shop"):
        client.status("shob")
    with pytest.raises(UsageError, match="unknown measure 'nDGC'; did you mean nDCG"):
        client.evaluate("old", "nDGC@5")
    path = tmp_path / "bad.csv"
    path.write_text(CSV.replace(",3,", ",9,", 1))
    with pytest.raises(InputError) as caught:
        client.import_file("shop", path)
    assert caught.value.file == "bad.csv"
    with pytest.raises(InputError, match="cannot be read"):
        client.import_file("shop", tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be written"):
        client.export("shop", tmp_path / "no" / "set.zip")
    with pytest.raises(UsageError, match="nonsense: Extra inputs"):
        client.evaluate("old", nonsense=1)


def wait_for(met: Callable[[], object]) -> None:
    """Wait until something is so, five seconds at most."""
    until = time.monotonic() + 5
    while not met():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_upload_that_breaks_off_leaves_nothing(
    served: Served, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = client.runs()
    host = urlsplit(served.url)
    assert host.hostname is not None
    assert host.port is not None
    with socket.create_connection((host.hostname, host.port)) as line:
        head = f"POST {BASE}/api/runs?name=x.trec HTTP/1.1\r\nhost: x\r\ncontent-length: 999\r\n"
        line.sendall(f"{head}authorization: Bearer {served.token}\r\n\r\nq1 Q0 d1 1 2 x\n".encode())
        wait_for(lambda: list(tmp_path.iterdir()))
    wait_for(lambda: not list(tmp_path.iterdir()))
    assert client.runs() == before


def test_a_token_that_is_none_or_may_not_is_said(served: Served) -> None:
    site = served.app.state.site
    reads = site.accounts.make_token(site.accounts.by_name("egon"), "r", ["read"]).text
    with Client(served.url, "karat_x") as made, pytest.raises(UsageError) as caught:
        made.me()
    assert "KARAT_TOKEN" in str(caught.value)
    with Client(served.url, reads) as made:
        assert made.me()["role"] == "engineer"
        with pytest.raises(UsageError, match="lacks the scope 'write'"):
            made.freeze("shop", "x")


@pytest.mark.parametrize(
    "url",
    ["", "karat.example.org", "ftp://x", "http://", "http://u:p@x", "http://x:0", "http://x?y=1"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Client(url, "")
    assert "KARAT_URL" in str(caught.value)


def test_a_token_of_odd_letters_is_refused_and_not_printed() -> None:
    with pytest.raises(UsageError) as caught:
        Client("http://x", "sécret\n")
    assert "cret" not in str(caught.value).replace("characters", "")


def test_without_httpx2_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtra, match=r"karat\[web\]"):
        Client("http://x", "")


class Answers(BaseHTTPRequestHandler):
    """Answers as told, and counts."""

    def answer(self) -> None:
        told: Any = self.server
        told.asked.append((self.command, self.path))
        length = int(self.headers.get("content-length") or 0)
        self.rfile.read(length)
        status, body, headers = told.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def strange() -> Iterator[Any]:
    """A server that says what it is told to."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.answers, server.asked, server.waits = [], [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_what_changes_nothing_is_tried_again_and_nothing_else(strange: Any) -> None:
    busy = (503, b"{}", {})
    good = (200, b'{"name": "x"}', {})
    with Client(strange.url, "t", sleep=strange.waits.append) as made:
        strange.answers = [busy, (429, b"", {"retry-after": "3"}), good]
        assert made.me() == {"name": "x"}
        assert strange.waits == [0.5, 3.0]
        strange.answers = [busy, (200, b'{"results": []}', {})]
        assert made.evaluate("old") == {"results": []}
        strange.asked.clear()
        strange.answers = [busy, good]
        with pytest.raises(KaratError):
            made.freeze("shop", "x")
        assert len(strange.asked) == 1
        strange.answers = [busy] * 3
        with pytest.raises(KaratError, match="status 503"):
            made.me()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, b"<html>", {}), "not a karat server"),
        ((200, b"[" * 50_000, {}), "not a karat server"),
        ((500, b"[" * 50_000, {}), "not a karat server"),
        ((200, b"[]", {}), "unexpected response"),
        ((404, b"<html>", {}), "not a karat server"),
        ((404, b'{"error": "x"}', {}), "not a karat server"),
        ((302, b"", {"location": "https://else.example/x?secret"}), "to else.example"),
    ],
)
def test_a_server_that_is_no_karat_is_said_to_be_none(
    strange: Any, answer: tuple[int, bytes, dict[str, str]], words: str
) -> None:
    strange.answers = [answer]
    with Client(strange.url, "t") as made, pytest.raises(KaratError) as caught:
        made.me()
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_said_not_to_answer(strange: Any) -> None:
    address = strange.url
    strange.server_close()
    waits: list[float] = []
    with Client(address, "t", sleep=waits.append) as made, pytest.raises(KaratError) as caught:
        made.me()
    assert "cannot reach" in str(caught.value)
    assert caught.value.exit_code == 4
    assert waits == [0.5, 1.0]
    assert json.dumps(str(caught.value))
