"""Tally: counts findings in a file by code, with the first lines of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from karat.tables.findings import SEVERITIES, Finding, Severity, shown


@dataclass(frozen=True, slots=True)
class Code:
    name: str
    severity: Severity
    says: str
    why: str
    fix: str
    noun: str = "line"


_ALL = (
    # The file as a whole.
    Code(
        "empty-file", "error", "the file is empty",
        "nothing can be computed from it",
        "write it again: the program that made it may have failed",
        "file",
    ),
    Code(
        "unreadable-file", "error", "the file cannot be read to its end",
        "what was not read was not checked, and karat evaluate would stop here",
        "as the message says, or set the role: --role FILE=qrels|run|queries|documents", "file",
    ),
    Code(
        "ambiguous-format", "warning", "the file fits two formats",
        "karat evaluate refuses to guess", "karat evaluate --input-format", "file",
    ),
    Code(
        "bom", "warning", "the file begins with a byte order mark",
        "karat skips it; other tools make it part of the first id, which then matches nothing",
        "save as UTF-8 without a byte order mark", "file",
    ),
    Code(
        "bom-within", "error", "an id begins with a byte order mark",
        "files with such marks were concatenated: the id matches nothing, and karat refuses it",
        "remove the marks: sed -i 's/\\xef\\xbb\\xbf//g' FILE",
    ),
    Code(
        "crlf", "info", "lines end in CR LF, as on Windows",
        "karat strips the CR; other tools keep it as part of the last field",
        "sed -i 's/\\r$//' FILE",
    ),
    Code(
        "mixed-line-ends", "warning", "some lines end in CR LF and others in LF",
        "two files were concatenated, or one was edited on two systems; tools that keep the CR "
        "see two ids where there is one",
        "sed -i 's/\\r$//' FILE",
    ),
    Code(
        "no-final-newline", "info", "the last line does not end with a newline",
        "a file appended to this one (cat) starts in the middle of its last line, and the file "
        "may have been cut off",
        "add a newline at the end; check that the last line is whole",
    ),
    # Lines.
    Code(
        "not-utf8", "error", "bytes that are not UTF-8",
        "ids with such bytes match nothing, and karat refuses the file",
        "if it is Latin-1: iconv -f latin1 -t UTF-8 FILE",
    ),
    Code(
        "nul-byte", "error", "a NUL byte in the line",
        "the file was damaged, or is not text; C tools stop at this byte",
        "copy or write the file again",
    ),
    Code(
        "carriage-return", "error", "a carriage return (CR) within the line, not at its end",
        "it may have been a line end, so that one line holds two rows; karat refuses the file",
        "if it should end a line: tr '\\r' '\\n' < FILE; if not, delete it",
    ),
    Code(
        "blank-line", "info", "the line is blank",
        "karat skips it; some tools stop there", "delete it",
    ),
    Code(
        "comment-line", "info", "the line begins with # and is read as a comment",
        "karat and trec_eval 10 skip it; trec_eval 9 reads it as data",
        "delete it, unless all your tools support comments",
    ),
    Code(
        "doubled-separator", "info", "extra blanks between two fields or at an end",
        "karat and trec_eval accept any number of blanks; tools that split at each one see empty "
        "fields",
        "write one blank between fields: awk '{$1=$1};1' FILE",
    ),
    Code(
        "wrong-field-count", "error", "the line has too few or too many fields",
        "the fields cannot be identified, and karat refuses the file",
        "write every field, with one separator between fields and no blanks in ids",
    ),
    Code(
        "joined-lines", "error", "another line begins within the line",
        "a line end is missing, and a row would be lost; karat refuses the file",
        "start a new line there; was a file without a final newline concatenated?",
    ),
    Code(
        "extra-fields", "info", "fields after the sixth",
        "they are ignored; an id that contains a blank would look the same",
        "delete them, or fix the id",
    ),
    Code(
        "not-json", "error", "the line is not a JSON object",
        "karat refuses the file", "write one JSON object per line",
    ),
    Code(
        "missing-field", "error", "the record lacks a field that its role needs",
        "karat refuses the file", "write every field in every record",
    ),
    Code(
        "missing-id", "error", "an id is empty or not text",
        "the row cannot be assigned, and karat refuses the file",
        "give each row its ids, as text",
    ),
    Code(
        "id-with-odd-space", "warning", "an id contains a blank or an invisible character",
        "it looks like another id but does not match it; in a TREC file a blank would split it",
        "strip the ids in the program that writes the file",
    ),
    # Judgments.
    Code(
        "missing-grade", "error", "the judgment has no grade",
        "it could be not relevant or not judged, and karat does not guess",
        "add the grade, or delete the line",
    ),
    Code(
        "grade-not-a-number", "error", "the grade is not a finite number",
        "gain cannot be computed from it", "write the grade as a number, or delete the line",
    ),
    Code(
        "negative-grade", "warning", "the grade is below 0",
        "karat reads it as pooled but not judged, as in TREC; other tools as judged not "
        "relevant, or as a negative gain",
        "write 0 if it was judged not relevant; delete it if it was not judged",
    ),
    Code(
        "fractional-grade", "info", "the grade is not a whole number",
        "karat keeps fractions; trec_eval truncates them, so 0.9 counts as 0",
        "nothing, unless other tools read the file",
    ),
    Code(
        "column-order", "error",
        "every judgment is of the same document, and the second column varies: the columns may "
        "be in another order",
        "TREC qrels are query iteration document grade; in another order no retrieved document is "
        "judged, and karat refuses the file",
        "for query document 0 grade, as in CISI.REL: awk '{print $1, 0, $2, $4}' FILE", "file",
    ),
    Code(
        "no-grade-reaches-1", "error", "no grade reaches 1, and some are between 0 and 1",
        "relevant means a grade of at least 1, so nothing would be relevant",
        "set the lowest relevant grade, for example karat evaluate --rel 0.5", "file",
    ),
    Code(
        "no-relevant-document", "warning", "no document of the query has a grade of 1 or better",
        "most measures are undefined for it: karat leaves the query out and reports it, "
        "trec_eval scores it 0",
        "judge more documents for it, or leave it out", "query",
    ),
    Code(
        "duplicate-judgment", "error",
        "a document is judged twice for one query, with the same grade",
        "recall and ideal gain would count it twice, and karat refuses the file",
        "keep one judgment per query and document",
    ),
    Code(
        "conflicting-judgment", "error", "a document is judged twice, with different grades",
        "which grade counts would depend on the tool",
        "choose one grade per query and document",
    ),
    # Runs.
    Code(
        "score-not-a-number", "error", "the score is not a number",
        "the document has no place in the ranking", "write the score as a number",
    ),
    Code(
        "nan-score", "error", "the score is NaN",
        "NaN is neither above nor below any score, so the order is undefined",
        "find out why the system returns no score, or leave the document out",
    ),
    Code(
        "infinite-score", "warning", "the score is infinite",
        "all documents with it are tied, and fusion or averages of it are undefined",
        "write a large finite score",
    ),
    Code(
        "duplicate-document", "error", "duplicate document",
        "in a ranking it would be counted twice and push others down; in a documents file it is "
        "ambiguous; karat refuses both",
        "keep each document once (in a ranking: at its best rank)",
    ),
    Code(
        "rank-contradicts-score", "warning", "a lower score has an equal or better rank",
        "karat and trec_eval order by score, tools that order by rank give other numbers",
        "rank by score, descending; or write scores that decrease with the rank", "query",
    ),
    Code(
        "rank-not-a-number", "warning", "the rank is not a whole number",
        "it is not used, but is often a sign that an id contains a blank",
        "write ranks 1, 2, 3 …",
    ),
    Code(
        "rank-from-zero", "info", "ranks start at 0",
        "karat orders by score; tools that use the rank are off by one",
        "start ranks at 1", "query",
    ),
    Code(
        "tied-scores", "warning", "documents share their score with another of the same query",
        "their order is arbitrary: trec_eval and karat order them by document id, descending, "
        "others as in the file, and the numbers differ",
        "write scores with all their digits, or break ties in the search", "document",
    ),
    Code(
        "rare-ties", "info", "a few documents share their score with another of the same query",
        "as tied-scores, for less than 1 % of the documents",
        "nothing, unless a difference depends on them", "document",
    ),
    Code(
        "score-not-descending", "info", "the rows are not sorted by score",
        "karat and trec_eval order by score; tools that use the order of the file differ",
        "sort by query, then by score, descending", "query",
    ),
    Code(
        "non-contiguous-query", "info", "the rows of a query are not contiguous",
        "karat groups them; tools that read query by query see the query twice",
        "sort the file by query", "query",
    ),
    Code(
        "self-retrieval", "warning", "the retrieved document has the id of the query",
        "if queries are documents of the collection (as in ArguAna), each retrieves itself first "
        "and every other rank moves down by one",
        "leave out the document whose id is that of the query", "query",
    ),
    Code(
        "uneven-depth", "info", "far fewer documents than for most queries",
        "the search may have failed or timed out half-way; deep measures suffer",
        "check what the system returned for these queries", "query",
    ),
    Code(
        "truncated-depth", "info", "all queries are cut off at one small depth",
        "measures that look deeper, such as AP and R@100, cannot reach their best value",
        "retrieve more, or use measures no deeper than the run", "query",
    ),
    # Queries and documents.
    Code(
        "duplicate-query", "error", "duplicate query id",
        "its text and weight are ambiguous, and karat refuses the file",
        "keep each query once",
    ),
    Code(
        "empty-query", "warning", "the query has no text",
        "there is nothing to search for, and its results mean nothing",
        "add the text, or leave the query out",
    ),
    Code(
        "empty-document", "warning", "the document has no text",
        "text search cannot find it; if it is judged relevant, no system can reach 1",
        "add the text, or leave the document and its judgments out",
    ),
    # Between files.
    Code(
        "dangling-document", "warning", "the document is not in the documents file",
        "the ids may be of another version of the collection, and then nothing matches",
        "use qrels and runs made with these documents",
    ),
    Code(
        "no-common-query", "error", "run and qrels share no query",
        "every value would be 0 or undefined: the ids are of two different sets",
        "check which qrels belong to this run, and how ids are written (7, 007, q7)", "file",
    ),
    Code(
        "query-not-in-run", "warning", "a judged query is not in the run",
        "karat scores it 0; trec_eval without -c leaves it out, which flatters the run",
        "search for it too, or use qrels with only the queries that were searched for", "query",
    ),
    Code(
        "unjudged-query", "info", "the query has no judgments",
        "it is listed but never averaged", "judge it, or leave it out", "query",
    ),
    Code(
        "query-without-text", "warning", "the query is not in the queries file",
        "it has no text, weight or attributes: slices and weighted means exclude it",
        "add it to the queries, or check how its id is written", "query",
    ),
)  # fmt: skip

CODES = {code.name: code for code in _ALL}


KEPT = 5

Lines = Sequence[int] | NDArray[np.int64]


@dataclass(slots=True)
class _Entry:
    count: int = 0
    lines: list[int] = field(default_factory=list)
    example: str | None = None
    query: str | None = None
    says: str | None = None
    fix: str | None = None


class Tally:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def add(
        self,
        code: str,
        lines: Lines = (),
        *,
        count: int | None = None,
        **about: str | None,
    ) -> None:
        """Count a finding. Of ``example``, ``query``, ``says``, ``fix`` the first given is kept."""
        assert code in CODES, code
        entry = self._entries.setdefault(code, _Entry())
        entry.count += len(lines) if count is None else count
        if len(entry.lines) < KEPT:
            new = [int(line) for line in lines[: 2 * KEPT] if line > 0]
            entry.lines = sorted({*entry.lines, *new})[:KEPT]
        for name, value in about.items():
            if getattr(entry, name) is None:
                setattr(entry, name, value)

    def merge(self, other: Tally) -> None:
        for code, entry in other._entries.items():
            self.add(code, **{each.name: getattr(entry, each.name) for each in fields(entry)})

    def __contains__(self, code: str) -> bool:
        return code in self._entries

    def findings(self, file: str, unit: str = "line") -> list[Finding]:
        """The findings, most severe first; ``unit`` is what lines are called."""
        findings = [
            Finding(
                code=name,
                severity=CODES[name].severity,
                file=file,
                message=entry.says or CODES[name].says,
                why=CODES[name].why,
                fix=(entry.fix or CODES[name].fix).replace("FILE", file),
                count=entry.count,
                noun=unit if CODES[name].noun == "line" else CODES[name].noun,
                lines=tuple(entry.lines),
                query=None if entry.query is None else shown(entry.query),
                example=None if entry.example is None else shown(entry.example),
            )
            for name, entry in self._entries.items()
            if entry.count
        ]
        order = list(CODES)
        findings.sort(key=lambda each: (SEVERITIES.index(each.severity), order.index(each.code)))
        return findings
