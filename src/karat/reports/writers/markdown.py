"""A gate or comparison as a pull request comment: verdict, one table, the rest folded.

Ids and texts are untrusted: no markup, mentions or links in them take effect.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from karat.reports.phrases.numbers import counted, signed
from karat.reports.release.gate import (
    known_failures,
    moved,
    number,
    passes,
    place,
    sentence,
    span,
    why,
    word,
)
from karat.reports.writers.cells import CONTROLS
from karat.reports.writers.plain import entities, unmentioned
from karat.reports.writers.sheets import answer_changes, what_changed
from karat.tables.comparison import Comparison, Difference, QueryDifference
from karat.tables.release.gate import Check, Gate, Regression

LIMIT = 65_536
"""Most characters of a comment on GitHub; karat counts UTF-8 bytes."""
_CHECKS = 30
_LOST = 5  # of each measure
_NOTES = 10
_NAME = 80  # characters of an id, a rule or a slice
_LONGEST = 400  # characters of a sentence
_SHORTENED = "\nToo long for a comment; the rest is in the JSON.\n"


def gate_comment(gate: Gate) -> str:
    """A gate as a comment: verdict and reason, checks, queries that lost most, notes."""
    against = f" against {_code(gate.baseline)}" if gate.baseline is not None else ""
    parts = [f"**{word(gate.verdict)}**: {_sentence(why(gate))}\n"]
    parts.append(f"{_code(gate.candidate)}{against}, by {_code(gate.policy)}\n")
    if gate.checks:
        heads = (
            "check",
            "slice",
            "baseline",
            "candidate",
            "drop (95 %)",
            "smallest drop detected",
            "verdict",
        )
        rows = [_check(check) for check in gate.checks[:_CHECKS]]
        parts.append(_table(heads, "llddddl", rows))
        if (more := len(gate.checks) - _CHECKS) > 0:
            parts.append(f"and {counted(more, 'more check', 'more checks')}\n")
    reasons = [f"{word(c.verdict)}: {sentence(c)}" for c in gate.checks if not passes(c)][1:]
    parts.append(_bullets(reasons))
    for measure in dict.fromkeys(row.measure for row in gate.lost):
        lost = [row for row in gate.lost if row.measure == measure][:_LOST]
        table = _lost(lost)
        parts.append(_folded(f"Lost most by {_sentence(measure)}", table))
    parts.append(_bullets(list(known_failures(gate.known_failures))))
    if gate.notes:
        parts.append(_folded("Notes", _bullets(gate.notes)))
    return _within(parts)


def error_comment(message: str) -> str:
    """The comment if the gate could not be evaluated."""
    return _within([f"**error**: the gate could not be evaluated: {_sentence(message)}\n"])


def comparison_comment(comparison: Comparison) -> str:
    """A comparison as a comment: verdicts and reasons by candidate, and the deciding queries."""
    parts: list[str] = []
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = [row for row in comparison.differences if row.candidate == candidate]
        parts.append(f"{_code(candidate)} against {_code(comparison.baseline)}\n")
        alone = " alone" if any(row.family > 1 for row in rows) else ""
        change = f"change (95 %{alone})"
        heads = ("measure", "baseline", "candidate", change, "p", "+/=/−", "verdict")
        parts.append(_table(heads, "ldddddl", map(_difference, rows)))
        parts.append(_bullets([f"{row.measure}: {row.reason}" for row in rows]))
        answers = [row for row in comparison.answers if row.candidate == candidate]
        if answers:
            sheet = answer_changes(answers)
            parts.append(_table(sheet.heads, "ldddddl", sheet.rows))
        changes = [row for row in comparison.changes if row.candidate == candidate]
        if changes:
            sheet = what_changed(changes)
            cells = [[_code(cell) for cell in row] for row in sheet.rows]
            parts.append(_folded("What changed", _table(sheet.heads, "lll", cells)))
        parts += _deciding(comparison.queries, candidate, rows[0].measure)
    if comparison.notes:
        parts.append(_folded("Notes", _bullets(comparison.notes)))
    return _within(parts)


def _check(check: Check) -> list[str]:
    drop = number(check, check.drop)
    return [
        _sentence(_cut(check.rule)),
        "all" if check.attribute is None else _code(place(check)),
        number(check, check.baseline_value),
        "" if check.measure is None else number(check, check.candidate_value),
        f"{drop} ({span(check)})" if span(check) else drop,
        number(check, check.smallest_detected),
        word(check.verdict) if passes(check) else f"**{word(check.verdict)}**",
    ]


def _lost(rows: Sequence[Regression]) -> str:
    """A table of queries that lost, with slices and documents if known."""
    heads, kinds = ["query", "baseline", "candidate", "change"], "lddd"
    cells = [_query(r.query_id, r.text, r.baseline_value, r.candidate_value) for r in rows]
    if any(row.attribute is not None for row in rows):
        heads, kinds = [*heads, "slice"], f"{kinds}l"
        for row, cell in zip(rows, cells, strict=True):
            cell.append("" if row.attribute is None else _code(f"{row.attribute} {row.slice}"))
    if any(row.moves for row in rows):
        heads, kinds = [*heads, "moved"], f"{kinds}l"
        for row, cell in zip(rows, cells, strict=True):
            cell.append(", ".join(f"{_code(m.doc_id)} {moved(m)}" for m in row.moves or ()))
    return _table(heads, kinds, cells)


def _query(query_id: str, text: str | None, before: float, after: float) -> list[str]:
    return [_asked(query_id, text), f"{before:.3f}", f"{after:.3f}", signed(after - before)]


def _difference(row: Difference) -> list[str]:
    interval = "" if row.ci_low is None else f" ({signed(row.ci_low)} to {signed(row.ci_high)})"
    p = row.p if row.p_corrected is None else row.p_corrected
    return [
        _sentence(_cut(row.measure)),
        *("–" if v is None else f"{v:.3f}" for v in (row.baseline_value, row.candidate_value)),
        signed(row.difference) + interval,
        "" if p is None else f"{p:.3f}" if p >= 0.001 else "&lt;.001",
        f"{row.wins}/{row.ties}/{row.losses}",
        f"**{row.verdict}**",
    ]


def _deciding(rows: Sequence[QueryDifference], candidate: str, measure: str) -> Iterator[str]:
    own = [row for row in rows if (row.candidate, row.measure) == (candidate, measure)]
    for heading, sign in (("Lost most by", -1), ("Gained most by", 1)):
        chosen = [row for row in own if sign * row.difference > 0][:_LOST]
        cells = [
            _query(row.query_id, row.text, row.baseline_value, row.candidate_value)
            for row in chosen
        ]
        if cells:
            heads = ("query", "baseline", "candidate", "change")
            yield _folded(f"{heading} {_sentence(measure)}", _table(heads, "lddd", cells))


def _table(heads: Sequence[str], kinds: str, rows: Iterable[Sequence[str]]) -> str:
    rule = ["---" if kind == "l" else "---:" for kind in kinds]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, rule, *rows))


def _bullets(sentences: Sequence[str]) -> str:
    shown = [f"- {_sentence(text)}\n" for text in sentences[:_NOTES]]
    if len(sentences) > _NOTES:
        shown.append(f"- and {len(sentences) - _NOTES:,} more\n")
    return "".join(shown)


def _folded(heading: str, content: str) -> str:
    return f"<details><summary>{heading}</summary>\n\n{content}\n</details>\n"


def _asked(query_id: str, text: str | None) -> str:
    return _code(query_id) if text is None else f"{_code(query_id)} {_sentence(_cut(text))}"


def _code(text: str) -> str:
    """A name as code, without markup."""
    return f"<code>{entities(_cut(text)).replace('@', '&#64;')}</code>"


def _sentence(text: str) -> str:
    """A sentence without markup, cut if too long."""
    return unmentioned(_cut(text, _LONGEST))


def _cut(text: str, longest: int = _NAME) -> str:
    one_line = " ".join(text.translate(CONTROLS).split())
    if " " in one_line:
        one_line = textwrap.shorten(one_line, longest, placeholder="…")
    return one_line if len(one_line) <= longest else one_line[: longest - 1] + "…"


def _within(parts: Sequence[str]) -> str:
    """As many parts, from the first, as fit in a comment."""
    text = ""
    for part in filter(None, parts):
        joined = f"{text}\n{part}" if text else part
        if len(joined.encode("utf-8", "replace")) > LIMIT - len(_SHORTENED):
            return text + _SHORTENED
        text = joined
    return text
