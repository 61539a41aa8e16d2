"""Files of traces: JSON lines, Parquet and spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.errors import InputError
from karat.formats.own.traces import read_trace, write_trace

STAGE = {
    "query_id": "q1",
    "stage": "bm25",
    "kind": "retrieve",
    "parents": [],
    "started_us": 5,
    "latency_us": 4100,
    "parameters": {"k": 100},
    "parse": "red OR shoes",
    "state": "ok",
    "candidates": [
        {"doc_id": "a", "rank": 1, "score": 7.5, "parts": {"title": 3.25}},
        {"doc_id": "b", "rank": 2, "score": 1.0, "parts": {}},
    ],
}
SECOND = {"query_id": "q1", "stage": "top", "kind": "rerank", "parents": ["bm25"],
          "candidates": [{"doc_id": "b"}, {"doc_id": "a"}]}  # fmt: skip


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "trace.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_json_lines_and_parquet_hold_everything(tmp_path: Path) -> None:
    found = read_trace(written(tmp_path, STAGE, SECOND))
    for name in ("again.parquet", "again.jsonl", "again.jsonl.gz"):
        write_trace(found, tmp_path / name)
        assert read_trace(tmp_path / name).frame.equals(found.frame), name
    assert json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0]) == STAGE
    # Ranks that are not given are the places in the list.
    assert found.candidates("top").rows() == [("q1", "b", 1, None), ("q1", "a", 2, None)]


def test_candidates_in_any_order(tmp_path: Path) -> None:
    candidates = [{"doc_id": "b", "rank": 2, "score": 1}, {"doc_id": 7, "rank": 1, "score": 2}]
    found = read_trace(written(tmp_path, SECOND | {"parents": [], "candidates": candidates}))
    assert found.candidates("top").rows() == [("q1", "7", 1, 2.0), ("q1", "b", 2, 1.0)]


@pytest.mark.parametrize(
    ("line", "error", "fix"),
    [
        ("{", "not JSON", ""),
        ("[]", "not a JSON object", "one object for each query and stage"),
        (SECOND | {"candidate": []}, "unknown key 'candidate'", "did you mean candidates?"),
        (SECOND | {"stage": 3}, "stage is 3, not a text", ""),
        (SECOND | {"candidates": {"a": 1}}, "candidates is not a list", ""),
        (SECOND | {"candidates": [{"id": "a"}]}, "candidate 1 is", '{"doc_id": "a"'),
        (SECOND | {"candidates": [{"doc_id": "a", "rank": 0}]}, "candidate 1 is", ""),
        (SECOND | {"candidates": [{"doc_id": "a", "score": 1}, {"doc_id": "b"}]},
         "some candidates have a score", "give all of them one, or none"),
        (SECOND | {"latency_us": "soon"}, "latency_us is 'soon'", ""),
        (SECOND | {"kind": "retriever"}, "unknown kind 'retriever'", "one of rewrite, retrieve"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(line: Any, error: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_trace(written(tmp_path, STAGE, line)).stages  # noqa: B018 - read when asked
    assert error in str(caught.value)
    assert fix in str(caught.value)
    if "unknown kind" not in error:
        assert "line 2" in str(caught.value)


def test_a_parquet_of_something_else_is_refused(tmp_path: Path) -> None:
    import polars as pl

    pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]}).write_parquet(tmp_path / "run.parquet")
    with pytest.raises(InputError, match="not a trace: it has no column stage"):
        read_trace(tmp_path / "run.parquet")
    whole = (tmp_path / "run.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        read_trace(tmp_path / "cut.parquet")


# --- spans ---


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes in OTLP JSON, in which integers are text."""
    out = []
    for key, value in values.items():
        kind = {str: "stringValue", int: "intValue", float: "doubleValue"}[type(value)]
        out.append({"key": key, "value": {kind: str(value) if kind == "intValue" else value}})
    return out


def span(name: str, number: int, parent: int | None, kind: str, **more: Any) -> dict[str, Any]:
    documents = more.pop("documents", ())
    prefix = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
    values: dict[str, Any] = {"openinference.span.kind": kind, **more.pop("also", {})}
    for at, (doc_id, score) in enumerate(documents):
        values[f"{prefix}.{at}.document.id"] = doc_id
        values[f"{prefix}.{at}.document.score"] = score
    return {
        "traceId": "0" * 31 + "1",
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": name,
        "startTimeUnixNano": str(10_000_000 + number * 1_000_000),
        "endTimeUnixNano": str(10_000_000 + number * 1_000_000 + 2_500_000),
        "attributes": attributes(values),
        **more,
    }


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_of_a_hybrid_search_with_a_reranker(tmp_path: Path) -> None:
    """Two retrievers below a chain that fuses them, and a reranker beside it (OpenInference)."""
    fused = {
        "retrieval.documents.0.document.id": "b",
        "retrieval.documents.1.document.id": "a",
    }
    spans = (
        span("search", 1, None, "CHAIN", also={"input.value": "Red  shoes"}),
        span("hybrid", 2, 1, "CHAIN", also=fused),
        span("bm25", 3, 2, "RETRIEVER", documents=[("a", 2.5), ("b", 1.5)]),
        span("dense", 4, 2, "RETRIEVER", documents=[("b", 0.9)], also={"input.value": "shoes"}),
        span("rerank", 5, 1, "RERANKER", documents=[("a", 0.7), ("b", 0.1)],
             also={"reranker.model_name": "m"}),
    )  # fmt: skip
    found = read_trace(written(tmp_path, otlp(*spans)), {"q7": "red shoes"})
    assert [(s.name, s.kind, s.parents) for s in found.stages] == [
        ("bm25", "retrieve", ()),
        ("dense", "retrieve", ()),
        ("hybrid", "fuse", ("bm25", "dense")),
        ("rerank", "rerank", ("hybrid",)),
    ]
    assert found.query_ids == ["q7"]
    assert found.candidates("bm25").rows() == [("q7", "a", 1, 2.5), ("q7", "b", 2, 1.5)]
    assert found.candidates("hybrid")["doc_id"].to_list() == ["b", "a"]
    dense = found.frame.filter(found.frame["stage"] == "dense").row(0, named=True)
    assert (dense["parse"], dense["latency_us"], dense["started_us"]) == ("shoes", 2500, 14_000)


def test_spans_of_genai_and_a_query_id(tmp_path: Path) -> None:
    """Documents as JSON text, and the id of the query on a span."""
    listed = json.dumps([{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25}])
    also = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": listed,
        "karat.query_id": "q1",
    }
    retrieval = span("retrieval kb", 1, None, "", also=also)
    failed = span("second", 2, None, "RETRIEVER", status={"code": 2, "message": "timeout"})
    found = read_trace(written(tmp_path, otlp(retrieval), otlp(failed)))
    assert found.candidates("retrieval kb").rows() == [("q1", "a", 1, 0.5), ("q1", "b", 2, 0.25)]
    assert found.frame["error"].to_list() == [None, "timeout"]


def test_of_several_traces_of_a_query_the_last_counts(tmp_path: Path) -> None:
    first, last = (
        otlp(span("r", n, None, "RETRIEVER", also={"karat.query_id": "q1"}, documents=[(doc, 1.0)],
                  traceId=f"{n:032x}"))
        for n, doc in ((1, "a"), (2, "b"))
    )  # fmt: skip
    for order in ((first, last), (last, first)):
        found = read_trace(written(tmp_path, *order))
        assert found.candidates("r")["doc_id"].to_list() == ["b"]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"startTimeUnixNano": str(2**70)}, "is not a time in nanoseconds"),
        ({"startTimeUnixNano": "soon"}, "not spans in OTLP JSON"),
        ({"attributes": [{"value": {"stringValue": "a"}}]}, "not spans in OTLP JSON"),
        ({"attributes": [{"key": 7, "value": {"intValue": "7"}}]}, "none of the 1 traces"),
    ],
)
def test_damaged_spans_are_refused(more: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=error):
        read_trace(written(tmp_path, otlp(span("r", 1, None, "RETRIEVER") | more)), {"q1": "red"})


def test_documents_of_odd_spans(tmp_path: Path) -> None:
    """A place that no list has, a score that is not a number, and an output that is no list."""
    also = {
        "karat.query_id": "q1",
        f"retrieval.documents.{10**30}.document.id": "z",
        "output.value": json.dumps({"documents": [{"id": "a", "score": float("nan")}, 3, {}]}),
    }
    found = read_trace(written(tmp_path, otlp(span("r", 1, None, "RETRIEVER", also=also))))
    assert found.candidates("r").rows() == [("q1", "a", 1, None)]


def test_spans_whose_query_is_not_known(tmp_path: Path) -> None:
    spans = otlp(
        span("r", 1, None, "RETRIEVER", also={"input.value": "blue"}, documents=[("a", 1.0)])
    )
    path = written(tmp_path, spans)
    with pytest.raises(InputError, match="asks 'blue', which is not among the queries"):
        read_trace(path, {"q1": "red"})
    with pytest.raises(InputError, match="none of the 1 traces has a span that retrieves"):
        read_trace(written(tmp_path, otlp(span("x", 1, None, "LLM"))))
