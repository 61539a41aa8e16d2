"""Findings: problems in a set of input files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first. error: karat rejects the file, or cannot compute a number. warning: numbers may
mislead. info: worth knowing."""

LONGEST = 60  # characters of a quoted text


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of problem in one file."""

    code: str  # its name in `docs/reference/lint.md`, such as `duplicate-document`
    severity: Severity  # error | warning | info
    file: str  # the file, as given
    message: str  # what is wrong, in one sentence without a full stop
    why: str  # why it matters
    fix: str  # what to do about it
    count: int  # number of occurrences, in units of `noun`
    # The unit of `count`: line, row (of Parquet), entry (of nested JSON), query, document, file
    noun: str = "line"
    # The first five lines it occurs on, from 1; rows in Parquet; empty in formats without lines,
    # such as nested JSON
    lines: tuple[int, ...] = ()
    query: str | None = None  # a query it concerns
    example: str | None = None  # a line or an id it concerns, escaped and truncated


@dataclass(frozen=True, slots=True)
class LintedFile:
    """One file that was read."""

    file: str  # the file, as given
    role: str | None  # qrels | run | queries | documents; None if it could not be detected
    format: str | None  # name of its format, or None
    rows: int = 0  # rows that could be read
    queries: int = 0  # distinct queries among them


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems found in a set of files."""

    files: Sequence[LintedFile]  # the files, in the order given
    # The problems, file by file, worst first
    findings: Sequence[Finding] = field(default_factory=list)
    queries: int = 0  # distinct queries in all files together

    def count(self, severity: Severity) -> int:
        """Number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def clean(self) -> bool:
        """Whether there are no errors and no warnings."""
        return not self.count("error") and not self.count("warning")

    @property
    def verdict(self) -> str:
        """A summary: ``2 errors, 1 warning in 3 files``."""
        counts = [
            counted(self.count(severity), noun)
            for severity, noun in zip(SEVERITIES, ("error", "warning", "remark"), strict=True)
            if self.count(severity)
        ]
        where = counted(len(self.files), "file")
        if not self.clean:
            return f"{', '.join(counts)} in {where}"
        read = [
            counted(self.queries, "query"),
            counted(sum(file.rows for file in self.files), "row"),
        ]
        return f"nothing wrong in {where}: {', '.join([*read, *counts])}"

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object."""
        return {
            "verdict": self.verdict,
            "counts": {severity: self.count(severity) for severity in SEVERITIES},
            "files": [asdict(file) for file in self.files],
            "findings": [asdict(finding) for finding in self.findings],
        }


def counted(count: int, noun: str) -> str:
    """``1 query``, ``2 queries``, ``1,000 files``."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun}"


def shown(text: str, most: int = LONGEST) -> str:
    """Untrusted text, safe to print: control and invisible characters escaped, and truncated."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in cut
    )
