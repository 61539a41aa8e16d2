"""Tables as they are written: CSV that no spreadsheet runs, Markdown whose cells stay cells.

Ids and texts come from strangers: in Markdown nothing of them is markup, mentions or links.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.reports.writers.cells import CONTROLS

# A spreadsheet runs a cell that starts like this, and ids come from strangers.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKUP = re.compile(r"[&<>|`*_\[\]\\~#!$]")
_IN_NUMBERS = re.compile(r"[&<>|`\\]")  # an interval keeps its brackets
_LINK = re.compile(r"(?i)(?<=www)\.|:(?=//)")  # what GitHub links unasked
# Names of people, and numbers of issues (#12, GH-12).
_MENTION = re.compile(r"(?i)(?<![a-z0-9])@(?=\S)|#(?=\w)|(?<![a-z0-9])gh-(?=\d)")


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under the names of the first one's columns; empty without rows."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: spreadsheet_safe(cell) for key, cell in row.items()} for row in rows)
    return out.getvalue()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first columns are texts, and the others numbers."""
    rule = ["---" if place < texts else "---:" for place in range(len(heads))]
    lines = [
        list(map(markdown_cell, heads)),
        rule,
        *([*map(markdown_cell, row[:texts]), *map(_number, row[texts:])] for row in rows),
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def markdown_cell(text: str) -> str:
    """A text on one line, in which nothing is markup; a line break would end the row."""
    return unmentioned(_one_line(text))


def unmentioned(text: str) -> str:
    """A text in which nothing is markup or a link, and no person or issue is mentioned."""
    # GitHub looks for these in the finished text: only a character in between stops that.
    return entities(_MENTION.sub("\\g<0>\N{ZERO WIDTH SPACE}", text))


def entities(text: str) -> str:
    """A text with entities for what would be markup or a link."""
    return _LINK.sub(_entity, _MARKUP.sub(_entity, text))


def _number(text: str) -> str:
    return _IN_NUMBERS.sub(_entity, _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split()).translate(CONTROLS)


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def spreadsheet_safe(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    # Python's csv leaves a carriage return unquoted, where other readers end the row.
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r", " ")
