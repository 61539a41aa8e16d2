"""Releases: the board, one release, its story, and promised next to measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import percent
from karat.reports.table import Column, Table
from karat.reports.writers.markdown import markdown, sentence
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.tables.release.pipeline import (
    DONE,
    EvidenceVerdict,
    ReleaseEvent,
    ReleaseStatus,
    StageStatus,
    stage_name,
)

_ACTIONS = {
    "advance": "passes",
    "wait": "waits",
    "evidence": "needs evidence",
    "approve": "waits for approval",
    "review": "waits for the review of false positives",
    "fix": "does not pass",
    "hold": "will be held",
    "resume": "will go on",
    "rollback": "will be rolled back",
    "finish": "will finish",
    "none": "",
}


VERDICTS: Mapping[EvidenceVerdict, str] = {
    "pass": "passed",
    "fail": "failed",
    "breach": "breached",
    "cannot_tell": "cannot tell",
    "unhealthy": "unhealthy",
}


def next_text(status: ReleaseStatus) -> str:
    """What comes next, in a sentence."""
    step = status.step
    said = _ACTIONS[step.action]
    reason = step.reason
    if any(row.state == "current" and row.verdict is None for row in status.stages):
        reason = reason.replace("there is no evidence", "none was gathered yet")
    text = f"{said}: {reason}" if said else reason
    if not step.consequence:
        return text
    then = "then " if step.action in {"advance", "approve", "wait"} else ""
    return f"{text}; {then}{step.consequence}"


def state_name(status: ReleaseStatus) -> str:
    """The state of a release in words."""
    if status.state == DONE:
        return "finished" if status.over else "watched"
    return stage_name(status.state)


def verdict_text(row: StageStatus) -> str:
    """The evidence of a stage in words."""
    if row.state == "skipped":
        return f"skipped by {row.by}"
    if row.verdict is None:
        return "no evidence" if row.state != "waiting" else "–"
    return VERDICTS[row.verdict]


def users_text(status: ReleaseStatus) -> str:
    """Who should get the candidate."""
    share = status.share
    return "no user" if not share else "all users" if share >= 1 else f"{percent(share)} of users"


BOARD: Sequence[Column] = (
    Column("name", "Release", "code"),
    Column("state", "State", "words", value=state_name),
    Column("share", "Users", "share"),
    Column("next", "Next", text=next_text),
    Column("margin", "Nearest guardrail", drop=1, optional=True),
)
STAGES: Sequence[Column] = (
    Column("stage", "Stage", "words", value=lambda row: stage_name(row.stage)),
    Column("state", "State", "words"),
    Column("verdict", "Evidence", "words", value=verdict_text),
    Column("reason", "Reason"),
    Column("entered_us", "Since", "time", drop=1),
)


def shares_text(rollout: Mapping[str, Any]) -> str:
    """What a rollout gives to whom."""
    share, control = rollout.get("treatment_share", 0), rollout.get("control_share", 0)
    if rollout.get("stopped") or not share:
        return "all users get the baseline"
    if share >= 1:
        return "all users get the candidate"
    return f"{percent(share)} of users get the candidate, {percent(control)} are its control"


def sentence_of(event: ReleaseEvent) -> str:
    """An event in a sentence."""
    who = "" if event.by == "karat" else f" by {event.by}"
    why = f": {event.reason}" if event.reason else ""
    stage = stage_name(event.stage)
    match event.kind:
        case "evidence":
            assert event.evidence is not None
            return f"{stage}: {VERDICTS[event.evidence.verdict]}{why}"
        case "advanced":
            return f"{stage} passed{who}{why}"
        case "skipped":
            return f"{stage} skipped{who}{why}"
        case "switched":
            rollout = event.rollout or {}
            return f"switch: {shares_text(rollout)}"
        case "unreachable":
            return f"the switch cannot be reached{why}"
        case "reviewed":
            return f"false positives reviewed{who}{why}"
        case "overridden":
            return f"rollback signal overridden{who}{why}"
    return f"{event.kind.replace('_', ' ')}{who}{why}"


def capital(sentence: str) -> str:
    """A sentence with a capital, unless it begins with a name such as ``nDCG@10``."""
    first = sentence.partition(" ")[0].rstrip(":;,")
    return sentence[:1].upper() + sentence[1:] if first.isalpha() and first.islower() else sentence


# --- the board ---


def board(rows: Sequence[ReleaseStatus]) -> Table:
    return Table("", BOARD, list(rows))


def show(rows: Sequence[ReleaseStatus] | ReleaseStatus, out: Console) -> None:
    if not isinstance(rows, ReleaseStatus):
        if rows:
            draw(board(rows), out, close=True)
        else:
            out.print(plain("No releases yet: karat release start begins one."))
        return
    out.print(plain(headline(rows), "bold"))
    out.print(plain(f"Next: {next_text(rows)}"))
    if rows.problem:
        out.print(plain(f"The switch is not where it should be: {rows.problem}"))
    out.print()
    draw(Table("", STAGES, list(rows.stages)), out, close=True)


def to_markdown(rows: Sequence[ReleaseStatus] | ReleaseStatus) -> str:
    if not isinstance(rows, ReleaseStatus):
        return markdown(board(rows))
    stages = markdown(Table("", STAGES, list(rows.stages)))
    return f"# {sentence(headline(rows))}\n\nNext: {sentence(next_text(rows))}\n\n{stages}"


def headline(status: ReleaseStatus) -> str:
    """A release in a line: where it is, and what users get."""
    users = "no user has it" if not status.share else f"{percent(status.share)} of users have it"
    why = f" ({status.reason})" if status.reason else ""
    return (
        f"{status.name}: {status.candidate} for {status.baseline}, "
        f"{state_name(status)}{why}; {users}"
    )
