"""Grades from the clicks of the demo's traffic, next to people's."""

from __future__ import annotations

from collections.abc import Iterator

from karat.demo.build import Demo
from karat.demo.traffic import CUT
from karat.errors import CannotTell
from karat.reports.online.click_grades import misled
from karat.reports.phrases.numbers import counted
from karat.tables.online.events import EventLog
from karat.workflows.online.click_agreement import agree_clicks
from karat.workflows.online.click_judgments import judge_clicks
from karat.workflows.workspace.workspace import open_workspace


def keep_clicks(demo: Demo, log: EventLog, *, now: int) -> Iterator[str]:
    """Add the grades to the workspace, and say what they are worth."""
    if CUT not in log.attributes:
        return
    with open_workspace(demo.directory, now=now, environment={}) as opened:
        try:
            made = judge_clicks(log, workspace=opened, now=now)
        except CannotTell as refusal:
            yield f"Clicks make no grades: {refusal}"
            return
        kappa = agree_clicks(opened, now=now).all.kappa
    agreed = "" if kappa.value is None else f", with which they agree by κ {kappa.value:.2f}"
    yield (
        f"{counted(made.graded, 'pair')} of the golden set have a grade from clicks next to "
        f"people's{agreed}. Simulated users click by people's grades: this is not evidence."
    )
    if sentence := misled(made):
        yield sentence
