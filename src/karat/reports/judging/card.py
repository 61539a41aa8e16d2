"""A card of the judging queue in a terminal: the query, the document, and the keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from karat.reports.writers.plain import plain

_LINES = 24  # of a document's text; longer ones are cut
KEYS = {
    "u": "cannot judge (with a reason)",
    "l": "later: it returns in an hour",
    "z": "undo your last judgment",
    "e": "write a reason for the next grade",
    "g": "the guideline",
    "m": "the whole document",
    "?": "these keys",
    "q": "stop; nothing is lost",
}
"""What each key does, except for those of grades."""


def keys_of(grades: Sequence[float]) -> dict[str, float]:
    """The key of each grade: its digit, or its position from 1 if a grade is not a digit."""
    digits = [f"{grade:g}" for grade in grades]
    if all(len(digit) == 1 for digit in digits):
        return dict(zip(digits, grades, strict=True))
    return {str(place): grade for place, grade in enumerate(grades[:9], start=1)}


def show_card(
    out: Console,
    *,
    query: str,
    need: str | None,
    title: str | None,
    text: str | None,
    url: str | None,
    doc_id: str,
    votes: Sequence[tuple[float | None, str | None]] = (),
    whole: bool = False,
) -> None:
    """Print a query and a document, without ranks, systems or raters."""
    out.print(Rule(style="dim"))
    out.print(plain(query, "bold"))
    if need:
        out.print(plain(need, "italic"))
    out.print()
    out.print(plain(title or doc_id, "bold"))
    if url:
        out.print(plain(url, "dim"))
    if text and text.strip():
        shape = text.strip().replace("\r\n", "\n").expandtabs(4)
        lines = plain(shape).wrap(out, out.width)
        shown = lines if whole else lines[:_LINES]
        out.print(Text("\n").join(shown))
        if len(shown) < len(lines):
            out.print(plain(f"… {len(lines) - len(shown):,} more lines (m)", "dim"))
    elif not url:
        out.print(plain("(this document has no text)", "dim"))
    for grade, reason in votes:
        vote = "could not judge" if grade is None else f"{grade:g}"
        out.print(plain(f"rater: {vote}{f': {reason}' if reason else ''}"))
    out.print()


def show_grades(out: Console, keys: Mapping[str, float], grades: Mapping[float, str]) -> None:
    for key, grade in keys.items():
        out.print(_key(key, grades.get(grade, f"{grade:g}")))


def show_guideline(out: Console, text: str) -> None:
    block = ""
    for line in [*text.splitlines(), ""]:
        starts = re.match(r"\s*([-*+#>|]|\d+[.)]\s)", line)
        if block and (not line.strip() or starts or block.startswith("#")):
            out.print(plain(block))
            block = ""
        if line.strip():
            block = f"{block} {line.strip()}" if block else line.rstrip()
        else:
            out.print()


def show_keys(out: Console, keys: Mapping[str, float], grades: Mapping[float, str]) -> None:
    show_grades(out, keys, grades)
    for key, meaning in KEYS.items():
        out.print(_key(key, meaning))


def _key(key: str, meaning: str) -> Text:
    line = plain(f" {key}  {meaning}")
    line.stylize("bold", 0, len(key) + 1)
    return line
