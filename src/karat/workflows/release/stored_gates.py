"""Results of gates that a workspace keeps: added by each way to run one, listed, read back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from karat.errors import KaratError, UsageError, nearest
from karat.formats.own.workspace import find_workspace, read_workspace
from karat.formats.tables.detect import own_kind
from karat.formats.tables.source import Source
from karat.release.policy import Policy
from karat.store.sql import comparisons, gates, golden_sets, releases, runs
from karat.store.sql.opening import open_store
from karat.tables.records import record_of, shared
from karat.tables.release.gate import Check, Gate, GatePlaces, GateRecord, GateRow, GateSource
from karat.tables.release.history import Point
from karat.tables.results import Origin
from karat.tables.workspace import RunRow
from karat.workflows.offline.report import origins_of
from karat.workflows.release.policy_verdicts import policy_named
from karat.workflows.release.stored_trends import histories_of
from karat.workflows.workspace.annotations import time_of
from karat.workflows.workspace.evaluate_stored import gate_stored
from karat.workflows.workspace.workspace import Workspace

_REPEAT_US = timedelta(days=1) // timedelta(microseconds=1)
_CURRENT_US = timedelta(days=30) // timedelta(microseconds=1)
_FOLDERS = (".", "policies")  # of a workspace, with policies
_SECOND = 1_000_000
_MOST = 200  # results of a run that are looked at


@dataclass(frozen=True)
class Checked:
    """Who checks, with what, and when."""

    source: GateSource
    person: str
    now: int  # microseconds UTC
    commit: str | None = None
    release: str | None = None  # the release whose evidence it is


def keep(opened: Workspace, gate: Gate, by: Checked) -> int:
    """Keep the result of a gate that this process computed; its id.

    The same result, of the same source and person within a day, is kept once: a release gathers
    evidence again and again, and a program may repeat its request. A command always adds one.
    """
    row = _row(gate, by)
    same = ("source", "person", "commit", "candidate", "policy", "verdict")
    with opened.store.begin() as connection:
        for known in gates.listed(connection, opened.golden.id) if by.source != "command" else ():
            if by.now - known["time_us"] > _REPEAT_US:
                break
            if all(known[name] == row[name] for name in same):
                before = gates.find(connection, known["id"])
                if before is not None and before["content"] == row["content"]:
                    return int(known["id"])
        return gates.add(connection, opened.golden.id, row)


def keep_here(start: Path, gate: Gate, by: Checked) -> int:
    """Keep a result in the workspace of a folder; its id.

    The workspace stays as it is: edits of its files have no effect here.

    Raises:
        KaratError: there is no store, it is of another version, or does not answer.
    """
    workspace = read_workspace(find_workspace(start))
    store = open_store(workspace.store)
    try:
        with store.begin() as connection:
            golden = golden_sets.find(connection, workspace.golden)
            return gates.add(connection, golden.id, _row(gate, by))
    finally:
        store.dispose()


def check_stored(
    opened: Workspace,
    policy: Policy,
    baseline: int | str | None,
    candidate: int | str,
    by: Checked | None,
    **settings: Any,
) -> tuple[int | None, Gate]:
    """Check a stored run as ``gate_stored`` does; the result and its id, None if not kept."""
    gate = gate_stored(opened, policy, baseline, candidate, **settings)
    return (None if by is None else keep(opened, gate, by)), gate


def policies(opened: Workspace) -> list[str]:
    """The policies in the workspace's folder and its folder ``policies``, by relative path."""
    root = opened.workspace.root
    paths = [path for folder in _FOLDERS for path in sorted((root / folder).glob("*.toml"))]
    return [path.relative_to(root).as_posix() for path in paths if _is_policy(path)]


def _is_policy(path: Path) -> bool:
    with suppress(KaratError), Source(path) as source:
        return own_kind(source) == "a policy"
    return False


def check_by_file(
    opened: Workspace,
    policy: str,
    baseline: int | None,
    candidate: int,
    by: Checked,
    *,
    edition: str,
) -> int:
    """Check a stored run against a policy of ``policies``, and keep the result; its id."""
    known = policies(opened)
    if policy not in known:
        raise UsageError(
            f"the workspace has no policy {policy!r}",
            nearest=nearest(policy, known, 1),
            fix="karat gate --init writes one",
        )
    rules = policy_named(opened, policy)
    number, _ = check_stored(opened, rules, baseline, candidate, by, edition=edition)
    assert number is not None
    return number


def gates_listed(opened: Workspace) -> list[GateRow]:
    """The results of the golden set, newest first, without the checks that decide them."""
    with opened.store.read() as connection:
        return [GateRow(**row) for row in gates.listed(connection, opened.golden.id)]


def with_checks(opened: Workspace, rows: Sequence[GateRow]) -> list[GateRow]:
    """Results with the checks that decide them."""
    with opened.store.read() as connection:
        broken = [row.id for row in rows if row.verdict != "pass"]
        checks = gates.parts(connection, broken, "gate", "checks", 0)
    return [
        replace(row, decides=record_of(Check, checks[row.id]) if checks.get(row.id) else None)
        for row in rows
    ]


def gate_record(opened: Workspace, gate_id: int) -> GateRecord | None:
    """A result of any golden set in full, and where the workspace has what it is about."""
    with opened.store.read() as connection:
        found = gates.find(connection, gate_id)
        if found is None:
            return None
        golden = golden_sets.by_id(connection, found.pop("golden_set_id"))
    content = found.pop("content")
    gate = record_of(Gate, content["gate"])
    decides = gate.checks[0] if gate.checks and gate.verdict != "pass" else None
    row = GateRow(**found, decides=decides)
    return GateRecord(
        row=row,
        golden=golden.name,
        gate=gate,
        origins=[record_of(Origin, each) for each in content["origins"]],
        rules=[(name, value) for name, value in content["rules"]],
        places=_places(replace(opened, golden=golden), row, gate, content["release"]),
    )


def gates_of(opened: Workspace, candidate: RunRow, baseline: RunRow | None = None) -> list[GateRow]:
    """The results of a stored run as the candidate, newest first; against one baseline if given."""

    def named(run: RunRow | None, name: str | None) -> bool:
        return run is None or name in run.names or name == run.name

    rows = [
        row
        for row in gates_listed(opened)
        if named(candidate, row.candidate) and named(baseline, row.baseline)
    ][:_MOST]
    with opened.store.read() as connection:
        hashes = gates.parts(connection, [row.id for row in rows], "gate", "hashes")
    return [
        row
        for row in rows
        if hashes[row.id].get("candidate") == candidate.sha256
        and (baseline is None or hashes[row.id].get("baseline") == baseline.sha256)
    ]


def gates_of_points(opened: Workspace, points: Sequence[Point]) -> list[int | None]:
    """The id of the result behind each point of a history; None without one.

    It is of the same run, with the same verdict, at the same second or else of the same commit.
    """
    found: dict[tuple[object, ...], int] = {}
    for row in gates_listed(opened):
        for key in _keys(row):
            found.setdefault(key, row.id)
    return [
        next((found[key] for key in _keys(point) if key in found), None)
        if point.kind == "gate"
        else None
        for point in points
    ]


def newest_of_candidates(opened: Workspace) -> dict[str, GateRow]:
    """The newest result of each candidate, within the 30 days before the newest of all."""
    rows = gates_listed(opened)
    newest: dict[str, GateRow] = {}
    for row in rows:
        if row.time_us >= rows[0].time_us - _CURRENT_US:
            newest.setdefault(row.candidate, row)
    return newest


def _row(gate: Gate, by: Checked) -> dict[str, Any]:
    """A row of the store, whose texts and numbers any database can hold."""
    origins, rules = origins_of(gate)
    content = {
        "gate": gate.to_dict(),
        "origins": [asdict(each) for each in origins],
        "rules": rules,
        "release": by.release,
    }
    row = shared(gate, GateRow) | shared(by, GateRow) | {"content": content}
    return {**_storable(row), "time_us": by.now}


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _places(opened: Workspace, row: GateRow, gate: Gate, release: str | None) -> GatePlaces:
    with opened.store.read() as connection:
        stored = runs.runs(connection, opened.golden.id)
        compared = comparisons.comparisons(connection, opened.golden.id)
        openings = releases.openings(connection)
    hashes = {role: gate.hashes.get(role) for role in ("candidate", "baseline")}
    by_hash, by_name = {each.sha256: each for each in stored}, runs.by_name(stored)
    candidate = by_hash.get(hashes["candidate"] or "") or by_name.get(gate.candidate)
    baseline = by_hash.get(hashes["baseline"] or "") or by_name.get(gate.baseline or "")
    known = [
        (each.sha256, hashes[role])
        for role, each in (("candidate", candidate), ("baseline", baseline))
        if each is not None
    ]
    comparison = None
    if candidate is not None and baseline is not None:
        both = (
            each.id
            for each in compared
            if each.runs[0] == baseline.id and candidate.id in each.runs[1:]
        )
        comparison = next(both, None)
    names = (
        name
        for name, content in openings.items()
        if all(content["opening"][role]["run"] == sha256 for role, sha256 in hashes.items())
    )
    history, series = next(_points_of(opened, row), (None, None))
    return GatePlaces(
        candidate=None if candidate is None else candidate.id,
        baseline=None if baseline is None else baseline.id,
        same=all(sha256 == checked for sha256, checked in known),
        comparison=comparison,
        release=release or next(names, None),
        history=history,
        series=series,
    )


def _points_of(opened: Workspace, row: GateRow) -> Iterator[tuple[str, str]]:
    """The history and the series of the points that have the result, newest first."""
    keys = set(_keys(row))
    for history in histories_of(opened):
        for point in reversed(history.points):
            own = (point.kind, point.run, point.verdict) == ("gate", row.candidate, row.verdict)
            if own and not keys.isdisjoint(_keys(point)):
                yield history.name, point.series_name


def _keys(gate: GateRow | Point) -> Collection[tuple[object, ...]]:
    """What results and points of the same gate have in common, the surest first."""
    if isinstance(gate, GateRow):
        name, seconds = gate.candidate, gate.time_us // _SECOND
    else:
        name, seconds = gate.run, time_of(gate.time) // _SECOND
    by_time = (name, gate.verdict, "second", seconds)
    return [
        by_time,
        *([] if gate.commit is None else [(name, gate.verdict, "commit", gate.commit)]),
    ]
