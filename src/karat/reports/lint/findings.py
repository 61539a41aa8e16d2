"""Findings of ``karat lint`` in a terminal, as JSON, and as GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from karat.tables.findings import Finding, Findings, LintedFile, counted, shown

_COLOUR = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_ANNOTATION = {"error": "error", "warning": "warning", "info": "notice"}
_ROLE = {"qrels": "qrels", "run": "a run", "queries": "queries", "documents": "documents"}
_LONGEST_NAME = 200


def show(found: Findings, out: Console) -> None:
    out.print(Text(found.verdict, "bold" if found.clean else "bold red"))
    for file in found.files:
        out.print()
        out.print(_heading(file))
        for finding in [finding for finding in found.findings if finding.file == file.file]:
            for part in _block(finding):
                out.print(part)


def to_github(found: Findings) -> str:
    """A GitHub Actions annotation per finding, at its first line.

    Source: docs.github.com, "Workflow commands for GitHub Actions"; the escapes are those of
    actions/toolkit, ``command.ts``.
    """
    return "".join(f"{line}\n" for line in _annotations(found))


def _annotations(found: Findings) -> Iterator[str]:
    for finding in found.findings:
        place = {"file": finding.file}
        if finding.lines and finding.noun != "row":
            place["line"] = str(finding.lines[0])
        place["title"] = f"karat {finding.code}"
        properties = ",".join(f"{key}={_property(value)}" for key, value in place.items())
        lines = [f"{finding.message} ({where(finding)})", finding.why, f"fix: {finding.fix}"]
        if finding.example:
            lines.insert(1, f"for example: {finding.example}")
        yield f"::{_ANNOTATION[finding.severity]} {properties}::{_data(chr(10).join(lines))}"
    yield found.verdict


def where(finding: Finding) -> str:
    """How often and where: ``223 lines: 29, 54, 63, 66, 71, …``."""
    if finding.count == 1 and len(finding.lines) == 1 and finding.noun in ("line", "row"):
        return f"{finding.noun} {finding.lines[0]}"
    often = counted(finding.count, finding.noun)
    if not finding.lines:
        return often
    listed = ", ".join(str(line) for line in finding.lines)
    more = ", …" if finding.count > len(finding.lines) else ""
    if finding.noun in ("line", "row"):
        return f"{often}: {listed}{more}"
    lines = "line" if len(finding.lines) == 1 else "lines"
    return f"{often}, {lines} {listed}{more}"


def _heading(file: LintedFile) -> Text:
    facts = []
    if file.role is not None:
        form = f" ({file.format})" if file.format else ""
        facts.append(f"{_ROLE[file.role]}{form}")
    if file.queries:
        facts.append(counted(file.queries, "query"))
    if file.rows:
        facts.append(counted(file.rows, "row"))
    return Text.assemble(
        (shown(file.file, _LONGEST_NAME), "bold underline"), ("  " + ", ".join(facts), "dim")
    )


def _block(finding: Finding) -> Iterator[RenderableType]:
    head = Text.assemble(
        (finding.severity, _COLOUR[finding.severity]), " ", (finding.code, "bold"), "  ",
        (where(finding), "dim"),
    )  # fmt: skip
    yield Padding(head, (0, 0, 0, 2), expand=False)
    message = Text(finding.message)
    if finding.example:
        message.append(f": {finding.example}")
    fix = Text.assemble(("fix: ", "green"), finding.fix)
    for text in (message, Text(finding.why, "dim"), fix):
        yield Padding(text, (0, 0, 0, 6), expand=False)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
