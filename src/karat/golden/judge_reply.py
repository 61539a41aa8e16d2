"""What came of a judge's reply: a grade, an abstention, or the reason why there is none.

Nothing that is not exactly a grade of the scale becomes one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from karat.tables.golden.machine_judges import ABSTENTIONS, JudgeConfig, JudgePair, Verdict

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_MOST = 600  # characters of a reason that are stored


def verdict(config: JudgeConfig, pair: JudgePair, text: str) -> Verdict:
    """The verdict of a reply.

    Args:
        config: The judge.
        pair: The pair it was asked about.
        text: A JSON object, or text with exactly one fenced JSON object.
    """
    try:
        value = _object(text)
    except ValueError as error:
        return Verdict("malformed", error=str(error))
    return verdict_of(config, pair, value)


def verdict_of(config: JudgeConfig, pair: JudgePair, value: Mapping[str, Any]) -> Verdict:
    """The verdict of a reply that is an object already."""
    grade, cannot = value.get("grade"), value.get("cannot_judge")
    reason = str(value.get("reason") or value.get("intent_match") or "")[:_MOST]
    evidence = value.get("evidence")
    evidence = evidence if isinstance(evidence, str) else ""
    flagged = value.get("instructions_in_document") is True
    if cannot is not None:
        if cannot not in ABSTENTIONS:
            return Verdict(
                "malformed",
                error=f"cannot_judge is {cannot!r}, not one of {', '.join(ABSTENTIONS)}",
            )
        if grade is not None:
            return Verdict("malformed", error="both a grade and cannot_judge")
        return Verdict("abstained", None, cannot, evidence, flagged)
    if type(grade) not in (int, float) or grade not in config.grades:
        allowed = ", ".join(f"{each:g}" for each in config.grades)
        return Verdict("malformed", error=f"grade is {grade!r}, not one of {allowed}")
    middle = config.grades[len(config.grades) // 2]
    quoted = "evidence" in value
    if quoted and grade >= middle and not supported(evidence, pair, config.characters):
        return Verdict(
            "unsupported", None, reason, evidence[:_MOST], flagged, "its evidence is not in it"
        )
    return Verdict("ok", float(grade), reason, evidence[:_MOST], flagged)


def supported(evidence: str, pair: JudgePair, characters: int) -> bool:
    """Whether the evidence is a part of the document as the judge saw it."""
    words = _folded(evidence)
    seen = _folded(f"{pair.title or ''} {pair.url or ''} {pair.document[:characters]}")
    return bool(words) and words in seen


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _object(text: str) -> dict[str, Any]:
    """The JSON object of a reply."""
    found = [text]
    if not text.lstrip().startswith("{"):
        found = _FENCE.findall(text)
        if len(found) != 1:
            raise ValueError(
                "the reply is not JSON" if not found else f"{len(found)} fenced objects, not one"
            )
    try:
        value = json.loads(found[0])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {str(error)[:100]}") from None
    if not isinstance(value, dict):
        raise ValueError(f"the reply is of type {type(value).__name__}, not an object")
    return value
