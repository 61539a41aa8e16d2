"""The first steps in an empty workspace, and the demo to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Response

from karat.demo.load import DEMO_SCALE, load_demo
from karat.errors import UsageError
from karat.web.framework.auth import AnEngineer
from karat.web.framework.call import Call
from karat.web.framework.pages import redirect
from karat.web.framework.progress import Job, Progress, last, run
from karat.web.framework.state import AppState
from karat.web.golden.golden_sets import address, place
from karat.workflows.golden.status import Status
from karat.workflows.golden.status import status as status_of
from karat.workflows.workspace.stored_comparisons import listed

ROUTER = APIRouter()
DEMO_JOB = "demo"
_LOST_US = 120_000_000  # without news for longer, it is not being loaded any more
_WAIT_S = 20.0  # for the demo, before the page says that it is being loaded


@dataclass(frozen=True)
class Step:
    """A step to first numbers."""

    name: str
    says: str
    done: bool
    where: str  # the page to do it on
    command: str


def first_steps(site: AppState, sets: Sequence[Status], *, events: bool) -> Sequence[Step]:
    """The steps from an empty workspace to numbers; none once the first four are done."""
    if not sets:
        return ()
    first = sets[0]
    steps = [
        Step(
            "Queries",
            "what people ask: from a log, a file, Quepid, or typed",
            any(each.made_of.queries for each in sets),
            address(first.name, "queries"),
            "karat golden choose LOG",
        ),
        Step(
            "A run",
            "what your search returns for them: ask an engine, or upload a file",
            any(each.runs for each in sets),
            "/runs#bring",
            "karat search ENGINE",
        ),
        Step(
            "Judgments",
            "how good each document is: by people, by machine, or import them",
            any(each.grades for each in sets),
            place(first.name, "karat golden pool"),
            "karat judge",
        ),
        Step(
            "A comparison",
            "whether a change is better, and how sure that is",
            any(listed(site.opened(each.name)) for each in sets),
            "/comparisons/new",
            "karat compare",
        ),
        Step("Events", "what users do", events, "/online", "karat online import LOG"),
    ]
    return () if all(each.done for each in steps[:-1]) else steps


def may_load_demo(call: Call, sets: Sequence[Status]) -> bool:
    """Whether the only golden set is empty, and the demo's grades are on its scale."""
    if len(sets) != 1 or call.principal.person.role == "rater":
        return False
    [only] = sets
    empty = not (only.made_of.queries or only.runs or only.grades)
    return empty and call.site.opened(only.name).golden.scale == DEMO_SCALE


def loading(call: Call) -> Job | None:
    """The loading of the demo, if it goes on; a process that was killed left one behind."""
    job = last(call.site, DEMO_JOB)
    if job is None or job.state not in ("waiting", "running", "cancelling"):
        return None
    return job if call.now - job.updated_us < _LOST_US else None


@ROUTER.post("/demo")
def load_the_demo(call: AnEngineer) -> Response:
    """Fill the empty golden set with the demo's queries, judgments and runs."""
    site, [row, *_] = call.site, call.site.golden_sets()
    sets = [status_of(site.opened(row.name), now=call.now)]
    if not may_load_demo(call, sets):
        raise UsageError(
            "the demo is loaded only into an empty golden set with grades from 0 to 3",
            fix="karat demo builds it in a folder of its own",
        )
    opened, who = site.opened(row.name), call.by

    def work(progress: Progress) -> None:
        load_demo(opened, **who, said=lambda step: progress(step, 0, 0))

    run(site, DEMO_JOB, "The demo", work, _WAIT_S)
    return redirect(call, "/")
