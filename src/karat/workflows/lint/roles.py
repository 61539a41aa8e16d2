"""Detects the role of a file from its content: qrels, a run, queries or documents."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from karat.errors import InputError, check_known
from karat.formats import ROLES
from karat.formats.tables.detect import detect
from karat.formats.tables.parquet import scan
from karat.formats.tables.source import Source
from karat.tables.column_names import known, plain

_SHORT = 120  # characters: the median text of queries is shorter, that of documents longer
_PACKED = (".gz", ".zst", ".bz2")
_QUERY_NAMES = re.compile(r"quer|topic|question")
_DOCUMENT_NAMES = re.compile(r"corpus|doc|passage|collection")
_GRADES = {"grade", "relevance", "rel", "label", "judgment", "judgement", "rating"}


def of_folder(folder: Path) -> list[tuple[str, str]]:
    """Path and role of every file of a BEIR folder."""
    files = []
    for role, pattern in (("documents", "corpus.jsonl"), ("queries", "queries.jsonl")):
        files += [(file, role) for file in _packed(folder, pattern)[:1]]
    qrels_folder = folder / "qrels" if (folder / "qrels").is_dir() else folder
    files += [(file, "qrels") for file in _packed(qrels_folder, "*.tsv")]
    if not files:
        raise InputError(
            "this is not a BEIR folder: it has no corpus.jsonl, queries.jsonl or qrels/*.tsv",
            file=str(folder),
            fix="name the files in it",
        )
    return files


def given(pairs: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    roles = {}
    for pair in pairs:
        file, _, role = pair.rpartition("=")
        check_known(role, ROLES, f"unknown role {role!r}", f"--role FILE={'|'.join(ROLES)}")
        check_known(file, files, f"--role names {file!r}, which is not among the files", None)
        roles[file] = role
    return roles


def told(source: Source) -> str | None:
    """The role of a file; None if it cannot be detected."""
    head = source.head
    if head.startswith(b"PAR1"):
        names = scan(source)[1] if source.again else []
        return _by_names(names, [], source.name)
    text = head.decode("utf-8", "replace")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if len(lines) > 1 and not text.endswith("\n"):
        lines.pop()
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")][:200]
    if not lines:
        return None
    if text.lstrip()[:1] in ("{", "["):
        if is_golden(source):
            return "qrels"  # and queries
        return _of_json(text, lines, source.name)
    for separator in ("\t", ",", ";"):
        cells = [cell.strip().strip('"') for cell in lines[0].split(separator)]
        if len(cells) > 1 and any(known(cell, role) for role in ROLES for cell in cells):
            values = [dict(zip(cells, line.split(separator), strict=False)) for line in lines[1:]]
            role = _by_names(cells, values, source.name)
            if role is not None:
                return role
    return _by_fields(lines, source.name)


def is_golden(source: Source) -> bool:
    """Whether a file is a golden set, by the same detection as ``karat evaluate``."""
    try:
        return detect(source, "qrels") == "golden"
    except InputError:
        return False


def _of_json(text: str, lines: Sequence[str], name: str) -> str | None:
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and not all(
            value is None or isinstance(value, dict) for value in record.values()
        ):
            records.append(record)
    names: dict[str, None] = {}
    for record in records:
        names |= dict.fromkeys(record)
    role = _by_names(list(names), records, name) if records else None
    if role is not None:
        return role
    # Nested: {query: {document: number}}. Grades are small whole numbers.
    numbers = re.findall(r'"\s*:\s*(-?[\d.]+(?:[eE][-+]?\d+)?)\s*[,}]', text)
    if not numbers:
        return None
    return "qrels" if _like_grades(numbers) else "run"


def _by_names(
    names: Sequence[str], records: Sequence[Mapping[str, object]], file: str
) -> str | None:
    """The role by column names; values decide if the names fit two roles."""
    meant = {known(name, "run") for name in names}
    folded = {plain(name) for name in names}
    if {"query_id", "doc_id"} <= meant:
        if folded & _GRADES:
            return "qrels"
        if "corpus_id" in folded and "rank" not in folded and "score" in folded:
            key = next(name for name in names if plain(name) == "score")
            values = [str(record.get(key, "")) for record in records]
            return "qrels" if not values or _like_grades(values) else "run"
        return "run" if meant & {"score", "rank", "state"} else None
    if "query_id" in meant:
        return "run" if "state" in meant else "queries"
    if "doc_id" in meant or "title" in folded:
        return "documents"
    if folded & {"_id", "id"}:
        texts = [name for name in names if known(name, "documents") == "text"]
        lengths = [len(str(record.get(name, ""))) for record in records for name in texts]
        return _by_length(lengths, file)
    return None


def _by_fields(lines: Sequence[str], file: str) -> str | None:
    """The role by the number of fields."""
    tabs = Counter(line.count("\t") for line in lines).most_common(1)[0][0]
    width = Counter(min(len(line.split()), 6) for line in lines).most_common(1)[0][0]
    if tabs == 1:
        return _by_length([len(line.partition("\t")[2]) for line in lines], file)
    if width == 4:
        return "qrels"
    if width >= 5:
        return "run"
    rows = [line.split("\t") for line in lines if line.count("\t") == 2]
    if width == 3 and rows:
        values = [row[2].strip() for row in rows]
        counts = [value == "1" for value in values[:1]] == [True] and len(set(values)) > 4
        return "run" if counts or not _like_grades(values) else "qrels"
    return None


def _by_length(lengths: Sequence[int], file: str) -> str:
    """Queries or documents: by the file's name first, then by the length of its texts."""
    name = Path(file).name.casefold()
    if _QUERY_NAMES.search(name):
        return "queries"
    if _DOCUMENT_NAMES.search(name):
        return "documents"
    return "queries" if not lengths or median(lengths) < _SHORT else "documents"


def _like_grades(values: Sequence[str]) -> bool:
    """Whether most values are small whole numbers."""
    small = sum(re.fullmatch(r"-?\d{1,2}(\.0*)?", value.strip()) is not None for value in values)
    return small * 2 > len(values)


def _packed(folder: Path, pattern: str) -> list[str]:
    return [
        str(file)
        for ending in ("", *_PACKED)
        for file in sorted(folder.glob(pattern + ending))
        if file.is_file()
    ]
