"""Parts of a comment on a pull request: ids and texts in it are untrusted, and have no effect."""

from __future__ import annotations

from collections.abc import Sequence

from karat.reports.table import Column, Table
from karat.reports.writers.plain import (
    CONTROLS,
    entities,
    markdown_cell,
    markdown_number,
    shortened,
    unmentioned,
)
from karat.reports.writers.tables import on_paper

LIMIT = 65_536
"""Most characters of a comment on GitHub; karat counts UTF-8 bytes."""
LONGEST_NAME = 80
_NOTES = 10
_LONGEST = 400  # characters of a sentence
_SHORTENED = "\nToo long for a comment; the rest is in the JSON.\n"


def markdown(table: Table, longest: int | None = None) -> str:
    """A table of GitHub's Markdown; longer cells are cut to ``longest`` characters."""
    columns = on_paper(table)
    lines = [
        [markdown_cell(column.heading) for column in columns],
        ["---" if column.is_text else "---:" for column in columns],
        *([_cell(column, row, longest) for column in columns] for row in table.rows),
    ]
    title = f"{markdown_cell(table.title)}\n\n" if table.title else ""
    return title + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def listed(sentences: Sequence[str]) -> str:
    """All of them, uncut."""
    return "".join(f"- {markdown_cell(text)}\n" for text in sentences)


def bullets(sentences: Sequence[str]) -> str:
    """The first of them, cut if too long."""
    shown = [f"- {sentence(text)}\n" for text in sentences[:_NOTES]]
    if len(sentences) > _NOTES:
        shown.append(f"- and {len(sentences) - _NOTES:,} more\n")
    return "".join(shown)


def folded(heading: str, content: str) -> str:
    return f"<details><summary>{heading}</summary>\n\n{content}\n</details>\n"


def code(text: str) -> str:
    return f"<code>{entities(cut(text)).replace('@', '&#64;')}</code>"


def sentence(text: str) -> str:
    """A sentence without markup, cut if too long."""
    return unmentioned(cut(text, _LONGEST))


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    one_line = " ".join(text.translate(CONTROLS).split())
    if " " in one_line:
        one_line = shortened(one_line, longest)
    return one_line if len(one_line) <= longest else one_line[: longest - 1] + "…"


def within(parts: Sequence[str]) -> str:
    """As many parts, from the first, as fit in a comment."""
    text = ""
    for part in filter(None, parts):
        joined = f"{text}\n{part}" if text else part
        if len(joined.encode("utf-8", "replace")) > LIMIT - len(_SHORTENED):
            return text + _SHORTENED
        text = joined
    return text


def _cell(column: Column, row: object, longest: int | None) -> str:
    text = column.cell(row)
    if column.kind == "code":
        return code(text) if text else ""
    if column.kind in {"text", "words"}:
        return markdown_cell(text if longest is None else cut(text, longest))
    strong = column.style is not None and column.style(row) == "strong"
    shown = markdown_number(text)
    return f"**{shown}**" if strong and shown else shown
