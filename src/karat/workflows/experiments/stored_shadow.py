"""The shadow logs of a workspace: files in its folder ``shadow``, and their stored results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from karat.errors import InputError, UsageError, check_known
from karat.formats.own.shadow_log import head_of, read_limits, read_shadow_log
from karat.tables.experiments.shadow import ShadowResult
from karat.tables.records import record_of
from karat.workflows.experiments.shadow import compare_observed, to_judge
from karat.workflows.golden.pooling import Pooled, enqueue
from karat.workflows.offline.stages import Watch, unwatched
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.stored_inputs import golden_queries, inputs_digest, qrels_now
from karat.workflows.workspace.workspace import Workspace

FOLDER = "shadow"
LIMITS = "limits.toml"  # in that folder; for all of its logs
_SUFFIX = ".jsonl"
_VERSION = 1  # of the computation
_MOST = 2_000  # changed queries that are stored
_JUDGE = 100  # documents to judge that are stored


@dataclass(frozen=True)
class StoredLog:
    """A shadow log in a workspace."""

    name: str
    path: Path = field(repr=False)
    modified_us: int  # when it was last written
    size: int  # bytes
    baseline: str  # names of both sides
    candidate: str
    error: str = ""  # why it cannot be read; empty if it can


def logs(workspace: Workspace) -> list[StoredLog]:
    """The shadow logs of a workspace, by name."""
    return [_stored(path) for path in _paths(workspace)]


def find(workspace: Workspace, name: str) -> StoredLog:
    """One of them; raises UsageError with the nearest name if it is not there."""
    known = {path.name.removesuffix(_SUFFIX): path for path in _paths(workspace)}
    check_known(name, known, f"no shadow log {name!r}", None)
    return _stored(known[name])


def _paths(workspace: Workspace) -> list[Path]:
    return sorted((workspace.workspace.root / FOLDER).glob(f"*{_SUFFIX}"))


def _stored(path: Path) -> StoredLog:
    name = path.name.removesuffix(_SUFFIX)
    try:
        with path.open("rb") as file:
            now = os.fstat(file.fileno())
        engines = head_of(path).get("engines") or {}
    except (InputError, OSError) as error:
        said = error.what if isinstance(error, InputError) else str(error.strerror)
        return StoredLog(name, path, 0, 0, "", "", said)
    sides = (str(engines.get(side) or side) for side in ("baseline", "candidate"))
    return StoredLog(name, path, now.st_mtime_ns // 1000, now.st_size, *sides)


@dataclass(frozen=True)
class ShadowAnalysis:
    """A log, in slices of some attributes of the queries."""

    workspace: Workspace
    log: StoredLog
    by: Sequence[str] = ()

    @property
    def key(self) -> str:
        """Of the log, its limits, and the judgments and queries of the golden set."""
        place = self._limits
        limits = "" if place is None else place.read_text("utf-8", "replace")
        golden = inputs_digest(self.workspace)
        log = [self.log.name, self.log.size, self.log.modified_us]
        return key_of(_VERSION, *log, limits, golden, list(self.by))

    @property
    def _limits(self) -> Path | None:
        place = self.workspace.workspace.root / FOLDER / LIMITS
        return place if place.is_file() else None

    def found(self) -> ShadowResult | None:
        """The stored result; None if it is not computed yet."""
        answer = self.workspace.artifacts.found(FOLDER, self.key)
        return None if answer is None else record_of(ShadowResult, answer)

    def compute(self, progress: Watch = unwatched) -> None:
        """Compare the answers, and store the result."""
        self.workspace.artifacts.answer(FOLDER, self.key, lambda: self._result(progress).to_dict())

    def _result(self, progress: Watch) -> ShadowResult:
        progress("reading requests", 0, 0)
        place = self._limits
        observed = read_shadow_log(self.log.path)
        limits = None if place is None else read_limits(place)
        progress("comparing answers", 0, 0)
        return compare_observed(
            observed,
            qrels=qrels_now(self.workspace),
            queries=golden_queries(self.workspace),
            by=self.by,
            limits=limits,
            judge_next=_JUDGE,
            most=_MOST,
        )


def queue_priorities(workspace: Workspace, found: ShadowResult, *, now: int) -> Pooled:
    """Add the judging priorities of a result to the queue, as far as their queries are known."""
    pairs = to_judge(found, golden_queries(workspace))
    if not len(pairs):
        raise UsageError(
            "no query of these documents is in the golden set",
            fix="choose queries from the log first: karat golden choose",
        )
    return enqueue(workspace, pairs, now=now)
