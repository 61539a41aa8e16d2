"""A sound file of every kind that karat reads, small, and a workspace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
from tests.web.conftest import make_shop

RUN = [(f"q{q}", f"d{d}", 9.5 - d) for q in range(1, 5) for d in range(1, 6)]
GRADES = [(f"q{q}", f"d{d}", (q + d) % 3) for q in range(1, 5) for d in range(1, 5)]
TEXTS = {"q1": "red shoes", "q2": "garden hose", "q3": "tall ladder", "q4": "wool hat"}
MADE = (
    "gate q.qrels r.trec -m nDCG@3 --save-baseline baseline.json",
    *[
        f"evaluate q.qrels r.trec -m RR -m AP --history history.jsonl --commit c{i}"
        for i in range(4)
    ],
    "compare q.qrels far.trec near.trec -m P@1 --certificate certificate.json",
    "backup backup.zip -w shop",
)
"""Commands that make the others of these files."""


def write_files() -> None:
    """Write a sound file of every kind into the current folder."""
    from karat import formats

    Path("q.qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in GRADES))
    shutil.copy("q.qrels", "q2.qrels")
    ranked = [(q, d, s, round(9.5 - s)) for q, d, s in RUN]
    Path("r.trec").write_text("".join(f"{q} Q0 {d} {r} {s} r\n" for q, d, s, r in ranked))
    Path("r2.trec").write_text("".join(f"{q} Q0 {d} {6 - r} {-s} r2\n" for q, d, s, r in ranked))
    # One system finds what is judged, the other what is judged not relevant: the sign is certain.
    for name, best in (("near", 2), ("far", 0)):
        found = [next(d for q, d, g in GRADES if q == query and g == best) for query in TEXTS]
        Path(f"{name}.trec").write_text(
            "".join(f"{q} Q0 {d} 1 9 {name}\n" for q, d in zip(TEXTS, found, strict=True))
        )
    Path("r.msmarco").write_text("".join(f"{q}\t{d}\t{r}\n" for q, d, _, r in ranked))
    Path("queries.msmarco.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in TEXTS.items()))
    run, judged = formats.read_run("r.trec"), formats.read_qrels("q.qrels")
    for ending in ("csv", "tsv", "jsonl", "json", "parquet"):
        formats.write_run(run, f"r.{ending}")
        if ending != "tsv":
            formats.write_qrels(judged, f"q.{ending}")
    texts = pl.DataFrame(
        {"query_id": list(TEXTS), "text": list(TEXTS.values()), "kind": list("aabb"),
         "weight": [1.0, 2.0, 0.5, 1.0]}
    )  # fmt: skip
    texts.write_csv("queries.csv")
    texts.write_ndjson("queries.jsonl")
    texts.write_parquet("queries.parquet")
    _write_beir()
    golden = [
        {"query": text, "query_id": q, "relevant_docs": {"d1": 2, "d2": 1}, "kind": "a"}
        for q, text in TEXTS.items()
    ]
    Path("golden.json").write_text(json.dumps(golden, indent=1))
    Path("p.toml").write_text('[[rule]]\nmeasure = "nDCG@3"\nmax_drop = "5%"\n')
    Path("p2.toml").write_text(
        '[health]\nmax_failed = 0.1\nmax_missing = 1\np95_ms = 500\n\n[[rule]]\nmeasure = "RR"\n'
        'min = 0.2\n\n[[rule]]\nmeasure = "nDCG@3"\nmax_drop = 0.1\n\n\n'
        '[[known_failure]]\nquery = "q4"\nmeasure = "RR"\nmin = 0.9\n'
    )
    Path("pairs.csv").write_text("query_id,doc_id\nq1,d5\nq2,d5\n")
    _write_logs()
    make_shop(Path("shop").absolute(), {})


def _write_beir() -> None:
    Path("beir/qrels").mkdir(parents=True)
    Path("beir/qrels/test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in GRADES)
    )
    Path("beir/queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": q, "text": t, "metadata": {"kind": "a"}}) + "\n"
            for q, t in TEXTS.items()
        )
    )
    Path("beir/corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"d{d}", "title": f"t{d}", "text": f"of {d}"}) + "\n"
            for d in range(1, 6)
        )
    )


def _write_logs() -> None:
    events: list[dict[str, Any]] = []
    for n in range(12):
        time = f"2026-11-0{n % 9 + 1}T10:00:{n:02d}Z"
        common = {"user_id": f"u{n % 3}", "query_id": f"s{n}"}
        events += [
            {"time": time, "type": "search", **common, "query": "red shoes", "hits": "d1|d2"},
            {"time": time, "type": "click", **common, "object_id": "d1", "position": "1"},
        ]
    frame = pl.DataFrame(events, infer_schema_length=None)
    frame.write_ndjson("events.jsonl")
    frame.write_csv("events.csv")
    frame.write_parquet("events.parquet")
    frame.rename({"user_id": "wer", "time": "wann"}).write_csv("own.csv")
    Path("mapping.toml").write_text(
        '[columns]\nuser_id = "wer"\ntime = "wann"\n\n[hits]\nseparator = "|"\n'
    )
    Path("ubi.ndjson").write_text(
        "".join(
            json.dumps(
                {"timestamp": f"2026-11-01T10:00:{n:02d}Z", "action_name": "click",
                 "client_id": f"u{n}", "query_id": f"s{n}", "user_query": "red shoes",
                 "event_attributes": {"object": {"object_id": "d1"}, "position": {"ordinal": 1}}}
            ) + "\n"
            for n in range(9)
        )
    )  # fmt: skip
    log = pl.DataFrame({"query": [*TEXTS.values(), "007"], "count": [9, 5, 2, 1, 1]})
    log.with_columns(country=pl.lit("de")).write_csv("log.csv")
    log.write_ndjson("log.jsonl")
    log.write_parquet("log.parquet")
    Path("log.txt").write_text("".join(f"{text}\n" for text in log["query"]))
    Path("log.uniq").write_text("".join(f"{n:7d} {text}\n" for text, n in log.iter_rows()))
