"""`karat demo`: build the worked example as a folder that all commands can read.

DIR/corpus.jsonl       the documents      (BEIR: _id, title, text; and kind, module)
DIR/queries.jsonl      the golden queries (BEIR: _id, text; and need, class, frequency, origin,
                       no_answer)
DIR/qrels/test.tsv     the grades         (BEIR)
DIR/judgments.tsv      these and the grades of the second grader, with their graders
DIR/golden-set.md      how the documents were graded
DIR/gate.toml          the policy for hybrid to replace bm25
DIR/report.html        hybrid against bm25
DIR/runs/bm25.trec     the run of each system, 100 deep (TREC)
DIR/runs/semantic.trec (or the run of a user's own embedding function, under its name)
DIR/runs/hybrid.trec
DIR/engines.db         the indexes of bm25 and semantic as engines, declared in karat.toml
DIR/demo_semantic.py   semantic as a function
DIR/demo_judge.py      a fake machine judge as a function, declared in karat.toml
DIR/machine/people.tsv grades by people of a quarter of the queries, and by the judge of all
DIR/machine/grades.csv
DIR/demo.json          marks the folder as a demo, which may be overwritten
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.demo import _documents, _golden_set, _semantic, bm25, embedding, engines, hybrid
from karat.errors import UsageError

MARK = "demo.json"
MADE_BY = "karat demo"


@dataclass(frozen=True)
class Demo:
    directory: Path
    corpus: Path
    queries: Path
    qrels: Path
    judgments: Path
    policy: Path
    report: Path  # written later, by the command
    runs: tuple[Path, ...]  # bm25, semantic (or the user's own), hybrid
    document_count: int
    query_count: int
    judgment_count: int


def build(
    directory: Path, progress: Callable[[str], None], *, embed: embedding.Function | None = None
) -> Demo:
    """Collect the documents, run all systems on the golden queries, write the folder."""
    directory = Path(directory)
    check_is_free(directory)
    own, space = None if embed is None else embedding.of(embed), None
    progress(f"Reading the documentation of Python {_documents.PYTHON}")
    documents = _documents.collect()
    queries = _golden_set.queries()
    judgments = _golden_set.judgments()
    texts = {query.query_id: query.text for query in queries}
    progress(f"BM25 ranks {documents.height:,} documents for {len(queries)} queries")
    by_words = bm25.rank(documents, texts)
    if own is None:
        name = "semantic"
        progress(f"Semantic search ranks {documents.height:,} documents for {len(queries)} queries")
        space = _semantic.Space(documents)
        by_meaning = _semantic.rank(space, texts)
    else:
        name = own.name
        by_meaning = embedding.rank(documents, texts, own, progress)
    progress(f"Hybrid search fuses bm25 and {name}")
    rankings = {"bm25": by_words, name: by_meaning, "hybrid": hybrid.rank([by_words, by_meaning])}

    progress(f"Writing {directory}")
    remove_other_runs(directory, rankings)
    # The mark first, so that an interrupted build can be overwritten too.
    mark = {"made_by": MADE_BY, "python": _documents.PYTHON, "runs": list(rankings)}
    write(directory / MARK, [json.dumps(mark)])
    demo = Demo(
        directory=directory,
        corpus=directory / "corpus.jsonl",
        queries=directory / "queries.jsonl",
        qrels=directory / "qrels" / "test.tsv",
        judgments=directory / "judgments.tsv",
        policy=directory / "gate.toml",
        report=directory / "report.html",
        runs=tuple(run_path(directory, name) for name in rankings),
        document_count=documents.height,
        query_count=len(queries),
        judgment_count=len(judgments),
    )
    write(
        demo.corpus,
        (
            as_json({"_id": doc_id, "title": title, "text": text, "kind": kind, "module": module})
            for doc_id, title, text, kind, module in documents.iter_rows()
        ),
    )
    write(
        demo.queries,
        (
            as_json(
                {"_id": q.query_id, "text": q.text, "need": q.need, "class": q.kind}
                | {"frequency": q.frequency, "origin": q.origin, "no_answer": q.no_answer}
            )
            for q in queries
        ),
    )
    header = "query-id\tcorpus-id\tscore"
    write(demo.qrels, [header, *("\t".join(map(str, judgment[:3])) for judgment in judgments)])
    columns = "query_id\tdoc_id\tgrade\tgrader"
    all_judgments = [*judgments, *_golden_set.second_judgments()]
    write(demo.judgments, [columns, *("\t".join(map(str, judgment)) for judgment in all_judgments)])
    write(directory / "golden-set.md", _golden_set.lines("README.md"))
    write(demo.policy, _golden_set.lines("gate.toml"))
    for path, ranking in zip(demo.runs, rankings.values(), strict=True):
        write(path, trec_lines(ranking, tag=path.stem))
    engines.write(directory, documents, space)
    return demo


def check_is_free(directory: Path) -> None:
    """Raise a ``UsageError`` unless the directory is absent, empty or a previous demo."""
    fix = "name a new directory, as in: karat demo karat-demo"
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory", fix=fix)
    if not directory.exists() or not any(directory.iterdir()):
        return
    if read_mark(directory) is None:
        raise UsageError(f"{directory} holds files that are not a karat demo", fix=fix)


def read_mark(directory: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads((directory / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return mark if isinstance(mark, dict) and mark.get("made_by") == MADE_BY else None


def remove_other_runs(directory: Path, kept: Collection[str]) -> None:
    """Remove runs of a previous demo whose system this one does not have.

    Else `karat evaluate DIR DIR/runs/*.trec` would include old runs.
    """
    mark = read_mark(directory)
    listed = mark.get("runs", ["semantic"]) if mark else []  # older demos list none
    for name in listed if isinstance(listed, list) else []:
        # Only names of the form that `karat.demo.embedding` creates, which stay in the folder.
        if name not in kept and isinstance(name, str) and embedding.file_name(name) == name:
            run_path(directory, name).unlink(missing_ok=True)


def run_path(directory: Path, name: str) -> Path:
    return directory / "runs" / f"{name}.trec"


def trec_lines(ranking: Mapping[str, Sequence[tuple[str, float]]], tag: str) -> Iterable[str]:
    """`query_id Q0 doc_id rank score tag`, one line per document."""
    for query_id, scored in ranking.items():
        for rank, (doc_id, score) in enumerate(scored, start=1):
            yield f"{query_id} Q0 {doc_id} {rank} {as_number(score)} {tag}"


def as_number(score: float) -> str:
    """Six decimals, or all digits if that would round (a sum of reciprocal ranks)."""
    short = f"{score:.6f}"
    return short if float(short) == score else repr(score)


def as_json(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False)


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
