"""Tables as CSV and Markdown, safe for untrusted ids and texts.

In CSV no cell is a formula; in Markdown no text is markup, a mention or a link.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.reports.writers.cells import CONTROLS

# A spreadsheet evaluates a cell that starts like this.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKUP = re.compile(r"[&<>|`*_\[\]\\~#!$]")
_IN_NUMBERS = re.compile(r"[&<>|`\\]")  # an interval keeps its brackets
_LINK = re.compile(r"(?i)(?<=www)\.|:(?=//)")  # what GitHub turns into a link
# Mentions of users (@name) and issues (#12, GH-12).
_MENTION = re.compile(r"(?i)(?<![a-z0-9])@(?=\S)|#(?=\w)|(?<![a-z0-9])gh-(?=\d)")


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with the keys of the first row as header; empty without rows."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: spreadsheet_safe(cell) for key, cell in row.items()} for row in rows)
    return out.getvalue()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first ``texts`` columns hold text, the others numbers."""
    rule = ["---" if place < texts else "---:" for place in range(len(heads))]
    lines = [
        list(map(markdown_cell, heads)),
        rule,
        *([*map(markdown_cell, row[:texts]), *map(_number, row[texts:])] for row in rows),
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def markdown_cell(text: str) -> str:
    """A text on one line, without markup."""
    return unmentioned(_one_line(text))


def unmentioned(text: str) -> str:
    """A text without markup, links, and mentions of users or issues."""
    # GitHub finds mentions in the rendered text: only a character in between prevents that.
    return entities(_MENTION.sub("\\g<0>\N{ZERO WIDTH SPACE}", text))


def entities(text: str) -> str:
    """A text with entities in place of markup and links."""
    return _LINK.sub(_entity, _MARKUP.sub(_entity, text))


def _number(text: str) -> str:
    return _IN_NUMBERS.sub(_entity, _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split()).translate(CONTROLS)


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def spreadsheet_safe(value: Any) -> Any:
    """A cell of a CSV file that a spreadsheet does not read as a formula."""
    if not isinstance(value, str):
        return value
    # Python's csv does not quote a carriage return, which ends the row for other readers.
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r", " ")
