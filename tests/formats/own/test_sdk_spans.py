"""Spans that the public SDKs write: OpenTelemetry's file exporter, OpenInference's decorators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from karat.formats.own.traces import read_trace
from karat.tables.diagnosis.traces import Trace

pytest.importorskip("opentelemetry.exporter.otlp.json.file")
openinference = pytest.importorskip("openinference.instrumentation")
get_current_span = pytest.importorskip("opentelemetry.trace").get_current_span

TEXTS = {"q1": "red shoes"}


@contextmanager
def tracer(path: Path) -> Iterator[Any]:
    """A tracer of OpenInference, whose spans go to a file as they end."""
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    yield openinference.OITracer(provider.get_tracer("search"), openinference.TraceConfig())
    provider.shutdown()


def documents(*pairs: tuple[Any, float]) -> list[Any]:
    return [
        openinference.Document(id=doc_id, score=score, content="text", metadata={"lang": "en"})
        for doc_id, score in pairs
    ]


def retrieved(found: list[Any]) -> None:
    """Set the documents of the current span, as the conventions say."""
    get_current_span().set_attributes(openinference.get_retriever_attributes(documents=found))


def searched(path: Path, *, conventions: bool) -> Trace:
    """A hybrid search with a reranker; without ``conventions``, as the decorators write it."""
    note: Callable[[list[Any]], None] = retrieved if conventions else lambda _found: None

    def bm25(query: str) -> list[Any]:
        note(found := documents(("a", 2.5), ("b", 1.5)))
        return found

    def dense(text: str, k: int) -> list[Any]:
        note(found := documents((7, 0.9), ("b", 0.5)))
        return found[:k]

    def top(query: str, given: list[Any]) -> list[Any]:
        found = documents(("a", 0.9), ("b", 0.1))
        if conventions:
            get_current_span().set_attributes(
                openinference.get_reranker_attributes(
                    query=query, model_name="mini", top_k=2,
                    input_documents=given, output_documents=found,
                )
            )  # fmt: skip
        return found

    with tracer(path) as t:
        lexical, semantic = t.retriever(name="bm25")(bm25), t.retriever(name="dense")(dense)

        def hybrid(query: str) -> list[Any]:
            lexical(query)
            semantic("shoes", k=3)
            note(found := documents(("b", 0.3), ("a", 0.2), (7, 0.1)))
            return found

        fused, reranked = t.chain(name="hybrid")(hybrid), t.reranker(name="top")(top)
        t.chain(name="search")(lambda query: reranked(query, fused(query)))("Red shoes")
    return read_trace(path, TEXTS)


@pytest.mark.parametrize("conventions", [True, False])
def test_a_hybrid_search_with_a_reranker(conventions: bool, tmp_path: Path) -> None:
    found = searched(tmp_path / "spans.jsonl", conventions=conventions)
    assert [(s.name, s.kind, s.parents) for s in found.stages] == [
        ("bm25", "retrieve", ()),
        ("dense", "retrieve", ()),
        ("hybrid", "fuse", ("bm25", "dense")),
        ("top", "rerank", ("hybrid",)),
    ]
    assert found.query_ids == ["q1"]
    assert found.candidates("bm25").rows() == [("q1", "a", 1, 2.5), ("q1", "b", 2, 1.5)]
    assert found.candidates("dense").rows() == [("q1", "7", 1, 0.9), ("q1", "b", 2, 0.5)]
    assert found.candidates("hybrid")["doc_id"].to_list() == ["b", "a", "7"]
    assert found.candidates("top").rows() == [("q1", "a", 1, 0.9), ("q1", "b", 2, 0.1)]
    by_stage = {row["stage"]: row for row in found.frame.iter_rows(named=True)}
    # A retriever that was asked something else than the search.
    assert (by_stage["bm25"]["parse"], by_stage["dense"]["parse"]) == (None, "shoes")
    assert all(row["state"] == "ok" and row["latency_us"] >= 0 for row in by_stage.values())
    if conventions:
        assert json.loads(by_stage["top"]["parameters"]) == {"model": "mini"}


def test_an_exception_is_the_error_of_its_stage(tmp_path: Path) -> None:
    def bm25(query: str) -> None:
        raise ValueError("no index")

    with tracer(tmp_path / "spans.jsonl") as t:
        search = t.retriever(name="bm25")(bm25)
        with pytest.raises(ValueError, match="no index"):
            search("Red shoes")
    row = read_trace(tmp_path / "spans.jsonl", TEXTS).frame.row(0, named=True)
    assert (row["query_id"], row["state"]) == ("q1", "failed")
    assert "no index" in row["error"]


def test_a_retrieval_span_of_genai(tmp_path: Path) -> None:
    """What OpenInference itself makes of a retriever span in the conventions of GenAI."""
    from openinference.instrumentation.helpers import safe_json_dumps
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as genai

    with tracer(tmp_path / "spans.jsonl") as t, t.start_as_current_span("retrieval kb") as span:
        span.set_attribute(genai.GEN_AI_OPERATION_NAME, "retrieval")
        span.set_attribute(genai.GEN_AI_RETRIEVAL_QUERY_TEXT, "red shoes")
        listed = [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25}]
        span.set_attribute(genai.GEN_AI_RETRIEVAL_DOCUMENTS, safe_json_dumps(listed))
    found = read_trace(tmp_path / "spans.jsonl", TEXTS)
    assert found.candidates("retrieval kb").rows() == [("q1", "a", 1, 0.5), ("q1", "b", 2, 0.25)]


def test_a_long_list_of_which_the_sdk_dropped_the_first(tmp_path: Path) -> None:
    """128 attributes of a span are kept by default, the newest: four for each document here."""
    found = documents(*((f"d{n}", 1 / (n + 1)) for n in range(40)))
    kind = {"openinference_span_kind": "retriever"}
    with tracer(tmp_path / "spans.jsonl") as t, t.start_as_current_span("bm25", **kind) as span:
        retrieved(found)
        span.set_attribute("karat.query_id", "q1")
    row = read_trace(tmp_path / "spans.jsonl").frame.row(0, named=True)
    # Ranks are those of the search. What is left of 160 attributes begins with document 8 or 9.
    ranks = dict(zip(row["doc_ids"], row["ranks"], strict=True))
    assert "d0" not in ranks
    assert ranks["d39"] == 40
    assert row["state"] == "failed"
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in row["error"]

    # The whole list is in the output that the decorators write.
    def bm25(query: str) -> list[Any]:
        retrieved(found)
        return found

    with tracer(tmp_path / "whole.jsonl") as t:
        search = t.retriever(name="bm25")(bm25)
        # The root alone still has the text of the query.
        t.chain(name="search")(lambda query: str(search(query)))("red shoes")
    whole = read_trace(tmp_path / "whole.jsonl", TEXTS)
    assert whole.candidates("bm25")["doc_id"].to_list() == [f"d{n}" for n in range(40)]
    assert whole.frame["state"].to_list() == ["ok"]
