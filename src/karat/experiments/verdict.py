"""The verdict of an experiment, and the rule that decides it."""

from __future__ import annotations

from collections.abc import Sequence

from karat.tables.experiments.experiment import Effect, HealthCheck, Verdict


def verdict(
    health: Sequence[HealthCheck], effects: Sequence[Effect], *, despite: str, ended: bool
) -> tuple[Verdict, str]:
    """Verdict and reason.

    In this order: an unhealthy experiment has no verdict on its effects · a breached guardrail, or
    a decision metric that is worse, fails · too short is not enough · every guardrail must pass,
    and a decision metric be better, to pass.

    Args:
        health: Its checks.
        effects: Of all users, with ``held``.
        despite: Why a failed check does not matter; empty if it does.
        ended: Whether the planned end is reached.
    """
    failed = [check for check in health if check.state == "fail"]
    if failed and not despite:
        return "unhealthy", f"{_words(failed[0].check)}: {failed[0].detail}"
    for effect in effects:
        if effect.held == "breached":
            return "fail", f"the guardrail {effect.metric} is breached"
        if effect.role == "decision" and effect.held == "worse":
            return "fail", f"{effect.metric} is worse"
    short = [check for check in health if check.state == "cannot_tell"]
    if short:
        return "cannot_tell", f"{_words(short[0].check)}: {short[0].detail}"
    open_ = [e.metric for e in effects if e.role == "guardrail" and e.held != "passed"]
    better = [e.metric for e in effects if e.role == "decision" and e.held == "better"]
    wait = "" if ended else "; it goes on"
    if open_:
        several = "guardrails" if len(open_) > 1 else "guardrail"
        return "cannot_tell", f"the {several} {', '.join(open_)} cannot tell{wait}"
    if not any(effect.role == "decision" for effect in effects):
        return "cannot_tell", "no metric decides: name one (--decide SAT)"
    if not better:
        return "cannot_tell", f"no decision metric is better{wait}"
    guarded = " and every guardrail passed" if any(e.role == "guardrail" for e in effects) else ""
    return "pass", f"{', '.join(better)} {'is' if len(better) == 1 else 'are'} better{guarded}"


def _words(name: str) -> str:
    return name.replace("_", " ")
