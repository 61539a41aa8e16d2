"""A gate as annotations of GitHub Actions.

Source: docs.github.com, Workflow commands for GitHub Actions; escaping as in actions/toolkit
(packages/core/src/command.ts). GitHub shows ten annotations per level and step: the tenth gives
the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from karat.reports.phrases.gate import known_failures, label, sentence, why, word
from karat.reports.writers.plain import CONTROLS
from karat.tables.release.gate import Check, Gate, GateVerdict

_MOST = 10
_UNNAMED = ("policy", "-", "<stdin>")  # policies that are not files


def annotated(gate: Gate) -> str:
    """An annotation per check that did not pass, or one if all did; and known failures that pass.

    ``cannot_tell`` is a ``warning``, other verdicts are an ``error``, good news is a ``notice``.
    """
    return "".join(f"{line}\n" for line in _lines(gate))


def failed(message: str) -> str:
    """The annotation if the gate could not be evaluated."""
    return f"::error title={_property('karat: error')}::{_data(message)}\n"


def _lines(gate: Gate) -> Iterator[str]:
    broken = [check for check in gate.checks if check.verdict != "pass"]
    if gate.verdict == "pass":
        yield _line(gate, "notice", "karat: pass", why(gate))
    elif not broken:
        yield _line(gate, "error", f"karat: {word(gate.verdict)}", why(gate))
    for level in ("error", "warning"):
        rows = [check for check in broken if _level(check.verdict) == level]
        yield from _checks(gate, level, rows)
    passing = [row for row in gate.known_failures if row.passes]
    if passing:
        yield _line(gate, "notice", "karat: known failures", "\n".join(known_failures(passing)))


def _checks(gate: Gate, level: str, rows: list[Check]) -> Iterator[str]:
    shown = rows if len(rows) <= _MOST else rows[: _MOST - 1]
    for check in shown:
        yield _line(gate, level, f"karat: {word(check.verdict)}", sentence(check))
    rest = rows[len(shown) :]
    if rest:
        message = "\n".join(f"{word(check.verdict)}: {label(check)}" for check in rest)
        yield _line(gate, level, f"karat: {len(rest):,} more", message)


def _level(verdict: GateVerdict) -> str:
    return "warning" if verdict == "cannot_tell" else "error"


def _line(gate: Gate, level: str, heading: str, message: str) -> str:
    file = "" if gate.policy in _UNNAMED else f"file={_property(gate.policy)},"
    return f"::{level} {file}title={_property(heading)}::{_data(message)}"


def _data(text: str) -> str:
    # A line break within a name would start another command.
    text = text.translate(CONTROLS)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
