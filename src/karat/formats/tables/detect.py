"""Detects the format of a file from its first bytes, never from its name.

If they fit two formats, that is an error that names both: a guess could change numbers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from karat.errors import InputError
from karat.formats.tables.lines import refuse_return
from karat.formats.tables.source import HEAD, EmptyFile, Source
from karat.tables.column_names import SPELLINGS, is_header, known, plain

_SAMPLE = 200  # lines
_BLANKS = re.compile(r"[ \t\r\v\f]+")
_BEIR_HEADER = ["query_id", "corpus_id", "score"]
_NESTED = re.compile(rb'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(\{|\[|null)')
_JUDGED = ("qrels", "queries")
_KINDS = {
    "baseline": "a saved baseline",
    "golden_set": "a golden set",
    "certificate": "a certificate",
    "history": "a history",
    "about": "the description of a run",
    "shadow_log": "a shadow log",
}
_MARK = re.compile(rf'\s*\{{\s*"karat_({"|".join(_KINDS)})"\s*:'.encode())
_TOML = re.compile(r"\[\[?\s*[A-Za-z_]\w*\s*\]|[A-Za-z_]\w*\s*=")
_POLICY = re.compile(r"\[\[\s*(rule|known_failure)\s*\]\]|\[\s*health\s*\]|rule\s*=")
_ORDER = "choose another file; on the command line, the order is QRELS RUN"


class WrongRole(InputError):
    """A valid file of another role than the one it is read as."""


def _wrong_role(source: Source, what: str, fix: str = _ORDER) -> WrongRole:
    return WrongRole(what, file=source.name, fix=fix)


def detect(source: Source, role: str) -> str:
    """The name of the format of a file, from its head."""
    head = source.head
    if head.startswith(b"PAR1"):
        return "parquet"
    refuse_binary(source)
    refuse_kind(source, role)
    if head.lstrip()[:1] in (b"{", b"["):
        return _json(source, role)
    lines = _lines(source)
    if not lines:
        raise EmptyFile("only comments, no data", file=source.name)
    if (header := _with_header(source, lines, role)) is not None:
        return header
    for number, raw in enumerate(head.split(b"\n"), 1):
        if b'"' not in raw:  # within quotes, a carriage return may be part of a cell
            refuse_return(raw, source.name, number)
    if role in ("queries", "documents"):
        return _texts(source, lines, role)
    return _columns(source, lines, role)


def own_kind(source: Source) -> str | None:
    """The kind of a file that karat writes, with its article ("a saved baseline"), or None."""
    head = source.head
    if marked := _MARK.match(head[:200]):
        return _KINDS[marked.group(1).decode()]
    text = head.lstrip()
    if text[:1] in (b"{", b"[") and b'"relevant_docs"' in text.partition(b"}")[0]:
        return _KINDS["golden_set"]
    if text[:1] == b"{" and re.search(rb'"karat_golden_set"\s*:', text):
        return _KINDS["golden_set"]
    lines = _lines(source)
    if lines and _TOML.match(lines[0]) and any(_POLICY.match(line) for line in lines):
        return "a policy"
    return None


def refuse_kind(source: Source, role: str) -> None:
    """Refuse one of karat's own files; a golden set is accepted as judgments and queries."""
    kind = own_kind(source)
    if kind is None or (kind == _KINDS["golden_set"] and role in _JUDGED):
        return
    if kind == _KINDS["about"]:
        what = f"this is {kind}; karat reads it along with the run"
        raise _wrong_role(source, what, "name only the run")
    expected = "a run" if role == "run" else role
    fix = _ORDER if role in ("qrels", "run") else f"name the file with the {role}"
    raise _wrong_role(source, f"expected {expected}, got {kind}", fix)


def refuse_binary(source: Source) -> None:
    """Refuse ZIP files, binary data, UTF-16 without a byte order mark, and CR line ends."""
    head = source.head
    if head.startswith(b"PK\x03\x04"):
        raise source.wrong(
            "expected a text file, got a ZIP file",
            fix="unzip it and choose a file in it, or its folder",
        )
    if b"\x00" in head:
        at = head.index(b"\x00")
        even = head[:4096:2].count(0) + head[1:4096:2].count(0)
        utf16 = even > min(len(head), 4096) // 3 and head.isascii()
        raise source.wrong(
            "expected UTF-8, got UTF-16 without a byte order mark"
            if utf16
            else "binary data, not text",
            line=head.count(b"\n", 0, at) + 1,
            fix="save the file as UTF-8" if utf16 else None,
            command=f"iconv -f UTF-16LE -t UTF-8 {source.name}" if utf16 else None,
        )
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:
        raise source.wrong(
            "lines end in a lone carriage return, as on old Macs",
            line=1,
            fix=f"tr '\\r' '\\n' < {source.name}",
        )


def _lines(source: Source) -> list[str]:
    """The first complete lines that are neither blank nor comments."""
    raw = source.head.split(b"\n")
    if len(raw) > 1 and len(source.head) >= HEAD - 3:
        raw = raw[:-1]  # cut off by the end of the head
    lines = [line.decode("utf-8", "replace").rstrip("\r") for line in raw[: 10 * _SAMPLE]]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")][:_SAMPLE]


def _json(source: Source, role: str) -> str:
    text = source.head.lstrip()
    judged = role in _JUDGED
    if judged and (text.startswith(b"[") or b'"karat_golden_set"' in text):
        return "golden"
    if text.startswith(b"["):
        raise source.wrong(
            "this is a JSON array",
            line=1,
            fix="write one object per line (JSONL), or {query: {document: number}}",
        )
    first, _, rest = text.partition(b"\n")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        row = None
    if judged and isinstance(row, dict):
        # The first query of a golden set may have no judgments yet.
        later = "query" in row and b'"relevant_docs"' in rest
        if later or "relevant_docs" in row:
            return "golden"
    if isinstance(row, dict) and not (rest.strip() and row):
        # A single line: nested if it contains queries with their documents, else a record.
        nested = all(value is None or isinstance(value, dict | list) for value in row.values())
        kind = "json" if nested else "jsonl"
    elif isinstance(row, dict):
        kind = "jsonl"
    else:
        match = _NESTED.match(text)
        key = match.group(1).decode("utf-8", "replace").strip('"') if match else ""
        named = plain(key) == "metadata" or known(key, role) is not None
        opened = text[1:].lstrip()[:1] in (b"", b"}") or (match and not named)
        kind = "json" if opened or first.strip() == b"{" else "jsonl"
    if kind == "json":
        if role in ("queries", "documents"):
            what = f"expected {role}, got what looks like qrels or a run in nested JSON"
            raise _wrong_role(source, what, f"write {role} as JSONL, one object per line")
        return "json"
    if isinstance(row, dict):
        _refuse_other_role(source, list(row), role)
        if "_id" in row and role in ("queries", "documents"):
            return "beir"
    return "jsonl"


def _with_header(source: Source, lines: Sequence[str], role: str) -> str | None:
    first = lines[0]
    for separator, name in (("\t", "tsv"), (",", "csv"), (";", "csv")):
        cells = [cell.strip().strip('"') for cell in first.split(separator)]
        if len(cells) == 1:
            # A list of ids with a header.
            if separator != "," or role in ("qrels", "run") or known(cells[0], role) is None:
                continue
        elif ("\t" in first and separator != "\t") or not any(
            is_header(cells, each) for each in (role, *SPELLINGS)
        ):
            continue
        _refuse_other_role(source, cells, role)
        if name == "tsv" and [plain(cell) for cell in cells] == _BEIR_HEADER:
            if role == "qrels":
                return "beir"
            values = [line.split("\t")[-1] for line in lines[1:]]
            if role == "run" and values and all(re.fullmatch(r"-?\d{1,2}", v) for v in values):
                raise _wrong_role(
                    source,
                    "expected a run, got what looks like BEIR qrels",
                    f"{_ORDER}; if it is a run, name its format, tsv, or call its second column "
                    "doc_id",
                )
        return name
    return None


def _refuse_other_role(source: Source, names: Sequence[str], role: str) -> None:
    if role not in ("qrels", "run"):
        return
    meant = {known(name, "qrels") for name in names} | {known(name, "run") for name in names}
    if not {"query_id", "doc_id"} <= meant:
        return
    folded = {plain(name) for name in names}
    if role == "run" and "grade" in meant and not folded & {"score", "sim", "similarity", "rank"}:
        what = "expected a run, got what looks like qrels (grades but no scores)"
        raise _wrong_role(source, what)
    if role == "qrels" and "rank" in folded and not _graded(names):
        what = "expected qrels, got what looks like a run (ranks but no grades)"
        raise _wrong_role(source, what)


def _graded(names: Sequence[str]) -> bool:
    grades = set(SPELLINGS["qrels"]["grade"]) - {"score"}
    return any(plain(name) in grades for name in names)


def _texts(source: Source, lines: Sequence[str], role: str) -> str:
    """Queries or documents without a header."""
    tabs = Counter(line.count("\t") for line in lines).most_common(1)[0][0]
    if tabs == 1:
        return "msmarco"
    width = _width(lines)
    if width >= 4 and all(len(_fields(line)) >= 4 for line in lines) and _numeric(lines, 3):
        kind = "TREC qrels" if width == 4 else "a TREC run"
        raise source.wrong(f"expected {role}, got what looks like {kind}")
    raise _unknown(
        source,
        lines,
        f"{role} are read from JSONL, CSV and TSV with a header line, and MS MARCO lines (id, tab, "
        "text)",
    )


def _columns(source: Source, lines: Sequence[str], role: str) -> str:
    """Qrels or a run without a header."""
    width = _width(lines)
    if width == 4:
        if role == "run":
            what = "expected a run (6 fields), got what looks like TREC qrels (4 fields)"
            raise _wrong_role(source, what)
        return "trec"
    if width >= 6:
        if role == "qrels":
            what = "expected qrels (4 fields), got what looks like a TREC run (6 fields)"
            raise _wrong_role(source, what)
        return "trec"
    tabs = Counter(line.count("\t") for line in lines).most_common(1)[0][0]
    if width == 3 and tabs == 2:
        return _three(source, lines, role)
    if tabs >= 2:
        return "tsv"
    if Counter(line.count(",") for line in lines).most_common(1)[0][0] >= 2:
        return "csv"
    hint = {
        "qrels": "TREC qrels have 4 fields (query iteration document grade)",
        "run": "a TREC run has 6 fields (query Q0 document rank score tag)",
    }
    raise _unknown(source, lines, f"{hint[role]}; CSV and TSV have a header line")


def _three(source: Source, lines: Sequence[str], role: str) -> str:
    """Three tab-separated fields without a header: a rank, a score or a grade?"""
    rows = [line.split("\t") for line in lines if line.count("\t") == 2]
    values = [row[2].strip() for row in rows]
    numbers = [v for v in values if re.fullmatch(r"[-+]?[\d.]+([eE][-+]?\d+)?", v)]
    if len(numbers) * 2 < len(values) or (len(values) == 1 and not numbers):
        return "tsv"  # the reader says which column has no name
    whole = all(re.fullmatch(r"\d+", value) for value in numbers)
    counts = whole and len(numbers) == len(values) and _counts_up(rows)
    if role == "qrels":
        if counts and max(int(value) for value in values) >= 10:
            raise _wrong_role(
                source,
                "expected qrels, got what looks like an MS MARCO run (the third field counts "
                "1, 2, 3 …)",
                f"{_ORDER}; if they are grades, name their format, beir, or add the header "
                "query_id, doc_id, grade",
            )
        return "beir"
    if counts and max(int(value) for value in values) > 1:
        return "msmarco"
    if any(not re.fullmatch(r"[-+]?\d+", value) for value in numbers):
        return "tsv"
    raise source.wrong(
        "three fields without a header: this could be an MS MARCO run (query, document, rank) or a "
        "TSV run (query, document, score)",
        fix="name its format, msmarco or tsv, or add the header query_id, doc_id, rank or "
        "query_id, doc_id, score",
    )


def _counts_up(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the third field counts 1, 2, 3 … within each query."""
    last: dict[str, int] = {}
    for query, _, value in rows:
        if int(value) != last.get(query, 0) + 1:
            return False
        last[query] = int(value)
    return True


def _fields(line: str) -> list[str]:
    return _BLANKS.split(line.strip(" \t\r\v\f"))


def _width(lines: Sequence[str]) -> int:
    """The most frequent number of fields; six and more count as six."""
    return Counter(min(len(_fields(line)), 6) for line in lines).most_common(1)[0][0]


def _numeric(lines: Sequence[str], at: int) -> bool:
    return all(re.fullmatch(r"[-+]?[\d.]+", _fields(line)[at]) for line in lines)


def _unknown(source: Source, lines: Sequence[str], hint: str) -> InputError:
    shown = lines[0][:60] + ("…" if len(lines[0]) > 60 else "")
    return source.wrong(
        f"cannot detect the format from the first line, {shown!r}",
        line=1,
        fix=f"{hint}; or name its format",
    )
