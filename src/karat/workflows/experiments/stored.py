"""The experiments of a workspace: plans in its folder ``experiments``, and their stored answers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from karat.errors import InputError, UsageError, check_known
from karat.formats.own.experiments import read_plan
from karat.online.metrics import registry
from karat.online.rules import Rules
from karat.tables.experiments.experiment import ExperimentPlan
from karat.tables.experiments.interleaving import TEAMS
from karat.tables.online.events import EventLog
from karat.workflows.experiments.analyze import analyze_events, with_defaults
from karat.workflows.experiments.interleaving import analyze_interleaving
from karat.workflows.experiments.plan import plan_experiment
from karat.workflows.offline.stages import Watch, unwatched
from karat.workflows.online.log_requests import LogRequest, Question
from karat.workflows.workspace.workspace import Workspace

FOLDER = "experiments"
_VERSION = 2  # of the computations
_PAGES = ("planning", "interleaving")  # whose addresses would be those of the experiments


@dataclass(frozen=True)
class Declared:
    """A plan in a workspace."""

    name: str
    plan: ExperimentPlan | None  # None if the file is not a plan
    error: str = ""  # why not
    digest: str = ""  # of the plan and its exposures


def declared(workspace: Workspace) -> list[Declared]:
    """The experiments of a workspace, by name."""
    return [_declared(path) for path in _plans(workspace)]


def find(workspace: Workspace, name: str) -> Declared:
    """One of them; raises UsageError with the nearest name if it is not there."""
    known = {path.stem: path for path in _plans(workspace)}
    check_known(name, known, f"no experiment {name!r}", None)
    return _declared(known[name])


def _plans(workspace: Workspace) -> list[Path]:
    return sorted((workspace.workspace.root / FOLDER).glob("*.toml"))


def _declared(path: Path) -> Declared:
    if path.stem in _PAGES:
        return Declared(path.stem, None, f"{path.stem} is the name of a page: rename {path.name}")
    try:
        plan = with_defaults(read_plan(path))
        digest = hashlib.sha256(path.read_bytes())
        if plan.exposures is not None:
            # By size and time: exposures can be large, and every page asks.
            with Path(plan.exposures).open("rb") as file:
                now = os.fstat(file.fileno())
            digest.update(f"{now.st_size} {now.st_mtime_ns}".encode())
    except (InputError, UsageError) as error:
        said = str(error).replace(f"{path.parent}/", f"{FOLDER}/")
        return Declared(path.stem, None, said)
    except OSError as error:
        name = Path(plan.exposures or "").name
        return Declared(path.stem, None, f"its exposures {name} cannot be read: {error.strerror}")
    return Declared(path.stem, plan, "", digest.hexdigest()[:24])


@dataclass(frozen=True)
class Analysis(LogRequest):
    """An experiment, in slices of some dimensions."""

    what = "experiment"
    declared: Declared
    by: Sequence[str] = ()

    def question(self, log: EventLog) -> Question:  # noqa: ARG002 - as for other requests
        plan = self.declared.plan
        assert plan is not None
        names = [*plan.decide, *(guard.metric for guard in plan.guards), *plan.diagnose]
        versions = [[metric.name, metric.version] for metric in registry.find_all(names)]
        asked = {"digest": self.declared.digest, "by": list(self.by), "versions": versions}
        return {"what": self.what, "rules": Rules().id, "version": _VERSION, **asked}

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        assert self.declared.plan is not None
        read = partial(progress, "reading events")
        return analyze_events(log, self.declared.plan, by=self.by, progress=read).to_dict()


@dataclass(frozen=True)
class Plan(LogRequest):
    """What an experiment on the traffic of the log could find."""

    what = "experiment-plan"

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        progress("reading events", 0, 0)
        return plan_experiment(log).to_dict()


@dataclass(frozen=True)
class Preference(LogRequest):
    """Which of two interleaved rankings users prefer."""

    what = "interleaving"

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        progress("reading events", 0, 0)
        return analyze_interleaving(log).to_dict()


def interleaved(log: EventLog) -> bool:
    """Whether a log has interleaved searches."""
    return TEAMS in log.attributes
