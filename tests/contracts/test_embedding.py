"""Embedding endpoints: asked in batches before the queries, once for each text and model."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pytest
from tests.contracts.search_server import serving

from karat import formats
from karat.engines.search.http import Calls
from karat.errors import InputError, KaratError
from karat.formats.own.engines import read_engine
from karat.tables import Queries
from karat.tables.engines import EmbedConfig
from karat.workflows.engines.live import search_engine
from karat.workflows.engines.tuning import tune


class VectorServer(ThreadingHTTPServer):
    """``POST /v1/embeddings`` as OpenAI has it, and a search by vectors at ``POST /search``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.batches, self.keys, self.searched, self.trouble = [], [], [], []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = 200, self._answer(body)
        if self.path != "/search" and self.server.trouble:
            status, answer = self.server.trouble.pop(0)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, body):
        if self.path == "/search":
            self.server.searched.append(body)
            return [{"id": f"d{round(body['vector'][0])}"}]
        if self.path == "/one":
            self.server.batches.append([body["text"]])
            return {"vector": [len(body["text"]), 0.5]}
        self.server.batches.append(body["input"])
        self.server.keys.append((body["model"], self.headers.get("Authorization")))
        rows = [{"index": n, "embedding": [len(t), 0.5]} for n, t in enumerate(body["input"])]
        return {"data": rows}

    def log_message(self, *_args):
        pass


@pytest.fixture
def server():
    with serving(VectorServer()) as started:
        yield started


@pytest.fixture
def declared(tmp_path, server):
    """``declared(settings)`` is an engine whose vectors come from ``[embed.small]``."""

    def declare(settings="batch = 3", embed="small", output="", path="/v1/embeddings"):
        (tmp_path / "karat.toml").write_text(
            f'[engine.e]\nkind = "http"\nurl = "{server.url}/search"\nembed = "{embed}"\n'
            'template = { vector = "{vector}", w = "{params.w}" }\nparams = { w = 1 }\n'
            f'[embed.small]\nurl = "{server.url}{path}"\nmodel = "mini"\n{settings}\n'
        )
        return read_engine("e", tmp_path)

    return declare


QUERIES = Queries(
    pl.DataFrame(
        {"query_id": [f"q{n}" for n in range(8)], "text": ["x" * (n + 1) for n in range(8)]}
    )
)


def test_vectors_are_asked_in_batches_before_the_queries_and_cached(declared, server, tmp_path):
    config = declared()
    search_engine(QUERIES, config, tmp_path / "run.jsonl", concurrency=4)
    assert [len(batch) for batch in server.batches] == [3, 3, 2]
    assert set(server.keys) == {("mini", None)}
    assert sorted(body["vector"] for body in server.searched) == [[n + 1, 0.5] for n in range(8)]
    run = formats.read_run(tmp_path / "run.jsonl")
    assert run.about["embed"] == "small mini"
    assert run.of("q4")["doc_id"].to_list() == ["d5"]
    search_engine(QUERIES, config, tmp_path / "again.jsonl")
    assert len(server.batches) == 3  # all from artifacts/vectors.sqlite
    other = declared('batch = 100\nheaders = { X-Model = "2" }')
    (tmp_path / "artifacts/vectors.sqlite").write_bytes(b"damaged")
    search_engine(QUERIES, other, tmp_path / "damaged.jsonl")
    search_engine(QUERIES, other, tmp_path / "fixed.jsonl")
    assert [len(batch) for batch in server.batches[3:]] == [8]


def test_another_model_has_other_vectors(declared, server, tmp_path):
    search_engine(QUERIES, declared(), tmp_path / "run.jsonl")
    text = (tmp_path / "karat.toml").read_text().replace("mini", "large")
    (tmp_path / "karat.toml").write_text(text)
    search_engine(QUERIES, read_engine("e", tmp_path), tmp_path / "other.jsonl")
    assert [model for model, _ in server.keys] == ["mini"] * 3 + ["large"] * 3
    with sqlite3.connect(tmp_path / "artifacts/vectors.sqlite") as stored:
        assert stored.execute("SELECT count(*) FROM vectors").fetchone() == (16,)


def test_a_secret_header_and_one_text_a_request(declared, server, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBED_KEY", "Bearer x")
    config = declared('headers = { Authorization = { env = "EMBED_KEY" } }')
    search_engine(QUERIES, config, tmp_path / "run.jsonl")
    assert set(server.keys) == {("mini", "Bearer x")}
    assert "Bearer" not in repr(config)
    config = declared('template = { text = "{text}" }\noutput = "$.vector"', path="/one")
    search_engine(QUERIES, config, tmp_path / "one.jsonl")
    assert [len(batch) for batch in server.batches[1:]] == [1] * 8


def test_a_user_and_a_password_in_an_address_are_sent(server, tmp_path):
    calls = Calls(EmbedConfig("small", tmp_path, server.url.replace("//", "//a%40b:c@")))
    with closing(calls):
        assert calls.json("POST", calls.base, {"input": [], "model": "m"}) == {"data": []}
    assert server.keys == [("m", "Basic YUBiOmM=")]  # base64 of a@b:c


def test_trouble_of_the_endpoint_is_named_before_the_queries(declared, server, tmp_path):
    server.trouble = [(503, {}), (200, {"data": []})]
    with pytest.raises(KaratError, match=r"(?s)\[embed.small\]: 0 vectors for 3 texts.*output"):
        search_engine(QUERIES, declared(), tmp_path / "run.jsonl")
    server.trouble = [(401, {"error": {"message": "no key"}})]
    with pytest.raises(KaratError, match=r"(?s)answered 401: no key.*credentials"):
        search_engine(QUERIES, declared(), tmp_path / "run.jsonl")
    server.trouble = [(200, {"data": [{"embedding": ["x"]}] * 3})]
    with pytest.raises(KaratError, match="is not a list of numbers"):
        search_engine(QUERIES, declared(), tmp_path / "run.jsonl")
    assert not server.searched


@pytest.mark.parametrize(
    ("settings", "embed", "message"),
    [
        ("", "smal", r"(?s)line 4.*no \[embed.smal\].*did you mean small"),
        ("modle = 1", "small", r"(?s)line 10: \[embed.small\] unknown key 'modle'.*model"),
        ("batch = 0", "small", "batch is 0"),
        ('headers = { Authorization = "x" }', "small", "does not belong in this file"),
    ],
)
def test_a_wrong_declaration_says_what_and_where(settings, embed, message, declared):
    with pytest.raises(InputError, match=message):
        declared(settings, embed)


def test_a_tuning_asks_for_each_vector_once(declared, server, tmp_path):
    golden = [{"query": "x" * (n + 1), "relevant_docs": [f"d{n}"]} for n in range(12)]
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    qrels, queries = (
        read(tmp_path / "golden.json") for read in (formats.read_qrels, formats.read_queries)
    )
    tune(declared("batch = 2"), ["w=1,2,3"], qrels, queries)
    texts = [text for batch in server.batches for text in batch]
    assert len(texts) == len(set(texts))
