"""The policy of a workspace: its verdict on a stored comparison, and how the first is written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.formats.own.policy import read_policy
from karat.release.policy import Policy
from karat.store.sql import audit
from karat.tables import Qrels
from karat.tables.records import record_of
from karat.tables.release.gate import Gate
from karat.tables.workspace import ComparisonRow
from karat.workflows.release.gate import DEFAULT, gate, start_policy
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.stored_comparisons import StoredComparison, sides
from karat.workflows.workspace.stored_inputs import Judged, judged
from karat.workflows.workspace.stored_runs import read_stored
from karat.workflows.workspace.workspace import Workspace, display_name

KIND = "policy-verdict"
_VERSION = 1  # of the computation


def policy_in(opened: Workspace) -> Policy | None:
    """The policy of the workspace; None without one.

    Raises:
        InputError: its file is invalid or cannot be read.
    """
    there = (opened.workspace.root / DEFAULT).exists()
    return policy_named(opened, DEFAULT) if there else None


def policy_named(opened: Workspace, name: str) -> Policy:
    """A policy by its path in the folder of the workspace; raises InputError."""
    path = opened.workspace.root / name
    with display_name(path, name):
        return replace(read_policy(path), source=name)


def policy_text(opened: Workspace) -> str:
    """The content of its file; empty without one."""
    path = opened.workspace.root / DEFAULT
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


@dataclass(frozen=True)
class Deciding:
    """A policy and a candidate of a stored comparison, by the grades that the comparison used."""

    opened: Workspace
    row: ComparisonRow
    found: StoredComparison
    candidate: str
    policy: Policy

    @property
    def key(self) -> str:
        """Of the comparison's numbers, which have all but the policy."""
        policy = self.policy
        rules = repr((policy.content, policy.fully_judged, policy.notes))
        return key_of(_VERSION, self.row.key, self.candidate, rules)

    def kept(self) -> Gate | None:
        stored = self.opened.artifacts.found(KIND, self.key)
        return None if stored is None else record_of(Gate, stored)

    def compute(self) -> Gate:
        """The verdict, computed unless it is there."""
        made = self.opened.artifacts.answer(KIND, self.key, lambda: self._gate().to_dict())
        return record_of(Gate, made)

    def _gate(self) -> Gate:
        inputs = _inputs(self.opened, self.row, self.found, self.policy.attributes)
        runs = sides(self.opened, self.row, self.found, self.candidate).values()
        baseline, candidate = read_stored(self.opened, list(runs))
        return gate(
            self.policy,
            inputs.qrels,
            baseline,
            candidate,
            queries=inputs.queries,
            documents=inputs.documents,
        )


def write_first_policy(
    opened: Workspace, row: ComparisonRow, found: StoredComparison, *, person: str, now: int
) -> None:
    """Write a policy that fits the baseline of a comparison; audited.

    Raises:
        InputError: the workspace has a policy, which is never overwritten.
    """
    path = opened.workspace.root / DEFAULT
    inputs = _inputs(opened, row, found, [])
    candidate = found.comparison.differences[0].candidate
    [baseline] = read_stored(opened, [sides(opened, row, found, candidate)["baseline"]])
    with opened.store.begin() as connection, display_name(path, DEFAULT):
        audit.note(connection, person, "write policy", DEFAULT, now, {"comparison": row.id})
        start_policy(path, inputs.qrels, baseline, queries=inputs.queries)


def _inputs(
    opened: Workspace, row: ComparisonRow, found: StoredComparison, by: list[str]
) -> Judged:
    """What the comparison was computed from: its grades, even if others count by now."""
    inputs = judged(opened, row.settings["edition"], with_documents=bool(of_documents(by)))
    with found.files.reading():
        grades = pl.read_parquet(found.files.tables["grades"])
    return replace(inputs, qrels=Qrels(grades, inputs.qrels.source).on_scale(opened.golden.scale))
