"""A card of the judging queue for a terminal: the query, the document, and the keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from karat.reports.writers.cells import plain

_LINES = 24  # of a document's text, before it is cut
KEYS = {
    "u": "cannot judge (you say why)",
    "l": "later: it comes back in an hour",
    "z": "undo your last judgment",
    "e": "write a reason for the next grade",
    "g": "the guideline",
    "m": "the whole document",
    "?": "these keys",
    "q": "stop; nothing is lost",
}
"""What each key does, but for those of the grades."""


def keys_of(grades: Sequence[float]) -> dict[str, float]:
    """The key of each grade: its digit, or where grades are no digits, its place from 1."""
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
    """Print a query and a document; nothing of ranks, systems or other raters.

    Args:
        out: Where to.
        query: What was typed.
        need: What the person wanted, if it is known.
        title: Of the document; its id stands in if there is none.
        text: Of the document.
        url: Of the document.
        doc_id: Its id.
        votes: For an adjudicator: grades (None: could not) and reasons.
        whole: Whether a long text is printed to its end.
    """
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
        out.print(plain("(no text is known of this document)", "dim"))
    for grade, reason in votes:
        said = "could not judge" if grade is None else f"{grade:g}"
        out.print(plain(f"said: {said}{f': {reason}' if reason else ''}"))
    out.print()


def show_grades(out: Console, keys: Mapping[str, float], grades: Mapping[float, str]) -> None:
    """Print the keys of the grades, each with its sign."""
    for key, grade in keys.items():
        out.print(_key(key, grades.get(grade, f"{grade:g}")))


def show_guideline(out: Console, text: str) -> None:
    """Print a guideline, each paragraph broken where the terminal ends and not where its file does.

    Args:
        out: Where to.
        text: Markdown; headings and items of lists begin a line.
    """
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
    """Print every key."""
    show_grades(out, keys, grades)
    for key, what in KEYS.items():
        out.print(_key(key, what))


def _key(key: str, what: str) -> Text:
    line = plain(f" {key}  {what}")
    line.stylize("bold", 0, len(key) + 1)
    return line
