"""Findings: what is wrong with a set of files, before any number is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first. error: karat would refuse, or a number cannot be computed. warning: numbers may
mislead. info: worth knowing."""

LONGEST = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of fault in one file.

    Attributes:
        code: Its name, as in ``docs/reference/lint.md``: ``duplicate-document``.
        severity: error | warning | info.
        file: The file it stands in, as it was given.
        message: What is wrong, in one sentence without a full stop.
        why: Why it matters.
        fix: What to do about it.
        count: How often it occurs: lines, or what ``noun`` says.
        noun: What is counted: line, row (of Parquet), entry (of nested JSON), query, document,
            file.
        lines: The first five lines (from 1) it occurs on; rows (from 1) in Parquet; empty where
            there are none, as in nested JSON.
        query: A query it concerns.
        example: The text of a line or an id it concerns, escaped and cut.
    """

    code: str
    severity: Severity
    file: str
    message: str
    why: str
    fix: str
    count: int
    noun: str = "line"
    lines: tuple[int, ...] = ()
    query: str | None = None
    example: str | None = None


@dataclass(frozen=True, slots=True)
class LintedFile:
    """One file that was read.

    Attributes:
        file: As it was given.
        role: qrels | run | queries | documents; None if it could not be told.
        format: Name of its format, or None.
        rows: Rows that could be read.
        queries: Different queries among them.
    """

    file: str
    role: str | None
    format: str | None
    rows: int = 0
    queries: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was found in a set of files.

    Attributes:
        files: The files, in the order given.
        findings: File by file, worst first.
        queries: Different queries in all the files together.
    """

    files: Sequence[LintedFile]
    findings: Sequence[Finding] = field(default_factory=list)
    queries: int = 0

    def count(self, severity: Severity) -> int:
        """Findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return not self.count("error") and not self.count("warning")

    @property
    def verdict(self) -> str:
        """The whole in a few words: ``2 errors, 1 warning in 3 files``."""
        said = [
            counted(self.count(severity), noun)
            for severity, noun in zip(SEVERITIES, ("error", "warning", "remark"), strict=True)
            if self.count(severity)
        ]
        where = counted(len(self.files), "file")
        if not self.clean:
            return f"{', '.join(said)} in {where}"
        read = [
            counted(self.queries, "query"),
            counted(sum(file.rows for file in self.files), "row"),
        ]
        return f"nothing wrong in {where}: {', '.join([*read, *said])}"

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
    """Text from strangers, fit to print: control and invisible characters escaped, and cut."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in cut
    )
