"""What a release promises: the review of its change, and proposals by it for the policy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, KaratError
from karat.tables.comparison import Costs
from karat.tables.online.watch import Watched
from karat.tables.records import record_of
from karat.tables.release.review import DesignReview, RollbackSignal
from karat.tables.workspace import RunRow
from karat.workflows.online.log_requests import log_of
from karat.workflows.release.review import review, usual
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.stored_inputs import judged, read_stored
from karat.workflows.workspace.workspace import Workspace

_VERSION = 1  # of the signal


def release_review(
    opened: Workspace, baseline: RunRow, candidate: RunRow, *, now: int
) -> DesignReview:
    """The review of a change between two stored runs, with the log of the workspace."""
    inputs = judged(opened, with_documents=True)
    by = ["class"] if "class" in inputs.queries.frame.columns else []
    watched = None
    with suppress(KaratError):  # without a log the limit is the measure's
        log = log_of(opened)

        def usually() -> dict[str, Any]:
            with open_engine() as engine:
                return usual(log, engine, by, now=now, queries=inputs.queries).to_dict()

        key = key_of(_VERSION, log.version, inputs.digest, by)
        watched = record_of(Watched, opened.artifacts.answer("release-signal", key, usually))
    return review(
        inputs.qrels,
        read_stored(opened, baseline),
        read_stored(opened, candidate),
        queries=inputs.queries,
        documents=inputs.documents,
        by=by,
        watched=watched,
    )


def missing_promises(missing: Sequence[str], found: DesignReview, file: str) -> InputError:
    """The error for a policy that does not say what it promises, with a proposal."""
    return InputError(
        f"the policy does not say what the release promises: {', '.join(missing)}",
        file=file,
        fix=f"confirm or change what the review proposes, and add it:\n\n{proposal(found)}",
    )


def proposal(found: DesignReview) -> str:
    """``[promise]`` and ``[signal]`` by a review, as TOML."""
    gain, first = found.gain, found.slice
    interval = "" if gain.ci_low is None else f"  # {gain.ci_low:.4f} to {gain.ci_high:.4f}"
    costs = found.costs or Costs(found.baseline, found.candidate, [])
    latency, memory = costs.find("latency p95"), costs.find("memory")
    promises = {  # None: not measured
        "measure": f'"{found.measure}"',
        "gain": f"{gain.value or 0.0:.4f}{interval}",
        "slice": f'"{first.attribute}={first.slice}"  # gains most' if first else '"none"',
        "latency_ms": None if latency is None else f"{latency.difference:.3g}",
        "memory": None if memory is None else f'"{memory.difference:+,.0f} {memory.unit}"',
        "labelling": None,
        "attention": None,
        "override": "[]  # who may override the rollback signal",
    }
    lines = [
        f"{key} = {value}" if value else f"# {key} = …  # not measured: write what you expect"
        for key, value in promises.items()
    ]
    return "\n".join(["[promise]", *lines, "", *_signal(found.rollback)])


def _signal(signal: RollbackSignal | None) -> list[str]:
    if signal is None or signal.source != "online":
        return [
            "[signal]  # no metric of the log has a usual range: choose one",
            'metric = "ZeroResults"', "limit = 0.1", 'direction = "above"', 'window = "1d"',
        ]  # fmt: skip
    where = ", ".join(f'{name} = "{value}"' for name, value in signal.slice.items())
    return [
        f"[signal]  # {signal.reason}",
        f'metric = "{signal.metric}"', f"limit = {signal.limit:.6g}",
        f'direction = "{signal.direction}"', f"slice = {{ {where} }}" if where else "slice = {}",
        f'window = "{signal.window}"',
    ]  # fmt: skip


POLICY = """\
# The policy of a release. It is fixed once the release has started.
[offline]
gate = "gate.toml"  # every rule has to hold

[shadow]  # limits; see karat shadow compare
max_errors = "1%"
max_p95_increase = "20%"
max_zero_gained = "1%"
# log = "shadow/candidate.jsonl"  # without it, the stored runs are compared

[ab]
share = "5%"  # of users, in each arm
least = "7d"
longest = "28d"  # without an improvement by then, the release goes back
decide = ["SAT"]
# non_inferior = "half the price"  # why no improvement is needed
# approvers = ["anna"]

[guard]  # harm up to this does not matter; more rolls the release back at once
ZeroResults = 0.005
ErrorRate = 0.002

[ramp]
steps = [25, 50, 100]
holdback = "5%"  # stays as control; 0: the last step is watched only

[feed]
silent = "30h"  # without events for this long, the release is held; less for a live log
give_up = "48h"  # held for this long, it goes back

[watch]
for = "14d"  # how long the rollback signal is watched afterwards

[switch]
kind = "file"  # webhook | command | alias
path = "rollout.json"  # karat.assign reads it

"""
"""A policy to begin with; what it promises is missing."""
