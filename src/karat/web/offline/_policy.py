"""What the workspace's policy says of a candidate, as the page of a comparison shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from starlette.exceptions import HTTPException

from karat.errors import KaratError
from karat.reports.phrases.gate import ANSWERS, deciding, why, would_change
from karat.reports.release.gate import checks, lost
from karat.reports.table import Table
from karat.tables.release.gate import Check, Gate, Regression
from karat.tables.workspace import ComparisonRow
from karat.web.framework.errors import Said, refused
from karat.web.framework.jobs import stored_or_computed
from karat.workflows.release.policy_verdicts import KIND, Deciding, policy_in, policy_text
from karat.workflows.workspace.stored_comparisons import StoredComparison
from karat.workflows.workspace.workspace import Workspace

_MOST = 5  # queries in the banner


@dataclass(frozen=True)
class PolicyVerdict:
    """The verdict of a policy, the check that decides it, and what would change that."""

    state: Literal["no policy", "computing", "decided", "error"]
    verdict: str | None = None  # as in `GateVerdict`; None unless it is decided
    word: str = ""  # Ship, Hold, Cannot tell, …
    reason: str = ""
    change: str = ""  # what would change it, in sentences
    deciding: Check | None = None
    regressions: Sequence[Regression] = ()  # those of the check that decides, the largest first
    leads: Sequence[tuple[str, str]] = field(default=(), repr=False)  # their texts and addresses
    wrong: Said | None = None  # why there is no verdict
    checks: Table | None = field(default=None, repr=False)
    lost: Table | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)  # of the policy


def policy_verdict(
    workspace: Workspace,
    row: ComparisonRow,
    found: StoredComparison,
    candidate: str,
    wait_s: float,
    link: Callable[[Regression], str],
) -> PolicyVerdict:
    """The verdict, computed in the background; "computing" if that takes longer than a wait."""
    gate = None
    try:
        policy = policy_in(workspace)
        if policy is None:
            return PolicyVerdict("no policy")
        with suppress(HTTPException):  # the server is busy: the page looks again
            asked = Deciding(workspace, row, found, candidate, policy)
            gate = stored_or_computed(KIND, asked, wait_s)
    except KaratError as error:
        return PolicyVerdict("error", wrong=refused(error)[1])
    shown = PolicyVerdict("computing") if gate is None else _decided(gate, link)
    return replace(shown, text=policy_text(workspace))


def _decided(gate: Gate, link: Callable[[Regression], str]) -> PolicyVerdict:
    check = deciding(gate)
    measure = None if check is None else check.measure
    worse = [each for each in gate.lost if each.measure == measure]
    own = [each for each in worse if check and each.slice in {None, check.slice}]
    own = (own or worse)[:_MOST]
    return PolicyVerdict(
        "decided",
        gate.verdict,
        ANSWERS[gate.verdict],
        why(gate),
        would_change(gate),
        check,
        own,
        [(each.text or each.query_id, link(each)) for each in own],
        checks=checks(gate.checks),
        lost=lost(gate.lost, several=True, link=link) if gate.lost else None,
    )
