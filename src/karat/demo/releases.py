"""Three releases of the demo: one came back, one reached all users, one waits for a person.

Their evidence is real: the gate over the golden set, the stored runs, the simulated traffic. Only
the clock is set: each step happens on a day of the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from karat.demo.build import Demo
from karat.demo.traffic import CUT
from karat.online.rules import DAY, HOUR
from karat.reports.release.pipeline import headline, next_text
from karat.tables.online.events import EventLog
from karat.tables.release.pipeline import ReleaseStatus
from karat.workflows.release import pipeline
from karat.workflows.workspace.workspace import Workspace, open_workspace

FIRST, SECOND, THIRD = "hybrid-1", "hybrid-2", "semantic"
WHO = "karat demo"
_ALONE: dict[str, str] = {}  # ignores KARAT_STORE, as the demo's workspace
_GATE = """\
# What a release of the demo must hold offline; gate.toml of the demo asks for more.
[[rule]]
measure = "nDCG@10"
max_drop = "5%"

[[rule]]
measure = "R@100"
max_drop = 0.01
evidence = "interval"
"""
_POLICY = """\
# A release of the demo. Its arms are those of the simulated traffic.
[offline]
gate = "release-gate.toml"

[shadow]  # the stored runs are compared: they have no times
min_requests = 50
max_errors = "5%"
max_zero_gained = "5%"
max_p95_increase = false
min_overlap = false

[ab]
share = "50%"
control = "bm25"
candidate = "hybrid"
least = "7d"
longest = "{longest}"
decide = ["ZeroResults"]

[guard]  # harm up to this does not matter
Abandonment = "5%"
"Latency(p95)" = {latency}  # milliseconds

[ramp]
steps = [100]
holdback = 0  # watched only

[watch]
for = "5d"

[promise]
measure = "nDCG@10"
gain = 0.0
slice = "class=misspelt"
latency_ms = {promised}
memory = "the vectors: 4 MB"
labelling = "none"
attention = "an hour a week"
override = ["{who}"]

[signal]
metric = "ZeroResults"
limit = 0.2
direction = "above"

[switch]
kind = "file"
path = "rollout-{name}.json"
"""


def keep_releases(demo: Demo, log: EventLog) -> None:
    """Walk the releases through the days of the traffic, unless they are there."""
    if CUT not in log.attributes or log.first_day is None:
        return
    folder = demo.directory
    (folder / "release-gate.toml").write_text(_GATE, encoding="utf-8")
    days = _Days(folder, log.first_day)
    with open_workspace(folder, now=days.at(0), environment=_ALONE) as opened:
        if pipeline.release_names(opened):
            return
        _came_back(opened, days)
        _shipped(opened, days)
        policy = days.policy(THIRD, longest="28d", latency=120, promised=0)
        pipeline.start(opened, THIRD, "hybrid", "semantic", policy, by=WHO, now=days.at(33))
        pipeline.run(opened, now=days.at(33, 1))


def _came_back(opened: Workspace, days: _Days) -> None:
    """Its guardrail allows 50 ms, and it costs 80."""
    policy = days.policy(FIRST, longest="7d", latency=50, promised=20)
    pipeline.start(opened, FIRST, "bm25", "hybrid", policy, by=WHO, now=days.at(0))
    pipeline.run(opened, now=days.at(0, 1))
    pipeline.run(opened, now=days.at(7, 2))


def _shipped(opened: Workspace, days: _Days) -> None:
    """It promises what it costs."""
    policy = days.policy(SECOND, longest="21d", latency=120, promised=80)
    pipeline.start(opened, SECOND, "bm25", "hybrid", policy, by=WHO, now=days.at(7, 3))
    pipeline.run(opened, now=days.at(7, 4))
    reason = "ten queries that got worse looked at: two new documents were wrong, and both far down"
    pipeline.Release.of(opened, SECOND, days.at(27)).note("reviewed", by=WHO, reason=reason)
    for day in (28, 30, 32, 35):
        pipeline.run(opened, now=days.at(day, 6))


class _Days:
    """Days of the traffic, from 0, and policies in its folder."""

    def __init__(self, folder: Path, first: int) -> None:
        self._folder, self._first = folder, first

    def at(self, day: int, hour: int = 0) -> int:
        """A time, in microseconds UTC."""
        return (self._first + day) * DAY + hour * HOUR

    def policy(self, name: str, **values: object) -> Path:
        """Write the policy of a release."""
        path = self._folder / f"release-{name}.toml"
        path.write_text(_POLICY.format(name=name, who=WHO, **values), encoding="utf-8")
        return path


def paragraphs(demo: Demo, now: int) -> Iterator[str]:
    """Where the releases are."""
    with open_workspace(demo.directory, now=now, environment=_ALONE) as opened:
        for status in reversed(pipeline.statuses(opened, now=now)):
            yield f"{headline(status)}.{_next(status)}"


def _next(status: ReleaseStatus) -> str:
    return "" if status.over else f" It {next_text(status)}."
