"""Benchmark: from a golden set and a search function to the results of evaluate."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.choosing import deep_but

import karat
from karat.errors import InputError, UsageError
from karat.workflows.engines import search as module

FOUND: dict[str, list[Any]] = {
    "join two lists": [("a", 3.0), ("x", 2.0), ("b", 1.0)],
    "os.path": [("y", 2.0), ("c", 1.5)],
    "bake a cake": [],
}


def golden() -> karat.GoldenSet:
    made = karat.GoldenSet("docs", scale=(0, 3))
    made.add("join two lists", {"a": 3, "b": 1}, category="task")
    made.add("os.path", {"c": 1}, category="name")
    made.add("bake a cake", no_answer=True)
    return made


def search(text: str) -> list[Any]:
    return FOUND[text]


def test_it_equals_evaluate_on_the_same_run() -> None:
    run = {"q1": dict(FOUND["join two lists"]), "q2": dict(FOUND["os.path"]), "q3": {}}
    made = golden()
    wanted = karat.evaluate(
        made, {"search": run}, ["nDCG@10", "RR"], queries=made, by="category", per_query=True
    )
    for kind in ("plain", "async"):

        async def search_async(text: str) -> list[Any]:
            return search(text)

        found = karat.benchmark(
            made,
            search if kind == "plain" else search_async,
            ["nDCG@10", "RR"],
            by="category",
            per_query=True,
            name="search",
        )
        for part in ("results", "slices", "per_query", "no_answer"):
            assert getattr(found, part) == getattr(wanted, part), part
        assert found.notes == wanted.notes
        assert found.value("RR") == 0.75  # 1 and 1/2; the query without an answer counts apart
        (latency,) = found.latency
        assert (latency.run, latency.n) == ("search", 3)
        assert 0 <= latency.p50_us <= latency.p95_us <= latency.p99_us <= latency.max_us


def test_the_default_measures_follow_k() -> None:
    names = [row.measure for row in karat.benchmark(golden(), search).results]
    assert names == [f"{m}@{k}" for m in ("nDCG", "P", "R", "Success") for k in (1, 3, 5, 10)] + [
        "RR@10"
    ]
    names = [row.measure for row in karat.benchmark(golden(), search, k=2).results]
    assert names == ["nDCG@2", "P@2", "R@2", "Success@2", "RR@2"]
    assert [r.measure for r in karat.benchmark(golden(), search, "AP").results] == ["AP"]


@pytest.mark.parametrize("kind", ["path", "plain list", "tables", "files", "folder"])
def test_a_golden_set_may_come_in_many_shapes(kind: str, tmp_path: Path) -> None:
    made = golden()
    made.save(tmp_path / "golden.json")
    karat.write_queries(made.queries, tmp_path / "queries.csv")
    karat.write_qrels(made.qrels, tmp_path / "qrels.trec")
    plain = [
        {"query": "join two lists", "relevant_docs": {"a": 3, "b": 1}, "category": "task"},
        {"query": "os.path", "relevant_docs": ["c"], "category": "name"},
        {"query": "bake a cake", "no_answer": True},
    ]
    given: Any = {
        "path": str(tmp_path / "golden.json"),
        "plain list": plain,
        "tables": (made.queries, made.qrels),
        "files": (tmp_path / "queries.csv", tmp_path / "qrels.trec"),
        "folder": tmp_path / "beir",
    }[kind]
    folder = tmp_path / "beir" / "qrels"
    folder.mkdir(parents=True)
    karat.write_queries(made.queries, tmp_path / "beir" / "queries.jsonl")
    rows = made.qrels.frame.select("query_id", "doc_id", pl.col("grade").cast(pl.Int64)).rows()
    tsv = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
    (folder / "test.tsv").write_text("\n".join(tsv) + "\n")
    results = karat.benchmark(given, search, ["RR", "nDCG@5"], by="category")
    wanted = karat.benchmark(made, search, ["RR", "nDCG@5"], by="category")
    assert (results.results, results.slices) == (wanted.results, wanted.slices)


def states(results: karat.Results) -> dict[str, tuple[float | None, str]]:
    return {row.query_id: (row.value, row.state) for row in results.per_query}


def test_failed_empty_and_wrong_are_told_apart() -> None:
    made = karat.GoldenSet()
    answers: dict[str, Any] = {
        "good": ["a"], "empty": [], "none": None, "nan": [("a", float("nan"))], "boom": None,
    }  # fmt: skip
    for text in answers:
        made.add(text, ["a"], query_id=text)

    def search(text: str) -> Any:
        if text == "boom":
            raise ConnectionError("refused")
        return answers[text]

    results = karat.benchmark(made, search, ["RR"], per_query=True)
    assert states(results) == {
        "good": (1.0, "ok"),
        "empty": (0.0, "empty"),
        "none": (None, "failed"),
        "nan": (None, "failed"),
        "boom": (None, "failed"),
    }
    row = results.results[0]
    assert (row.value, row.n, row.empty, row.failed) == (0.5, 2, 1, 3)
    (why,) = [note for note in results.notes if note.startswith("why queries failed")]
    for reason in (
        "it returned None; expected a list (1)",
        "a score is NaN (1)",
        "ConnectionError: refused (1)",
    ):
        assert reason in why


def test_scores_that_are_no_numbers_are_one_reason() -> None:
    """Not document by document; ``tests/cli/release/test_gate.py`` has the reasons of a gate."""
    made = karat.GoldenSet()
    for number in range(9):
        made.add(f"query {number}", ["a"], query_id=f"q{number}")

    def search(text: str) -> list[tuple[str, float]]:
        return [(f"d{text[-1]}", math.nan)]

    assert "why queries failed: a score is NaN (9)" in karat.benchmark(made, search, ["RR"]).notes


def test_what_happened_is_noted() -> None:
    made = karat.GoldenSet()
    made.add("twice", ["a"])
    made.add("upside down", ["a"])
    answers = {"twice": ["b", "a", "b", "a"], "upside down": [("a", 1.0), ("b", 2.0)]}
    results = karat.benchmark(made, answers.__getitem__, ["RR"], per_query=True, concurrency=2)
    assert [row.value for row in results.per_query] == [0.5, 0.5]  # in both, a stands second
    said = "\n".join(results.notes)
    assert "duplicate documents in 1 query: the best rank counts, 2 duplicates" in said
    order = "returned documents in an order that contradicts their scores in 1 of 2 queries"
    assert order in said
    assert "ranks contradict" not in said
    assert "latencies were measured with up to 2 calls at once" in said


def test_the_order_returned_is_the_ranking() -> None:
    made = karat.GoldenSet()
    made.add("x", ["d0"])
    ids = [f"d{i}" for i in (*range(1, 50), 0)]  # d0 is last, and other orders would move it
    assert karat.benchmark(made, lambda _: ids, ["RR"]).value("RR") == 1 / 50


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, r"it returned None; expected a list; what came back: None \(query q1\)"),
        ({"hits": [1]}, r"it returned a dict; .* what came back: {'hits': \[1\]}"),
        ("abc", "it returned a str"),
        ([{"title": "x"}], "result 1 has no 'id', only 'title'"),
        ([1.5], "result 1 is a float; ids are text"),
    ],
)
def test_a_search_of_another_shape_is_told_what_is_expected(returned: Any, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        karat.benchmark(golden(), lambda _: returned)
    assert '[("a", 1.5), ("b", 0.5)]' in (caught.value.fix or "")


def test_a_search_that_always_fails_has_no_value_and_says_why() -> None:
    def broken(_: str) -> list[str]:
        raise ConnectionError("refused")

    results = karat.benchmark(golden(), broken, ["RR"])
    assert (results.results[0].value, results.results[0].failed) == (None, 2)
    assert "why queries failed: ConnectionError: refused (3)" in results.notes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"measures": "nDGC"}, "unknown measure 'nDGC'"),
        ({"measures": []}, r"measures is \[\], not names"),
        ({"measures": 5}, "measures is 5, not names"),
        ({"measures": [5]}, r"measures is \[5\], not names"),
        ({"by": "categry"}, "no attribute 'categry'.*did you mean category"),
        ({"intervall": "t"}, "neither benchmark nor evaluate.*'intervall'.*did you mean interval"),
        ({"interval": "x"}, "unknown interval 'x'"),
        ({"k": 0}, "k is 0"),
        ({"k": ()}, "k is ()"),
        ({"k": (1, "5")}, "k is"),
        ({"k": None}, "k is None, not whole numbers from 1"),
        ({"k": 1.5}, "k is 1.5"),
        ({"k": "10"}, "k is '10'"),
        ({"k": True}, "k is True"),
        ({"timeout": "5"}, "timeout must be a number, got '5'"),
        ({"timeout": True}, "timeout must be a number, got True"),
        ({"timeout": float("inf")}, r"timeout must be above 0 and at most \d+, got inf"),
        ({"timeout": 1e300}, r"timeout must be above 0 and at most \d+, got 1e.300"),
        ({"name": "\ud800"}, "contains half of a surrogate pair"),
        ({"name": ""}, "the name of the run is empty"),
        ({"name": 5}, "the name of the run is an int"),
        ({"concurency": 8}, "argument 'concurency'; did you mean concurrency"),
        ({"golden": ()}, "expected a golden set, got a tuple of 0"),
        ({"golden": (golden().qrels, golden().queries)}, "queries and judgments are swapped"),
        ({"golden": (None, golden().qrels)}, "there are no queries"),
        ({"golden": (golden().queries, None)}, "there are no judgments"),
        ({"golden": None}, "expected a golden set, got None"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1, got 0"),
        ({"concurrency": 2.5}, "concurrency must be a whole number from 1, got 2.5"),
        ({"retries": -1}, "retries must be a whole number from 0, got -1"),
        ({"warmup": True}, "warmup must be a whole number from 0, got True"),
        ({"timeout": 0}, r"timeout must be above 0 and at most \d+, got 0"),
        ({"timeout": float("nan")}, r"timeout must be above 0 and at most \d+, got nan"),
        ({"search": "bm25"}, "the search is a str, not a function"),
        ({"golden": {"q": {"a": 1}}}, "expected a golden set, got a dict"),
    ],
)
def test_what_is_misspelt_is_said_before_anything_is_asked(
    settings: dict[str, Any], says: str
) -> None:
    asked: list[str] = []
    given = {"golden": golden(), "search": asked.append, **settings}
    with pytest.raises(UsageError, match=says.replace("()", r"\(\)")):
        karat.benchmark(given.pop("golden"), given.pop("search"), **given)
    assert not asked


def test_k_values_is_another_name_of_k() -> None:
    expected = karat.benchmark(golden(), search, k=(1, 3)).results
    assert karat.benchmark(golden(), search, k_values=[1, 3]).results == expected
    with pytest.raises(UsageError, match="k and k_values are the same argument; got both"):
        karat.benchmark(golden(), search, k=3, k_values=[3])
    with pytest.raises(UsageError, match="k is 0, not whole numbers from 1"):
        karat.benchmark(golden(), search, k_values=0)


def test_whole_numbers_of_any_kind_will_do() -> None:
    results = karat.benchmark(
        golden(),
        search,
        k=np.int64(3),  # type: ignore[arg-type]
        concurrency=np.int64(2),  # type: ignore[arg-type]
        timeout=np.float64(5),
    )
    assert results.value("RR@3") == 0.75


def test_a_list_that_is_filled_anew_each_time() -> None:
    made = karat.GoldenSet()
    for i in range(12):
        made.add(f"query {i}", [f"d{i}"])
    buffer: list[str] = []

    def search(text: str) -> list[str]:
        buffer[:] = ["d" + text.split()[1]]
        return buffer

    assert karat.benchmark(made, search, "RR").value("RR") == 1.0


def test_a_threshold_needs_scores() -> None:
    def bare(text: str) -> list[str]:
        return [doc for doc, _ in search(text)] or ["a"]

    with pytest.raises(UsageError, match="by their scores, and bare returned none"):
        karat.benchmark(golden(), bare, "RR", threshold=0.5)
    assert karat.benchmark(golden(), search, "RR", threshold=0.5).no_answer[0].silent == 1
    (row,) = karat.benchmark(golden(), bare, "RR").no_answer
    assert (row.silent, row.curve) == (0, [])  # made-up scores withhold nothing

    def nothing(_: str) -> list[str]:
        return []

    assert karat.benchmark(golden(), nothing, "RR", threshold=0.5).no_answer[0].silent == 1


def test_a_golden_set_may_change_while_it_is_asked() -> None:
    made = golden()

    def growing(text: str) -> list[Any]:
        made.add(text + " again", ["a"])
        return search(text)

    results = karat.benchmark(made, growing, "RR")
    assert (results.value("RR"), results.results[0].n, len(made)) == (0.75, 2, 6)


@pytest.mark.parametrize("empty", [karat.GoldenSet(), []])
def test_a_golden_set_without_queries_is_refused(empty: Any) -> None:
    with pytest.raises(InputError, match="has no queries"):
        karat.benchmark(empty, search)


def test_a_run_is_called_after_its_function() -> None:
    class Client:
        def __call__(self, text: str) -> list[Any]:
            return search(text)

    for each, name in (
        (search, "search"),
        (functools.partial(search), "search"),
        (lambda text: search(text), "search"),  # noqa: PLW0108 - it has no name
        (Client(), "Client"),
    ):
        assert {row.run for row in karat.benchmark(golden(), each, "RR").results} == {name}
    assert karat.benchmark(golden(), search, "RR", name="bm25").value("RR", "bm25") == 0.75


class Server(ThreadingHTTPServer):
    """A search service on the loopback: every second request is refused with 503."""

    daemon_threads = True
    asked = 0
    guard = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        with self.server.guard:
            self.server.asked += 1
            refused = self.server.asked % 2 == 0
        text = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)["q"][0]
        hits = [{"_id": doc, "_score": score} for doc, score in FOUND[text]]
        body = b"" if refused else json.dumps(hits).encode()
        self.send_response(503 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[tuple[Server, str]]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_port}/?q="
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("concurrency", deep_but([3], [1, 3]))
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_service_over_http(service: tuple[Server, str], kind: str, concurrency: int) -> None:
    server, url = service
    # Not by way of a proxy that the environment may name.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def over_http(text: str) -> Any:
        try:
            with opener.open(url + urllib.parse.quote(text), timeout=5) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            raise

    async def in_a_loop(text: str) -> Any:
        return await asyncio.to_thread(over_http, text)

    once = karat.benchmark(golden(), over_http, "RR", concurrency=concurrency)
    assert once.results[0].failed + sum(row.failed for row in once.no_answer) == 1
    assert "why queries failed: HTTPError: HTTP Error 503: Service Unavailable (1)" in once.notes
    again = karat.benchmark(
        golden(),
        over_http if kind == "plain" else in_a_loop,
        "RR",
        concurrency=concurrency,
        retries=5,
        timeout=5,
    )
    assert again.value("RR") == 0.75
    assert again.results[0].failed == 0
    assert any("answered only after a retry" in note for note in again.notes)
    assert server.asked >= 3 + 4


def test_it_works_in_a_notebook_cell() -> None:
    async def in_a_loop(text: str) -> list[Any]:
        await asyncio.sleep(0.001)
        return search(text)

    async def cell() -> float | None:
        return karat.benchmark(golden(), in_a_loop, "RR", concurrency=3).value("RR")

    assert asyncio.run(cell()) == 0.75


def test_progress_is_shown_in_a_terminal_and_only_if_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pty = pytest.importorskip("pty")
    for patience, progress, seen in ((0.0, True, True), (0.0, False, False), (60.0, True, False)):
        monkeypatch.setattr(module, "_PATIENCE", patience)
        leader, follower = pty.openpty()
        with os.fdopen(follower, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr("sys.stderr", terminal)
            monkeypatch.setenv("TERM", "xterm")
            karat.benchmark(golden(), search, "RR", progress=progress)
            print("end", file=terminal, flush=True)
        read = b""
        while b"end" not in read:
            read += os.read(leader, 4096)
        os.close(leader)
        assert (b"asking" in read) == seen
    monkeypatch.undo()
    assert capsys.readouterr().out == ""


def test_without_a_terminal_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    karat.benchmark(golden(), search, "RR")
    assert capfd.readouterr() == ("", "")


def test_what_was_asked_is_recorded_and_written_with_the_run(tmp_path: Path) -> None:
    about = {"index": "docs-7", "parameters": {"limit": 5}, "retries": None}
    found = karat.benchmark(golden(), search, "RR", name="nightly", about=about, progress=False)
    told = found.about["nightly"]
    assert (told["name"], told["index"], told["parameters.limit"]) == ("nightly", "docs-7", "5")
    assert (told["golden_set"], told["concurrency"], told["timeout"]) == ("docs", "1", "none")
    assert "retries" not in told  # what is given counts more than what is known
    assert found.to_dict()["about"] == found.about
    karat.write_run(found.runs["nightly"], tmp_path / "x.trec")
    back = karat.evaluate(golden(), tmp_path / "x.trec", "RR")
    assert back.about == {"x": told}
    with pytest.raises(InputError, match="keys are text"):
        karat.benchmark(golden(), search, "RR", about={"": "x"})


def test_its_time_dates_the_documents() -> None:
    # Whenever this runs: a is from before it, c from the year 9999.
    documents = pl.DataFrame({"doc_id": ["a", "c"], "updated_at": ["2020-01-01", "9999-01-01"]})
    settings: dict[str, Any] = {"documents": documents, "by": "relevant.age", "progress": False}
    found = karat.benchmark(golden(), search, "RR", **settings)
    assert {(row.slice, row.n) for row in found.slices} == {
        ("over a year", 1),
        ("after the query", 1),
    }
