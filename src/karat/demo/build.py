"""`karat demo`: lay out the worked example as a folder that every other command can read.

DIR/corpus.jsonl       the documents      (BEIR: _id, title, text; and kind, module)
DIR/queries.jsonl      the golden queries (BEIR: _id, text; and need, class, origin)
DIR/qrels/test.tsv     the grades         (BEIR)
DIR/runs/bm25.trec     what each system found, 100 deep (TREC)
DIR/runs/semantic.trec
DIR/demo.json          marks the folder as ours, so that it may be overwritten
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from karat.demo import bm25, documents, golden_set, semantic
from karat.errors import UsageError

MARK = "demo.json"
MADE_BY = "karat demo"


@dataclass(frozen=True)
class Demo:
    """Where the demo lies and what it holds."""

    directory: Path
    corpus: Path
    queries: Path
    qrels: Path
    runs: tuple[Path, ...]  # bm25, semantic
    document_count: int
    query_count: int
    judgment_count: int
    judged_count: int  # different documents with a grade
    absent_count: int  # of these, how many this Python does not have; their grades are kept


def build(directory: Path, progress: Callable[[str], None]) -> Demo:
    """Collect the documents, run both systems over the golden queries, write the folder.

    Args:
        directory: Made if absent; a previous demo in it is overwritten.
        progress: Called with one line of text before each step.

    Raises:
        UsageError: The directory is a file, or holds files that are not a previous demo.
    """
    directory = Path(directory)
    check_is_free(directory)
    progress(f"Reading the documentation of Python {platform.python_version()}")
    found = documents.collect()
    asked = golden_set.queries()
    judgments = golden_set.judgments()
    texts = {query.query_id: query.text for query in asked}
    progress(f"BM25 ranks {found.height:,} documents for {len(asked)} queries")
    by_words = bm25.rank(found, texts)
    progress(f"Semantic search ranks {found.height:,} documents for {len(asked)} queries")
    by_meaning = semantic.rank(found, texts)

    progress(f"Writing {directory}")
    # The mark first: what a killed build leaves behind may be overwritten too.
    mark = {"made_by": MADE_BY, "python": platform.python_version()}
    write(directory / MARK, [json.dumps(mark)])
    judged = {judgment.doc_id for judgment in judgments}
    demo = Demo(
        directory=directory,
        corpus=directory / "corpus.jsonl",
        queries=directory / "queries.jsonl",
        qrels=directory / "qrels" / "test.tsv",
        runs=(directory / "runs" / "bm25.trec", directory / "runs" / "semantic.trec"),
        document_count=found.height,
        query_count=len(asked),
        judgment_count=len(judgments),
        judged_count=len(judged),
        absent_count=len(judged - set(found["doc_id"])),
    )
    write(
        demo.corpus,
        (
            as_json({"_id": doc_id, "title": title, "text": text, "kind": kind, "module": module})
            for doc_id, title, text, kind, module in found.iter_rows()
        ),
    )
    write(
        demo.queries,
        (
            as_json(
                {"_id": q.query_id, "text": q.text, "need": q.need, "class": q.kind}
                | {"origin": q.origin}
            )
            for q in asked
        ),
    )
    header = "query-id\tcorpus-id\tscore"
    write(demo.qrels, [header, *("\t".join(map(str, judgment)) for judgment in judgments)])
    for path, ranking in zip(demo.runs, (by_words, by_meaning), strict=True):
        write(path, trec_lines(ranking, tag=path.stem))
    return demo


def check_is_free(directory: Path) -> None:
    """A new or empty directory, or a previous demo: nobody else's files."""
    fix = "name a new directory, as in: karat demo karat-demo"
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory", fix=fix)
    if not directory.exists() or not any(directory.iterdir()):
        return
    try:
        mark = json.loads((directory / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        mark = None
    if not isinstance(mark, dict) or mark.get("made_by") != MADE_BY:
        raise UsageError(f"{directory} holds files that are not a karat demo", fix=fix)


def trec_lines(ranking: Mapping[str, Sequence[tuple[str, float]]], tag: str) -> Iterable[str]:
    """`query_id Q0 doc_id rank score tag`, one line for each document found."""
    for query_id, found in ranking.items():
        for rank, (doc_id, score) in enumerate(found, start=1):
            yield f"{query_id} Q0 {doc_id} {rank} {score:.6f} {tag}"


def as_json(row: dict[str, str]) -> str:
    """One line of a JSON Lines file."""
    return json.dumps(row, ensure_ascii=False)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write beside, then rename: a reader sees the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
