"""Untrusted ids and texts without effect: in terminals, CSV and Markdown.

In CSV no cell is a formula; in Markdown no text is markup, a mention or a link.
"""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.text import Text

# Characters that change the direction of the text after them.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
# Control characters in untrusted ids could repaint the screen.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "\N{REPLACEMENT CHARACTER}")
del CONTROLS[ord("\n")]
# A spreadsheet evaluates a cell that starts like this.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKUP = re.compile(r"[&<>|`*_\[\]\\~#!$]")
_IN_NUMBERS = re.compile(r"[&<>|`\\]")  # an interval keeps its brackets
_LINK = re.compile(r"(?i)(?<=www)\.|:(?=//)")  # what GitHub turns into a link
# Mentions of users (@name) and issues (#12, GH-12).
_MENTION = re.compile(r"(?i)(?<![a-z0-9])@(?=\S)|#(?=\w)|(?<![a-z0-9])gh-(?=\d)")


def plain(text: str, style: str = "") -> Text:
    return Text(text.translate(CONTROLS), style)


def shortened(text: str, longest: int) -> str:
    """As many words as fit in one line; "…" if there are more."""
    # textwrap takes long for long texts, of which only the beginning is shown.
    return textwrap.shorten(" ".join(text.split())[: 2 * longest], longest, placeholder="…")


def to_json(result: Any) -> str:
    """A record, a dictionary, or a list of them, as JSON."""
    content = [_content(each) for each in result] if isinstance(result, list) else _content(result)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _content(result: Any) -> Any:
    if hasattr(result, "to_dict"):
        return result.to_dict()
    return asdict(result) if is_dataclass(result) else result  # type: ignore[arg-type]


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with the keys of the first row as header; empty without rows."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: spreadsheet_safe(cell) for key, cell in row.items()} for row in rows)
    return out.getvalue()


def spreadsheet_safe(value: Any) -> Any:
    """A cell of a CSV file that a spreadsheet does not read as a formula."""
    if not isinstance(value, str):
        return value
    # Python's csv does not quote a carriage return, which ends the row for other readers.
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r", " ")


def markdown_cell(text: str) -> str:
    return unmentioned(_one_line(text))


def markdown_number(text: str) -> str:
    return _IN_NUMBERS.sub(_entity, _one_line(text))


def unmentioned(text: str) -> str:
    """A text without markup, links, and mentions of users or issues."""
    # GitHub finds mentions in the rendered text: only a character in between prevents that.
    return entities(_MENTION.sub("\\g<0>\N{ZERO WIDTH SPACE}", text))


def entities(text: str) -> str:
    """A text with entities in place of markup and links."""
    return _LINK.sub(_entity, _MARKUP.sub(_entity, text))


def _one_line(text: str) -> str:
    return " ".join(text.split()).translate(CONTROLS)


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
